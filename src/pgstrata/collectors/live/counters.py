"""The server's cumulative statistics as rates between two looks. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

from pgstrata.collectors import pgstat
from pgstrata.collectors.lines import whole_lines
from pgstrata.collectors.pgstat.sampler import Counters, known, read_counter
from pgstrata.collectors.pgstat.seconds import rates_between
from pgstrata.collectors.statements import statements_for

_DATABASES: Final = "databases"
VIEWS: Final = (_DATABASES, "position", "checkpoints", "wal", "wal_io", "io")
"""What is counted, by what it is read from: each can be refused alone."""
_SHARED_MEMORY_SINCE: Final = 150000
_MANY_TABLES: Final = 524_288
"""Bytes of pg_class from which on servers that write their statistics into files are asked less often."""
_SELDOM: Final = 10
_RESET: Final = ".stats_reset"
CONNECTIONS: Final = "connections"


@cache
def counters_statement(version: int, views: tuple[str, ...] = VIEWS) -> str:
    """What a server of that version is asked: a row of name and value for each counter of these views."""
    parts = [text for view in views for text in _read(view, version)]
    return "SELECT c.name AS pgstrata, c.value::text FROM (\n" + "UNION ALL\n".join(parts) + ") AS c (name, value)"


def counted_views(version: int) -> tuple[str, ...]:
    """Those of `VIEWS` that servers of that version have."""
    return tuple(view for view in VIEWS if _read(view, version))


def _read(view: str, version: int) -> tuple[str, ...]:
    package = __package__ if view == _DATABASES else pgstat.__name__
    number, text = statements_for(package, view, version)[0]
    return (text,) if number <= version or view == _DATABASES else ()


def counters_period(version: int, catalogue: int) -> int:
    """Seconds between two looks.

    Up to 14 each look makes the server write a file with the statistics of all tables of the database.

    Args:
        version: of the server.
        catalogue: bytes of pg_class.
    """
    return _SELDOM if version < _SHARED_MEMORY_SINCE and catalogue >= _MANY_TABLES else 1


def read_counters(rows: bytes) -> Mapping[str, float]:
    """A look by name; ParseError where a row has an unknown shape."""
    return known(read_counter(line) for line in whole_lines(rows))


def server_rates(before: Mapping[str, float], after: Mapping[str, float], seconds: float) -> Mapping[str, float]:
    """What happened each second between two looks, and how many sessions there are at the second one.

    Counters that are missing, went backwards or were reset give nothing.
    """
    found = dict(rates_between(Counters(first=before, last=after), seconds))
    if "database.backends" in after:
        found[CONNECTIONS] = after["database.backends"]
    return found


def reset_views(before: Mapping[str, float], after: Mapping[str, float]) -> tuple[str, ...]:
    """Views whose statistics somebody reset between two looks."""
    moments = [name for name in after if name.endswith(_RESET) and name in before]
    return tuple(sorted(name.removesuffix(_RESET) for name in moments if before[name] != after[name]))
