"""How far throughput falls after a checkpoint has begun, from the seconds of a run and the server's log. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, median
from typing import Final

from pgstrata.model.metrics import TPS, Series

STARTS: Final = "checkpoint_starts"
_BEFORE: Final = 30
_AFTER: Final = 60
_LOW: Final = 10


def checkpoint_trough(series: Sequence[Series]) -> float | None:
    """Throughput in the trough after a checkpoint as a share of that before: 0.7 is a trough of 30 %.

    For each checkpoint: the lowest mean of 10 neighbouring seconds within the 60 seconds from its beginning, divided by
    the median of the 30 seconds before. Of several checkpoints the median. This definition is pgstrata's own: after a
    checkpoint began, the first change of each page is logged whole (PostgreSQL's documentation of full_page_writes), so
    that throughput is lowest at first and recovers within minutes. Ten seconds average out single stalls. Being
    a minimum, it is a little below 1 also where there is no trough; that is the same in all environments.

    Args:
        series: those of a run; `tps` by the second and `checkpoint_starts` (server's log) are used.

    Returns:
        None without a checkpoint that has 30 whole seconds before it and 60 after within the run, with no other one in
        them.
    """
    by_name = {each.metric: each for each in series if not each.subject}
    tps, starts = by_name.get(TPS.name), by_name.get(STARTS)
    if tps is None or starts is None:
        return None
    seconds = {round(time): value for time, value in zip(tps.times, tps.values, strict=True)}
    shares = [share for start in starts.times if (share := _share(seconds, starts.times, int(start))) is not None]
    return median(shares) if shares else None


def _share(seconds: dict[int, float], starts: Sequence[float], start: int) -> float | None:
    first, last = start - _BEFORE, start + _AFTER
    if any(first <= other < last and int(other) != start for other in starts):
        return None
    values = [seconds.get(second) for second in range(first, last)]
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None
    before, after = median(known[:_BEFORE]), known[_BEFORE:]
    if before <= 0:
        return None
    return min(fmean(after[place : place + _LOW]) for place in range(len(after) - _LOW + 1)) / before
