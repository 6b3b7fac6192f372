"""From which scale on data are larger than shared_buffers, and than the memory of the server: notes of a plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from pgstrata.model.experiment import Environment, Experiment, ServerKind
from pgstrata.model.plan import HostCapacity
from pgstrata.model.reasons import DATA_EXCEED, Reason
from pgstrata.model.workload import Workload
from pgstrata.plan.load import shared_buffers, workload_of

_MOST: Final = 12
_MOST_NAMED: Final = 3


def outgrown_notes(
    experiment: Experiment, workloads: Mapping[str, Workload], capacity: HostCapacity
) -> tuple[Reason, ...]:
    """A note for each workload and size of memory that its data exceed, at most twelve, the smallest memory first.

    `said` is the workload, `value` the least scale of the plan that exceeds, `of` the bytes that it exceeds, `names` up
    to three environments that have so much where not all do. `how` tells whether that is so, and whether the workload
    has a single scale. Sizes of data are forecasts without catalogues. Memory is the limit around the server or that of
    its machine. Nothing is said of data without a scale, of running servers and of unknown machines.
    """
    own = [each for each in experiment.environments if each.server.kind is not ServerKind.DSN and not each.control]

    def memory(environment: Environment) -> int | None:
        limit = environment.layers.get("limits.memory")
        known = [capacity.memory_of(environment.host), int(limit) if limit else None]
        return min((each for each in known if each is not None), default=None)

    notes = (
        note
        for what, size_of in (("shared_buffers", shared_buffers), ("memory", memory))
        for note in _exceed(experiment, workloads, what, _group(own, size_of))
    )
    return tuple(note for _, note in zip(range(_MOST), notes, strict=False))


def _group(own: list[Environment], size_of: Callable[[Environment], int | None]) -> dict[int, list[str]]:
    """Names of environments by their bytes, ascending."""
    found: dict[int, list[str]] = {}
    for environment in own:
        size = size_of(environment)
        if size is not None:
            found.setdefault(size, []).append(environment.name)
    return dict(sorted(found.items()))


def _exceed(
    experiment: Experiment, workloads: Mapping[str, Workload], what: str, sizes: Mapping[int, list[str]]
) -> Iterator[Reason]:
    scales: dict[str, set[int]] = {}
    cells = [cell for cell in experiment.cells if cell.data is None]
    kinds = {cell.workload: workload_of(cell, workloads).data for cell in cells}
    for cell in cells:
        scales.setdefault(cell.workload, set()).add(cell.scale)
    several = len(sizes) > 1
    for size, names in sizes.items():
        for workload, asked in scales.items():
            larger = [scale for scale in asked if kinds[workload].size(scale) > size]
            if larger:
                case = [what, "of some" if several else "", "one scale" if len(asked) == 1 else ""]
                yield Reason(
                    code=DATA_EXCEED,
                    how=" ".join(filter(None, case)),
                    names=tuple(names[:_MOST_NAMED]) if several else (),
                    said=workload,
                    value=min(larger),
                    of=size,
                )
