"""Faults while pgstrata works: a disk that is full, broken or read-only, kills, servers that crash, hang and vanish.

First without servers, on a file system that fails on demand (`faulty_fs`): studies, ledgers and datasets
(`fault_scenarios`), each of their operations that change something, with each effect, in a process of its own. Then
beside real experiments (`faults_live`). After each fault committed runs are whole and byte-identical, the study goes
on, the host is as it was, and nobody has seen a traceback. Needs root and fuse3.

    make soak ARGS=faults
    PYTHONPATH=tests/support:soak .venv/bin/python soak/faults.py --every 40 --live 0
"""

# ruff: noqa: INP001, T201  a script that prints

from __future__ import annotations

import argparse
import os
import re
import selectors
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from fault_scenarios import Scenario, Tell, make_scenarios
from faulty_fs import Effect, FaultyFs, sum_concerned, why_not

from pgstrata.errors import PgstrataError
from working_folder import working_folder

PATIENCE: Final = 90.0
_REFUSED, _NO_REMEDY, _DEFECT = 1, 2, 70
_POLL: Final = 0.005


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a process ended: code (minus a signal's number, None: not in time), what it told, and what it complained."""

    code: int | None
    told: list[str]
    complaints: str


class Child:
    """A process of its own that does something when it is let go; it prints an expected failure as the program does."""

    def __init__(self, work: Callable[[Tell], None], scratch: Path) -> None:
        self._told, self._complaints = scratch / "told", scratch / "complaints"
        reading, self._go = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._go)
            _work(work, reading, self._told, self._complaints)
        os.close(reading)

    def run(self) -> Ended:
        """Let it go, and wait until it has ended."""
        os.write(self._go, b"go")
        os.close(self._go)
        deadline = time.monotonic() + PATIENCE
        while (ended := os.waitpid(self.pid, os.WNOHANG))[0] == 0:
            if time.monotonic() > deadline:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
                return Ended(code=None, told=[], complaints=self._complaints.read_text(errors="replace"))
            time.sleep(_POLL)
        return Ended(
            code=os.waitstatus_to_exitcode(ended[1]),
            told=self._told.read_text().splitlines(),
            complaints=self._complaints.read_text(errors="replace"),
        )


def _work(work: Callable[[Tell], None], go: int, told: Path, complaints: Path) -> None:
    flags, code = os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _DEFECT
    output = os.open(told, flags)
    os.dup2(os.open(complaints, flags), sys.__stderr__.fileno())
    sys.stderr = sys.__stderr__

    def tell(text: str) -> None:
        os.write(output, f"{text}\n".encode())

    try:
        if os.read(go, 2):
            work(tell)
        code = 0
    except PgstrataError as error:
        print(error, file=sys.stderr)
        code = _REFUSED if error.remedy else _NO_REMEDY
    except BaseException:  # noqa: BLE001 - that is what is looked for
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


class Faults:
    """The faults of one scenario after the other on one file system, in a folder of their own."""

    def __init__(self, fs: FaultyFs, folder: Path) -> None:
        self._fs = fs
        self._template, self._scratch = folder / "template", folder / "scratch"
        self._scratch.mkdir()
        self.ends: Counter[str] = Counter()

    @property
    def _place(self) -> Path:
        return self._fs.mount / "case"

    def prepare(self, scenario: Scenario) -> None:
        """Make what is there before each fault, once."""
        shutil.rmtree(self._template, ignore_errors=True)
        shutil.rmtree(self._fs.root / "case", ignore_errors=True)
        self._place.mkdir()
        scenario.prepare(self._place)
        shutil.copytree(self._fs.root / "case", self._template, symlinks=True)

    def count(self, scenario: Scenario) -> Counter[str]:
        """How many operations of each kind a scenario has."""
        count, wrong = self._run(scenario, 0, Effect.READ_ONLY)
        if wrong:
            raise RuntimeError(f"{scenario.name} without a fault: {'; '.join(wrong)}")
        return count

    def fault(self, scenario: Scenario, number: int, effect: Effect) -> list[str]:
        """What is wrong after the fault at that operation."""
        _, wrong = self._run(scenario, number, effect)
        return wrong

    def _run(self, scenario: Scenario, number: int, effect: Effect) -> tuple[Counter[str], list[str]]:
        shutil.rmtree(self._fs.root / "case", ignore_errors=True)
        shutil.copytree(self._template, self._fs.root / "case", symlinks=True)
        child = Child(lambda tell: scenario.act(self._place, tell), self._scratch)
        self._fs.arm(number, effect, child.pid)
        ended = child.run()
        count = self._fs.disarm()
        killed = ended.code == -signal.SIGKILL
        self.ends["killed" if killed else "refused" if ended.code else "went on"] += 1
        wrong = judge("it", ended, may_refuse=number > 0, may_die=effect in KILLS)
        wrong += self._check(scenario, ended.told)
        return count, wrong

    def _check(self, scenario: Scenario, told: list[str]) -> list[str]:
        def check(tell: Tell) -> None:
            for line in scenario.check(self._place, told):
                tell(line)

        checked = Child(check, self._scratch).run()
        return [*checked.told, *judge("going on", checked, may_refuse=False, may_die=False)]


KILLS: Final = (Effect.KILLED_BEFORE, Effect.KILLED_AFTER)


