"""Other machines by ssh: real connections into network namespaces, where root may make them."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import sshd
from pgstrata.errors import HostLostError, HostNotFitError, PgstrataError, UsageError
from pgstrata.hosts import ssh_failures
from pgstrata.hosts.ssh import open_ssh
from pgstrata.hosts.ssh_link import Link, Patience, parse_destination
from pgstrata.ports.host import Command, StopSignal
from pgstrata.testing import HostConformance
from timing import wait_for

pytestmark = pytest.mark.company
CAPTURES = sorted((Path(__file__).parents[1] / "captures" / "openssh").glob("*/*"))
HASTY = Patience(connect=5, alive=1, tries=2, pulse=0.3, silence=1.5)


@pytest.mark.parametrize("text", ["db1", "user@db1", "ssh://user@db1:2222", "10.0.0.1", "[::1]", "us-er@d-b"])
def test_a_destination_is_what_ssh_takes(text):
    assert parse_destination(text) == text


@pytest.mark.parametrize(
    "text", ["", "-oProxyCommand=x", "user@-host", "ssh://-x", "@db1", "a b", "db1;x", "$(x)", "a/b", "db\n1", "`x`"]
)
def test_what_might_be_more_than_a_destination_is_refused(text):
    with pytest.raises(UsageError, match="not a valid destination") as caught:
        parse_destination(text)
    assert "user@db1" in caught.value.remedy


@pytest.mark.parametrize("case", CAPTURES, ids=lambda case: case.name)
def test_what_ssh_says_is_understood(case):
    expected = json.loads((case / "expected.json").read_text())
    words = tuple((case / "stderr.txt").read_text().splitlines()[-5:])
    error = ssh_failures.explain(HostLostError("the shell has ended", where="db1", details=words), "me@db1")
    assert (type(error).__name__, error.what) == (expected["error"], expected["what"])
    assert error.where == "me@db1"
    assert error.details == words
    assert error.remedy
    assert "{to}" not in error.remedy


def test_other_words_are_passed_on_as_they_are():
    lost = HostLostError("the shell has ended", where="db1", details=("something else",))
    assert ssh_failures.explain(lost, "db1") is lost


def test_an_end_without_a_word_is_that_of_a_login_shell():
    error = ssh_failures.explain(HostLostError("the shell has ended", where="db1"), "db1")
    assert isinstance(error, HostNotFitError)
    assert "no shell" in error.what
    slow = HostLostError("the shell did not answer within 60 s", where="db1")
    assert ssh_failures.explain(slow, "db1") is slow


def test_host_keys_are_never_left_unchecked(tmp_path):
    link = Link("db1", run=str(tmp_path))
    words = " ".join((*link.first(("sh",)), *link.further(("sh",))))
    assert "HostKey" not in words
    assert "KnownHosts" not in words
    assert "BatchMode=yes" in words


def test_a_folder_of_sockets_that_others_can_enter_is_refused(tmp_path):
    (tmp_path / "ssh").mkdir(mode=0o755)
    with pytest.raises(HostNotFitError, match="open to other users"):
        Link("db1", run=str(tmp_path))


def test_a_path_that_is_too_long_for_a_socket_is_refused(tmp_path):
    with pytest.raises(HostNotFitError, match="too long") as caught:
        Link("db1", run=str(tmp_path / ("long" * 20)))
    assert "shorter path" in caught.value.remedy


# ------------------------------------------------------------------------------------- real connections


@pytest.fixture
def run(tmp_path_factory):
    return str(tmp_path_factory.getbasetemp() / "r %h x")


@pytest.fixture
def connect(rig, run):
    opened = []

    def connect(destination=rig.destination, config=rig.config, patience=None):
        opened.append(open_ssh(destination, run=run, config=config, patience=patience))
        return opened[-1]

    yield connect
    for host in opened:
        host.close()


class OverSsh(HostConformance):
    become = ""

    @pytest.fixture(autouse=True)
    def _construct(self, rig, run):
        made = f"open_ssh({rig.destination!r}, run={run!r}, config={rig.config!r})"
        self.construction = (
            f"from pgstrata.hosts.ssh import open_ssh\nconnected = {made}\nhost = connected{self.become}"
        )

    @pytest.fixture
    def host(self):
        bound = {}
        exec(self.construction, bound)
        yield bound["host"]
        bound["connected"].close()


@pytest.fixture(scope="class")
def connected(rig, tmp_path_factory):
    host = open_ssh(rig.destination, run=str(tmp_path_factory.getbasetemp() / "r %h x"), config=rig.config)
    yield host
    host.close()


@pytest.mark.root
class TestSshHost(OverSsh):
    pass


@pytest.mark.root
class TestSshHostAsAnotherUser(OverSsh):
    become = ".as_user('nobody')"

    @pytest.fixture
    def host(self, connected):
        host = connected.as_user("nobody")
        yield host
        host.close()


def masters(rig):
    """Processes of this machine that hold a connection to the rig."""
    found = subprocess.run(["pgrep", "-f", rig.config], capture_output=True, text=True).stdout.split()
    return [pid for pid in found if int(pid) != os.getpid()]


def sockets(run):
    return list(Path(run, "ssh").iterdir())


@pytest.mark.root
def test_a_closed_host_leaves_no_process_and_no_socket(rig, run, connect):
    host = connect()
    host.as_user("nobody")
    assert len(masters(rig)) == 1
    assert sockets(run)
    host.close()
    assert not masters(rig)
    assert not sockets(run)
    with pytest.raises(HostLostError):
        host.clock()


@pytest.mark.root
def test_a_killed_coordinator_leaves_no_process_and_no_socket(rig, run, tmp_path):
    source = f"""
