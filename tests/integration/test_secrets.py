"""A password wherever one can stand, and where it is found while pgstrata works and afterwards: nowhere else."""

import json
import secrets
import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from connection_strings import WITH_PASSWORD, Places, with_password

pytestmark = [pytest.mark.server, pytest.mark.timeout(300)]

EXPERIMENT = """
# before: dsn:postgresql://keeper:{password}@db
question = "Does password={password} stay away?"
blocks = 1
[factors]
server = ["dsn:postgresql://keeper:{password}@:15431/postgres?host={folder}&application_name=x", "dsn:kept"] # password={password}
[[cells]]
workload = "custom"
scripts = [{{ file = "look.sql", weight = 1 }}]
options.setup_sql = "setup.sql"
scale = 1
clients = 2
run = "1s"
warmup = "0s"
profile = true
"""
LIVE = """
# before: dsn:{comment}
question = "Does password={word} stay away?"
blocks = 1
controls = ["same"]
[common]
server = {level} # password={word}
[[cells]]
workload = "custom"
scripts = [{{ file = "look.sql", weight = 1 }}]
options.setup_sql = "setup.sql"
scale = 1
clients = 1
rate = 20
run = "1s"
warmup = "0s"
"""
OUTSIDE = {
    "PGPASSFILE": ("host={at.host}", lambda at, password: {"PGPASSFILE": at.passfile}),
    "passfile": ("host={at.host} passfile={at.passfile}", lambda at, password: {}),
    "PGPASSWORD": ("postgresql://{at.user}@{at.host}", lambda at, password: {"PGPASSWORD": password}),
    "service": ("with-password", lambda at, password: {}),
}
"""Where a password stands that is in no connection string: the string, and the environment that belongs to it."""


@dataclass
class Watched:
    """What was seen of other processes while one ran: `telling` are those that show a word, with where."""

    telling: list = field(default_factory=list)
    with_password_file: set = field(default_factory=set)
    with_cores: set = field(default_factory=set)

    def look(self, word, running, own):
        for process in Path("/proc").glob("[0-9]*"):
            try:
                argv, environ = (process / "cmdline").read_bytes(), (process / "environ").read_bytes()
                limits = (process / "limits").read_text()
            except OSError:  # it has ended, or is another user's
                continue
            if int(process.name) != running and argv != own and word in argv + environ:
                self.telling.append((argv, environ))
            if b"PGPASSFILE=/proc/self/fd/" in environ:
                name = argv.split(b"\0")[0].rpartition(b"/")[2]
                self.with_password_file.add(name)
                if limits.split("Max core file size", 1)[1].split()[0] != "0":
                    self.with_cores.add(name)


def run_watched(sandbox, word, *arguments, environ):
    """The ended program, what it said, and what was seen meanwhile."""
    words = ["sh", "-c", 'ulimit -c unlimited; exec "$@"', "sh", *sandbox.command(*arguments)]
    output, watched = sandbox.root / "said", Watched()
    with (
        output.open("w") as file,
        subprocess.Popen(
            words, cwd=sandbox.root, stdout=file, stderr=subprocess.STDOUT, env=sandbox.environ | environ
        ) as running,
    ):
        # its own environment is as its user has made it, also in a child that is about to become another program
        own = "".join(f"{word}\0" for word in sandbox.command(*arguments)).encode()
        while running.poll() is None:
            watched.look(word.encode(), running.pid, own)
            time.sleep(0.02)
    return running.returncode, output.read_text(), watched


@pytest.fixture
def keeper(running_server, sandbox):
    """A role with a password of its own, and whatever knows it: a service file and the environment."""
    password = f"canary-{secrets.token_hex(8)}"
    services = sandbox.file(
        f"[kept]\nhost={running_server['folder']}\nport=15431\nuser=keeper\npassword={password}\ndbname=postgres\n",
        "services",
    )
    services.chmod(0o600)
    with role(running_server, password):
        yield password, {"PGSERVICEFILE": str(services), "PGPASSWORD": f"{password}-too"}
    services.unlink()


def ask(server, statements, database="postgres"):
    """As the server's owner; a lone surrogate is a byte that is not UTF-8."""
    words = [server["psql"], "-Xq", "-v", "ON_ERROR_STOP=1", f"{server['dsn']} dbname={database}", "-f", "-"]
    content = f"SET log_statement = 'none';\n{statements}".encode("utf-8", "surrogateescape")
    return subprocess.run(words, input=content, env=server["environ"], check=True, capture_output=True).stdout


@contextmanager
def role(server, password):
    """The superuser keeper while something is done."""
    ask(server, f"CREATE ROLE keeper SUPERUSER LOGIN PASSWORD '{password}';")
    try:
        yield
    finally:
        ask(
            server,
            "SELECT format('DROP DATABASE %I', datname) FROM pg_database WHERE datdba = 'keeper'::regrole \\gexec\n"
            "DROP OWNED BY keeper; DROP ROLE keeper;",
        )


def files_with(folder, word):
    return {path.name for path in folder.rglob("*") if path.is_file() and word.encode() in path.read_bytes()}


