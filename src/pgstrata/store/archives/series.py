"""The load of a long window by wait event, in equal steps, read in one pass."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from pgstrata.model.archive import SessionClass, Span
from pgstrata.store.archives.plausible import too_many
from pgstrata.store.archives.schema import ImplausibleError

_Integers = npt.NDArray[np.int64]
_MOST_CELLS: Final = 50_000_000
_MOST_SESSIONS: Final = 1e15
_AT_ONCE: Final = 5000
"""Moments that are read together."""


def read_load(connection: sqlite3.Connection, size: str, span: Span, step: int) -> Mapping[str, tuple[int, ...]]:
    """Sessions in a statement by wait event, TYPE/EVENT or empty for those that run, summed up by step.

    Rows come in the order of the table's key, with all classes of a moment as one text: sorting them by step and event
    in SQL would take most of the time.

    Args:
        connection: to the archive.
        size: of the tables that are read.
        span: the window, a whole number of steps.
        step: seconds.

    Raises:
        ArchiveError: it is too much for this machine's memory.
    """
    events, numbers, places = _events(connection)
    number = span.seconds // step
    if (len(events) + 1) * number > _MOST_CELLS:
        raise too_many("steps and wait events", _MOST_CELLS)
    counts = np.zeros((len(events) + 1) * number)
    query = (
        f"SELECT moment, group_concat(class), group_concat(sessions) FROM session_{size} "
        "WHERE moment >= ? AND moment < ? GROUP BY moment"
    )
    cursor = connection.execute(query, (span.begin, span.end))
    while rows := cursor.fetchmany(_AT_ONCE):
        moments, *texts = zip(*rows, strict=True)
        classes, sessions = (np.fromstring(",".join(each), dtype=np.int64, sep=",") for each in texts)
        sizes = [text.count(",") + 1 for text in texts[0]]
        steps = np.repeat((np.array(moments) - span.begin) // step, sizes)
        found = np.searchsorted(numbers, classes).clip(max=numbers.size - 1)
        place = np.where(numbers[found] == classes, places[found], len(events))
        counts += np.bincount(place * number + steps, sessions, minlength=counts.size)
    if not 0 <= counts.min(initial=0) <= counts.max(initial=0) <= _MOST_SESSIONS:
        raise ImplausibleError("the number of sessions cannot be so large, or negative")
    by_event = counts.astype(np.int64).reshape(len(events) + 1, number)[: len(events)]
    return {event: tuple(row.tolist()) for event, row in zip(events, by_event, strict=True) if row.any()}


def _events(connection: sqlite3.Connection) -> tuple[list[str], _Integers, _Integers]:
    """Wait events in order; numbers of all classes, ascending, and the place of the event of each.

    What is no load stands behind all events.
    """
    rows = connection.execute("SELECT id, kind, state, wait_type, event FROM session_class ORDER BY id").fetchall()
    names = [
        (f"{wait}/{event}" if wait else "") if SessionClass(kind=kind, state=state).is_load else None
        for _, kind, state, wait, event in rows
    ]
    events = sorted({name for name in names if name is not None})
    order = {event: place for place, event in enumerate(events)}
    places = [len(events) if name is None else order[name] for name in names]
    return events, np.array([row[0] for row in rows] or [0]), np.array(places or [0])
