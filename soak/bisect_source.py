"""`pgstrata bisect` on a compiled PostgreSQL: does it find the commit that made a real source slower?

    make soak ARGS=bisect-compiled SOURCE=SOURCE
    .venv/bin/python soak/bisect_source.py SOURCE [--folder DIR] [--loops N]

SOURCE is a folder or a tarball of any PostgreSQL that builds here. A repository of eight commits is made of it, one of
which lets the executor count to N for each statement; the rest are comments, functions that nobody calls, and a commit
that cannot be built. Then the search runs as a user would run it. Four builds and as many comparisons: about half an
hour on two CPUs. The slow commit is slow enough to be found beside other work. The same folder goes on where it was.

Exit code 1 where the search ends elsewhere.
"""

# ruff: noqa: INP001, T201  a script that prints

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pgstrata.app.places import find_machine_places
from pgstrata.hosts.local import LocalHost
from pgstrata.servers.tree import BuildUser, find_source

EXPERIMENT: Final = """
question  = "Which commit made reading slower?"
threshold = "3 %"
blocks    = 24

[common]
server = "build:."

[[cells]]
workload = "select-only"
scale    = 10
clients  = 2
"""
EXECUTOR: Final = "src/backend/executor/execMain.c"
UNRELATED: Final = "src/backend/utils/adt/quote.c"
FIRST_COMPILED: Final = "src/port/path.c"
ENTRY: Final = "\tif (ExecutorRun_hook)"
BROKEN: Final = '\n#error "broken on purpose"\n'
GUILTY: Final = "Work in the executor"


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """A commit: the file, and what becomes of its text."""

    subject: str
    file: str
    change: Callable[[str], str]


def list_edits(loops: int) -> Sequence[Edit]:
    """All commits after the first, the oldest first."""
    slower = f"\tfor (volatile int wasted = 0; wasted < {loops}; wasted++)\n\t\t;\n\n{ENTRY}"
    return (
        Edit(subject="A comment in the executor", file=EXECUTOR, change=lambda text: f"{text}\n/* nothing */\n"),
        Edit(subject="A function that nobody calls", file=UNRELATED, change=lambda text: text + idle("first")),
        Edit(subject="Break the build", file=FIRST_COMPILED, change=lambda text: text + BROKEN),
        Edit(subject="Mend the build", file=FIRST_COMPILED, change=lambda text: text.removesuffix(BROKEN)),
        Edit(subject=GUILTY, file=EXECUTOR, change=lambda text: replace_once(text, ENTRY, slower)),
        Edit(subject="Another comment", file=EXECUTOR, change=lambda text: f"{text}\n/* nothing more */\n"),
        Edit(subject="Another function that nobody calls", file=UNRELATED, change=lambda text: text + idle("second")),
    )


def idle(name: str) -> str:
    """A function that is compiled and never called."""
    return f"\nextern int {name}_idle(int a);\nint\n{name}_idle(int a)\n{{\n\treturn a + 1;\n}}\n"


def replace_once(text: str, old: str, new: str) -> str:
    """The text with `old` replaced; SystemExit where it is not there exactly once."""
    if text.count(old) != 1:
        sys.exit(f"{EXECUTOR} holds {old.strip()!r} {text.count(old)} times, not once: choose another source")
    return text.replace(old, new)


def make_repository(source: str, folder: Path, loops: int) -> None:
    """The repository, if it is not there."""
    if (folder / ".git").is_dir():
        return
    here = LocalHost()
    find_source(here, source, BuildUser(host=here)).copy(folder)
    git(folder, "init", "--quiet", "--initial-branch=master")
    # --force: archives hold what bison made, and their own .gitignore leaves it out
    commit(folder, "The source as it came")
    for edit in list_edits(loops):
        path = folder / edit.file
        path.write_text(edit.change(path.read_text()))
        commit(folder, edit.subject)


def commit(folder: Path, subject: str) -> None:
    """Everything in the folder."""
    git(folder, "add", "--all", "--force")
    git(folder, "commit", "--quiet", "-m", subject)


def git(folder: Path, *arguments: str) -> str:
    """What git prints."""
    who = ("-c", "user.name=pgstrata", "-c", "user.email=pgstrata@localhost", "-c", "commit.gpgsign=false")
    done = subprocess.run(("git", *who, *arguments), cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def list_builds() -> set[str]:
    """Installations in the cache that were built here."""
    return {path.name for path in Path(find_machine_places().cache, "servers").glob("build-*") if path.is_dir()}


def main() -> int:
    """Make the repository, search, and look whether the right commit was found."""
    parser = argparse.ArgumentParser(description="bisect on a compiled PostgreSQL")
    parser.add_argument("source", type=Path)
    parser.add_argument("--folder", type=Path, default=Path("bisect-source"))
    parser.add_argument("--loops", type=int, default=10_000, help="of the slow commit, for each statement")
    asked = parser.parse_args()
    folder = asked.folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    make_repository(str(asked.source.absolute()), folder / "repository", asked.loops)
    (folder / "which-commit.toml").write_text(EXPERIMENT)
    built, begun = list_builds(), time.monotonic()
    argv = (
        "bisect",
        "which-commit.toml",
        "--git",
        "HEAD~7..HEAD",
        "--repo",
        "repository",
        "--study",
        "search",
        "--json",
    )
    done = subprocess.run((sys.executable, "-m", "pgstrata", *argv), cwd=folder, stdout=subprocess.PIPE, check=False)
    minutes = (time.monotonic() - begun) / 60
    if not done.stdout:
        return 1
    found = json.loads(done.stdout)
    commit_found = (found.get("found") or {}).get("after", {}).get("subject", "")
    runs = len(list((folder / "search").glob("*/evidence/b*/*/*/run.json")))
    ends = found["ends"]
    print(f"outcome {found['outcome']}: {commit_found or 'no commit'}")
    print(f"ends: {ends['verdict']}, {len(found['steps'])} steps: {', '.join(one['like'] for one in found['steps'])}")
    print(f"{len(list_builds() - built)} builds, {runs} runs, {minutes:.0f} minutes")
    return 0 if (found["outcome"], commit_found) == ("found", GUILTY) else 1


if __name__ == "__main__":
    sys.exit(main())
