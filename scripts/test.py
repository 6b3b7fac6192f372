"""Runs all tests, in four parts, as `tests/conftest.py` tells them apart.

Tests that only use the machine run in parallel; then tests that change it, one by one, and beside them those that
touch only folders of their own; then tests marked `alone`. A failed part does not stop the others; an interruption
does. Arguments go to pytest. The time of each folder of tests is printed beside its budget (`scripts/budgets.toml`);
exceeding it fails nothing. The last line is the sum of all parts.
"""

# ruff: noqa: INP001, T201  a script that prints

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final
from xml.etree import ElementTree as ET

# More processes than CPUs, because tests of servers and of file systems wait for more than half of their time.
CPUS: Final = os.cpu_count() or 1


def _beside_each_other(part: str, processes: int) -> tuple[str, ...]:
    """Tests of one file stay together, for the sake of what they share."""
    return (part, "--numprocesses", str(min(8, processes)), "--dist", "loadfile", "--no-loadscope-reorder")


# The second of two in one line runs beside the first, and is printed after it.
PARTS: Final = (
    (_beside_each_other("together", 5 * CPUS // 2),),
    (("host", "--numprocesses", "0"), _beside_each_other("inside", CPUS)),
    (("alone", "--numprocesses", "0"),),
)
NOTHING_TO_RUN: Final = 5
INTERRUPTED: Final = 2
BYTECODE: Final = Path(__file__).parents[1] / ".pytest_cache" / "bytecode"
BUDGETS: Final = Path(__file__).with_name("budgets.toml")
_COUNT: Final = re.compile(r"(\d+) (passed|failed|errors?|skipped)")
_CLOSING: Final = re.compile(r"^(=+ )?\d+ [a-z].* in [\d.]+s\b")


def _hear() -> None:
    """Heed signals that a shell has us ignore in the background: tests send them to processes that inherit it."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def keeping_bytecode(folder: Path) -> dict[str, str]:
    """The environment of tests: what is compiled is kept there until the next time, and nothing beside the sources.

    The program is started hundreds of times, and each process of pytest reads all tests.
    """
    unwanted = "PYTHONDONTWRITEBYTECODE"
    return {
        **{name: value for name, value in os.environ.items() if name != unwanted},
        "PYTHONPYCACHEPREFIX": str(folder),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Tests:
    """How all parts are run, and what has come of them so far."""

    folder: Path
    arguments: Sequence[str]
    counts: Counter[str] = field(default_factory=Counter)
    seconds: Counter[str] = field(default_factory=Counter)

    def start(self, part: Sequence[str], stdout: int | IO[str]) -> subprocess.Popen[str]:
        """Pytest on one part."""
        words = ("--part", *part, f"--junit-xml={self._report(part)}", *self.arguments)
        return subprocess.Popen(
            [sys.executable, "-m", "pytest", *words],
            env=keeping_bytecode(BYTECODE),
            stdout=stdout,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            preexec_fn=_hear,  # noqa: PLW1509 - one thread
        )

    def run(self, parts: Sequence[Sequence[str]]) -> list[int]:
        """Exit codes of parts at the same time: the first is printed as it comes, the others after it."""
        with ExitStack() as stack:
            later = [stack.enter_context(tempfile.TemporaryFile("w+", errors="replace")) for _ in parts[1:]]
            with self.start(parts[0], subprocess.PIPE) as first:
                others = [self.start(part, file) for part, file in zip(parts[1:], later, strict=True)]
                assert first.stdout is not None
                self._tell(parts[0], first.stdout)
            for part, file, process in zip(parts[1:], later, others, strict=True):
                process.wait()
                file.seek(0)
                self._tell(part, file)
        return [process.returncode for process in (first, *others)]

    def _tell(self, part: Sequence[str], lines: Iterable[str]) -> None:
        """Print what it says; its closing line and its report are added to the sums."""
        closing = ""
        for line in lines:
            print(line, end="", flush=True)
            if _CLOSING.match(line):
                closing = line
        for number, outcome in _COUNT.findall(closing):
            self.counts["failed" if outcome.startswith("error") else outcome] += int(number)
        self.seconds.update(read_seconds(self._report(part)))

    def _report(self, part: Sequence[str]) -> Path:
        return self.folder / f"{part[0]}.xml"


def read_seconds(report: Path) -> Counter[str]:
    """Seconds of each test, set-up included, from pytest's report in XML; empty if there is none."""
    seconds: Counter[str] = Counter()
    for case in ET.parse(report).iter("testcase") if report.exists() else ():  # noqa: S314 - pytest wrote it
        seconds[f"{case.get('classname', '').replace('.', '/')}::{case.get('name')}"] += float(case.get("time", 0))
    return seconds


def group_of(test: str) -> str:
    """The folder of a test below `tests`, or `tests` for the files that lie there."""
    folders = test.partition("::")[0].split("/")[1:-1]
    return folders[0] if folders else "tests"


def tell_seconds(seconds: Mapping[str, float], budgets: Mapping[str, float], longest: float) -> Iterator[str]:
    """What each group took, the longest first; then a line for each group and each test that took more than it may."""
    groups: Counter[str] = Counter()
    for test, taken in seconds.items():
        groups[group_of(test)] += taken
    for group, taken in groups.most_common():
        yield f"{taken:8.1f} s of {budgets.get(group, 0):4.0f} s  {group}"
    for group, taken in groups.most_common():
        if taken > budgets.get(group, 0):
            yield f"over its budget: {group} took {taken:.0f} s, not {budgets.get(group, 0):.0f} s"
    for test, taken in Counter(seconds).most_common():
        if taken > longest:
            yield f"over its budget: {test} took {taken:.0f} s, and no test has more than {longest:.0f} s"


def main(arguments: Sequence[str]) -> int:
    """The exit code: of the first part that failed; 5 if none had a test."""
    codes: list[int] = []
    with tempfile.TemporaryDirectory(prefix="pgstrata-tests-") as folder:
        tests = Tests(folder=Path(folder), arguments=arguments)
        for parts in PARTS:
            codes += tests.run(parts)
            if INTERRUPTED in codes:
                break
    budgets = tomllib.loads(BUDGETS.read_text(encoding="utf-8"))
    for line in tell_seconds(tests.seconds, budgets["groups"], budgets["longest"]):
        print(line)
    bad = [code for code in codes if code not in {0, NOTHING_TO_RUN}]
    skipped = f", {tests.counts['skipped']} skipped" if tests.counts["skipped"] else ""
    print(f"{tests.counts['passed']} passed, {tests.counts['failed']} failed{skipped}", flush=True)
    return bad[0] if bad else min(codes)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
