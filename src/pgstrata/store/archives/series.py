"""The load of a long window by wait event, in equal steps, read in one pass."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Final

import numpy as np

from pgstrata.model.archive import SessionClass, Span

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
    """
    events, places = _events(connection)
    number = span.seconds // step
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
        counts += np.bincount(places.take(classes, mode="clip") * number + steps, sessions, minlength=counts.size)
    by_event = counts.astype(np.int64).reshape(len(events) + 1, number)[: len(events)]
    return {event: tuple(row.tolist()) for event, row in zip(events, by_event, strict=True) if row.any()}


def _events(connection: sqlite3.Connection) -> tuple[list[str], np.ndarray]:
    """Wait events, and the place of that of each class; what is no load, or no class, stands behind all of them."""
    rows = connection.execute("SELECT id, kind, state, wait_type, event FROM session_class").fetchall()
    known = {
        number: f"{wait}/{event}" if wait else ""
        for number, kind, state, wait, event in rows
        if SessionClass(kind=kind, state=state).is_load
    }
    events = sorted(set(known.values()))
    places = np.full(max((row[0] for row in rows), default=0) + 2, len(events))
    for number, event in known.items():
        places[number] = events.index(event)
    return events, places
