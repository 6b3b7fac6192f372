"""A server on another machine is recorded, its host and log by a real sshd, while that connection is cut and comes back.

Server and sshd are in a network namespace; this machine reaches the server by TCP.
"""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import ExitStack, closing
from itertools import pairwise
from pathlib import Path

import pytest

import sshd
from databases import CLEAN
from foreign_server import foreign_server
from pgstrata.app import site
from working_folder import working_folder

pytestmark = [
    pytest.mark.server,
    pytest.mark.root,
    pytest.mark.company,
    pytest.mark.timeout(120),
    pytest.mark.skipif(bool(sshd.why_not()), reason=sshd.why_not()),
]
LOST = (
    "the connection to ssh:far1 was lost: Connection to {} closed by remote host; its counters are missing "
    "until it is back"
)
LEAST_GAP = 10


class Recorded:
    """A recorder at work, and what its archive has."""

    def __init__(self, address, archive, process, told):
        self.address, self.archive, self.process, self.told = address, archive, process, told

    def rows(self, query, *values):
        path = self.archive / "archive.sqlite"
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            return connection.execute(query, values).fetchall()

    def seconds(self, table, since=0.0):
        return [moment for (moment,) in self.rows(f"SELECT moment FROM {table}_second WHERE moment > ?", since)]

    def await_seconds(self, table, least, since=0.0):
        """Until so many seconds of a table are written after a moment."""
        self._await(lambda: len(self.seconds(table, since)) >= least)

    def await_words(self, words):
        self._await(lambda: words in self.told.read_text())

    def _await(self, condition):
        deadline = time.monotonic() + 60
        while not condition():
            assert self.process.poll() is None, self.told.read_text()
            assert time.monotonic() < deadline, self.told.read_text()
            time.sleep(0.1)


@pytest.fixture(scope="module")
def recorded(shared_sandbox):
    """An archive; when the connection to the host was cut, and when the host was read again."""
    with working_folder("pgstrata-far-") as folder, ExitStack() as ending:
        (far,) = ending.enter_context(sshd.far_hosts(folder / "net", 1))
        where = {"port": 5432, "listen": far.address, "far": far}
        server = ending.enter_context(foreign_server(folder / "server", **where))
        archive, told = folder / "archive", folder / "told"
        place = server["dsn"].replace(f"host={server['folder']}", f"host={far.address}")
        words = [sys.executable, "-m", "pgstrata", "watch", place, "--archive", str(archive), "--host", "ssh:far1"]
        environ = {**shared_sandbox.environ, site.SSH_CONFIG: far.config}
        with told.open("w") as stream:
            process = subprocess.Popen(words, stdout=stream, stderr=stream, env=environ, start_new_session=True)
        ending.callback(process.wait)
        ending.callback(process.kill)
        seen = Recorded(far.address, archive, process, told)
        seen.await_words("recording PostgreSQL")
        seen.await_seconds("host", 2)
        fail(server)
        seen.await_seconds("host", 2, since=time.time())
        cut = time.time()
        far.hang_up()
        seen.await_words("was lost")
        # shorter ones are no gap
        time.sleep(max(0.0, cut + LEAST_GAP - time.time()))
        far.start()
        seen.await_words("connected to ssh:far1 again")
        seen.await_seconds("host", 1, since=time.time())
        back = time.time()
        fail(server)
        seen.await_seconds("host", 2, since=back)
        os.killpg(process.pid, signal.SIGINT)  # as Ctrl-C at a terminal does
        assert process.wait(30) == 0, told.read_text()
        yield seen, cut, back


def fail(server):
    """An error in the server's log."""
    words = [server["psql"], "-X", "-d", server["dsn"], "-c", "SELECT 1 / 0"]
    subprocess.run(words, capture_output=True, check=False, env=CLEAN)


def test_the_recorder_goes_on_without_the_host_and_says_so_once(recorded):
    seen, cut, back = recorded
    looks = [moment for moment in seen.seconds("look") if moment <= back]
    assert max(later - sooner for sooner, later in pairwise(looks)) <= 5
    told = seen.told.read_text().splitlines()
    lost = [line for line in told if "lost" in line]
    assert lost == [LOST.format(seen.address)]
    assert [line for line in told if "again" in line] == ["connected to ssh:far1 again"]
    assert told[-2] == "stopped: the archive is complete up to now"
    (event,) = seen.rows("SELECT moment, detail FROM event WHERE kind = 'look failed'")
    assert event[1].startswith("host: Connection to ")
    assert cut - 1 <= event[0] <= back


def test_the_host_is_read_before_and_after_and_not_meanwhile(recorded):
    seen, cut, back = recorded
    read = seen.seconds("host")
    before, after = [moment for moment in read if moment < cut], [moment for moment in read if moment > cut + 4]
    assert len(before) >= 4
    assert len(after) >= 3
    assert min(after) <= back
    names = "host_user_cpu", "memory_available", "disk_iops"
    for values in seen.rows(f"SELECT {', '.join(names)} FROM host_second"):
        assert None not in values


def test_the_servers_log_is_read_before_and_after(recorded):
    seen, cut, back = recorded
    first, second = seen.rows("SELECT moment, times FROM event WHERE kind = 'errors' ORDER BY moment")
    assert first[1] == second[1] == 1
    assert first[0] <= cut
    assert second[0] >= int(back)


def test_an_explanation_says_of_which_time_the_host_is_not_known(recorded, sandbox):
    seen, cut, back = recorded
    window = ("explain", seen.archive, "--from", f"@{int(cut) - 1}")
    done = sandbox.pgstrata(*window, "--json")
    assert done.returncode in {0, 1}, done.stderr
    found = json.loads(done.stdout)
    assert "no_host" not in found["limits"]
    assert "no_log" not in found["limits"]
    ((begin, end),) = found["window"]["host_gaps"]
    assert int(cut) <= begin <= int(cut) + 4
    assert begin + 5 <= end <= back + 1
    assert found["comparison"]["host_gaps"] == found["window"]["gaps"] == []
    assert {"host_user_cpu", "memory_available"} <= {each["name"] for each in found["host"]}
    (doubt,) = [text for text in found["warnings"] if "host" in text]
    assert doubt.startswith("the window has 1 gap in the readings of the server's host and log: ")


def test_nothing_of_the_connection_is_left(recorded):
    seen, _, _ = recorded
    assert not list(Path("/tmp").glob(f"pgstrata-ssh-{seen.process.pid}-*"))
