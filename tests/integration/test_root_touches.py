"""Root opens, makes, changes and removes nothing in folders of others: a whole experiment is traced, killed once."""

import os
import pwd
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pgstrata.app.places import find_machine_places, find_server_user
from root_touches import Tracing

pytestmark = [
    pytest.mark.root,
    pytest.mark.server,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(Tracing.missing()), reason=Tracing.missing()),
]
OTHER = "daemon"
SECURITY = Path(__file__).parents[2] / "SECURITY.md"
EXPERIMENT = """
question = "Does root touch what is not its own?"
blocks = 1
[[environments]]
name = "plain"
server = "embedded"
sysctl."vm.swappiness" = "10"
limits.memory = "2 GB"
[[environments]]
name = "made"
server = "embedded"
filesystem = "ext4"
storage.wal = "memory"
[[cells]]
workload = "simple-update"
scale = 1
clients = 1
rate = 50
run = "1 s"
warmup = "0 s"
"""
# Killed while file systems are made or a server runs, then taken up again.
SCRIPT = """
cd "$1" || exit
pgstrata() { "$python" -m pgstrata "$@"; }
python=$2
pgstrata plan experiment.toml || exit
study=studies/one
timeout --signal=KILL 10 "$python" -m pgstrata run experiment.toml --study $study
pgstrata host restore || exit
pgstrata run experiment.toml --study $study || exit
pgstrata show "$study" && pgstrata report "$study" && pgstrata reparse "$study" && pgstrata host status
"""


def test_in_folders_of_others_root_does_nothing(open_folder):
    theirs = open_folder / "theirs"
    theirs.mkdir()
    (theirs / "experiment.toml").write_text(EXPERIMENT)
    for path in (theirs, theirs / "experiment.toml"):
        os.chown(path, pwd.getpwnam(OTHER).pw_uid, pwd.getpwnam(OTHER).pw_gid)
    own = {
        "PGSTRATA_STATE": f"{open_folder}/state",
        "PGSTRATA_DATA": f"{open_folder}/data",
        "PGSTRATA_RUN": f"{open_folder}/run",
        "PGSTRATA_LOCK": f"{open_folder}/lock",
    }
    tracing = Tracing(open_folder / "trace")
    words = ("sh", "-c", SCRIPT, "sh", str(theirs), sys.executable)
    done = tracing.run(words, env={**os.environ, **own}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "done: 2 of 2 runs" in done.stdout
    assert "nothing is changed" in done.stdout
    others = (f"{theirs}/", f"{open_folder}/data/", f"{open_folder}/run/", f"{find_machine_places().memory}/")
    touched = [touch for touch in tracing.touches() if any(path.startswith(others) for path in touch.paths)]
    inside = [touch for touch in tracing.touches() if any("/mount/data/" in path for path in touch.paths)]
    what = sorted({f"{touch.program} {touch.call} {touch.paths}" for touch in (*touched, *inside)})
    assert what == [], "\n".join(what)
    server_user = pwd.getpwnam(find_server_user()).pw_uid
    ran = {(Path(process.program).name, process.uid) for process in tracing.processes.values()}
    theirs_to_run = programs_in_the_table("the servers' user")
    assert {uid for name, uid in ran if name in theirs_to_run} == {server_user}
    assert {name for name, uid in ran if uid == server_user} >= {"initdb", "postgres", "pgbench", "psql"}
    by_root = {Path(touch.paths[0]) for touch in tracing.touches() if touch.call == "execve"}
    changing = {path.name.partition(".")[0] for path in by_root if path.parent.name == "sbin" and path.exists()}
    assert changing >= {"mkfs", "losetup"}
    assert changing <= programs_in_the_table("root,")
    assert not {path.name for path in by_root if path.exists()} & theirs_to_run


def programs_in_the_table(who):
    """Those that SECURITY.md says are run as somebody."""
    rows = [line.split("|")[1:3] for line in SECURITY.read_text().splitlines() if line.count("|") == 3]
    return {name for what, whom in rows if whom.strip().startswith(who) for name in re.findall("`([^`:]+)`", what)}


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
