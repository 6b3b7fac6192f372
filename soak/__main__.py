"""Runs what is too long for each change, part by part, and keeps what each part last came to.

    make soak                         every part that has not passed with the code as it is now
    make soak ARGS="kills floors"     these, whatever they came to before
    make soak ARGS=--list             what each part last came to
    make soak SOURCE=FOLDER           with the part that compiles a PostgreSQL

A part is kept in `results.json` as soon as it has ended, so that a soak that was interrupted goes on with the next one.
Each has an hour. Most need root and the machine for themselves.
"""

# ruff: noqa: INP001, T201  a script that prints

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

from parts import PARTS, Part

ROOT: Final = Path(__file__).parents[1]
RESULTS: Final = Path(__file__).with_name("results.json")
HOUR: Final = 3600.0
# What a part tests: a result is that of the code as it is now if these are what they were.
CODE: Final = ("src", "tests", "soak", ":!soak/results.json")


class Code(NamedTuple):
    """The last commit that changed what is tested, and whether something has been changed since."""

    commit: str
    changed: bool


def find_code() -> Code:
    """The code as it is now."""
    return Code(commit=_git("log", "-1", "--format=%h", "--", *CODE), changed=bool(_git("status", "-s", "--", *CODE)))


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def load_results() -> dict[str, dict[str, object]]:
    """What each part last came to, by its name."""
    found: dict[str, dict[str, object]] = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    return found


def save_result(name: str, result: Mapping[str, object]) -> None:
    """Keep it beside the others, in the order of the parts."""
    results = {**load_results(), name: result}
    ordered = {part: results[part] for part in PARTS if part in results}
    RESULTS.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def run_part(name: str, part: Part, code: Code) -> dict[str, object]:
    """Run one part, printed as it comes; the result that is kept.

    It has passed only if its command ended with 0, and skipped nothing where it has to be whole.
    """
    print(f"== {name}: {part.title}", flush=True)
    begun, when = time.monotonic(), datetime.now(UTC)
    argv = [os.environ[word[1:]] if word.startswith("$") else word for word in part.argv]
    paths = os.pathsep.join((str(ROOT / "tests" / "support"), str(ROOT / "soak")))
    process = subprocess.Popen(
        argv, cwd=ROOT, env={**os.environ, "PYTHONPATH": paths}, stdout=subprocess.PIPE, text=True, errors="replace",
        start_new_session=True,
    )  # fmt: skip
    signal.signal(signal.SIGALRM, lambda *_: os.killpg(process.pid, signal.SIGINT))
    signal.setitimer(signal.ITIMER_REAL, HOUR, 60)
    last, skipped = "", False
    try:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            last, skipped = line.strip() or last, skipped or line.startswith("SKIPPED")
        process.wait()
    except KeyboardInterrupt:
        os.killpg(process.pid, signal.SIGINT)
        process.wait()
        raise
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    seconds = time.monotonic() - begun
    if seconds >= HOUR:
        outcome = "out of time"
    elif process.returncode:
        outcome = "failed"
    else:
        outcome = "skipped" if skipped and part.whole else "passed"
    return {
        "outcome": outcome,
        "date": when.isoformat(timespec="seconds"),
        "commit": code.commit,
        "changed_since": code.changed,
        "minutes": round(seconds / 60, 1),
        "said": last.strip("= "),
    }


def is_current(result: Mapping[str, object] | None, code: Code) -> bool:
    """Whether a part has passed with the code as it is now."""
    return result is not None and not code.changed and not result["changed_since"] and (
        (result["outcome"], result["commit"]) == ("passed", code.commit)
    )  # fmt: skip


def tell(name: str, result: Mapping[str, object] | None) -> str:
    """A line on what a part last came to."""
    if result is None:
        return f"{name:16} never ran: {PARTS[name].title}"
    commit = f"{result['commit']}{' and changes' if result['changed_since'] else ''}"
    return f"{name:16} {result['outcome']}, {result['date']}, {commit}, {result['minutes']} min: {result['said']}"


def main() -> int:
    """Exit code 0 if every part that was run has passed."""
    parser = argparse.ArgumentParser(description="runs what is too long for each change")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--list", action="store_true", help="show what each part last came to")
    asked = parser.parse_args()
    if unknown := set(asked.parts) - PARTS.keys():
        parser.error(f"there is no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    if asked.list:
        print("\n".join(tell(name, load_results().get(name)) for name in PARTS))
        return 0
    code, results, good = find_code(), load_results(), True
    for name in asked.parts or [name for name in PARTS if not is_current(results.get(name), code)]:
        part = PARTS[name]
        if missing := [need for need in part.needs if need not in os.environ]:
            print(f"== {name}: left out, because {', '.join(missing)} is not given", flush=True)
            good = False
            continue
        result = run_part(name, part, code)
        save_result(name, result)
        print(tell(name, result), flush=True)
        good &= result["outcome"] == "passed"
    return 0 if good else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
