"""Kills an experiment that changes its host, again and again, and looks whether everything is as it was afterwards.

Each round starts or resumes one experiment on real servers (huge pages, transparent huge pages, a loop file system, a
scheduler, a cgroup, a kernel parameter), kills it with -9 at a step of the ledger that is drawn uniformly (before and
after each entry, change and undo), or in every fifth round at a random time, which may be in the middle of a change.
Then `pgstrata host restore` undoes what is left; every third time it is killed too and given again. A named list of the
host's state must be as it was before the first round, and no run that was committed may be lost. The first round that
went wrong is the last: its folder stays, with the ledger. Needs root, and the machine for itself.

With --two-hosts the coordinator is here and what it changes is a host that only ssh reaches (`chaos_far`): layers
without servers, restored by `pgstrata host restore --host`.

    make chaos                  100 rounds
    make chaos ARGS="--rounds 5 --seed 7"
    make chaos ARGS=--two-hosts
"""

# ruff: noqa: INP001, T201  a script that prints

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

EXPERIMENT: Final = """\
question = "Is everything as it was?"
blocks = 24
seed = {seed}
[[environments]]
name = "pages"
pages = "2MB"
thp = "always"
cpu.quota = "150 %"
[[environments]]
name = "files"
filesystem = "ext4"
storage.size = "160MB"
storage.scheduler = "none"
storage.read_ahead = "64kB"
[[environments]]
name = "plain"
[common]
settings.shared_buffers = "32MB"
settings.max_wal_size = "64MB"
[common.sysctl]
vm.dirty_expire_centisecs = 2500
[[cells]]
workload = "select-only"
scale = 1
clients = 1
run = "1s"
warmup = "0s"
"""
# Whoever makes a ledger after this has one that kills its process at the N-th step, also while it restores.
HOOK: Final = """\
import os, signal, sys
from pgstrata.ledger import ledger
kill_at, told = int(sys.argv.pop(1)), sys.argv.pop(1)
seen = 0

def at(step):
    global seen
    seen += 1
    if seen == kill_at:
        with open(told, "w") as file:
            file.write(str(step))
        os.kill(os.getpid(), signal.SIGKILL)

from pgstrata.app import host
made, restore = ledger.HostLedger.__init__, ledger.restore

def make(self, *arguments, **more):
    made(self, *arguments, **{**more, "at": at})

ledger.HostLedger.__init__ = make
host.restore = lambda *arguments, **more: restore(*arguments, **{**more, "at": at})
sys.argv[0] = "pgstrata"
"""
ENTRY: Final = "from pgstrata.cli.main import entry; entry()"
# Counters and clocks of the kernel, which change by themselves.
VOLATILE: Final = (
    "fs.dentry-state", "fs.file-nr", "fs.inode-nr", "fs.inode-state", "kernel.ns_last_pid", "kernel.random.",
    "kernel.pty.nr", "fs.aio-nr", "net.netfilter", "vm.stat", "fs.quota", "fs.mqueue", "kernel.hostname",
)  # fmt: skip
# Those of the preflight and of a block, roughly: eight for each change.
STEPS: Final = 240
RESTORING_STEPS: Final = 12
OWN_FOLDERS: Final = ("pgstrata-needs*", "pgstrata-door*", "pgstrata-ssh*", "pgstrata-doctor*")
LATEST: Final = 10.0
PATIENCE: Final = 300.0
# A study is decided after seven blocks; a round finishes a block at most.
ROUNDS_PER_STUDY: Final = 5