def judge(what: str, ended: Ended, *, may_refuse: bool, may_die: bool) -> list[str]:
    """What is wrong with the end of a process."""
    said = f": {ended.complaints.strip()}" if ended.complaints else ""
    wrong = {
        None: f"{what} did not end in {PATIENCE:g} s",
        _DEFECT: f"{what} ended with a traceback",
        _NO_REMEDY: f"{what} was refused without a remedy",
    }
    if ended.code in wrong:
        return [wrong[ended.code] + said]
    if ended.code == 0 or (ended.code == _REFUSED and may_refuse) or (ended.code == -signal.SIGKILL and may_die):
        return [f"{what} printed a traceback{said}"] if "Traceback" in ended.complaints else []
    return [f"{what} ended with {ended.code}{said}"]


def inject(fs: FaultyFs, folder: Path, every: int, only: str) -> tuple[int, int]:
    """Print and count faults without servers, and those after which something was wrong."""
    done = failed = 0
    faults = Faults(fs, folder)
    for scenario in make_scenarios(folder):
        if only not in {"", scenario.name}:
            continue
        faults.prepare(scenario)
        seen = faults.count(scenario)
        for effect in Effect:
            numbers = range(1, sum_concerned(seen, effect) + 1)
            faults.ends.clear()
            bad = 0
            for number in numbers[done % every :: every]:
                done += 1
                if wrong := faults.fault(scenario, number, effect):
                    bad += 1
                    print(f"{scenario.name}, {effect} at {number}: {'; '.join(wrong)}", flush=True)
            failed += bad
            ends = ", ".join(f"{count} {what}" for what, count in sorted(faults.ends.items()))
            print(f"{scenario.name:10} {effect:14} of {len(numbers):3} operations: {ends}; {bad} wrong", flush=True)
    return done, failed


def go_live(fs: FaultyFs, folder: Path, rounds: slice, seed: int) -> tuple[int, int]:
    """Print and count faults beside real experiments, and those after which something was wrong."""
    from faults_live import Live  # noqa: PLC0415 - without servers nothing of it is needed

    with closing(Live(folder, fs, seed)) as live:
        return live.run(rounds)


def work_alone(asked: argparse.Namespace) -> Sum:
    """All that is asked for, one after the other."""
    with working_folder("pgstrata-faults-") as folder:
        root, mount = folder / "root", folder / "mount"
        for path in (root, mount):
            path.mkdir(mode=0o755)
        with FaultyFs.mounted(root, mount) as fs:
            done, failed = inject(fs, folder, asked.every, asked.only) if asked.every else (0, 0)
            rounds = slice(asked.first, asked.live, asked.step)
            live, bad = go_live(fs, folder, rounds, asked.seed + asked.first) if asked.live else (0, 0)
    return Sum(done, live, failed + bad)


def share_work(asked: argparse.Namespace) -> Sum:
    """The faults without servers, and those beside experiments in so many processes, at the same time."""
    shares: list[tuple[str, ...]] = [("--every", str(asked.every), "--only", asked.only, "--live", "0")]
    live = ("--every", "0", "--live", str(asked.live), "--step", str(asked.workers))
    shares += [(*live, "--first", str(number)) for number in range(asked.workers)]
    words = (sys.executable, __file__, "--seed", str(asked.seed))
    workers = [subprocess.Popen((*words, *share), stdout=subprocess.PIPE, text=True) for share in shares]
    total, told = Sum(0, 0, 0), []
    try:
        with selectors.DefaultSelector() as outputs:
            for worker in workers:
                outputs.register(worker.stdout, selectors.EVENT_READ, worker)
            while outputs.get_map():
                for key, _ in outputs.select():
                    line = key.fileobj.readline()
                    if not line:
                        outputs.unregister(key.fileobj)
                        total = total.plus(0, 0, 0 if key.data in told else 1)
                    elif said := SAID.fullmatch(line.strip()):
                        told.append(key.data)
                        total = total.plus(*map(int, said.groups()))
                    else:
                        print(line, end="", flush=True)
    finally:
        for worker in workers:
            worker.send_signal(signal.SIGINT)
            worker.wait()
    return total


class Sum(NamedTuple):
    """Faults without servers, beside real experiments, and those after which something was wrong."""

    injected: int
    live: int
    wrong: int

    def plus(self, *more: int) -> Sum:
        """The sum of both."""
        return Sum(*(mine + other for mine, other in zip(self, more, strict=True)))

    def __str__(self) -> str:
        """As `SAID` reads it."""
        done = f"{self.injected} faults without servers and {self.live} beside experiments"
        return f"{done}; {self.wrong} left something wrong"


SAID: Final = re.compile(r"(\d+) faults without servers and (\d+) beside experiments; (\d+) left something wrong")


def main() -> int:
    """Exit code 0 if nothing was wrong after any fault, 1 if something was."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--every", type=int, default=1, help="without servers: every so manieth operation, 0 for none")
    parser.add_argument("--only", default="", help="without servers: one scenario")
    parser.add_argument("--live", type=int, default=100, help="faults beside real experiments")
    parser.add_argument("--first", type=int, default=0, help="beside experiments: the first of these")
    parser.add_argument("--step", type=int, default=1, help="beside experiments: every so manieth from the first")
    parser.add_argument("--workers", type=int, default=0, help="processes for those, beside one for the others")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    if lack := why_not():
        print(f"faults: {lack}", file=sys.stderr)
        return 2
    total = share_work(asked) if asked.workers else work_alone(asked)
    print(total)
    return 1 if total.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
