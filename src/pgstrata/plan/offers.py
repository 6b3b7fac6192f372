"""Changes by which a plan that takes too long would give a verdict in the time that there is: notes of the plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from pgstrata.model.driver import Capabilities
from pgstrata.model.experiment import Experiment, Interleave
from pgstrata.model.plan import Forecast, HostCapacity
from pgstrata.model.reasons import Reason
from pgstrata.model.workload import Workload
from pgstrata.plan.design import choose_designs
from pgstrata.plan.forecast import BLOCKS_FOR_A_VERDICT, forecast

DAY: Final = 86400.0
# Each change is forecast anew: of very large plans that would take longer than the plan itself.
_MOST_RUNS_OF_A_BLOCK: Final = 2000
_RUNS: Final = (60, 30, 10)
_FEWEST_STEPS: Final = 3

Change = Callable[[Experiment], Experiment]


def offer_notes(
    experiment: Experiment,
    workloads: Mapping[str, Workload],
    capacity: HostCapacity,
    drivers: Mapping[str, Capabilities],
    cost: Forecast,
) -> tuple[Reason, ...]:
    """Offers of shorter plans.

    Where the fewest blocks for a verdict exceed the budget (a day without one): how long they take, and what helps.

    Changes are slices where the file asks for runs, shorter runs, and every other number of clients. Each that is
    enough by itself is offered; where none is, the shortest list of them, in this order, that is.
    """
    limit = experiment.budget if experiment.budget is not None else DAY
    needed = _seconds(experiment, cost)
    runs = len(experiment.environments) * len(experiment.cells)
    if needed <= limit or len(experiment.environments) < 2 or runs > _MOST_RUNS_OF_A_BLOCK:  # noqa: PLR2004 - a pair
        return ()

    def cost_of(changed: Experiment) -> float:
        designs = choose_designs(changed, workloads, capacity, drivers, changed.interleave)
        return _seconds(changed, forecast(changed, workloads, designs))

    said = experiment.budget is not None and experiment.blocks >= BLOCKS_FOR_A_VERDICT  # by the note on the budget
    first = Reason(code="too_long", seconds=needed, value=BLOCKS_FOR_A_VERDICT, of=limit)
    return (*(() if said else (first,)), *_offers(experiment, cost_of, needed, limit))


def _seconds(experiment: Experiment, cost: Forecast) -> float:
    """Seconds for as many blocks as a verdict needs, with everything that is made once."""
    once = cost.seconds_total - cost.seconds_per_block * experiment.blocks
    return once + BLOCKS_FOR_A_VERDICT * cost.seconds_per_block


def _offers(
    experiment: Experiment, cost_of: Callable[[Experiment], float], needed: float, limit: float
) -> Iterator[Reason]:
    changes = dict(_changes(experiment))
    costs = {name: cost_of(change(experiment)) for name, change in changes.items()}
    alone = {name: seconds for name, seconds in costs.items() if seconds < needed}
    enough = {name: seconds for name, seconds in alone.items() if seconds <= limit}
    # of several lengths of runs the longest that fits
    lengths = [name for name in enough if name.startswith("run")][:1]
    kept = [name for name in enough if not name.startswith("run") or name in lengths]
    for name in kept:
        yield Reason(code="offer", names=(name,), value=BLOCKS_FOR_A_VERDICT, seconds=enough[name])
    if kept:
        return
    names: list[str] = []
    changed = experiment
    for name in alone:
        names = [each for each in names if not (each.startswith("run") and name.startswith("run"))]
        names.append(name)
        changed = changes[name](changed)
        seconds = cost_of(changed)
        if seconds <= limit:
            yield Reason(code="offer", names=tuple(names), value=BLOCKS_FOR_A_VERDICT, seconds=seconds)
            return


def _changes(experiment: Experiment) -> Iterator[tuple[str, Change]]:
    """Possible changes by how they are written in the file, the least loss first."""
    if experiment.interleave is Interleave.RUNS:
        yield 'interleave = "auto"', lambda asked: replace(asked, interleave=Interleave.AUTO)
    longest = max(cell.run for cell in experiment.cells)
    for length in _RUNS:
        if length < longest:
            yield f'run = "{length}s"', _shorter(length)
    numbers = sorted({cell.clients for cell in experiment.cells})
    if len(numbers) >= _FEWEST_STEPS:
        kept = _every_other(numbers)
        yield f"clients = {kept}", lambda asked: _only_clients(asked, kept)


def _shorter(length: int) -> Change:
    return lambda asked: replace(
        asked, cells=tuple(replace(cell, run=min(cell.run, float(length))) for cell in asked.cells)
    )


def _every_other(numbers: Sequence[int]) -> list[int]:
    """Every other number, the first and the last included."""
    return sorted({*numbers[::2], numbers[-1]}) if len(numbers) > _FEWEST_STEPS else [numbers[0], numbers[-1]]


def _only_clients(asked: Experiment, kept: Sequence[int]) -> Experiment:
    return replace(asked, cells=tuple(cell for cell in asked.cells if cell.clients in kept))