class Chaos:
    """Rounds of kills in a folder of their own; `kills` are those that came about."""

    restoring: tuple[str, ...] = ("host", "restore")
    entry = ENTRY
    steps = STEPS
    latest = LATEST

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.rounds = 0
        self.kills = 0
        self.told = folder / "killed-at"
        self.environ = {
            **os.environ,
            "PGSTRATA_STATE": str(folder / "state"),
            "PGSTRATA_DATA": str(folder / "data"),
            "PGSTRATA_LOCK": str(folder / "lock"),
        }
        self.draw = random.Random(seed)  # noqa: S311 - an order, not a secret
        (folder / "chaos.toml").write_text(EXPERIMENT.format(seed=seed), encoding="utf-8")

    @property
    def study(self) -> Path:
        """The study of this round; all of them have the same data."""
        return self.folder / f"study-{self.rounds // ROUNDS_PER_STUDY}"

    @property
    def working(self) -> tuple[str, ...]:
        """The words of the command that changes the host."""
        return ("run", "chaos.toml", "--study", str(self.study))

    def prepare(self) -> None:
        """Build the data and commit some runs, so that the first round begins in the middle."""
        self._pgstrata(*self.working, "--budget", "40s")

    def close(self) -> None:
        """Nothing is left but the folder."""

    def round(self, first: Mapping[str, str]) -> tuple[str, list[str]]:
        """One kill and its restoring: the step at which it came, and what is not as it was."""
        self.rounds += 1
        committed = self.committed()
        by_time = self.rounds % 5 == 0
        step = 0 if by_time else self.draw.randint(1, self.steps)
        killed = self._kill(step, self.draw.uniform(0.5, self.latest) if by_time else PATIENCE, *self.working)
        wrong = ["the run was not killed"] if killed == "never" else []
        if self.rounds % 3 == 0:
            killed += ", restoring at " + self._kill(self.draw.randint(1, RESTORING_STEPS), PATIENCE, *self.restoring)
        restored = self._pgstrata(*self.restoring, check=False)
        if restored.returncode:
            wrong.append(f"host restore ended with {restored.returncode}: {restored.stdout}{restored.stderr}")
        wrong += self._wait_until_equal(first)
        if lost := committed - self.committed():
            wrong.append(f"committed runs were lost: {', '.join(sorted(lost))}")
        return killed, wrong

    def _kill(self, step: int, patience: float, *arguments: str) -> str:
        """Where the command was killed: at that step, or after so many seconds; "never" if it ended before."""
        self.told.unlink(missing_ok=True)
        child = subprocess.Popen(
            [sys.executable, "-c", HOOK + self.entry, str(step), str(self.told), *arguments],
            cwd=self.folder, env=self.environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            said, _ = child.communicate(timeout=patience)
        except subprocess.TimeoutExpired:
            child.kill()
            child.communicate()
            self.kills += 1
            return f"{patience:.1f} s"
        if child.returncode != -signal.SIGKILL:
            if arguments == self.working:
                print(said.decode("utf-8", "replace"), file=sys.stderr)
            return "never"
        self.kills += 1
        return self.told.read_text(encoding="utf-8")

    def _wait_until_equal(self, first: Mapping[str, str]) -> list[str]:
        """Children that lost their coordinator need a moment to end."""
        deadline = time.monotonic() + 20
        while wrong := compare(first, self.state()):
            if time.monotonic() > deadline:
                return wrong
            time.sleep(0.2)
        return []

    def committed(self) -> set[str]:
        """Identities of the runs in the study."""
        return {str(path.parent) for path in self.folder.glob("study-*/evidence/b*/*/*/run.json")}

    def state(self) -> Mapping[str, str]:
        """The named list: what must be equal before and after."""
        parameters = _output("sysctl", "--all", "--ignore")
        kept = "\n".join(line for line in parameters.splitlines() if not line.startswith(VOLATILE))
        pools = Path("/sys/kernel/mm/hugepages").glob("*/nr_hugepages")
        transparent = Path("/sys/kernel/mm/transparent_hugepage")
        return {
            "sysctl": kept,
            "mounts": _output("findmnt", "--raw", "--noheadings", "--output", "TARGET,SOURCE,FSTYPE,OPTIONS"),
            "loop devices": _output("losetup", "--list", "--raw", "--noheadings", "--output", "NAME,BACK-FILE"),
            "cgroups": "\n".join(sorted(str(path) for path in Path("/sys/fs/cgroup").rglob("*pgstrata*"))),
            "page pools": "\n".join(f"{path}: {path.read_text()}" for path in sorted(pools)),
            "transparent huge pages": "\n".join(
                (transparent / name).read_text()
                for name in ("enabled", "shmem_enabled")
                if (transparent / name).exists()
            ),
            "schedulers": "\n".join(
                f"{path}: {path.read_text()}"
                for path in sorted(Path("/sys/block").glob("*/queue/scheduler"))
                if not path.parts[3].startswith("loop")
            ),
            "processes": "\n".join(self._processes()),
            "sockets": "\n".join(line for line in _output("cat", "/proc/net/unix").splitlines() if ".s.PGSQL" in line),
            "ledger": "\n".join(sorted(str(path) for path in (self.folder / "state" / "ledger").glob("*.json"))),
            "folders": "\n".join(
                sorted(str(path) for kind in OWN_FOLDERS for path in Path(tempfile.gettempdir()).glob(kind))
            ),
            "images": "\n".join(sorted(str(path) for path in (self.folder / "data").glob("pgstrata-*"))),
        }

    def _processes(self) -> list[str]:
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = path.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            except OSError:
                continue
            if str(self.folder) in words and str(os.getpid()) != path.parts[2]:
                found.append(words)
        return sorted(found)

    def _pgstrata(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "pgstrata", *arguments], cwd=self.folder, env=self.environ, check=check,
            capture_output=True, text=True, timeout=PATIENCE,
        )  # fmt: skip


