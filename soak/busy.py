"""Tests of `make test` beside two processes that never rest: none may fail because a neighbour is busy.

    busy.py --times 2 [ARGUMENT OF PYTEST ...]

Exit code 1 if one of these runs failed; all are made, and the last line counts them.
"""

# ruff: noqa: INP001, T201  a script that prints

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path
from typing import Final

_LOOP: Final = (sys.executable, "-c", "while True: pass")
_TESTS: Final = Path(__file__).parents[1] / "scripts" / "test.py"


def main() -> int:
    """Exit code 0 if all runs passed."""
    parser = argparse.ArgumentParser(description="runs tests beside two busy loops")
    parser.add_argument("--times", type=int, default=1, help="how often they are run")
    asked, arguments = parser.parse_known_args()
    loops = [subprocess.Popen(_LOOP) for _ in range(2)]
    try:
        codes = [
            subprocess.run([sys.executable, _TESTS, *arguments], check=False).returncode for _ in range(asked.times)
        ]
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
    print(f"{codes.count(0)} of {asked.times} runs passed", flush=True)
    return int(any(codes))


if __name__ == "__main__":
    sys.exit(main())
