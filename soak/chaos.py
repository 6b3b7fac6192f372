"""Kills an experiment that changes its host, again and again, and looks whether everything is as it was afterwards.

Each round starts or resumes one experiment on real servers (huge pages, transparent huge pages, file systems on loop
devices and in memory for data, WAL and installation, a scheduler, a cgroup, a kernel parameter), kills it with -9 at a
step of the ledger that is drawn uniformly (before and after each entry, change and undo), or in every fifth round at a
random time, which may be in the middle of a change. Then `pgstrata host restore` undoes what is left; every third time
it is killed too and given again. A named list of the host's state must be as it was before the first round, and no run
that was committed may be lost. After the last round the experiment goes on for a block and ends by itself: its runs are
there, and it has removed what the killed ones left. The first round that went wrong is the last: its folder stays, with
the ledger. Needs root, and the machine for itself.

With --two-hosts the client is here and servers are here and on a host that only ssh reaches (`chaos_far`), restored by
`pgstrata host restore --host`.

    make soak ARGS=chaos             125 rounds, 100 of them killed at a step
    make soak ARGS=chaos-two-hosts
    PYTHONPATH=tests/support .venv/bin/python soak/chaos.py --rounds 5 --seed 7 --two-hosts
"""

# ruff: noqa: INP001, T201  a script that prints

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

EXPERIMENT: Final = """\
question = "Is everything as it was?"
blocks = 24
seed = {seed}
[[environments]]
name = "pages"
{pages_host}pages = "2MB"
thp = "always"
cpu.quota = "150 %"
storage.wal = "memory"
[[environments]]
name = "files"
{files_host}filesystem = "ext4"
storage.size = "160MB"
storage.scheduler = "none"
storage.read_ahead = "64kB"
storage.wal = "loop"
storage.installation = "memory"
[common]
settings.shared_buffers = "32MB"
settings.max_wal_size = "64MB"
[common.sysctl]
vm.dirty_expire_centisecs = 2500
[[cells]]
workload = "select-only"
scale = 1
clients = 1
rate = 50
run = "1s"
warmup = "0s"
"""
AFTER_BLOCK: Final = -1
# Whoever makes a ledger after this has one that kills its process at the N-th step, also while it restores; for
# AFTER_BLOCK it is killed after its first block, between two runs, and tells how many steps there were.
HOOK: Final = """\
import os, signal, sys
from pgstrata.ledger import ledger
kill_at, told = int(sys.argv.pop(1)), sys.argv.pop(1)
seen = 0

def end(text):
    with open(told, "w") as file:
        file.write(text)
    os.kill(os.getpid(), signal.SIGKILL)

def at(step):
    global seen
    seen += 1
    if seen == kill_at:
        end(str(step))

def conduct_block(*arguments):
    conduct(*arguments)
    if kill_at == -1:
        end(str(seen))

from pgstrata.app import host
from pgstrata.conduct import ceiling
from pgstrata.conduct.loop import Conduct
ceiling._SECONDS = 1.0
conduct, Conduct._conduct_block = Conduct._conduct_block, conduct_block
made, restore = ledger.HostLedger.__init__, ledger.restore

def make(self, *arguments, **more):
    made(self, *arguments, **{**more, "at": at})

ledger.HostLedger.__init__ = make
host.restore = lambda *arguments, **more: restore(*arguments, **{**more, "at": at})
sys.argv[0] = "pgstrata"
"""
ENTRY: Final = "from pgstrata.cli.program import entry; entry()"
# Counters and clocks of the kernel, which change by themselves.
VOLATILE: Final = (
    "fs.dentry-state", "fs.file-nr", "fs.inode-nr", "fs.inode-state", "kernel.ns_last_pid", "kernel.random.",
    "kernel.pty.nr", "fs.aio-nr", "net.netfilter", "vm.stat", "fs.quota", "fs.mqueue", "kernel.hostname",
)  # fmt: skip
LISTENING: Final = "0A"  # TCP_LISTEN of the kernel's include/net/tcp_states.h
# Before and after a change is undone, and before and after its entry is removed.
UNDOING_STEPS: Final = 4
OWN_FOLDERS: Final = ("pgstrata-needs*", "pgstrata-door*", "pgstrata-ssh*", "pgstrata-doctor*")
SOCKETS: Final = re.compile(r"pgstrata-ssh-(?P<pid>\d+)-")
PATIENCE: Final = 300.0
# A study is decided after seven blocks; a round finishes a block at most.
ROUNDS_PER_STUDY: Final = 5


def _own_folders() -> Iterator[Path]:
    temporary = Path(tempfile.gettempdir())
    return (path for kind in OWN_FOLDERS for path in temporary.glob(kind))


