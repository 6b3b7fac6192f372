"""What a plan will cost: seconds, and bytes on disk at the peak."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

from pgstrata.model.boot import boots_of
from pgstrata.model.experiment import DEFAULT_RUN, Cell, ControlKind, Environment, Experiment
from pgstrata.model.objective import STEPS
from pgstrata.model.plan import DatasetNeed, Design, Forecast
from pgstrata.model.reasons import Reason
from pgstrata.model.storage import Medium, Role, medium_of
from pgstrata.model.workload import Workload
from pgstrata.plan.design import LEAD_SECONDS, warmup_of
from pgstrata.plan.load import (
    DEFAULT_MAX_WAL,
    MB,
    clone_bytes,
    data_bytes,
    data_key,
    data_of,
    image_bytes,
    own_image,
    size_setting,
    wal_apart_bytes,
    wal_bytes,
    workload_of,
)

_EVIDENCE_PER_RUN: Final = 2 * MB
_WAL_PER_SECOND: Final = 50 * MB
_SEGMENTS: Final = 80 * MB
_BUILD_BYTES_PER_SECOND: Final = 40 * MB
_CLONE_BYTES_PER_SECOND: Final = 400 * MB
# Made, written, read and written again as it is.
_IMAGE_BYTES_PER_SECOND: Final = 200 * MB
# Those of all suppliers are smaller, and the smallest image is larger.
_INSTALLATION: Final = 128 * MB
# From the command to the first connection; servers of many disks take minutes.
_SECONDS_PER_BOOT: Final = 60.0
_SECONDS_PER_INITDB: Final = 5.0
_SECONDS_AROUND_A_RUN: Final = 2.0
# A step of a search has a client of its own, which starts and connects.
_SECONDS_AROUND_A_STEP: Final = 0.3
# Side by side with those of the other environments.
_SECONDS_AROUND_SLICES: Final = 1.0
BLOCKS_FOR_A_VERDICT: Final = 8
SECONDS_OF_MAXIMUM: Final = 6.0
"""How long an environment runs as fast as it goes before the first block, for a share of it or a ladder."""
_MOST_NAMED: Final = 3


def forecast(experiment: Experiment, workloads: Mapping[str, Workload], designs: Sequence[Design]) -> Forecast:
    """Time and space of the whole plan."""
    built = _datasets(experiment, workloads)
    needs = tuple(need for need, _ in built)
    pairs = zip(experiment.cells, designs, strict=True)
    arms, per_block, opening = len(experiment.environments), 0.0, 0.0
    for cell, design in pairs:
        per_block += arms * run_seconds(cell, design, workloads)
        if design.stretched is not None:
            per_block -= arms * warmup_of(cell, design)
            opening += arms * warmup_of(cell, design) * min(design.stretched, experiment.blocks)
    images = _Images.of(experiment.environments)
    per_block += sum(_image_seconds(experiment, cell, workloads, images) for cell in experiment.cells)
    per_block += _SECONDS_PER_BOOT * len(boots_of(experiment.environments))
    building = sum(_SECONDS_PER_INITDB + max(least, need.bytes / _BUILD_BYTES_PER_SECOND) for need, least in built)
    climbing = sum(arms * SECONDS_OF_MAXIMUM for cell in experiment.cells if cell.until_falls or cell.rate_share)
    return Forecast(
        seconds_per_block=per_block,
        seconds_building=building,
        seconds_total=building + climbing + opening + per_block * experiment.blocks,
        disk_bytes=_disk(experiment, workloads, needs, designs, images),
        datasets=needs,
    )


def run_seconds(cell: Cell, design: Design, workloads: Mapping[str, Workload]) -> float:
    """One environment's share of a block, with everything around it: clone, start, warm-up, checkpoint, stop."""
    copying = data_bytes(cell, workloads) / _CLONE_BYTES_PER_SECOND
    if design.sliced:
        around = _SECONDS_AROUND_SLICES + LEAD_SECONDS + copying
        return around + warmup_of(cell, design) + (design.rounds + design.discarded) * design.slice_seconds
    searching = 0.0 if cell.objective is None else STEPS * _SECONDS_AROUND_A_STEP
    return _SECONDS_AROUND_A_RUN + copying + warmup_of(cell, design) + cell.run + searching


def _image_seconds(experiment: Experiment, cell: Cell, workloads: Mapping[str, Workload], images: _Images) -> float:
    """All environments' share of a block to write their images: each block of them is written once."""
    data = data_bytes(cell, workloads)
    return sum(images.bytes(environment, data) for environment in experiment.environments) / _IMAGE_BYTES_PER_SECOND


@dataclass(frozen=True, slots=True, kw_only=True)
class _Images:
    """Image files by environment, computed once for all cells.

    `apart`: bytes of those for WAL and installation; `own`: names of environments with one for the data; `largest`: the
    environment whose clone needs the largest, because all get as much.
    """

    apart: Mapping[str, int]
    own: frozenset[str]
    largest: Environment | None

    @classmethod
    def of(cls, environments: Sequence[Environment]) -> Self:
        needed = {Role.WAL: wal_apart_bytes(environments), Role.INSTALLATION: _INSTALLATION}
        own = [environment for environment in environments if own_image(environment)]
        return cls(
            apart={
                one.name: sum(image_bytes("", size) for role, size in needed.items() if own_image(one, role))
                for one in environments
            },
            own=frozenset(environment.name for environment in own),
            largest=max(own, key=wal_bytes, default=None),
        )

    def bytes(self, environment: Environment, data: int) -> int:
        """Bytes of an environment's image files for a dataset of `data` bytes, 0 without one."""
        total = self.apart[environment.name]
        if self.largest is not None and environment.name in self.own:
            total += image_bytes(environment.layers.get("storage.size", ""), clone_bytes(self.largest, data))
        return total


