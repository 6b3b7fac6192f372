"""The program: `pgstrata` and `python -m pgstrata`."""

from __future__ import annotations

import gc
from typing import NoReturn


def main() -> NoReturn:
    """Start the command line.

    A command that only reads and prints ends before there is any garbage worth collecting, and looking for it costs a
    twentieth of its time; `run` switches it on again.
    """
    gc.disable()
    from pgstrata.cli.main import entry  # noqa: PLC0415 - after the line above

    entry()


if __name__ == "__main__":
    main()
