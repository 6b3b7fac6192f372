"""The contents of an archive as tables for other tools, read row by row. `docs/reference/archive.md` describes them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from pgstrata.model.archive import GROUP_RATES, HOST_RATES, RELATION_FIELDS, SERVER_RATES, ArchiveFacts, Span
from pgstrata.store.archives.schema import COARSE, DETAILED

_MINUTE: Final = 60


class ColumnKind(StrEnum):
    """What a column holds: whole numbers, numbers or text."""

    WHOLE = "whole"
    NUMBER = "number"
    TEXT = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveTable:
    """A table with its rows in order of time, which can be read once; None where a value is not known."""

    name: str
    columns: tuple[tuple[str, ColumnKind], ...]
    rows: Iterator[tuple[Any, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Definition:
    """How a table is read: `query` has the placeholders :begin and :end, `{size}` (second or minute) and `{unit}`."""

    columns: tuple[tuple[str, ColumnKind], ...]
    query: str
    sized: bool = True


_CLASS: Final = ("database", "role", "application", "state", "wait_type", "event")


def _texts(*names: str) -> tuple[tuple[str, ColumnKind], ...]:
    return tuple((name, ColumnKind.TEXT) for name in names)


def _wholes(*names: str) -> tuple[tuple[str, ColumnKind], ...]:
    return tuple((name, ColumnKind.WHOLE) for name in names)


def _numbers(*names: str) -> tuple[tuple[str, ColumnKind], ...]:
    return tuple((name, ColumnKind.NUMBER) for name in names)


def _rates(name: str, rates: tuple[str, ...]) -> _Definition:
    return _Definition(
        columns=(*_wholes("moment"), *_numbers("seconds", *rates)),
        query=f"SELECT moment, seconds, {', '.join(rates)} FROM {name}_{{size}} "
        "WHERE moment >= :begin AND moment < :end ORDER BY moment",
    )


def _listed(alias: str, names: tuple[str, ...] = _CLASS) -> str:
    return ", ".join(f"{alias}.{name}" for name in names)


# CROSS JOIN keeps the order of the tables, so that rows are read in order of time and nothing has to be sorted
_TABLES: Final = {
    "looks": _Definition(
        columns=(*_wholes("moment", "seconds", "looks"), *_numbers("load")),
        query="SELECT moment, {unit}, looks, load * 1.0 / looks FROM look_{size} "
        "WHERE moment >= :begin AND moment < :end ORDER BY moment",
    ),
    "sessions": _Definition(
        columns=(*_wholes("moment", "seconds"), *_texts("kind", *_CLASS, "statement"), *_wholes("is_load", "sessions")),
        query=f"SELECT s.moment, {{unit}}, c.kind, {_listed('c')}, coalesce(t.key, ''), c.is_load, s.sessions "
        "FROM session_{size} s CROSS JOIN session_class c ON c.id = s.class "
        "LEFT JOIN statement t ON t.id = c.statement "
        "WHERE s.moment >= :begin AND s.moment < :end ORDER BY s.moment, s.class",
    ),
    "server": _rates("server", SERVER_RATES),
    "host": _rates("host", HOST_RATES),
    "group": _rates("group", GROUP_RATES),
    "statements": _Definition(
        columns=(
            *_wholes("moment"),
            *_numbers("interval_seconds", "interval_spent"),
            *_wholes("complete"),
            *_texts("statement"),
            *_numbers("calls", "seconds", "rows", "blocks_hit", "blocks_read", "wal_bytes"),
        ),
        query="SELECT i.moment, i.seconds, i.spent, i.complete, t.key, u.calls, u.seconds, u.rows, u.blocks_hit, "
        "u.blocks_read, u.wal_bytes FROM statement_interval i CROSS JOIN statement_use u ON u.moment = i.moment "
        "CROSS JOIN statement t ON t.id = u.statement "
        "WHERE i.moment > :begin AND i.moment <= :end ORDER BY i.moment, u.statement",
        sized=False,
    ),
    "blocked": _Definition(
        columns=(
            *_wholes("moment", "seconds"),
            *_texts("kind", *_CLASS, "statement"),
            *_texts("root_kind", *(f"root_{name}" for name in _CLASS), "root_statement"),
            *_wholes("root_pid", "root_held", "sessions"),
        ),
        query=f"SELECT b.moment, {{unit}}, w.kind, {_listed('w')}, coalesce(tw.key, ''), r.kind, {_listed('r')}, "
        "tr.key, b.pid, b.held, b.sessions FROM blocked_{size} b CROSS JOIN session_class w ON w.id = b.class "
        "LEFT JOIN statement tw ON tw.id = w.statement LEFT JOIN session_class r ON r.id = b.root "
        "LEFT JOIN statement tr ON tr.id = r.statement "
        "WHERE b.moment >= :begin AND b.moment < :end ORDER BY b.moment, b.class, b.root, b.pid",
    ),
    "relations": _Definition(
        columns=(
            *_wholes("moment"),
            *_numbers("interval_seconds"),
            *_texts("relation", "on_table"),
            *_numbers(*RELATION_FIELDS),
        ),
        query=f"SELECT i.moment, i.seconds, r.name, r.on_table, {_listed('u', RELATION_FIELDS)} "
        "FROM relation_interval i CROSS JOIN relation_use u ON u.moment = i.moment "
        "CROSS JOIN relation r ON r.id = u.relation "
        "WHERE i.moment > :begin AND i.moment <= :end ORDER BY i.moment, u.relation",
        sized=False,
    ),
    "horizon": _Definition(
        columns=(
            *_wholes("moment"),
            *_texts("kind", "name"),
            *_wholes("pid"),
            *_texts("state"),
            *_wholes("age", "held"),
        ),
        query="SELECT moment, kind, name, pid, state, age, held FROM horizon WHERE moment >= :begin AND moment < :end "
        "ORDER BY moment",
        sized=False,
    ),
    "plans": _Definition(
        columns=(*_wholes("moment", "until", "times"), *_texts("statement", "source", "shape", "outline", "problem")),
        query="SELECT p.moment, p.until, p.times, t.key, p.source, p.shape, p.outline, p.problem FROM plan p "
        "CROSS JOIN statement t ON t.id = p.statement WHERE p.until >= :begin AND p.moment < :end ORDER BY p.moment",
        sized=False,
    ),
    "events": _Definition(
        columns=(*_wholes("moment"), *_texts("kind", "detail"), *_wholes("times")),
        query="SELECT moment, kind, detail, times FROM event WHERE moment >= :begin AND moment < :end ORDER BY moment",
        sized=False,
    ),
    "texts": _Definition(
        columns=_texts("statement", "text"),
        query="SELECT key, text FROM statement WHERE text <> '' AND :begin < :end ORDER BY id",
        sized=False,
    ),
}
TEXTS: Final = "texts"
TABLE_NAMES: Final = tuple(_TABLES)


def read_table(
    connection: sqlite3.Connection, name: str, span: Span, facts: ArchiveFacts, *, by_minute: bool
) -> ArchiveTable:
    """One of `TABLE_NAMES`, with what the archive has of a span.

    Rows are of single seconds as far as these are kept, and of minutes before; with `by_minute` they are of minutes
    only. `texts` has those of all statements.
    """
    definition = _TABLES[name]

    def rows() -> Iterator[tuple[Any, ...]]:
        parts = _parts(span, facts, by_minute=by_minute) if definition.sized else [("", 1, span)]
        for size, unit, part in parts:
            query = definition.query.replace("{size}", size).replace("{unit}", str(unit))
            yield from connection.execute(query, {"begin": part.begin, "end": part.end})

    return ArchiveTable(name=name, columns=definition.columns, rows=rows())


def _parts(span: Span, facts: ArchiveFacts, *, by_minute: bool) -> Iterator[tuple[str, int, Span]]:
    """Which tables have which part of a span: minutes, and seconds from the first whole minute on that has all."""
    since = facts.detailed_since
    if facts.span.begin < since:
        since = -(-since // _MINUTE) * _MINUTE
    since = span.end if by_minute else min(span.end, max(span.begin, since))
    if span.begin < since:
        yield COARSE, _MINUTE, Span(begin=span.begin // _MINUTE * _MINUTE, end=since)
    if since < span.end:
        yield DETAILED, 1, Span(begin=since, end=span.end)
