"""Users who attack root's pgstrata while it works: the servers' user, who also lies in wait, and a neighbour.

They exchange, link, rename and make beforehand what they can reach, at random and where a name can be foreseen, while
root checks a prefix of theirs, examines the host, runs an experiment that makes file systems and groups, reports,
restores, and builds a source of theirs. Root's own files must stay as they are, nothing of theirs may become root's,
nothing secret may be readable afterwards, and nothing stays mounted. Needs root.

    make soak ARGS=adversaries
    make soak ARGS=adversaries-shown
    PYTHONPATH=tests/support .venv/bin/python soak/attacks.py --minutes 3 --version COMMIT

With --version that commit is attacked, to show that these users do harm where they can: exit code 0 if a file of root's
is destroyed. Their links then lead only to files that were made for it.
Without it, exit code 1 where something was wrong.
"""

# ruff: noqa: INP001, T201  a script that prints

from __future__ import annotations

import argparse
import io
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from siege import Siege

ROOT = Path(__file__).parents[1]


def main() -> int:
    """Exit code 0 if the siege was withstood."""
    parser = argparse.ArgumentParser(description="lets users attack root's pgstrata while it works")
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--version", metavar="COMMIT", help="show that the attacks harm the version of that commit")
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="pgstrata-siege-", dir="/var/tmp"))
    folder.chmod(0o711)
    siege = Siege(folder, source=unpack(asked.version, folder / "version") if asked.version else None)
    siege.set_up()
    wrong = siege.run(asked.minutes * 60, seed=asked.seed, tell=lambda line: print(line, flush=True))
    if wrong and not asked.version:
        print("\n".join(wrong))
    if siege.left():
        print(f"the folder stays, because something in it is in use: {folder}")
    elif not wrong or asked.version:
        siege.clean()
    else:
        print(f"the folder stays: {folder}")
    if not asked.version:
        return tell_withstood(siege, asked.minutes, wrong)
    return tell_destroyed(siege, asked.version)


def tell_withstood(siege: Siege, minutes: float, wrong: list[str]) -> int:
    """The last line of a siege that is to be withstood, and the exit code."""
    if wrong:
        return 1
    print(f"withstood for {minutes:g} minutes: {sum(siege.outcomes.values())} commands, {dict(siege.outcomes)}")
    return 0


def tell_destroyed(siege: Siege, commit: str) -> int:
    """The last line of a siege that is to do harm, and the exit code."""
    if not siege.harmed:
        print(f"{commit} let no file of root's be destroyed: {dict(siege.outcomes)}")
        return 1
    print(f"{commit} let a file of root's be destroyed: {siege.harmed}")
    return 0


def unpack(commit: str, folder: Path) -> Path:
    """The folder with the package as it was at a commit."""
    archive = subprocess.run(["git", "archive", commit, "src"], cwd=ROOT, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(folder, filter="data")
    return folder / "src"


if __name__ == "__main__":
    sys.exit(main())
