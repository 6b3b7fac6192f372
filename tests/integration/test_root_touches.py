"""Root opens, makes, changes and removes nothing in folders of others: a whole experiment is traced, killed once."""

import os
import pwd
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from open_python import open_python
from pgstrata.app.machine import open_machine
from pgstrata.app.places import find_machine_places, find_server_user
from pgstrata.model.experiment import ServerKind, ServerSpec
from pgstrata.model.packages import PACKAGES
from root_touches import Tracing, programs_in_the_table

pytestmark = [
    pytest.mark.root,
    pytest.mark.server,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(Tracing.missing()), reason=Tracing.missing()),
]
OTHER = "daemon"
# Packages whose programs only look, or do what the shell and pgstrata itself could do.
OF_ANY_SYSTEM = {
    "coreutils",
    "dash",
    "findutils",
    "mawk",
    "sed",
    "util-linux",
    "mount",
    "procps",
    "gzip",
    "kmod",
    "e2fsprogs",
}
LOOKING = {"getconf", "grep", "systemd-detect-virt", "test", "zcat"}
SWITCH = ("setpriv", f"--reuid={OTHER}", f"--regid={OTHER}", "--clear-groups")
EXPERIMENT = """
question = "Does root touch what is not its own?"
blocks = 1
[[environments]]
name = "plain"
server = "embedded"
thp = "always"
cpu.quota = "150 %"
cpu.policy = "batch"
sysctl."vm.swappiness" = "10"
limits.memory = "2 GB"
limits.read_bytes = "500MB"
limits.read_operations = 50000
[[environments]]
name = "made"
server = "prefix:{prefix}"
pages = "2MB"
filesystem = "ext4"
storage.size = "160MB"
storage.scheduler = "none"
storage.read_ahead = "64kB"
storage.wal = "memory"
storage.installation = "{installation}"
[allow]
mixed_suppliers = true
[common]
settings.shared_buffers = "32MB"
settings.max_wal_size = "64MB"
[[cells]]
workload = "simple-update"
scale = 1
clients = 1
rate = 50
run = "1 s"
warmup = "0 s"
"""
BEGIN = """
cd "$1" || exit
pgstrata() { "$python" -m pgstrata "$@"; }
python=$2 study=studies/one
"""
PLAIN = """
[factors]
settings.work_mem = ["1MB", "4MB"]
[common]
server = "embedded"
settings.shared_buffers = "32MB"
[[cells]]
workload = "select-only"
scale = 1
clients = 1
rate = 50
run = "1 s"
warmup = "0 s"
"""
# Killed while file systems are made or a server runs, then taken up again.
KILLED = """
timeout --signal=KILL {seconds} "$python" -m pgstrata run experiment.toml --study $study
pgstrata host restore || exit
"""
END = """
pgstrata plan experiment.toml && pgstrata run experiment.toml --study $study || exit
pgstrata show "$study" && pgstrata report "$study" && pgstrata reparse "$study" && pgstrata host status
"""
DOCTOR = """
pgstrata doctor && pgstrata servers check "prefix:$1/prefix" || exit
"""


@pytest.fixture
def places(open_folder):
    """Folders that pgstrata is told of, with servers in the cache; `theirs` belongs to another user."""
    cache = open_folder / "cache" / "servers"
    with open_machine(print) as machine:
        installed = Path(machine.servers.resolve(ServerSpec(kind=ServerKind.EMBEDDED)).prefix)
    fetched = next(each for each in (installed, *installed.parents) if each.parent.name == "servers")
    shutil.copytree(fetched, cache / fetched.name, symlinks=True)
    theirs = open_folder / "theirs"
    theirs.mkdir()
    shutil.copytree(installed, theirs / "prefix", symlinks=True)
    for library in fetched.glob("*.libs/*"):
        shutil.copy(library, theirs / "prefix" / "lib")
    (theirs / "prefix").chmod(0o700)
    subprocess.run(["chown", "-R", f"{OTHER}:", theirs], check=True)
    names = ("STATE", "DATA", "RUN", "LOCK", "CACHE")
    return theirs, {f"PGSTRATA_{name}": f"{open_folder}/{name.lower()}" for name in names}


