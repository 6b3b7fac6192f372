"""Runs all tests: those that bear company beside each other, then those that need the machine for themselves.

Both parts run, whatever comes of the first; arguments go to pytest as they are. What each folder of tests took is shown
beside its budget (`scripts/budgets.toml`), and what takes more is named, which fails nothing: another machine has other
seconds. The last line is the sum of both parts.
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
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

# Tests of one file stay together, for the sake of what they share. Half as many processes again as there are CPUs,
# because tests of servers wait for most of their time; with more than these they only wait for each other.
PROCESSES: Final = min(8, (3 * (os.cpu_count() or 1) + 1) // 2)
TOGETHER: Final = (
    "--part",
    "together",
    "--numprocesses",
    str(PROCESSES),
    "--dist",
    "loadfile",
    "--no-loadscope-reorder",
)
ALONE: Final = ("--part", "alone", "--numprocesses", "0")
NOTHING_TO_RUN: Final = 5
INTERRUPTED: Final = 2
BUDGETS: Final = Path(__file__).with_name("budgets.toml")
_COUNT: Final = re.compile(r"(\d+) (passed|failed|errors?|skipped)")
_CLOSING: Final = re.compile(r"^(=+ )?\d+ [a-z].* in [\d.]+s\b")


def _hear() -> None:
    """Heed signals that a shell has us ignore in the background: tests send them to processes that inherit it."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def run_part(arguments: Sequence[str], counts: Counter[str]) -> int:
    """One call of pytest, printed as it comes; its exit code. Its closing line is added to the counts."""
    closing = ""
    words = [sys.executable, "-m", "pytest", *arguments]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, errors="replace", preexec_fn=_hear) as process:  # noqa: PLW1509 - one thread
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            if _CLOSING.match(line):
                closing = line
    for number, outcome in _COUNT.findall(closing):
        counts["failed" if outcome.startswith("error") else outcome] += int(number)
    return process.returncode


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
    """The exit code: of the first part that failed; 5 if neither had a test."""
    counts: Counter[str] = Counter()
    seconds: Counter[str] = Counter()
    codes: list[int] = []
    with tempfile.TemporaryDirectory(prefix="pgstrata-tests-") as folder:
        for number, part in enumerate((TOGETHER, ALONE)):
            report = Path(folder, f"{number}.xml")
            codes.append(run_part((*part, f"--junit-xml={report}", *arguments), counts))
            seconds += read_seconds(report)
            if codes[-1] == INTERRUPTED:
                break
    budgets = tomllib.loads(BUDGETS.read_text(encoding="utf-8"))
    for line in tell_seconds(seconds, budgets["groups"], budgets["longest"]):
        print(line)
    bad = [code for code in codes if code not in {0, NOTHING_TO_RUN}]
    skipped = f", {counts['skipped']} skipped" if counts["skipped"] else ""
    print(f"{counts['passed']} passed, {counts['failed']} failed{skipped}", flush=True)
    return bad[0] if bad else min(codes)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
