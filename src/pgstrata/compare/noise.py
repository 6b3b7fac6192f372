"""What a control says of rounds and run lengths: where its scatter arises, and what the time around it costs.

Only throughput has them: it alone is known round by round and second by second.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean, median
from typing import Final

import numpy as np

from pgstrata.compare.arms import may_enter
from pgstrata.model.floor import RunsMeasured, SlicesMeasured
from pgstrata.model.metrics import ROUND_TPS, TPS
from pgstrata.model.plan import Design
from pgstrata.model.runs import RunRecord
from pgstrata.stats.ranks import FloatArray
from pgstrata.stats.steady import choose_batch, mser5, run_noise, slice_components

# Progress comes every second; of values that are further apart the lag-1 autocorrelation would be another one.
_SECOND: Final = (0.9, 1.1)


def measure_slices(design: Design, logs: FloatArray, runs: Sequence[RunRecord]) -> SlicesMeasured | None:
    """Components of the visits of a control, with one environment's share of their seconds.

    Args:
        design: the cell's, in slices.
        logs: ln(A / B) of the rounds of each visit, shape (visits, rounds), NaN where there is none.
        runs: all runs of the cell; those that took turns with each other share the time of their visit.

    Returns:
        None where too few visits are left or their times are not known.
    """
    visits: dict[str, list[RunRecord]] = {}
    for run in runs:
        if run.together and may_enter(run):
            visits.setdefault(run.together, []).append(run)
    rounds = [seconds for visit in visits.values() for seconds in _round_shares(visit)]
    dead = [fmean(sum(run.dead_time.values()) for run in visit) for visit in visits.values()]
    components = slice_components(list(logs))
    if components is None or not rounds or not any(dead):
        return None
    share = median(rounds)
    return SlicesMeasured(
        components=components,
        dead_seconds=median(dead) + design.discarded * share,
        round_seconds=share,
    )


def _round_shares(visit: Sequence[RunRecord]) -> Iterable[float]:
    """Seconds from one slice of an environment to its next, on average, divided among those that took turns."""
    for run in visit:
        times = np.array(next((series.times for series in run.series if series.metric == ROUND_TPS), ()))
        places = np.flatnonzero(np.isfinite(times))
        if places.size > 1 and (passed := float(times[places[-1]] - times[places[0]])) > 0:
            yield passed / float(places[-1] - places[0]) / len(visit)


def measure_runs(runs: Sequence[RunRecord], d: Sequence[float]) -> RunsMeasured | None:
    """Components of the variance of single runs of two equal environments, and the seconds around one of them.

    Args:
        runs: of both; each loses what MSER-5 takes for its warm-up.
        d: the differences between them, block by block, in log units.

    Returns:
        None where too few runs have values second by second, or the time around them is not known.
    """
    alone = [run for run in runs if not run.together and may_enter(run)]
    overheads = [sum(run.dead_time.values()) for run in alone]
    noise = run_noise([_steady_seconds(run) for run in alone], d)
    if noise is None or not any(overheads):
        return None
    return RunsMeasured(noise=noise, overhead=median(overheads))


def _steady_seconds(run: RunRecord) -> FloatArray:
    series = next((one for one in run.series if one.metric == TPS.name), None)
    if series is None or len(series.times) < 2:  # noqa: PLR2004 - a distance
        return np.empty(0)
    values, apart = np.array(series.values, dtype=np.float64), float(np.median(np.diff(series.times)))
    if not _SECOND[0] <= apart <= _SECOND[1]:
        return np.empty(0)
    cut = mser5(values, choose_batch(values.size))
    return values[cut.seconds :] if cut is not None and cut.steady else values
