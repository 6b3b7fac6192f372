"""The program: `pgstrata` and `python -m pgstrata`."""

from __future__ import annotations

import gc
import signal
from typing import NoReturn


def main() -> NoReturn:
    """Start the command line.

    A command that only reads and prints ends before there is any garbage worth collecting, and looking for it costs a
    twentieth of its time; `run` switches it on again. Ctrl-C while modules are imported ends it by the signal, without
    a traceback; then the command line takes it.
    """
    gc.disable()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from pgstrata.cli.program import entry  # noqa: PLC0415 - after the lines above

    entry()


if __name__ == "__main__":
    main()
