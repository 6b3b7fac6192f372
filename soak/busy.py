"""All tests of `make test` beside two processes that never rest: none may fail because a neighbour is busy."""

# ruff: noqa: INP001  a script

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

_LOOP: Final = (sys.executable, "-c", "while True: pass")
_TESTS: Final = Path(__file__).parents[1] / "scripts" / "test.py"


def main() -> int:
    """The exit code of the tests."""
    loops = [subprocess.Popen(_LOOP) for _ in range(2)]
    try:
        return subprocess.run([sys.executable, _TESTS, *sys.argv[1:]], check=False).returncode
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


if __name__ == "__main__":
    sys.exit(main())
