"""The rule that is common among DBAs, for comparison: moving medians of speed and waits, and Pearson's correlation.

As published (docs/diagnosis: a fall of transactions per second while waits rise, each smoothed by a moving median of an
hour, their correlation negative): the wait event with the strongest inverse correlation is the cause. An hour is scaled
to these recordings, whose quiet beginning is shorter than that.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
from incidents.judging import Found
from incidents.truth import Kind

from pgstrata.model.archive import Span
from pgstrata.store.archives.reader import ArchiveReader

Floats = npt.NDArray[np.float64]
WIDTH: Final = 200
"""Seconds of the moving median, and of the stretch over which series are correlated; an hour as published."""
STEP: Final = 10
_T: Final = 1.97
"""Critical value of Student's distribution for a correlation over `WIDTH` seconds, two-sided 5 %."""
EVENTS_OF: Final[Mapping[Kind, tuple[str, ...]]] = {
    Kind.HOT_ROWS: ("Lock/",),
    Kind.IDLE_BLOCKER: ("Lock/",),
    Kind.DROPPED_INDEX: ("",),
    Kind.STALE_STATISTICS: ("",),
    Kind.SMALL_CACHE: ("IO/DataFileRead", "LWLock/BufferMapping", "LWLock/BufferIO"),
    Kind.WAL_BURST: ("IO/WAL", "LWLock/WAL", "IO/DataFile"),
    Kind.CPU_QUOTA: ("",),
    Kind.IO_THROTTLE: ("IO/", "LWLock/WAL"),
    Kind.NOISY_NEIGHBOUR: ("",),
    Kind.CONNECTION_STORM: ("",),
    Kind.HELD_VACUUM: ("",),
}
"""How wait events begin that point to a kind; an empty one is no wait: CPU."""


def find_by_medians(speed: Floats, waits: Mapping[str, Floats], begin: float = 0.0) -> Sequence[Found]:
    """Stretches that the rule calls incidents.

    Args:
        speed: transactions in each second.
        waits: active sessions in each second by wait event, as `TYPE/EVENT`, empty on CPU.
        begin: Unix time of the first second.
    """
    if speed.size < 2 * WIDTH or not waits:
        return ()
    smooth = moving_median(speed, WIDTH)
    together = moving_median(np.sum(list(waits.values()), axis=0), WIDTH)
    events = {name: moving_median(series, WIDTH) for name, series in waits.items()}
    found: list[Found] = []
    for place in range(2 * WIDTH, speed.size + 1, STEP):
        part = slice(place - WIDTH, place)
        falls, rises = _slope(smooth[part]) < 0, _slope(together[part]) > 0
        if not (falls and rises and _is_significant(pearson(smooth[part], together[part]))):
            continue
        by_event = {name: pearson(smooth[part], series[part]) for name, series in events.items()}
        cause = min(by_event, key=lambda name: by_event[name])
        moment = begin + place
        if found and moment - found[-1].end <= STEP:
            last = found.pop()
            found.append(Found(begin=last.begin, end=moment, alarm=last.alarm, cause=last.cause))
        else:
            found.append(Found(begin=moment, end=moment, alarm=moment, cause=cause))
    return found


def moving_median(series: Floats, width: int) -> Floats:
    """The median of the last `width` values at each place; fewer at the beginning."""
    padded = np.concatenate([np.full(width - 1, np.nan), series])
    return np.asarray(np.nanmedian(np.lib.stride_tricks.sliding_window_view(padded, width), axis=1), dtype=np.float64)


def pearson(one: Floats, other: Floats) -> float:
    """Pearson's correlation; 0 where one of the two is constant."""
    scale = float(one.std() * other.std())
    return float(np.mean((one - one.mean()) * (other - other.mean()))) / scale if scale > 1e-12 else 0.0


def _slope(series: Floats) -> float:
    places = np.arange(series.size) - (series.size - 1) / 2
    return float(places @ (series - series.mean()))


def _is_significant(r: float) -> bool:
    """Inverse, and rejected by the t test as if seconds were independent, which smoothed ones are not."""
    return r <= -1 or (r < 0 and abs(r) * math.sqrt((WIDTH - 2) / (1 - r * r)) > _T)


def find_naively(archive: Path) -> Sequence[Found]:
    """The rule on the same recording."""
    with ArchiveReader.open(archive) as reader:
        facts = reader.facts()
        if facts is None:
            return ()
        speed: list[Floats] = []
        waits: list[dict[str, Floats]] = []
        # longer windows would be read by the minute
        for begin in range(facts.span.begin, facts.span.end, WIDTH):
            span = Span(begin=begin, end=min(begin + WIDTH, facts.span.end))
            window = reader.window(span, facts, most=WIDTH)
            speed.append(np.nan_to_num(np.array(window.rates["commits"])))
            waits.append({})
            for session, counts in window.sessions.items():
                if session.is_load:
                    name = f"{session.wait_type}/{session.event}" if session.event else ""
                    waits[-1][name] = waits[-1].get(name, np.zeros(len(counts))) + np.array(counts, dtype=np.float64)
        names = {name for part in waits for name in part}
        joined = {
            name: np.concatenate([part.get(name, np.zeros(len(own))) for part, own in zip(waits, speed, strict=True)])
            for name in names
        }
        return find_by_medians(np.concatenate(speed), joined, facts.span.begin)


def is_right(kind: Kind, found: Found) -> bool:
    """Whether the event that it names points to the kind."""
    wanted = EVENTS_OF.get(kind, ())
    return any(found.cause.startswith(each) if each else not found.cause for each in wanted)
