"""What can be in an archive: whatever no recorder has written is damage, and the rows of a window are bounded."""

from __future__ import annotations

import math
import sqlite3
from typing import Any, Final

from pgstrata.errors import ArchiveError
from pgstrata.store.archives.schema import ImplausibleError

_LARGEST: Final = 1e18
_SMALLEST: Final = 1e-9
"""Less is nothing: recorders round to larger numbers."""
_MOST_ROWS: Final = 100_000
LONGEST_KEY: Final = 100
"""Most characters of the key of a statement or a plan: a longer key would be read again for each row."""
LATEST: Final = 32_503_680_000
"""The year 3000, which clocks that are wrong do not reach."""


def check_number(value: Any, what: str, *, negative: bool = False) -> float:
    """A number that counters can come to; ImplausibleError for any other."""
    if value is None or not (-_LARGEST if negative else 0) <= value <= _LARGEST or math.isnan(value):
        raise ImplausibleError(f"the {what} cannot be {value}")
    return float(value) if abs(value) >= _SMALLEST else 0.0


def check_count(value: Any, what: str, *, most: int = 1 << 40) -> int:
    """A natural number up to `most`; ImplausibleError for any other."""
    if value is None or not 0 <= value <= most:
        raise ImplausibleError(f"the number of {what} cannot be {value}")
    return int(value)


def take(rows: sqlite3.Cursor, what: str, *, most: int = _MOST_ROWS) -> list[Any]:
    """All rows; ArchiveError where there are more than `most`."""
    found = rows.fetchmany(most + 1)
    if len(found) > most:
        raise too_many(what, most)
    return found


def too_many(what: str, most: int) -> ArchiveError:
    """The error for a window that has more than can be shown."""
    return ArchiveError(f"there are more than {most:,} {what}", remedy="choose a shorter window")
