"""Events of a window in lines: few of a kind one by one, many together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

from pgstrata.model.archive import ArchiveEvent, EventKind
from pgstrata.report.live.words import local
from pgstrata.report.sentences.causes import readable

_FEW: Final = 6
"""Events of one kind that are listed one by one."""


def event_lines(events: Iterable[ArchiveEvent]) -> Iterator[str]:
    """13:28:04 checkpoint started: wal; of frequent ones one line: deadlock: 345 from 13:28:04 to 13:46:59."""
    kinds: defaultdict[EventKind, list[ArchiveEvent]] = defaultdict(list)
    for event in sorted(events, key=lambda each: each.moment):
        kinds[event.kind].append(event)
    few = [event for members in kinds.values() if len(members) <= _FEW for event in members]
    for event in sorted(few, key=lambda each: each.moment):
        times = f" ({event.times:,} times)" if event.times > 1 else ""
        yield f"{local(event.moment):%H:%M:%S} {_name(event.kind)}{_detail(event.detail)}{times}"
    for kind, members in kinds.items():
        if len(members) > _FEW:
            number = sum(event.times for event in members)
            first, last = local(members[0].moment), local(members[-1].moment)
            detail = f", the first{_detail(members[0].detail)}" if members[0].detail else ""
            yield f"{_name(kind)}: {number:,} from {first:%H:%M:%S} to {last:%H:%M:%S}{detail}"


def _name(kind: EventKind) -> str:
    return "errors in the server's log" if kind is EventKind.ERRORS else kind.value


def _detail(text: str) -> str:
    return f": {readable(text)}" if text else ""
