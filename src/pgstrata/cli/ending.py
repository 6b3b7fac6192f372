"""The end of a command whose exit code is its answer."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import NoReturn


def end_with(text: str, code: int) -> NoReturn:
    """Print, and end with a code that holds even where the reader has gone: a gate must not open for that."""
    with suppress(BrokenPipeError):
        print(text, end="", flush=True)
    sys.exit(code)
