from __future__ import annotations

import tomllib

import pytest

from pgstrata.errors import ExperimentError
from pgstrata.experiment.servers import mask_conninfo
from pgstrata.libpq import parse_conninfo
from pgstrata.model.secret import Secret

CELL = '[[cells]]\nworkload = "select-only"\nscale = 1\nclients = 2\n'


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://me:hunter2@db/app",
        "postgres://me:hunter2@db:5432,other:5433/app?sslmode=require",
        "postgresql://me:p@hunter2@db/app",
        "postgresql://me:hun?ter2@db/app",
        "postgresql://db/app?user=me&password=hunter2&connect_timeout=3",
        "postgresql://db/app?pass%77ord=hunter2",
        "host=db password=hunter2 user=me",
        "host=db password = 'hunter2 \\' more' user=me",
        "host=db PASSWORD='hunter2",
        "sslpassword=hunter2 host=db",
    ],
)
def test_passwords_are_masked_in_every_form(text):
    masked = mask_conninfo(text)
    assert "hunter2" not in masked
    assert "ter2" not in masked
    assert Secret.MASK in masked
    assert mask_conninfo(masked) == masked


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
    ],
)
def test_the_text_of_an_experiment_holds_no_password(parse, line):
    experiment = parse(f"[factors]\n{line}\n{CELL}")
    assert "hunter2" not in experiment.text
    assert "hunter2" not in repr(experiment)
    assert experiment.environments[0].server.conninfo is not None
    assert "hunter2" in experiment.environments[0].server.conninfo.reveal()
    assert tomllib.loads(experiment.text)["cells"][0]["clients"] == 2


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


@pytest.mark.parametrize(
    ("text", "password"),
    [
        ("postgresql://me:a+b@db/app", "a+b"),
        ("postgresql://db/app?password=a+b%26c", "a+b&c"),
        (r"host=db password=a\ b\'c", "a b'c"),
        (r"host=db password='a\'b c'", "a'b c"),
    ],
)
def test_a_password_is_read_as_libpq_reads_it(text, password):
    assert parse_conninfo(text)["password"] == password
