"""A password wherever one can stand, and where it is found while pgstrata works and afterwards: nowhere else."""

import secrets
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

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
    ask = [running_server["psql"], "-Xq", "-v", "ON_ERROR_STOP=1", running_server["dsn"], "-f", "-"]
    make = f"CREATE ROLE keeper SUPERUSER LOGIN PASSWORD '{password}';"
    subprocess.run(ask, input=make, text=True, check=True, capture_output=True)
    services = sandbox.file(
        f"[kept]\nhost={running_server['folder']}\nport=15431\nuser=keeper\npassword={password}\ndbname=postgres\n",
        "services",
    )
    services.chmod(0o600)
    yield password, {"PGSERVICEFILE": str(services), "PGPASSWORD": f"{password}-too"}
    services.unlink()
    drop = "SELECT format('DROP DATABASE %I', datname) FROM pg_database WHERE datdba = 'keeper'::regrole \\gexec\n"
    subprocess.run(
        ask, input=f"{drop}DROP OWNED BY keeper; DROP ROLE keeper;", text=True, check=True, capture_output=True
    )


def files_with(folder, word):
    return {path.name for path in folder.rglob("*") if path.is_file() and word.encode() in path.read_bytes()}


def test_a_password_is_seen_nowhere_but_where_it_was_given(sandbox, running_server, keeper):
    password, environ = keeper
    study = sandbox.root / "study-secrets"
    sandbox.file("SELECT count(*) FROM kept WHERE a = 'canary-of-the-script';\n\\sleep 5 ms\n", "look.sql")
    sandbox.file("CREATE TABLE kept (a text);\n", "setup.sql")
    text = EXPERIMENT.format(password=password, folder=running_server["folder"])
    file = sandbox.file(text, "secret.toml")

    code, said, watched = run_watched(sandbox, password, "run", file, "--study", study, environ=environ)
    assert code == 0, said
    assert watched.telling == []
    assert watched.with_password_file >= {b"psql", b"pgbench"}
    assert watched.with_cores == set()
    told = [said]
    for arguments in (("show", study, "--why"), ("show", study, "--json"), ("report", study), ("reparse", study)):
        done = sandbox.pgstrata(*arguments)
        assert done.returncode == 0, done.stderr
        told.append(done.stdout + done.stderr)
    assert password not in "".join(told)
    assert (study / "report.html").exists()
    assert files_with(study, password) == set()
    assert files_with(study, "canary-of-the-script") == {"plan.json"}
    assert "FROM kept WHERE a = ?" in next(study.rglob("plans.txt")).read_text()
    assert files_with(sandbox.root / "state", password) == set()

    sandbox.file(text.replace(f"keeper:{password}", f"keeper:{password}-wrong"), "secret.toml")
    study = sandbox.root / "study-refused"
    code, said, watched = run_watched(sandbox, password, "run", file, "--study", study, environ=environ)
    assert code == 1, said
    assert "password authentication failed" in said
    assert password not in said
    assert watched.telling == []
    assert files_with(study, password) == set()
    file.unlink()
