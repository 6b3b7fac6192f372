"""Busy loops as background load during a measurement."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

LOOP: Final = """
import os, sys
while os.getppid() == int(sys.argv[1]):
    for _ in range(1_000_000):
        pass
"""
"""Ends by itself once its parent has, so a killed benchmark leaves none behind."""


@contextmanager
def busy(loops: int) -> Iterator[None]:
    """Run this number of busy loops, each in a process of its own, until the context is left."""
    with ExitStack() as stack:
        for _ in range(loops):
            loop = subprocess.Popen([sys.executable, "-c", LOOP, str(os.getpid())])
            stack.callback(loop.wait)
            stack.callback(loop.kill)
        yield
