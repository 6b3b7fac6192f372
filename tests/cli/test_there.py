"""`--host` of doctor and of host status | restore: hosts that only ssh reaches, in a network namespace."""

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import sshd
from fake_clock import FakeClock
from pgstrata.app.doctor import Installations, list_elevated
from pgstrata.app.host import at_work
from pgstrata.app.machine import SystemClock
from pgstrata.app.remote_doctor import find_installations_there, with_programs
from pgstrata.app.site import observe_site
from pgstrata.collectors.hostfacts.abilities import judge_layers
from pgstrata.collectors.hostfacts.probes import judge_connection
from pgstrata.errors import HostNotFitError
from pgstrata.hosts.clock import measure_clock
from pgstrata.hosts.shell import ShellHost
from pgstrata.layers.registry import Ground, privileged_changes, programs_of
from pgstrata.ledger.ledger import HostLedger
from pgstrata.model.abilities import Abilities, HostCase
from pgstrata.model.changes import Change, ShellScript
from pgstrata.model.doctor import Possible

pytestmark = pytest.mark.company
# Changes two files of the far host, and is killed between the second change and the note of it.
KILLED = """
import os, signal, sys
from pathlib import Path
from changed_files import Files
from pgstrata.app.host import at_work, make_ledger
from pgstrata.app.site import open_site
from pgstrata.ledger.undo import LedgerStep
from fake_clock import FakeClock
changed = []

def at(step):
    if step is LedgerStep.CHANGED:
        changed.append(step)
        if len(changed) == 2:
            os.kill(os.getpid(), signal.SIGKILL)

things = Files(Path({things!r}))
with open_site("far1") as site, at_work(site, FakeClock(), "studies/far"):
    ledger = make_ledger(site, FakeClock(), "studies/far", at=at)
    ledger.change(things.make("one", "second"))
    ledger.change(things.make("two", "second"))
"""


@pytest.fixture(scope="module")
def far(tmp_path_factory):
    """A host whose environment, not that of this process, says where pgstrata's folders are there."""
    if reason := sshd.why_not():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("there")
    (folder / "tmp").mkdir()
    names = {"PGSTRATA_STATE": "state", "PGSTRATA_LOCK": "lock", "PGSTRATA_DATA": "data", "TMPDIR": "tmp"}
    over_there = "SetEnv " + " ".join(f"{name}={folder}/{place}" for name, place in names.items())
    try:
        with sshd.far_hosts(folder, 1, (over_there,)) as found:
            yield found[0]
    except sshd.RigImpossibleError as error:
        pytest.skip(f"no network namespaces here: {error}")


@pytest.fixture
def things(tmp_path):
    (tmp_path / "things").mkdir()
    for name in ("one", "two"):
        (tmp_path / "things" / name).write_text("first\n")
    return tmp_path / "things"


def pgstrata(far, *arguments, source=None):
    words = ["-c", source] if source else ["-m", "pgstrata", *arguments]
    # variables of this machine are those of this machine
    own = {f"PGSTRATA_{name}": "/nowhere/here" for name in ("STATE", "LOCK", "DATA")}
    own["PYTHONPATH"] = str(Path(sshd.__file__).parent)
    return subprocess.run(
        [sys.executable, *words],
        cwd=far.folder,
        timeout=60,
        env={**os.environ, **own, "PATH": far.path()},
        capture_output=True,
        text=True,
    )


@pytest.mark.root
def test_what_a_killed_coordinator_left_on_another_host_is_shown_and_restored_from_here(far, things):
    source = KILLED.format(things=str(things))
    killed = pgstrata(far, source=source)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert (things / "two").read_text() == "second\n"
    shown = pgstrata(far, "host", "status", "--host", "far1")
    assert (shown.returncode, shown.stderr) == (4, "")
    assert "far1: 2 changed" in shown.stdout
    assert "for studies/far" in shown.stdout
    assert "`pgstrata host restore --host far1`" in shown.stdout
    done = pgstrata(far, "host", "restore", "--host", "far1")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "file two: is first again\nfile one: is first again\n"
    assert [(things / name).read_text() for name in ("one", "two")] == ["first\n", "first\n"]
    assert pgstrata(far, "host", "status", "--host", "far1").stdout == "far1: nothing is changed\n"
    assert pgstrata(far, "host", "restore", "--host", "far1").stdout == "nothing to restore\n"