def _is_left(folder: Path) -> bool:
    """Whether nobody removes it; the next pgstrata that uses ssh removes those of killed ones."""
    killed = SOCKETS.match(folder.name)
    return killed is None or Path("/proc", killed["pid"]).exists()


class Chaos:
    """Rounds of kills in a folder of their own; `kills` are those that came about.

    `steps` and `seconds` are those of a command that tries its environments and measures a block.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.rounds = self.kills = self.steps = 0
        self.seconds = 0.0
        self.told = folder / "killed-at"
        self.environ = {
            **os.environ,
            "PGSTRATA_STATE": str(folder / "state"),
            "PGSTRATA_DATA": str(folder / "data"),
            "PGSTRATA_LOCK": str(folder / "lock"),
        }
        self.draw = random.Random(seed)  # noqa: S311 - an order, not a secret
        (folder / "chaos.toml").write_text(EXPERIMENT.format(seed=seed, **self.hosts_of(seed)), encoding="utf-8")

    def hosts_of(self, _seed: int) -> Mapping[str, str]:
        """Lines of the experiment that say where an environment's server is."""
        return {"pages_host": "", "files_host": ""}

    @property
    def restorings(self) -> Mapping[Path, tuple[str, ...]]:
        """For each host the folder in which it keeps things, and the command that restores it."""
        return {self.folder: ("host", "restore")}

    @property
    def study(self) -> Path:
        """The study of this round; all of them have the same data."""
        return self.folder / f"study-{self.rounds // ROUNDS_PER_STUDY}"

    @property
    def working(self) -> tuple[str, ...]:
        """The words of the command that changes the host."""
        return ("run", "chaos.toml", "--study", str(self.study))

    def prepare(self, blocks: int = 2) -> None:
        """Build the data and commit some runs, so that the first round begins in the middle; count a block's steps.

        The first block takes longer, because data are built before it.
        """
        before = {name: text for name, text in self.state().items() if not name.startswith("state folder")}
        for number in range(1, blocks + 1):
            begun = time.monotonic()
            steps = self._kill(AFTER_BLOCK, PATIENCE, *self.working)
            if not steps.isdecimal():
                raise RuntimeError(f"block {number} did not come about: {steps}")
            self.steps, self.seconds = int(steps), time.monotonic() - begun
            if wrong := self._wait_until_equal(before):
                raise RuntimeError(f"block {number} left something: {'; '.join(wrong)}")
        self.kills = 0

    def close(self) -> None:
        """Nothing is left but the folder."""

    def round(self, first: Mapping[str, str]) -> tuple[str, list[str]]:
        """One kill and its restoring: the step at which it came, and what is not as it was."""
        self.rounds += 1
        committed = self.committed()
        by_time = self.rounds % 5 == 0
        step = 0 if by_time else self.draw.randint(1, self.steps)
        killed = self._kill(step, self.draw.uniform(0.5, self.seconds) if by_time else PATIENCE, *self.working)
        wrong = ["the run was not killed"] if killed == "never" else []
        if self.rounds % 3 == 2:  # noqa: PLR2004
            killed += self._kill_restoring()
        for words in self.restorings.values():
            restored = self._pgstrata(*words)
            if restored.returncode:
                said = restored.stdout + restored.stderr
                wrong.append(f"{' '.join(words)} ended with {restored.returncode}: {said}")
        wrong += self._wait_until_equal(first)
        if lost := committed - self.committed():
            wrong.append(f"committed runs were lost: {', '.join(sorted(lost))}")
        return killed, wrong

    def _kill_restoring(self) -> str:
        """Kill the restoring of a host that is changed at one of its steps; where, or nothing if there is none."""
        for root, words in self.restorings.items():
            if entries := len(_ledger(root)):
                step = self.draw.randint(1, UNDOING_STEPS * entries)
                return f", {' '.join(words)} at {self._kill(step, PATIENCE, *words)}"
        return ""

    def finish(self, first: Mapping[str, str]) -> list[str]:
        """Let the experiment go on until it ends by itself: what is wrong then."""
        self.rounds += 1
        before = self.committed()
        ended = self._pgstrata(*self.working, "--budget", f"{3 * self.seconds:.0f}s")
        wrong = [f"run ended with {ended.returncode}: {ended.stdout}{ended.stderr}"] if ended.returncode else []
        if not before < self.committed():
            wrong.append("no run was added")
        clones = [path for root in self.restorings for path in (root / "data" / "clones").glob("*/*")]
        wrong += [f"{path} is left" for path in clones]
        return wrong + self._wait_until_equal(first)

    def _kill(self, step: int, patience: float, *arguments: str) -> str:
        """Where the command was killed: at that step, or after so many seconds; "never" if it ended before."""
        self.told.unlink(missing_ok=True)
        child = subprocess.Popen(
            [sys.executable, "-c", HOOK + ENTRY, str(step), str(self.told), *arguments],
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
        pools = Path("/sys/kernel/mm/hugepages").glob("*/nr_hugepages")
        transparent = Path("/sys/kernel/mm/transparent_hugepage")
        segments = Path("/proc/sysvipc/shm").read_text(encoding="utf-8").splitlines()
        # other programs of this machine open and close ports meanwhile, such as browsers of other tests
        own = self._own_sockets()
        return {
            **self.state_of(self.folder, own_sockets=own),
            "mounts": _output("findmnt", "--raw", "--noheadings", "--output", "TARGET,SOURCE,FSTYPE,OPTIONS"),
            "loop devices": _output("losetup", "--list", "--raw", "--noheadings", "--output", "NAME,BACK-FILE"),
            "cgroups": _lines(Path("/sys/fs/cgroup").rglob("*pgstrata*")),
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
            "shared memory": _lines([*(line.split()[0] for line in segments), *Path("/dev/shm").glob("PostgreSQL.*")]),  # noqa: S108
            "folders": _lines(filter(_is_left, _own_folders())),
        }

    def state_of(
        self, root: Path, inside: Sequence[str] = (), own_sockets: Collection[str] | None = None
    ) -> dict[str, str]:
        """What each host has for itself, although the kernel may be one: its network, and pgstrata's folder.

        `inside` are the words in front of a command that runs in its network. Only ports of sockets with the inodes
        `own_sockets` count; None: all ports.
        """
        parameters = _output(*inside, "sysctl", "--all", "--ignore").splitlines()
        sockets = _output(*inside, "cat", "/proc/net/unix", "/proc/net/tcp", "/proc/net/tcp6").splitlines()
        return {
            "sysctl": "\n".join(line for line in parameters if not line.startswith(VOLATILE)),
            "sockets": _lines({line.split()[-1] for line in sockets if ".s.PGSQL" in line}),
            "listening": _lines(
                {
                    words[1]
                    for words in map(str.split, sockets)
                    if LISTENING in words[3:4] and (own_sockets is None or words[9] in own_sockets)
                }
            ),
            "ledger": _lines(_ledger(root)),
            "state folder": _lines((root / "state").rglob("*")),
            "images": _lines((root / "data-storage").glob("pgstrata-*")),
        }

    def _own_sockets(self) -> set[str]:
        """Inodes of the sockets of processes that were started for this study."""
        folder, found = str(self.folder).encode(), set()
        for place in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if folder in (place / "cmdline").read_bytes() + (place / "environ").read_bytes():
                    links = [str(each.readlink()) for each in (place / "fd").iterdir()]
                    found |= {link.removeprefix("socket:[")[:-1] for link in links if link.startswith("socket:[")}
        return found

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

    def _pgstrata(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "pgstrata", *arguments], cwd=self.folder, env=self.environ, check=False,
            capture_output=True, text=True, timeout=PATIENCE,
        )  # fmt: skip


