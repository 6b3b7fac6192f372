"""What the seconds of a cell's runs are worth: whether longer ones would help. Seconds are never replicates."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from pgstrata.model.runs import RunRecord
from pgstrata.sources.runs import may_enter
from pgstrata.sources.seconds import FEWEST_SECONDS, seconds_of
from pgstrata.stats.variance import effective_size

# The median of so many runs, spread evenly over the cell's, is as good as that of thousands.
_MOST_RUNS: Final = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondsWorth:
    """Of `runs` with a throughput by second, medians over the runs: their length in seconds, and what it is worth.

    `worth` is a number of independent seconds, None where it is not known.
    """

    runs: int
    seconds: float
    worth: float | None


def weigh_seconds(runs: Iterable[RunRecord], cell: str) -> SecondsWorth | None:
    """What seconds of one cell's runs are worth, over all environments; None if no run was alone and long enough."""
    usable = [run for run in runs if run.cell == cell and not run.together and may_enter(run)]
    usable.sort(key=lambda run: (run.block, run.environment))
    known = [seconds for run in usable if (seconds := seconds_of(run)).size >= FEWEST_SECONDS]
    if not known:
        return None
    some = known[:: -(-len(known) // _MOST_RUNS)]
    worths = [worth for seconds in some if (worth := effective_size(seconds)) is not None]
    return SecondsWorth(
        runs=len(known),
        seconds=statistics.median(seconds.size for seconds in some),
        worth=statistics.median(worths) if worths else None,
    )