def _of_doctors():
    """What lies in /tmp of the names that doctor gives; tests beside this one make other ones there."""
    return {path for pattern in ("pgstrata-doctor*", ".pgstrata*") for path in Path("/tmp").glob(pattern)}


@pytest.mark.root
def test_doctor_examines_a_host_that_ssh_reaches_and_leaves_nothing_there(far):
    before = _of_doctors()
    done = pgstrata(far, "doctor", "--host", "far1", "--json")
    assert done.returncode in {0, 4}, done.stderr
    document = json.loads(done.stdout)
    assert (document["host"], document["user"], document["sudo"]) == ("far1", "root", [])
    probes = {probe["name"]: probe for probe in document["probes"]}
    assert probes.keys() >= {"clock_offset", "round_trip", "foreign_cpu", "canary", "timing", "fsync", "memory"}
    assert abs(probes["clock_offset"]["value"]) < 1
    assert 0 < probes["round_trip"]["value"] < 1
    assert str(far.folder.parent) in probes["disk"]["text"]
    assert not (far.folder.parent / "data").exists()
    assert not list((far.folder.parent / "tmp").iterdir())
    assert _of_doctors() <= before


@pytest.mark.root
@pytest.mark.parametrize(
    ("words", "destination", "code", "said"),
    [
        (("doctor",), "nowhere.invalid", 4, "there is no host of that name\n  |"),
        (("doctor",), "changed", 4, "its host key has changed"),
        (("host", "status"), "-oProxyCommand=x", 2, "is not a valid destination for ssh"),
        (("host", "restore"), "changed", 4, "its host key has changed"),
    ],
)
def test_a_host_that_cannot_be_reached_is_named_with_what_to_do(far, words, destination, code, said):
    config = Path(far.config)
    if "Host changed" not in config.read_text():
        other = f"[{far.address}]:{sshd.PORT} {(config.parent / 'key.pub').read_text()}"
        (config.parent / "others").write_text(other)
        lines = f"Host changed\n    HostName {far.address}\n    UserKnownHostsFile {config.parent}/others\n"
        config.write_text(lines + config.read_text())
    done = pgstrata(far, *words, f"--host={destination}")
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert said in done.stderr
    assert "  -> " in done.stderr
    assert "Traceback" not in done.stderr


# ------------------------------------------------------------------------------- what a host may be like


@pytest.fixture
def impostor(tmp_path, monkeypatch):
    """Transports to this machine on which one program lies."""

    def open_transport(program, script):
        path = tmp_path / program
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(stat.S_IRWXU)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        transports.append(ShellHost(name="far1"))
        monkeypatch.undo()
        return transports[-1]

    transports = []
    yield open_transport
    for transport in transports:
        transport.close()


def test_a_clock_that_is_hours_apart_is_a_doubt_with_its_remedy(impostor):
    date = 'case $1 in +*) exec /bin/date -d "now + 2 hours" "$1" ;; *) exec /bin/date "$@" ;; esac'
    offset, trip = judge_connection(measure_clock(impostor("date", date), SystemClock()))
    assert offset.value == pytest.approx(7200, abs=1)
    assert "its clock is 2 h ahead of this machine's" in offset.doubt
    assert "timedatectl" in offset.doubt
    assert trip.value > 0


def test_of_another_architecture_only_what_is_installed_there_can_be_used(impostor):
    site = observe_site(impostor("uname", "[ $1 = -m ] && echo aarch64"))
    found = find_installations_there(site)
    assert found.fetched == {}
    assert "that host is aarch64" in found.lack
    assert "install PostgreSQL there" in found.lack