def compare(first: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """What is not as it was, by name, with the lines that differ."""
    wrong = []
    for name, before in first.items():
        gone, come = set(before.splitlines()) - set(now[name].splitlines()), set(now[name].splitlines())
        if differing := sorted(gone | (come - set(before.splitlines()))):
            wrong.append(f"{name}: {'; '.join(differing[:6])}")
    return wrong


def _output(*argv: str) -> str:
    return subprocess.run(argv, check=False, capture_output=True, text=True).stdout


def main() -> int:
    """Exit code 0 if every round left the host as it was."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--two-hosts", action="store_true", help="change another host, over ssh, without servers")
    asked = parser.parse_args()
    if os.geteuid() != 0:
        print("chaos changes this host and needs root", file=sys.stderr)
        return 2
    folder = Path(tempfile.mkdtemp(prefix="pgstrata-chaos-"))
    folder.chmod(0o755)
    kind = Chaos
    if asked.two_hosts:
        from chaos_far import FarChaos  # noqa: PLC0415 - needs an sshd and network namespaces

        kind = FarChaos
    chaos = kind(folder, asked.seed)
    try:
        chaos.prepare()
        return _go_round(chaos, asked.rounds)
    finally:
        chaos.close()


def _go_round(chaos: Chaos, rounds: int) -> int:
    first = chaos.state()
    begun = time.monotonic()
    steps = dict[str, int]()
    for number in range(1, rounds + 1):
        step, wrong = chaos.round(first)
        kind = "a random time" if step.endswith(" s") or " s," in step else step.partition(",")[0]
        steps[kind] = steps.get(kind, 0) + 1
        print(f"[{number}/{rounds}] killed at {step}: {'; '.join(wrong) or 'everything is as it was'}", flush=True)
        if wrong:
            where = f"PGSTRATA_STATE={chaos.folder}/state PGSTRATA_LOCK={chaos.folder}/lock"
            print(f"{chaos.folder} stays: {where} pgstrata host status", file=sys.stderr)
            return 1
    shutil.rmtree(chaos.folder)
    minutes = (time.monotonic() - begun) / 60
    print(f"{chaos.kills} kills in {rounds} rounds and {minutes:.1f} minutes left everything as it was")
    print(f"rounds by step: {', '.join(f'{name} {count}' for name, count in sorted(steps.items()))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
