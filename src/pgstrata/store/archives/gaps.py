"""Times within a window for which an archive has no rows."""

from __future__ import annotations

import sqlite3
from typing import Final

from pgstrata.model.archive import Span
from pgstrata.store.archives.plausible import take
from pgstrata.store.archives.schema import COARSE, DETAILED

_LONGEST: Final = {DETAILED: 5, COARSE: 120}
"""Seconds without a row above which there is a gap."""
_UNITS: Final = {DETAILED: 1, COARSE: 60}


def read_gaps(connection: sqlite3.Connection, size: str, span: Span) -> tuple[Span, ...]:
    """Times without a look at the sessions."""
    return _read(connection, "look", size, span)


def read_host_gaps(connection: sqlite3.Connection, size: str, span: Span) -> tuple[Span, ...]:
    """Times in which the host was not read; none if the archive never had a host."""
    ever = "SELECT EXISTS (SELECT 1 FROM host_second) OR EXISTS (SELECT 1 FROM host_minute)"
    return _read(connection, "host", size, span) if connection.execute(ever).fetchone()[0] else ()


def _read(connection: sqlite3.Connection, table: str, size: str, span: Span) -> tuple[Span, ...]:
    unit = _UNITS[size]
    query = (
        "SELECT before, moment FROM (SELECT moment, lag(moment, 1, :begin - 1) OVER (ORDER BY moment) AS before "
        f"FROM (SELECT moment FROM {table}_{size} WHERE moment >= :begin AND moment < :end UNION SELECT :end)) "
        f"WHERE moment - before > {_LONGEST[size] + unit - 1} ORDER BY 1"
    )
    rows = connection.execute(query, {"begin": span.begin, "end": span.end})
    return tuple(Span(begin=max(span.begin, before + unit), end=moment) for before, moment in take(rows, "gaps"))