def test_programs_that_are_sent_are_gone_afterwards(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    prefix = tmp_path / "prefix"
    (prefix / "bin").mkdir(parents=True)
    for name in ("pg_test_fsync", "pg_test_timing"):
        (prefix / "bin" / name).write_text("#!/bin/sh\necho sent\n")
    transport = ShellHost(name="far1")
    site = observe_site(transport)
    with with_programs(site, Installations(fetched={"18": str(prefix)}, installed=(), sent="")) as there:
        (folder,) = there.prefixes
        assert folder.startswith(f"{tmp_path}/pgstrata-doctor.")
        assert subprocess.run([f"{folder}/bin/pg_test_timing"], capture_output=True).stdout == b"sent\n"
    assert not Path(folder).exists()
    (prefix / "bin" / "pg_test_timing").unlink()
    with with_programs(site, Installations(fetched={"18": str(prefix)}, installed=(), sent="")) as there:
        assert there.prefixes == ()
        assert "cannot be sent" in there.unsent
    transport.close()
    assert not list(tmp_path.glob("pgstrata-*"))


def test_without_sudo_a_change_is_refused_with_what_to_do(impostor, tmp_path, things):
    refused = impostor("sudo", 'echo "sudo: a password is required" >&2; exit 1')
    one = str(things / "one")
    change = Change(
        what="file one",
        value="second",
        read=ShellScript(text='cat "$1"', arguments=(one,)),
        do=ShellScript(text='echo second >"$1"', arguments=(one,)),
        undo=ShellScript(text='echo "$2" >"$1"', arguments=(one,)),
    )
    ledger = HostLedger(refused, ("sudo", "-n"), str(tmp_path / "ledger"), FakeClock(), "studies/a")
    with pytest.raises(HostNotFitError, match="may not change this host") as caught:
        ledger.change(change)
    assert caught.value.details == ("sudo: a password is required",)
    assert "doctor" in caught.value.remedy
    assert (things / "one").read_text() == "first\n"


def test_the_lock_of_a_host_on_which_pgstrata_never_was_gets_its_folder(impostor, tmp_path, monkeypatch):
    state = tmp_path / "never" / "state"
    monkeypatch.setenv("PGSTRATA_STATE", str(state))
    monkeypatch.delenv("PGSTRATA_LOCK")
    # of a host that was changed before there is a ledger, whose keepers are looked for
    real = f'exec {shutil.which("stat")} "$@"'
    site = observe_site(impostor("stat", f'case "$*" in *%h*) echo 1 ;; *%U*) {real} ;; *) echo 755 ;; esac'))
    # so is /run/lock, where not everybody may write there
    values = {name: getattr(site, name) for name in ("transport", "uid", "places", "machine")}
    with at_work(type(site)(environ={"PGSTRATA_LOCK": ""}, **values), SystemClock(), "studies/a"):
        assert (state / "pgstrata.lock").exists()


# ------------------------------------------------------------------------------------- what sudo is for


def test_every_factor_that_needs_root_has_its_commands_listed():
    """What would be changed with sudo is told by the very functions that the layers use."""
    case = HostCase(abilities=Abilities(), package=str, devices="/none")
    known = {finding.key for finding in judge_layers(case)}
    listed = {
        key for version in (1, 2) for key, _ in privileged_changes(Ground(storage="/d", user="u", cgroup=version))
    }
    assert listed <= known
    plain = {
        "server=build:",
        "server=maven:",
        "cpu.server, cpu.client",
        "cpu.policy",
        "host",
        "vm.memory, vm.cpus, vm.cache",
    }
    assert known - listed <= plain


@pytest.mark.parametrize("version", [1, 2])
def test_no_change_is_without_a_program(version):
    for key, change in privileged_changes(Ground(storage="/d", user="u", cgroup=version)):
        assert programs_of(change), key


def test_root_needs_no_sudo_and_others_are_told_every_command():
    transport = ShellHost(name="far1")
    site = observe_site(transport)
    findings = judge_layers(HostCase(abilities=Abilities(), package=str, devices="/none"))
    needing = [one for one in findings if one.possible is Possible.NOT_FOR_USER]
    values = {name: getattr(site, name) for name in ("transport", "places", "environ", "machine")}
    assert list_elevated(type(site)(uid=0, **values), Abilities(), needing) == ()
    listed = list_elevated(type(site)(uid=1000, **values), Abilities(), needing)
    assert {one.key for one in listed} == {"every one", *(one.key for one in needing)}
    for one in listed:
        assert one.do[:2] == ("sudo", "-n")
        assert one.undo[:2] in {("sudo", "-n"), ()}
    transport.close()
