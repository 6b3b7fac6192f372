"""How many rounds a visit in slices has, from what was measured of its scatter on this host.

Pure: what is known and what time it is are handed in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from pgstrata.model.floor import (
    FEWEST_ROUNDS,
    LEAST_DIFFERENCES,
    MOST_ROUNDS,
    FloorKey,
    FloorRecord,
    SlicesMeasured,
)
from pgstrata.model.metrics import TPS
from pgstrata.model.plan import Design, FittedRounds, Plan
from pgstrata.model.server import Fingerprint
from pgstrata.model.workload import Workload
from pgstrata.plan.floors import doubt_record, floor_key

# The optimum is flat, and a floor does not carry over to another number of rounds.
_WORTH_KEEPING: Final = 1.10
_CONDITION: Final = "design rounds"


def keys_of_any_rounds(plan: Plan, design: Design, workloads: Mapping[str, Workload]) -> tuple[FloorKey, ...]:
    """The keys of a cell's floors of throughput with every number of rounds, all other conditions the same."""
    return tuple(
        floor_key(replace(plan, designs=(replace(design, rounds=rounds),)), design.cell, TPS.name, workloads)
        for rounds in range(FEWEST_ROUNDS, MOST_ROUNDS + 1)
    )


def fit_rounds(design: Design, records: Sequence[FloorRecord], host: Fingerprint, now: datetime) -> Design:
    """The design with the rounds at which a visit learns most for its time, and with the components that say so.

    `best_rounds` of the newest components, unless the default, or else a number at which a floor was measured, costs at
    most 10 % more in variance x time, by the upper limit of the scatter between starts or by its estimate.

    Args:
        design: in slices.
        records: of the same conditions but for the number of rounds, in any order.
        host: what the host is like now; what was measured on another one, or too long ago, does not count.
        now: with offset.
    """
    usable = [record for record in records if not doubt_record(record, host, now)]
    known = [(datetime.fromisoformat(record.measured), record.slices) for record in usable if record.slices]
    if not known:
        return design
    _, newest = max(known, key=lambda pair: pair[0])
    differences: Counter[int] = Counter()
    for record in usable:
        differences[int(record.key.conditions[_CONDITION])] += len(record.differences)
    measured = {rounds for rounds, number in differences.items() if number >= LEAST_DIFFERENCES}
    rounds = _choose(newest, design.rounds, measured)
    fitted = FittedRounds(
        between_rounds=newest.components.sigma_round,
        between_starts=newest.components.sigma_start_upper,
        dead_seconds=newest.dead_seconds,
        slices_seconds=rounds * newest.round_seconds,
    )
    return replace(design, rounds=rounds, fitted=fitted)


def _choose(slices: SlicesMeasured, default: int, measured: set[int]) -> int:
    """The upper limit asks for fewer rounds than the estimate does: what either is content with is kept.

    With 13 visits the limit alone would choose rounds that cost up to a tenth more than 8 on average (simulated, with
    scatter between starts half of that between rounds); like this they cost 3 % more at most, and 40 % less where
    set-up overhead is long.
    """
    from pgstrata.stats.variance import best_rounds  # noqa: PLC0415 - numpy, for which other plans do not wait

    parts, times = slices.components, (slices.dead_seconds, slices.round_seconds)
    fewest = best_rounds(parts.sigma_round, parts.sigma_start_upper, *times)
    most = best_rounds(parts.sigma_round, parts.sigma_start, *times)
    others = sorted(measured - {default}, key=lambda rounds: (_waste(slices, parts.sigma_start_upper, rounds), rounds))
    for rounds in (default, *others):
        waste = min(_waste(slices, sigma, rounds) for sigma in (parts.sigma_start_upper, parts.sigma_start))
        if fewest <= rounds <= most or waste <= _WORTH_KEEPING:
            return rounds
    return fewest


def _waste(slices: SlicesMeasured, sigma_start: float, rounds: int) -> float:
    """Variance x time of visits of so many rounds over that of the best number of rounds."""
    from pgstrata.stats.variance import best_rounds, visit_cost  # noqa: PLC0415 - as above

    known = (slices.components.sigma_round, sigma_start, slices.dead_seconds, slices.round_seconds)
    least = visit_cost(*known, best_rounds(*known))
    return visit_cost(*known, rounds) / least if least > 0 else 1.0