def _datasets(experiment: Experiment, workloads: Mapping[str, Workload]) -> tuple[tuple[DatasetNeed, float], ...]:
    """One for each server, kind of cluster, kind of data and scale, with the seconds that making it takes at least.

    Environments that differ in settings share it.
    """
    needs: dict[object, tuple[DatasetNeed, float]] = {}
    names: dict[object, dict[str, None]] = {}
    for environment in experiment.environments:
        for cell in experiment.cells:
            setup = environment.options.get("setup_sql")
            again = environment.control is ControlKind.REBUILD
            cluster = (environment.checksums, tuple(sorted(environment.initdb.items())), setup, again)
            key = (environment.host, environment.server.text, cluster, data_key(cell, workloads))
            need = DatasetNeed(
                server=environment.server.text,
                workload=cell.workload,
                scale=cell.scale if cell.data is None else 0,
                bytes=data_bytes(cell, workloads),
            )
            needs.setdefault(key, (need, data_of(cell, workloads).least_seconds(cell.scale)))
            names.setdefault(key, {})[environment.name] = None
    return tuple((replace(need, environments=tuple(names[key])), seconds) for key, (need, seconds) in needs.items())


def _disk(
    experiment: Experiment,
    workloads: Mapping[str, Workload],
    needs: Iterable[DatasetNeed],
    designs: Sequence[Design],
    images: _Images,
) -> int:
    """The peak: all datasets, one clone with its WAL for each environment that is up, and the evidence."""
    clones = [
        max(_clone(environment, cell, workloads, images) for cell in experiment.cells)
        for environment in experiment.environments
    ]
    up = sum(clones) if any(design.sliced for design in designs) else max(clones)
    runs = experiment.blocks * len(experiment.environments) * len(experiment.cells)
    return sum(need.bytes for need in needs) + up + runs * _EVIDENCE_PER_RUN


def _clone(environment: Environment, cell: Cell, workloads: Mapping[str, Workload], images: _Images) -> int:
    """What an environment that is up takes of the disk: its images, nothing on a device of its own, else its clone."""
    total = images.bytes(environment, data_bytes(cell, workloads))
    if medium_of(environment, Role.DATA) is Medium.SAME:
        total += data_bytes(cell, workloads)
        if medium_of(environment, Role.WAL) is Medium.SAME:
            total += _wal_bytes(environment, cell, workload_of(cell, workloads))
    return total


def _wal_bytes(environment: Environment, cell: Cell, workload: Workload) -> int:
    if not workload.writes:
        return _SEGMENTS
    limit = size_setting(environment, "max_wal_size", DEFAULT_MAX_WAL, unit=MB)
    written = (cell.run + warmup_of(cell)) * _WAL_PER_SECOND
    # PostgreSQL oversteps max_wal_size while a checkpoint is under way.
    return _SEGMENTS + min(math.ceil(limit * 1.5), math.ceil(written))


def verdict_notes(experiment: Experiment, designs: Sequence[Design]) -> tuple[Reason, ...]:
    """Warnings that too few blocks allow no verdict, and that slices ignore the length of a run."""
    notes = []
    if experiment.blocks < BLOCKS_FOR_A_VERDICT and len(experiment.environments) > 1:
        notes.append(Reason(code="few_blocks", value=experiment.blocks, of=BLOCKS_FOR_A_VERDICT))
    pairs = zip(experiment.cells, designs, strict=True)
    unused = [(cell, design) for cell, design in pairs if design.sliced and cell.run > DEFAULT_RUN]
    if unused:
        measured = max(design.rounds * design.slice_seconds for _, design in unused)
        longest = max(cell.run for cell, _ in unused)
        names = tuple(cell.identity for cell, _ in unused)
        notes.append(Reason(code="run_unused", names=names[:_MOST_NAMED], seconds=longest, value=measured))
    return tuple(notes)


def budget_notes(experiment: Experiment, forecast: Forecast) -> tuple[Reason, ...]:
    """What a budget that is too small for all blocks leaves."""
    if experiment.budget is None or experiment.budget >= forecast.seconds_total:
        return ()
    once = forecast.seconds_total - forecast.seconds_per_block * experiment.blocks
    left = max(0.0, experiment.budget - once)
    whole = int(left // forecast.seconds_per_block)
    note = Reason(code="budget_blocks", seconds=experiment.budget, value=whole, of=experiment.blocks)
    if whole >= BLOCKS_FOR_A_VERDICT or experiment.blocks < BLOCKS_FOR_A_VERDICT:
        return (note,)
    needed = once + BLOCKS_FOR_A_VERDICT * forecast.seconds_per_block
    return (note, Reason(code="budget_verdict", seconds=needed, value=BLOCKS_FOR_A_VERDICT))
