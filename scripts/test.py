"""Runs all tests: those that bear company beside each other, then those that need the machine for themselves.

Both parts run, whatever comes of the first; arguments go to pytest as they are. The last line is the sum of both.
"""

# ruff: noqa: INP001, T201  a script that prints

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Final

# Tests of one file stay together, for the sake of what they share. More processes than these only wait for each other.
TOGETHER: Final = ("--part", "together", "--numprocesses", "auto", "--maxprocesses", "8", "--dist", "loadfile",
                   "--no-loadscope-reorder")  # fmt: skip
ALONE: Final = ("--part", "alone", "--numprocesses", "0")
NOTHING_TO_RUN: Final = 5
INTERRUPTED: Final = 2
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


def main(arguments: Sequence[str]) -> int:
    """The exit code: of the first part that failed; 5 if neither had a test."""
    counts: Counter[str] = Counter()
    codes: list[int] = []
    for part in (TOGETHER, ALONE):
        codes.append(run_part((*part, *arguments), counts))
        if codes[-1] == INTERRUPTED:
            break
    bad = [code for code in codes if code not in {0, NOTHING_TO_RUN}]
    skipped = f", {counts['skipped']} skipped" if counts["skipped"] else ""
    print(f"{counts['passed']} passed, {counts['failed']} failed{skipped}", flush=True)
    return bad[0] if bad else min(codes)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