def _ledger(root: Path) -> list[Path]:
    return list((root / "state" / "ledger").glob("*.json"))


def _lines(things: Iterable[object]) -> str:
    return "\n".join(sorted(map(str, things)))


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
    parser.add_argument("--rounds", type=int, default=125)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--two-hosts", action="store_true", help="servers also on another host, over ssh")
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
        return _go_round(chaos, asked.rounds, asked.seed)
    finally:
        chaos.close()


def _go_round(chaos: Chaos, rounds: int, seed: int) -> int:
    first = chaos.state()
    begun = time.monotonic()
    steps = dict[str, int]()
    for number in range(1, rounds + 1):
        step, wrong = chaos.round(first)
        kind = "a random time" if step.partition(",")[0].endswith(" s") else step.partition(",")[0]
        steps[kind] = steps.get(kind, 0) + 1
        print(f"[{number}/{rounds}] killed at {step}: {'; '.join(wrong) or 'everything is as it was'}", flush=True)
        if wrong:
            return _stay(chaos)
    if wrong := chaos.finish(first):
        print(f"afterwards: {'; '.join(wrong)}", flush=True)
        return _stay(chaos)
    kept = len(chaos.committed())
    shutil.rmtree(chaos.folder)
    minutes = (time.monotonic() - begun) / 60
    print(f"{chaos.kills} kills in {rounds} rounds and {minutes:.1f} minutes left everything as it was")
    print(f"seed {seed}; {kept} runs kept; a block has {chaos.steps} steps and takes {chaos.seconds:.0f} s; kills at "
          f"{', '.join(f'{name} {count}' for name, count in sorted(steps.items()))}")  # fmt: skip
    return 0


def _stay(chaos: Chaos) -> int:
    for root in chaos.restorings:
        where = f"PGSTRATA_STATE={root}/state PGSTRATA_LOCK={root}/lock"
        print(f"{root} stays: {where} pgstrata host status", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
