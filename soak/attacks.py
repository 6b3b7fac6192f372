"""Users who attack root's pgstrata while it works: the servers' user, who also lies in wait, and a neighbour.

They exchange, link, rename and make beforehand what they can reach, at random and where a name can be foreseen, while
root checks a prefix of theirs, examines the host, runs an experiment that makes file systems and groups, reports,
restores, and builds a source of theirs. Root's own files must stay as they are, nothing of theirs may become root's,
nothing secret may be readable afterwards, and nothing stays mounted. Needs root.

    make soak ARGS=adversaries
    PYTHONPATH=tests/support .venv/bin/python soak/attacks.py --minutes 2 --version ../before/src

With --version another version is attacked. Exit code 1 where something was wrong.
"""

# ruff: noqa: INP001, T201  a script that prints

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from siege import Siege


def main() -> int:
    """Exit code 0 if the siege was withstood."""
    parser = argparse.ArgumentParser(description="lets users attack root's pgstrata while it works")
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--version", type=Path, help="the folder of another version's package")
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="pgstrata-siege-", dir="/var/tmp"))
    folder.chmod(0o711)
    siege = Siege(folder, asked.version and asked.version.absolute())
    siege.set_up()
    wrong = siege.run(asked.minutes * 60, seed=asked.seed, tell=lambda line: print(line, flush=True))
    if wrong:
        print("\n".join(wrong), f"the folder stays: {folder}", sep="\n")
        return 1
    siege.clean()
    print(f"withstood for {asked.minutes:g} minutes: {sum(siege.outcomes.values())} commands, {dict(siege.outcomes)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
