"""Kills an experiment that changes its host, again and again, and looks whether everything is as it was afterwards.

Each round starts or resumes one experiment on real servers (huge pages, transparent huge pages, a loop file system, a
scheduler, a cgroup, a kernel parameter), kills it with -9 at a step of the ledger that is drawn uniformly (before and
after each entry, change and undo), lets `pgstrata host restore` undo what is left, and compares a named list of the
host's state with that before the first round. No run that was committed may be lost. Needs root.

    make chaos                  100 rounds
    make chaos ARGS="--rounds 5 --seed 7"
"""

# ruff: noqa: INP001, T201  a script that prints

from __future__ import annotations

import argparse
import os
import random
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
# Runs the command line with a ledger that kills its process at the N-th step; N = 0 counts the steps.
COORDINATOR: Final = """\
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

made = ledger.HostLedger.__init__

def make(self, *arguments, **more):
    made(self, *arguments, **{**more, "at": at})

ledger.HostLedger.__init__ = make
sys.argv[0] = "pgstrata"
from pgstrata.cli.main import entry
entry()
"""
# Counters and clocks of the kernel, which change by themselves.
VOLATILE: Final = (
    "fs.dentry-state", "fs.file-nr", "fs.inode-nr", "fs.inode-state", "kernel.ns_last_pid", "kernel.random.",
    "kernel.pty.nr", "fs.aio-nr", "net.netfilter", "vm.stat", "fs.quota", "fs.mqueue", "kernel.hostname",
)  # fmt: skip
# Those of the preflight and of a block, roughly: eight for each change.
STEPS: Final = 240
PATIENCE: Final = 300.0


class Chaos:
    """Rounds of kills in a folder of their own."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.study = folder / "study"
        self.told = folder / "killed-at"
        self.environ = {
            **os.environ,
            "PGSTRATA_STATE": str(folder / "state"),
            "PGSTRATA_DATA": str(folder / "data"),
            "PGSTRATA_LOCK": str(folder / "lock"),
        }
        self.draw = random.Random(seed)  # noqa: S311 - an order, not a secret
        (folder / "chaos.toml").write_text(EXPERIMENT.format(seed=seed), encoding="utf-8")

    def prepare(self) -> None:
        """Build the data and commit the first block's runs, so that every round begins in the middle."""
        self._pgstrata("run", "chaos.toml", "--study", str(self.study), "--budget", "20s")

    def round(self, first: Mapping[str, str]) -> tuple[str, list[str]]:
        """One kill and its restoring: the step at which it came, and what is not as it was."""
        self.told.unlink(missing_ok=True)
        committed = self.committed()
        killed = self._run_until_killed(self.draw.randint(1, STEPS))
        wrong = [f"the run of step {killed} was not killed"] if killed == "never" else []
        restored = self._pgstrata("host", "restore", check=False)
        if restored.returncode:
            wrong.append(f"host restore ended with {restored.returncode}: {restored.stdout}{restored.stderr}")
        wrong += self._wait_until_equal(first)
        if lost := committed - self.committed():
            wrong.append(f"committed runs were lost: {', '.join(sorted(lost))}")
        return killed, wrong

    def _run_until_killed(self, step: int) -> str:
        child = subprocess.Popen(
            [sys.executable, "-c", COORDINATOR, str(step), str(self.told), "run", "chaos.toml", "--study",
             str(self.study)],
            cwd=self.folder, env=self.environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            said, _ = child.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            child.kill()
            return "never"
        if child.returncode != -signal.SIGKILL:
            print(said.decode("utf-8", "replace"), file=sys.stderr)
            return "never"
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
        return {str(path.parent) for path in self.study.glob("evidence/b*/*/*/run.json")}

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
    asked = parser.parse_args()
    if os.geteuid() != 0:
        print("chaos changes this host and needs root", file=sys.stderr)
        return 2
    bad, steps = 0, dict[str, int]()
    with tempfile.TemporaryDirectory(prefix="pgstrata-chaos-") as folder:
        Path(folder).chmod(0o755)
        chaos = Chaos(Path(folder), asked.seed)
        chaos.prepare()
        first = chaos.state()
        for number in range(1, asked.rounds + 1):
            step, wrong = chaos.round(first)
            steps[step] = steps.get(step, 0) + 1
            bad += bool(wrong)
            print(
                f"[{number}/{asked.rounds}] killed at {step}: {'; '.join(wrong) or 'everything is as it was'}",
                flush=True,
            )
    print(f"{asked.rounds - bad} of {asked.rounds} rounds left everything as it was; kills by step: {steps}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
