from __future__ import annotations

import json
import tomllib

import pytest

from connection_strings import CANARY, REFUSED, WITH_PASSWORD
from pgstrata.errors import ExperimentError
from pgstrata.experiment.keys import WrongValueError
from pgstrata.experiment.servers import mask_conninfo, mask_level, parse_server, server_slugs
from pgstrata.libpq import compose_connection, parse_conninfo
from pgstrata.model.secret import Secret
from pgstrata.servers.supply import address_of

CELL = '[[cells]]\nworkload = "select-only"\nscale = 1\nclients = 2\n'


@pytest.mark.parametrize("text", WITH_PASSWORD)
def test_passwords_are_masked_in_every_form(text):
    masked = mask_conninfo(text)
    assert CANARY not in masked
    assert Secret.MASK in masked
    assert mask_conninfo(masked) == masked
    server = parse_server(f"dsn:{text}")
    assert CANARY not in f"{server!r} {server.text} {server_slugs((server,))}"
    level, hidden = mask_level(f"dsn:{text}")
    assert CANARY not in f"{level} {hidden}"
    assert parse_server(level, hidden) == server


@pytest.mark.parametrize(("text", "password"), WITH_PASSWORD.items())
def test_a_password_is_read_as_libpq_reads_it(text, password):
    server = parse_server(f"dsn:{text}")
    address = address_of(server, {"PGPASSWORD": "other"})
    assert address.password == Secret(password)
    connection = compose_connection(address)
    assert connection.password == Secret(password)
    assert CANARY not in repr(connection)


@pytest.mark.parametrize("text", REFUSED)
def test_what_could_be_misread_is_refused_without_being_shown(problems, text):
    (found,) = problems(f"[factors]\nserver = [{json.dumps(f'dsn:{text}')}, 'dsn:b']\n{CELL}")
    assert found.remedy
    assert CANARY not in f"{found.key} {found.what} {found.remedy}"


def test_what_libpq_takes_for_another_keyword_or_ignores_is_passed_on_as_that():
    assert parse_conninfo("postgresql://db?ssl=true") == {"host": "db", "sslmode": "require"}
    address = address_of(parse_server("dsn:host=a,b port=1,2 tty=x authtype=y"), {})
    connection = compose_connection(address)
    assert connection.environment == {"PGHOST": "a,b", "PGPORT": "1,2", "PGDATABASE": "postgres"}
    assert connection.arguments == ("postgres",)


@pytest.mark.parametrize("text", ["orders", "postgresql://me@db:5432/app", "host=db user=me", "/usr/lib/postgresql/16"])
def test_texts_without_a_password_stay_as_they_are(text):
    assert mask_conninfo(text) == text


@pytest.mark.parametrize(
    "line",
    [
        'server = ["dsn:host=a password=hunter2", "dsn:postgresql://me:hunter2@b/db"]',
        "server = ['dsn:host=a password=hunter2', 'dsn:b'] # was dsn:host=z password=hunter2",
        'server = ["dsn:host=a pass\\u0077ord=hunter2", "dsn:b"]',
        'server = ["""dsn:host=a\n password=hunter2""", "dsn:b"]',
        'server = { a = "dsn:host=a password=hunter2", b = "dsn:b" }',
        'server = ["dsn:host=a#1 password=hunter2", "dsn:b"] # "password=hunter2"',
        "server = ['''dsn:host=a password\n=\nhunter2''', 'dsn:b']",
    ],
)
def test_the_text_of_an_experiment_holds_no_password(parse, line):
    experiment = parse(f'question = "Does password=hunter2 matter?"\n[factors]\n{line}\n{CELL}')
    assert "hunter2" not in experiment.text
    assert "hunter2" not in repr(experiment)
    assert experiment.environments[0].server.conninfo is not None
    assert "hunter2" in experiment.environments[0].server.conninfo.reveal()
    assert tomllib.loads(experiment.text)["cells"][0]["clients"] == 2


