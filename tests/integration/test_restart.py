"""Running servers are restarted before each of their runs by the command that their user gave, and only by it."""

import os
import pwd
import shlex
import shutil
import subprocess

import pytest

from pgstrata.app.machine import open_machine
from pgstrata.app.places import find_server_user
from pgstrata.model.experiment import ServerKind, ServerSpec

pytestmark = [pytest.mark.server, pytest.mark.timeout(180)]

EXPERIMENT = """
question = "Are the starts alike?"
blocks = 2
controls = ["same"]
[common]
server = "dsn:{dsn}"
[restart]
"dsn:{dsn}" = '''{command}'''
[[cells]]
workload = "select-only"
scale = 1
clients = 1
rate = 50
run = "1s"
warmup = "0s"
"""
RUNS = 4


class Served:
    """A server of somebody else's: `command` restarts it."""

    def __init__(self, folder, build, user):
        self.folder, self.dsn = folder, f"host={folder} port=15433 user=boss dbname=postgres"
        words = [build.program("pg_ctl"), "-D", str(folder / "data"), "-w", "-l", str(folder / "log")]
        options = f"-c listen_addresses='' -c unix_socket_directories={folder} -c port=15433 -c fsync=off"
        self._words, self._user = [*words, "-o", options], user
        self.run(build.program("initdb"), "-D", folder / "data", "-U", "boss", "-A", "trust", "--no-sync")
        self.run(*self._words, "start")

    def run(self, *argv):
        quiet = subprocess.DEVNULL
        subprocess.run(argv, check=True, cwd="/", user=self._user, stdout=quiet, stderr=quiet)

    @property
    def command(self):
        switch = ["setpriv", f"--reuid={self._user}", "--clear-groups", "env", "-C", "/"] if self._user else []
        return shlex.join([*switch, *self._words, "-m", "fast", "restart"])

    def starts(self):
        return (self.folder / "log").read_text().count("database system is ready to accept connections")

    def stop(self):
        self.run(*self._words, "-m", "immediate", "stop")


@pytest.fixture
def served(shared_root):
    with open_machine(print) as machine:
        build = machine.servers.resolve(ServerSpec(kind=ServerKind.EMBEDDED))
    folder = shared_root / "restarted"
    folder.mkdir()
    user = find_server_user() if os.getuid() == 0 else None
    if user:
        shutil.chown(folder, pwd.getpwnam(user).pw_uid)
    server = Served(folder, build, user)
    yield server
    server.stop()
    shutil.rmtree(folder)


def test_each_run_has_a_start_of_its_own(sandbox, served):
    file = sandbox.file(EXPERIMENT.format(dsn=served.dsn, command=served.command), "restart.toml")
    done = sandbox.pgstrata("run", file, "--study", sandbox.root / "study-restart")
    assert done.returncode == 0, done.stdout + done.stderr
    # each environment is tried once before the first block
    assert served.starts() == 1 + 2 + RUNS


def test_a_command_that_restarts_nothing_is_refused_with_a_remedy(sandbox, served):
    file = sandbox.file(EXPERIMENT.format(dsn=served.dsn, command="true"), "restart.toml")
    done = sandbox.pgstrata("run", file, "--study", sandbox.root / "study-restart")
    assert done.returncode == 1
    assert "the server was not restarted" in done.stderr
    assert "check that it restarts the server of this connection string" in done.stderr


def test_what_a_failing_command_says_is_told(sandbox, served):
    command = "sh -c 'echo no such cluster >&2; exit 3'"
    file = sandbox.file(EXPERIMENT.format(dsn=served.dsn, command=command), "restart.toml")
    done = sandbox.pgstrata("run", file, "--study", sandbox.root / "study-restart")
    assert done.returncode == 1
    assert "the restart command of [restart] failed" in done.stderr
    assert "no such cluster" in done.stderr
