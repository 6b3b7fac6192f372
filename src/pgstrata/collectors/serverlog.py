"""The server's log as events of a run: how many of each kind in which second. Pure.

A line counts where its prefix has a time in GMT, as log_line_prefix = '%m [%p] ' and log_timezone = 'GMT' write it, and
its message is English (`live.log` knows the messages). Of other logs nothing is said.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from pgstrata.collectors.live.log import FAILURES, find_events
from pgstrata.model.archive import EventKind
from pgstrata.model.courses import EVENTS
from pgstrata.model.metrics import Series

LOG: Final = "server.log"
"""Evidence name of the server's log."""
_LINE: Final = re.compile(
    r"(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?) (?:GMT|UTC) [^\n]{0,300}?\b(?P<level>[A-Z]+):  (?P<text>.*)"
)
_SERIES: Final[Mapping[EventKind, str]] = {
    EventKind.CHECKPOINT: "checkpoint_starts",
    EventKind.CHECKPOINT_DONE: "checkpoint_ends",
    EventKind.AUTOVACUUM: "autovacuums_done",
    EventKind.TEMPORARY: "temporary_files",
    EventKind.DEADLOCK: "deadlocks",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEvent:
    """Something that the server told; `time` in seconds of its host's wall clock, `kind` is of `EVENTS`."""

    time: float
    kind: str


def parse_log(text: bytes) -> Iterator[LogEvent]:
    """Line by line; lines that tell nothing of interest, or have no time, are left out."""
    for line in text.decode("utf-8", "replace").split("\n"):
        match = _LINE.match(line)
        if match is None:
            continue
        try:
            time = datetime.fromisoformat(match["time"]).replace(tzinfo=UTC).timestamp()
        except ValueError:
            continue
        for kind in _kinds(match["level"], match["text"]):
            yield LogEvent(time=time, kind=kind)


def _kinds(level: str, text: str) -> Iterator[str]:
    """Names of series; a deadlock is an error, too."""
    yield from (_SERIES[kind] for kind, _ in find_events(level, text) if kind in _SERIES)
    if level in FAILURES:
        yield "errors"


def make_events(text: bytes, begin: float, end: float) -> tuple[Series, ...]:
    """A series for each kind that occurred: seconds since `begin` in which it did, and how often.

    Args:
        text: the server's log.
        begin: wall clock of the server's host, seconds.
        end: the same.
    """
    counts = Counter((event.kind, int(event.time - begin)) for event in parse_log(text) if begin <= event.time <= end)
    return tuple(_series(kind, counts) for kind in EVENTS if any(known == kind for known, _ in counts))


def _series(kind: str, counts: Counter[tuple[str, int]]) -> Series:
    found = sorted((second, count) for (known, second), count in counts.items() if known == kind)
    return Series(
        metric=kind, times=tuple(float(second) for second, _ in found), values=tuple(float(n) for _, n in found)
    )