def test_what_an_environment_is_called_has_no_password(parse):
    named = "".join(
        f'[[environments]]\nname = "{name}"\nserver = "{server}"\n'
        for name, server in (("postgres://me:hunter2@db/x", 16), ("tuned", 18))
    )
    first, second = parse(f"{named}{CELL}").environments
    assert (first.label, second.label) == ("postgres://me:********@db/x", "tuned")
    assert "hunter2" not in repr(first)


def test_a_file_without_connection_strings_keeps_its_text(parse):
    text = f'[factors]\nserver = ["16", "18"] # password=none\n{CELL}'
    assert parse(text).text == text


def test_a_service_needs_no_secret(parse):
    server = parse(f'[factors]\nserver = ["dsn:a", "dsn:b"]\n{CELL}').environments[0].server
    assert server.conninfo == Secret("service=a")
    assert server.text == "dsn:a"


def test_masked_levels_are_completed_from_the_strings_handed_in(parse):
    text = f'[factors]\nserver = ["dsn:host=a password=********", "dsn:b"]\n{CELL}'
    experiment = parse(text, conninfo={"host=a password=********": Secret("host=a password=hunter2")})
    assert experiment.environments[0].server.conninfo == Secret("host=a password=hunter2")


def test_masked_levels_without_the_strings_are_refused(problems):
    (found,) = problems(f'[factors]\nserver = ["dsn:host=a password=********", "dsn:b"]\n{CELL}')
    assert found.line == 2
    assert "pgpass" in found.remedy


@pytest.mark.parametrize(
    "text",
    [
        '[factors]\nserver = ["dns:postgresql://me:hunter2@h/d", "18"]\n',
        '[factors]\nserver = ["host=h password=hunter2", "18"]\n',
        '[factors]\nserver = ["dsn:host=h password=hunter2", "18"]\n',
        'baseline = { server = "dsn:host=h password=hunter2" }\n[factors]\nserver = ["dsn:a", "dsn:b"]\n',
        'baseline = "postgresql://me:hunter2@h/d"\n[factors]\nserver = ["dsn:a", "dsn:b"]\n',
        '[factors]\nserver = "dsn:host=h password=hunter2"\n',
        '[factors]\nserver = [["dsn:host=h password=hunter2"]]\n',
        '[factors]\nconnection = ["postgresql://me:hunter2@h/d", "tcp"]\n',
        '[common]\nconnection = "postgresql://me:hunter2@h/d"\n[factors]\nserver = ["16", "18"]\n',
    ],
)
def test_no_message_shows_a_password(parse, text):
    with pytest.raises(ExperimentError) as caught:
        parse(text + CELL)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("host=db passwd=hunter2", "'password'"),
        ("host=db pwd=hunter2 user=me", "'password'"),
        ("host=db pasword='hunter2'", "'password'"),
        ("postgresql://db/app?passwd=hunter2", "'password'"),
        ("postgresql://db/app?pass%77d=hunter2", "'password'"),
        ("host=db password=correct horse=hunter2", "in single quotes"),
        ("postgresql://[::1", "dsn:SERVICE"),
        ("host=db PASSWORD=hunter2", "dsn:SERVICE"),
        ("postgresql://db/app?hunter2", "dsn:SERVICE"),
    ],
)
def test_a_keyword_that_libpq_does_not_know_is_refused_without_what_stands_there(problems, text, meant):
    found = problems(f'[factors]\nserver = ["dsn:{text}", "dsn:b"]\n{CELL}')
    (problem,) = found
    said = f"{problem.key} {problem.what} {problem.remedy}"
    assert meant in problem.remedy
    assert "hunter2" not in said
    assert "horse" not in said


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "text", ["pg://a:" * 20_000, "?" * 100_000, "password=' " * 10_000 + "\\", f"postgresql://{'?' * 100_000}", f"a{' ' * 100_000}b"]
)  # fmt: skip
def test_long_texts_take_no_longer_than_their_length(text):
    assert len(mask_conninfo(text)) <= len(text)
    with pytest.raises(WrongValueError):
        parse_server(f"dsn:{text}")
