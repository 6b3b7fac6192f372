"""Why environments differ: runs of each and of the baseline, paired by block, and what diagnosis makes of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from pgstrata.compare.pairing.arms import Arm, Arms, find_arm, sort_runs
from pgstrata.compare.pairing.shared_blocks import shared_blocks, whole_rounds
from pgstrata.diagnosis.account import Seen
from pgstrata.diagnosis.attribution import FEWEST_BLOCKS, LEVEL, attribute, average
from pgstrata.model.activity import SessionCount, SessionState
from pgstrata.model.attribution import Attribution, CountedUse, LevelAccount, Obstacle, Unattributed, ValueInterval
from pgstrata.model.experiment import Cell
from pgstrata.model.metrics import BACKEND_CPU, METRICS, RUN_QUEUE, SCHEDULE_LAG, TPS
from pgstrata.model.plan import Plan
from pgstrata.model.runs import RunRecord
from pgstrata.sources.runs import may_enter
from pgstrata.stats.student import two_sided_point

BESIDE_METRICS: Final = (
    *(name for name in METRICS if name.endswith("_per_tx") and name not in {BACKEND_CPU.name, RUN_QUEUE.name}),
    "checkpoints",
    "autovacuums",
)
"""What is shown beside an account."""
_OF_RATES: Final = ("latency_mean", SCHEDULE_LAG)
WHY_METRICS: Final = (TPS.name, BACKEND_CPU.name, RUN_QUEUE.name, *_OF_RATES, *BESIDE_METRICS)
"""What an attribution needs of runs, beside their sessions and the rounds of slices."""
_LOST: Final = "sampler_lost"
_MOSTLY: Final = 0.5
"""Share of the blocks that must have what the kernel counts for the others to be left out."""

_Found = Mapping[tuple[str, str, int], RunRecord]


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """Attributions of all environments against the baseline by cell, what has none, and the accounts of all levels."""

    attributions: tuple[Attribution, ...]
    missing: tuple[Unattributed, ...]
    accounts: tuple[LevelAccount, ...]


def find_why(plan: Plan, runs: Sequence[RunRecord]) -> Why:
    """Split the difference of each environment from the baseline in each cell, in the plan's order.

    Only runs that may enter an estimate count, in blocks that both environments share, as in every comparison.

    Raises:
        ValueError: a run is there twice.
    """
    experiment = plan.experiment
    arms = sort_runs(runs, frozenset((TPS.name,)))
    found = {(run.environment, run.cell, run.block): run for run in runs if may_enter(run)}
    results = [
        _attribute(arms, found, cell, environment.name, experiment.baseline)
        for environment in experiment.environments
        if environment.name != experiment.baseline
        for cell in experiment.cells
    ]
    return Why(
        attributions=tuple(item for item in results if isinstance(item, Attribution)),
        missing=tuple(item for item in results if isinstance(item, Unattributed)),
        accounts=tuple(
            account
            for cell in experiment.cells
            for account in _average(arms, found, cell, [environment.name for environment in experiment.environments])
        ),
    )


def _attribute(arms: Arms, found: _Found, cell: Cell, environment: str, baseline: str) -> Attribution | Unattributed:
    sides = find_arm(arms, environment, cell.identity), find_arm(arms, baseline, cell.identity)
    shared = shared_blocks(sides).blocks
    seen = _see(sides, found, cell, shared)
    runs = [found[side.name, cell.identity, block] for side in sides for block in shared]
    lost = next((reason for run in runs for reason in run.reasons if reason.code == _LOST), None)
    sampled = any(run.sessions for run in runs)
    obstacle = _find_obstacle(cell, len(shared), len(seen), sessions=sampled, lost=lost is not None)
    if obstacle is not None:
        return Unattributed(
            environment=environment,
            reference=baseline,
            cell=cell.identity,
            obstacle=obstacle,
            blocks=len(shared),
            sampled=len(seen),
            lost=lost,
        )
    value, reference = zip(*seen.values(), strict=True)
    result = attribute(value, reference, environment=environment, reference_name=baseline, cell=cell.identity)
    pairs = [(found[environment, cell.identity, block], found[baseline, cell.identity, block]) for block in seen]
    return replace(result, beside=tuple(item for name in BESIDE_METRICS if (item := _beside(name, pairs))))


def _see(sides: Sequence[Arm], found: _Found, cell: Cell, blocks: Sequence[int]) -> dict[int, tuple[Seen, ...]]:
    """What was seen of each side, by block, in blocks in which all sides have samples and a throughput."""
    result: dict[int, tuple[Seen, ...]] = {}
    for block in blocks:
        rates = _rates(sides, block)
        runs = [found[side.name, cell.identity, block] for side in sides]
        if rates is not None and all(sum(count.samples for count in run.sessions) for run in runs):
            seen = [_see_run(run, cell, rate) for run, rate in zip(runs, rates, strict=True)]
            known = tuple(each for each in seen if each is not None)
            if len(known) == len(seen):
                result[block] = known
    return _alike(result)


def _see_run(run: RunRecord, cell: Cell, rate: float) -> Seen | None:
    """What was seen of a run at that throughput; None where its pauses hide everything, or are unknown."""
    seen = Seen(
        seconds=cell.clients / rate,
        sessions=run.sessions,
        cpu=run.value(BACKEND_CPU.name),
        queue=run.value(RUN_QUEUE.name),
        profile=run.waits,
        processes=run.processes,
    )
    return _without_pauses(seen, run) if cell.paced else seen


def _without_pauses(seen: Seen, run: RunRecord) -> Seen | None:
    """What was seen at a fixed rate without the pauses of sessions until their next transaction.

    None where these are unknown, or nothing else was seen: hardly ever was a session within a transaction then.

    A session's time per transaction is its pause and the time from its actual start to its end, which is mean latency
    (from the scheduled start) less mean lag. In a pause the server waits for the client, so as many of such samples are
    left out as the pauses are of the time. What a server samples by itself knows no pauses and is not used.
    """
    latency, lag = (run.value(name) for name in _OF_RATES)
    if latency is None or lag is None or not 0 < latency - lag <= seen.seconds:
        return None
    paused = seen.samples * (1 - (latency - lag) / seen.seconds)
    left = sum(count.samples for count in seen.sessions if count.state is SessionState.CLIENT) - round(paused)
    sessions = (
        *(count for count in seen.sessions if count.state is not SessionState.CLIENT),
        *([_client(left)] if left > 0 else ()),
    )
    found = replace(seen, seconds=latency - lag, sessions=sessions, profile=None)
    return found if found.samples else None


def _client(samples: int) -> SessionCount:
    return SessionCount(state=SessionState.CLIENT, wait_type="", event="", query="", samples=samples)


def _alike(seen: dict[int, tuple[Seen, ...]]) -> dict[int, tuple[Seen, ...]]:
    """Only blocks in which the kernel counted, where these are most of them, or all as sampled.

    What is sampled without an event is another thing than CPU and run queue, and a sampler that was lost in one run
    must not decide for all.
    """
    counted = {
        block: sides for block, sides in seen.items() if not any(None in {side.cpu, side.queue} for side in sides)
    }
    return counted if len(counted) >= max(FEWEST_BLOCKS, _MOSTLY * len(seen)) else seen


def _rates(sides: Sequence[Arm], block: int) -> list[float] | None:
    """Transactions per second of each side; of runs in slices over the rounds that all have."""
    if not sides[0].tokens[block]:
        rates = [side.values.get(TPS.name, {}).get(block, math.nan) for side in sides]
        return None if any(math.isnan(rate) for rate in rates) else rates
    whole = whole_rounds(sides, block)
    return whole.mean(axis=1).tolist() if whole.size else None


def _find_obstacle(cell: Cell, blocks: int, sampled: int, *, sessions: bool, lost: bool) -> Obstacle | None:
    """Why nothing can be said; None where something can."""
    if cell.objective is not None:
        return Obstacle.SEARCHED
    if sampled >= FEWEST_BLOCKS:
        return None
    if blocks < FEWEST_BLOCKS:
        return Obstacle.FEW_BLOCKS
    if sessions and cell.paced:
        return Obstacle.FIXED_RATE
    if sessions:
        return Obstacle.FEW_SAMPLED
    return Obstacle.SAMPLER_LOST if lost else Obstacle.NO_SESSIONS


def _beside(metric: str, pairs: Sequence[tuple[RunRecord, RunRecord]]) -> CountedUse | None:
    """A metric in the blocks in which both have it; None where fewer than two do, or it is zero everywhere."""
    values = [(run.value(metric), other.value(metric)) for run, other in pairs]
    known = np.array([pair for pair in values if None not in pair], dtype=np.float64)
    known = known[np.isfinite(known).all(axis=1)] if known.size else known
    if len(known) < FEWEST_BLOCKS or not known.any():
        return None
    d = known[:, 0] - known[:, 1]
    centre = float(d.mean())
    half = two_sided_point(LEVEL, d.size - 1) * float(d.std(ddof=1)) / math.sqrt(d.size)
    return CountedUse(
        metric=metric,
        value=float(known[:, 0].mean()),
        reference=float(known[:, 1].mean()),
        difference=centre,
        interval=ValueInterval(low=centre - half, high=centre + half),
        blocks=d.size,
    )


def _average(arms: Arms, found: _Found, cell: Cell, names: Sequence[str]) -> list[LevelAccount]:
    """The accounts of all environments that have samples at all, in the blocks that all of those share."""
    sides = [find_arm(arms, name, cell.identity) for name in names]
    sides = [side for side in sides if any(found[side.name, cell.identity, block].sessions for block in side.tokens)]
    if len(sides) < 2 or cell.objective is not None:  # noqa: PLR2004 - one alone has nothing to be compared with
        return []
    seen = _see(sides, found, cell, shared_blocks(sides).blocks)
    if not seen:
        return []
    method, accounts = average(list(zip(*seen.values(), strict=True)))
    return [
        LevelAccount(environment=side.name, cell=cell.identity, blocks=len(seen), method=method, account=account)
        for side, account in zip(sides, accounts, strict=True)
    ]