def trace(places, script, experiment):
    """What a script does in the folder of another user, traced."""
    theirs, own = places
    (theirs / "experiment.toml").write_text(experiment)
    shutil.chown(theirs / "experiment.toml", OTHER)
    tracing = Tracing(theirs.parent / "trace")
    words = ("sh", "-c", BEGIN + script, "sh", str(theirs), sys.executable)
    done = tracing.run(words, env={**os.environ, **own}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "done: 2 of 2 runs" in done.stdout
    assert "nothing is changed" in done.stdout
    return tracing, list(tracing.touches())


def assert_harmless(places, touches):
    """Root touched nothing in the folders of others, nor below what the servers' user has in a mounted file system."""
    theirs, own = places
    others = (f"{theirs}/", f"{own['PGSTRATA_DATA']}/", f"{own['PGSTRATA_RUN']}/", f"{find_machine_places().memory}/")
    touched = [
        each for each in touches if any(path.startswith(others) or "/mount/data/" in path for path in each.paths)
    ]
    what = sorted({f"{touch.program} {touch.call} {touch.paths}" for touch in touched})
    assert what == [], "\n".join(what)


def assert_as_the_table_says(tracing, touches):
    server_user = pwd.getpwnam(find_server_user()).pw_uid
    ran = {(Path(process.program).name, process.uid) for process in tracing.processes.values()}
    theirs_to_run = programs_in_the_table("the servers' user")
    assert {uid for name, uid in ran if name in theirs_to_run} == {server_user}
    assert {name for name, uid in ran if uid == server_user} >= {"initdb", "postgres", "pgbench", "psql"}
    by_root = {Path(touch.paths[0]) for touch in touches if touch.call == "execve"}
    changing = {path.name.partition(".")[0] for path in by_root if path.parent.name == "sbin" and path.exists()}
    assert changing >= {"mkfs", "losetup"}
    assert changing <= programs_in_the_table("root,")
    programs = {path.name for path in by_root if path.exists()}
    assert not programs & theirs_to_run
    known = programs_in_the_table("root,") | {name for name, package in PACKAGES.items() if package in OF_ANY_SYSTEM}
    python = {name for name in programs if name.startswith("python")}
    assert {name for name in programs if name.partition(".")[0] not in known | LOOKING} <= python
    bounded = {(Path(process.program).name, process.bounded) for process in tracing.processes.values()}
    assert ("postgres", False) in bounded
    assert bounded >= {(name, True) for name in ("initdb", "psql", "pgbench")}


def test_in_folders_of_others_root_does_nothing(places):
    """Mounted folders of a copied prefix belong to nobody but root; the long form kills more often."""
    experiment = EXPERIMENT.format(prefix=f"{places[0]}/prefix", installation="memory")
    tracing, touches = trace(places, KILLED.format(seconds=10) + END, experiment)
    assert_harmless(places, touches)
    assert_as_the_table_says(tracing, touches)


@pytest.mark.soak("touches")
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("installation", ["memory", "loop", "same"])
def test_whenever_it_is_killed_root_does_nothing_in_folders_of_others(places, installation):
    experiment = EXPERIMENT.format(prefix=f"{places[0]}/prefix", installation=installation)
    kills = "".join(KILLED.format(seconds=seconds) for seconds in (4, 7, 10, 14, 18))
    tracing, touches = trace(places, DOCTOR + kills + END + DOCTOR, experiment)
    assert_harmless(places, touches)
    assert_as_the_table_says(tracing, touches)
    bounded = {Path(process.program).name for process in tracing.processes.values() if process.bounded}
    assert bounded >= {"pg_test_fsync", "pg_test_timing"}


def test_an_ordinary_user_has_nothing_done_by_root(places):
    theirs, own = places
    python, environ = open_python(theirs.parent, SWITCH)
    experiment = EXPERIMENT.partition("[[environments]]")[0] + PLAIN
    (theirs / "experiment.toml").write_text(experiment)
    home = {name: f"{theirs}/{name.lower()}" for name in own} | {"HOME": str(theirs)}
    shutil.move(own["PGSTRATA_CACHE"], home["PGSTRATA_CACHE"])
    subprocess.run(["chown", "-R", f"{OTHER}:", home["PGSTRATA_CACHE"]], check=True)
    tracing = Tracing(theirs.parent / "trace")
    words = (*SWITCH, "sh", "-c", BEGIN + END, "sh", str(theirs), python)
    done = tracing.run(words, env={**os.environ, **environ, **home}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "done: 2 of 2 runs" in done.stdout
    assert {touch.program for touch in tracing.touches()} <= {"", shutil.which("setpriv")}
    assert {process.uid for process in tracing.processes.values()} == {pwd.getpwnam(OTHER).pw_uid}


def test_the_trace_sees_what_root_does_by_any_way(open_folder):
    """Descriptors, folders to work in, other users and children of children."""
    theirs = open_folder / "theirs"
    theirs.mkdir()
    theirs.chmod(0o777)
    script = (
        'cd "$1" && : >by-shell && (cd .. && : >above)\n'
        "setpriv --reuid=nobody --clear-groups sh -c ': >as-nobody'\n"
        '"$2" -c \'import os; d = os.open(".", os.O_RDONLY); os.mkdir("by-descriptor", dir_fd=d); os.seteuid(65534); '
        'open("as-other", "w").close(); os.seteuid(0); os.rename("as-other", "renamed")\'\n'
    )
    tracing = Tracing(open_folder / "trace")
    tracing.run(("sh", "-c", script, "sh", str(theirs), sys.executable), stdout=subprocess.DEVNULL)
    seen = {path for touch in tracing.touches() for path in touch.paths}
    names = ("by-shell", "by-descriptor", "renamed")
    assert {f"{theirs}/{name}" for name in names} <= seen
    assert f"{open_folder}/above" in seen
    assert f"{theirs}/as-nobody" not in seen
