"""What a control says of rounds and run lengths: where its scatter arises, and what the time around it costs.

Only throughput has them: it alone is known round by round and second by second.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from statistics import fmean, median

import numpy as np

from pgstrata.model.floor import RunsMeasured, SlicesMeasured
from pgstrata.model.metrics import ROUND_TPS
from pgstrata.model.plan import Design
from pgstrata.model.runs import RunRecord
from pgstrata.sources.runs import may_enter
from pgstrata.sources.seconds import seconds_of
from pgstrata.stats.ranks import FloatArray
from pgstrata.stats.variance import run_noise, slice_components


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


def measure_runs(names: Collection[str], d: Sequence[float], runs: Sequence[RunRecord]) -> RunsMeasured | None:
    """Components of the variance of single runs of two equal environments, and the seconds around one of them.

    Args:
        names: the two environments.
        d: the differences between them, block by block, in log units.
        runs: all runs of the cell.

    Returns:
        None where too few runs have values second by second, or the time around them is not known.
    """
    own = [run for run in runs if not run.together and may_enter(run) and run.environment in names]
    overheads = [sum(run.dead_time.values()) for run in own]
    noise = run_noise([seconds_of(run) for run in own], d)
    if noise is None or not any(overheads):
        return None
    return RunsMeasured(noise=noise, overhead=median(overheads))
