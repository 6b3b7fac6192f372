"""The server's log as events of a run: how many of each kind in which second. Pure.

A line counts where its prefix has a time in GMT, as log_line_prefix = '%m [%p] ' and log_timezone = 'GMT' write it, and
its message is English. Of other logs nothing is said.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from pgstrata.model.courses import EVENTS
from pgstrata.model.metrics import Series

LOG: Final = "server.log"
"""Evidence name of the server's log."""
_LINE: Final = re.compile(
    r"(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?) (?:GMT|UTC) [^\n]{0,300}?\b(?P<level>[A-Z]+):  (?P<text>.*)"
)
_FAILURES: Final = frozenset({"ERROR", "FATAL", "PANIC"})
_MESSAGES: Final[Mapping[str, re.Pattern[str]]] = {
    "checkpoint_starts": re.compile(r"checkpoint starting:"),
    "checkpoint_ends": re.compile(r"checkpoint complete:"),
    "autovacuums_done": re.compile(r"automatic (?:aggressive )?(?:vacuum|analyze)\b.* of table "),
    "temporary_files": re.compile(r"temporary file: path "),
}
_DEADLOCK: Final = "deadlock detected"


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
    if level == "LOG":
        yield from (kind for kind, message in _MESSAGES.items() if message.match(text))
    elif level in _FAILURES:
        yield "errors"
        if text.startswith(_DEADLOCK):
            yield "deadlocks"


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