import time
from pgstrata.hosts.ssh import open_ssh
from pgstrata.ports.host import Command
host = open_ssh({rig.destination!r}, run={run!r}, config={rig.config!r})
other = host.as_user("nobody")
process = host.spawn(Command(argv=("sleep", "100")), stdout="{tmp_path}/o", stderr="{tmp_path}/e")
transport = other.run(Command(argv=("readlink", "/proc/self/fd/1"))).text.rpartition("/")[0]
print(process.pid, transport, flush=True)
time.sleep(100)
"""
    coordinator = subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE)
    pid, transport = coordinator.stdout.readline().decode().split()
    assert Path(transport).is_dir()
    coordinator.send_signal(signal.SIGKILL)
    coordinator.communicate()
    wait_for(lambda: not masters(rig) and not sockets(run), 15)
    wait_for(lambda: not Path(f"/proc/{pid}").exists(), 15)
    wait_for(lambda: not Path(transport).exists(), 15)


@pytest.mark.root
def test_a_link_that_vanishes_ends_what_runs_on_both_sides(rig, run, connect, tmp_path):
    host = connect(patience=HASTY)
    process = host.spawn(
        Command(argv=("sleep", "100")),
        stdout=f"{tmp_path}/o",
        stderr=f"{tmp_path}/e",
        on_parent_death=StopSignal.INT,
    )
    time.sleep(2.5)  # longer than the silence that is borne: the pulse is heard
    assert host.pid_alive(process.pid)
    rig.cut()
    try:
        started = time.monotonic()
        with pytest.raises(HostLostError) as caught:
            host.run(Command(argv=("sleep", "60")))
        assert time.monotonic() - started < 10
        assert "not responding" in str(caught.value)
        wait_for(lambda: not Path(f"/proc/{process.pid}").exists(), 15)
    finally:
        rig.mend()
    host.close()
    assert not masters(rig)
    assert not sockets(run)
    assert connect().exists("/")


@pytest.mark.root
def test_an_ssh_that_is_killed_is_a_lost_host(rig, run, connect, tmp_path):
    host = connect()
    files = {"stdout": f"{tmp_path}/o", "stderr": f"{tmp_path}/e"}
    process = host.spawn(Command(argv=("sleep", "100")), **files)
    os.kill(int(masters(rig)[0]), signal.SIGKILL)
    with pytest.raises(HostLostError):
        host.clock()
    wait_for(lambda: not Path(f"/proc/{process.pid}").exists(), 15)
    host.close()
    assert not sockets(run)


@pytest.mark.root
def test_a_host_key_that_is_not_known_or_has_changed_is_refused_with_a_remedy(rig, connect, tmp_path):
    known = Path(rig.config).with_name("known_hosts")
    right = known.read_text()
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "k"], check=True)
    wrong = right.replace(right.split()[2], (tmp_path / "k.pub").read_text().split()[1])
    try:
        for content, what, remedy in (("", "not known", "ssh far1"), (wrong, "has changed", "ssh-keygen")):
            known.write_text(content)
            with pytest.raises(HostNotFitError, match=what) as caught:
                connect()
            assert remedy in caught.value.remedy
            assert known.read_text() == content
    finally:
        known.write_text(right)


@pytest.mark.root
def test_ssh_never_asks(connect, rig, tmp_path):
    other = tmp_path / "config"
    other.write_text(Path(rig.config).read_text().replace("/key\n", "/no-key\n"))
    started = time.monotonic()
    with pytest.raises(HostNotFitError, match="without asking for a password"):
        connect(config=str(other))
    assert time.monotonic() - started < 10


@pytest.mark.root
def test_an_address_that_nobody_answers_is_a_lost_host(connect, rig):
    rig.cut()
    try:
        with pytest.raises(HostLostError, match="cannot be reached"):
            connect(patience=Patience(connect=1))
    finally:
        rig.mend()


@pytest.mark.root
def test_the_user_over_there_can_be_another_one(connect):
    host = connect()
    assert host.as_user("root") is host
    nobody = host.as_user("nobody")
    assert nobody.user == "nobody"
    with pytest.raises(HostNotFitError, match="no user no-such"):
        host.as_user("no-such")
    with pytest.raises(PgstrataError, match="only root"):
        nobody.as_user("root")
    nobody.close()
    assert host.exists("/")


@pytest.mark.root
def test_what_the_environment_over_there_says_to_libpq_is_not_heard(rig, connect, tmp_path):
    other = tmp_path / "config"
    other.write_text(f"SetEnv PGHOST=elsewhere\n{Path(rig.config).read_text()}")
    shown = connect(config=str(other)).run(Command(argv=("env",))).text
    assert "PGHOST" not in shown


@pytest.mark.root
def test_a_server_that_opens_no_second_session_is_named(tmp_path_factory, run):
    if reason := sshd.why_not():
        pytest.skip(reason)
    with (
        sshd.far_hosts(tmp_path_factory.mktemp("one"), 1, ("MaxSessions 1",)) as (far,),
        pytest.raises(HostNotFitError, match="another session") as caught,
    ):
        open_ssh(far.destination, run=run, config=far.config)
    assert "MaxSessions" in caught.value.remedy
    assert not sockets(run)


@pytest.mark.root
def test_two_machines_reach_each_other(tmp_path_factory):
    if reason := sshd.why_not():
        pytest.skip(reason)
    source = f"import socket, sys; socket.create_connection((sys.argv[1], {sshd.PORT}), timeout=10)"
    with sshd.far_hosts(tmp_path_factory.mktemp("two"), 2) as (one, other):
        for near, far in ((one, other), (other, one)):
            subprocess.run(near.inside(sys.executable, "-c", source, far.address), check=True)
