"""What the seconds of a cell's runs came to: how much warm-up was cut, how many got steady, what is left of them worth.

Seconds are never replicates. These figures say how a run was used, and whether a longer one would help.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from pgstrata.model.observation import SteadyPart
from pgstrata.model.runs import RunRecord
from pgstrata.sources.runs import may_enter
from pgstrata.sources.steady import find_steady, seconds_of
from pgstrata.stats.steady import effective_size

# The median of so many runs, spread evenly over the cell's, is as good as that of thousands.
_MOST_RUNS: Final = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class SteadySeconds:
    """The runs of one cell, over all environments.

    Warm-up was cut in `cut_blocks` of `blocks`, `shortest` to `longest` seconds (0 without any). Of `runs` with a
    throughput by second `unsteady` never got steady. `seconds` is the median length of what is left of a run, `worth`
    the number of independent seconds that it is worth (median of the runs; None where that is not known).
    """

    blocks: int
    cut_blocks: int
    shortest: int
    longest: int
    runs: int
    unsteady: int
    seconds: float
    worth: float | None


def weigh_seconds(runs: Iterable[RunRecord], cell: str) -> SteadySeconds | None:
    """Of one cell; None where no run was alone and long enough (`find_steady`)."""
    usable = [run for run in runs if run.cell == cell and may_enter(run)]
    parts = find_steady(usable)
    if not parts:
        return None
    known = sorted((run for run in usable if run.identity in parts), key=lambda run: (run.block, run.environment))
    cuts = {run.block: parts[run.identity].cut for run in known}
    made = [cut for cut in cuts.values() if cut]
    lengths, worths = _weigh(known, [parts[run.identity] for run in known])
    return SteadySeconds(
        blocks=len(cuts),
        cut_blocks=len(made),
        shortest=min(made, default=0),
        longest=max(made, default=0),
        runs=len(known),
        unsteady=sum(not part.steady for part in parts.values()),
        seconds=statistics.median(lengths),
        worth=statistics.median(worths) if worths else None,
    )


def _weigh(runs: Sequence[RunRecord], parts: Sequence[SteadyPart]) -> tuple[list[int], list[float]]:
    """Seconds that are left of some of the runs, and what they are worth where that is known."""
    step = max(1, -(-len(runs) // _MOST_RUNS))
    left = [seconds_of(run)[part.cut :] for run, part in zip(runs[::step], parts[::step], strict=True)]
    worths = (effective_size(seconds) for seconds in left)
    return [seconds.size for seconds in left], [worth for worth in worths if worth is not None]