def assert_not_seen(sandbox, word, file, study, environ, *, through_file=True):
    """A run, and all that reads it, show a word nowhere; psql and pgbench get it through a file."""
    sandbox.file("SELECT count(*) FROM kept WHERE a = 'canary-of-the-script';\n\\sleep 5 ms\n", "look.sql")
    sandbox.file("CREATE TABLE kept (a text);\n", "setup.sql")
    code, said, watched = run_watched(sandbox, word, "run", file, "--study", study, environ=environ)
    assert code == 0, said
    assert watched.telling == []
    assert not through_file or watched.with_password_file >= {b"psql", b"pgbench"}
    assert watched.with_cores == set()
    told = [said]
    for arguments in (("show", study, "--why"), ("show", study, "--json"), ("report", study), ("reparse", study)):
        done = sandbox.pgstrata(*arguments)
        assert done.returncode == 0, done.stderr
        told.append(done.stdout + done.stderr)
    assert word not in "".join(told)
    assert (study / "report.html").exists()
    assert files_with(study, word) == set()
    assert files_with(study, "canary-of-the-script") == {"plan.json"}
    assert files_with(sandbox.root / "state", word) == set()


def assert_not_seen_when_refused(sandbox, word, file, study, environ):
    """With a password that the server does not take."""
    code, said, watched = run_watched(sandbox, word, "run", file, "--study", study, environ=environ)
    assert code == 1, said
    assert "password authentication failed" in said
    assert word not in said
    assert watched.telling == []
    assert files_with(study, word) == set()


def test_a_password_is_seen_nowhere_but_where_it_was_given(sandbox, running_server, keeper):
    password, environ = keeper
    study = sandbox.root / "study-secrets"
    text = EXPERIMENT.format(password=password, folder=running_server["folder"])
    file = sandbox.file(text, "secret.toml")
    assert_not_seen(sandbox, password, file, study, environ)
    assert "FROM kept WHERE a = ?" in next(study.rglob("plans.txt")).read_text()

    sandbox.file(text.replace(f"keeper:{password}", f"keeper:{password}-wrong"), "secret.toml")
    assert_not_seen_when_refused(sandbox, password, file, sandbox.root / "study-refused", environ)
    file.unlink()


@pytest.fixture
def reached(reached_server, sandbox):
    """The places of a server that is reached in every way, a word for a password, and what completes all strings."""
    word, folder, port = f"canary-{secrets.token_hex(8)}", reached_server["folder"], reached_server["port"]
    at = Places(
        host="127.0.0.1",
        port=port,
        user="keeper",
        database="postgres",
        folder=str(folder).replace("/", "%2F"),
        passfile=str(sandbox.file(f"*:*:*:*:{word}\n", "passfile")),
        hosts=(("127.0.0.1", 1), ("127.0.0.1", port)),
    )
    service = f"host=127.0.0.1\nport={port}\nuser=keeper\ndbname=postgres\n"
    services = sandbox.file(f"[prod]\n{service}[with-password]\n{service}password={word}\n", "services")
    for file in (services, Path(at.passfile)):
        file.chmod(0o600)
    environ = {"PGHOST": at.host, "PGPORT": str(port), "PGUSER": at.user, "PGSERVICEFILE": str(services)}
    with role(reached_server, word):
        yield at, word, environ
    services.unlink()
    Path(at.passfile).unlink()


def set_password(server, password):
    """Whatever bytes are in it: a database with the encoding SQL_ASCII takes them all."""
    if not ask(server, "SELECT 1 FROM pg_database WHERE datname = 'bytes' \\g (format=unaligned tuples_only)\n"):
        ask(server, "CREATE DATABASE bytes ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0;")
    text = password.replace("'", "''")
    ask(server, f"ALTER ROLE keeper PASSWORD '{text}';", "bytes")


def assert_live(sandbox, server, reached, text, password, environ):
    """A run with a connection string, and one after the server has got another password."""
    word = reached[1]
    set_password(server, password)
    comment = text.replace("\n", " ")
    file = sandbox.file(LIVE.format(word=word, comment=comment, level=json.dumps(f"dsn:{text}")), "secret.toml")
    assert_not_seen(sandbox, word, file, sandbox.root / "study-live", environ, through_file=word in text)
    set_password(server, "another")
    assert_not_seen_when_refused(sandbox, word, file, sandbox.root / "study-refused", environ)
    file.unlink()
    assert word not in (server["folder"] / "log").read_text(errors="replace")


@pytest.mark.soak("secrets")
@pytest.mark.parametrize("which", range(len(WITH_PASSWORD)))
def test_a_password_in_any_form_of_a_connection_string_is_seen_nowhere_else(sandbox, reached_server, reached, which):
    at, word, environ = reached
    text, password = list(with_password(at, word).items())[which]
    assert_live(sandbox, reached_server, reached, text, password, environ | {"PGPASSWORD": f"{word}-too"})


@pytest.mark.soak("secrets")
@pytest.mark.parametrize("where", OUTSIDE)
def test_a_password_outside_the_connection_string_is_seen_nowhere_else(sandbox, reached_server, reached, where):
    at, word, environ = reached
    text, more = OUTSIDE[where]
    assert_live(sandbox, reached_server, reached, text.format(at=at), word, environ | more(at, word))
