"""From an experiment and a seed to the ordered runs, with forecasts; and the plans that are refused.

What belongs here: order, identities, forecasts of time and disk, refusals. Nothing is touched and nothing is looked up:
the same experiment and seed give the same plan on every machine of the same size.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any, Final, TypeVar

from pgstrata.errors import PlanRefusedError
from pgstrata.model.experiment import (
    Cell,
    Environment,
    Experiment,
    Interleave,
    Reset,
    ServerKind,
    ServerSpec,
)
from pgstrata.model.plan import (
    Block,
    DatasetNeed,
    Forecast,
    HostCapacity,
    Plan,
    PlannedRun,
    Stage,
    Visit,
)
from pgstrata.model.workload import Workload
from pgstrata.units import parse_bytes, render_bytes, render_duration

_T = TypeVar("_T")

_MB: Final = 1024**2
_EMPTY_CLUSTER: Final = 40 * _MB
_EVIDENCE_PER_RUN: Final = 2 * _MB
_WAL_PER_SECOND: Final = 50 * _MB
_SEGMENTS: Final = 80 * _MB
_BUILD_BYTES_PER_SECOND: Final = 40 * _MB
_CLONE_BYTES_PER_SECOND: Final = 400 * _MB
_SECONDS_PER_INITDB: Final = 5.0
_SECONDS_AROUND_A_RUN: Final = 2.0
_DEFAULT_SHARED_BUFFERS: Final = 128 * _MB
_DEFAULT_MAX_WAL: Final = 1024 * _MB
_DEFAULT_CONNECTIONS: Final = 100
_SPARE_CONNECTIONS: Final = 5
_MEMORY_SHARE: Final = 0.8
_BLOCKS_FOR_A_VERDICT: Final = 7
_NOT_FIXING: Final = {
    Experiment: frozenset({"question", "text", "notes", "budget", "interleave"}),
    ServerSpec: frozenset({"conninfo"}),
}


def make_plan(
    experiment: Experiment,
    workloads: Mapping[str, Workload],
    capacity: HostCapacity,
    *,
    interleave: Interleave | None = None,
) -> Plan:
    """Everything that will be done, in order.

    Args:
        experiment: complete: with the settings that were chosen for it.
        workloads: the workloads that exist, by name.
        capacity: the machine that it must fit into.
        interleave: instead of the experiment's, for callers that can keep several environments up at once.

    Raises:
        PlanRefusedError: the plan would not answer the question, or does not fit; with all reasons.
    """
    way, reason = _choose_interleave(interleave or experiment.interleave)
    blocks = tuple(_block(experiment, number, way) for number in range(1, experiment.blocks + 1))
    forecast = _forecast(experiment, workloads, way)
    _refuse(experiment, workloads, capacity, forecast, way)
    return Plan(
        identity=_identity(experiment, way),
        experiment=replace(experiment, notes=(*experiment.notes, *_budget_notes(experiment, forecast))),
        interleave=way,
        interleave_reason=reason,
        blocks=blocks,
        forecast=forecast,
    )


def auto_warmup(run: float) -> float:
    """Seconds of warm-up before a run of `run` seconds: a tenth of it, at least 1 and at most 60."""
    return min(60.0, max(1.0, run / 10))


def warmup_of(cell: Cell) -> float:
    """Seconds of warm-up of a cell: its own, or the automatic one."""
    return auto_warmup(cell.run) if cell.warmup is None else cell.warmup


def workload_of(cell: Cell, workloads: Mapping[str, Workload]) -> Workload:
    """The workload of a cell; scripts of the author's own run on the data of the workload `custom`.

    Raises:
        PlanRefusedError: there is no such workload.
    """
    name = "custom" if cell.scripts else cell.workload
    if name not in workloads:
        raise PlanRefusedError(f"there is no workload {name!r}", remedy=f"there are: {', '.join(sorted(workloads))}")
    return workloads[name]


# ---------------------------------------------------------------------------------------------- order


def _choose_interleave(wanted: Interleave) -> tuple[Interleave, str]:
    match wanted:
        case Interleave.AUTO:
            return Interleave.RUNS, "run by run: each environment is up alone and has the whole machine to itself"
        case Interleave.RUNS:
            return Interleave.RUNS, "run by run, as asked"
        case Interleave.SLICES:
            return Interleave.SLICES, "all environments of a block are up together and take turns, as asked"


def _block(experiment: Experiment, number: int, way: Interleave) -> Block:
    visits = _slices(experiment, number) if way is Interleave.SLICES else _turns(experiment, number)
    return Block(number=number, visits=visits)


def _turns(experiment: Experiment, number: int) -> tuple[Visit, ...]:
    """One visit for each environment; within it its cells, one run each."""
    visits: list[Visit] = []
    for environment in _shuffled(experiment.environments, experiment.seed, number, "environments"):
        cells = _shuffled(experiment.cells, experiment.seed, number, "cells", environment.name)
        stages = tuple(_stage(experiment, number, (environment,), cell) for cell in cells)
        identity = f"b{number:02d}/{environment.name}"
        visits.append(Visit(identity=identity, residents=(environment.name,), stages=stages))
    return tuple(visits)


def _slices(experiment: Experiment, number: int) -> tuple[Visit, ...]:
    """One visit with all environments up; for each cell one run for each of them, in random order."""
    stages = []
    for cell in _shuffled(experiment.cells, experiment.seed, number, "cells"):
        order = _shuffled(experiment.environments, experiment.seed, number, "environments", cell.identity)
        stages.append(_stage(experiment, number, order, cell))
    residents = tuple(environment.name for environment in experiment.environments)
    return (Visit(identity=f"b{number:02d}", residents=residents, stages=tuple(stages)),)


def _stage(experiment: Experiment, number: int, order: Sequence[Environment], cell: Cell) -> Stage:
    # The arms of a block share the seed of the client, so that they ask for the same rows.
    seed = _derive(experiment.seed, number, "client", cell.identity) % 2**31
    runs = tuple(
        PlannedRun(
            identity=f"b{number:02d}/{environment.name}/{cell.identity}",
            block=number,
            environment=environment.name,
            cell=cell.identity,
            seed=seed,
        )
        for environment in order
    )
    return Stage(cell=cell.identity, runs=runs)


def _shuffled(items: Sequence[_T], *source: object) -> tuple[_T, ...]:
    result = list(items)
    random.Random(_derive(*source)).shuffle(result)  # noqa: S311 - an order of runs, not a secret
    return tuple(result)


def _derive(*source: object) -> int:
    """An integer from texts and numbers: SHA-256, so that it is the same everywhere.

    Python's own hash differs between processes. `Random(int).shuffle` has given the same order since Python 3.2, and a
    test pins one.
    """
    text = "/".join(str(part) for part in source)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


# ------------------------------------------------------------------------------------------- identity


def _identity(experiment: Experiment, way: Interleave) -> str:
    """What fixes the plan, as a short hash: not its wording, its budget, its notes or anybody's password."""
    content = json.dumps([_plain(experiment), str(way)], sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(content.encode()).hexdigest()[:12]


def _plain(value: object) -> Any:
    if is_dataclass(value):
        left_out = _NOT_FIXING.get(type(value), frozenset())
        named = (field.name for field in fields(value) if field.name not in left_out)
        return {name: _plain(getattr(value, name)) for name in named}
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value


# ------------------------------------------------------------------------------------------- forecast


def _forecast(experiment: Experiment, workloads: Mapping[str, Workload], way: Interleave) -> Forecast:
    needs = _datasets(experiment, workloads)
    per_block = sum(_seconds(cell, workloads) for cell in experiment.cells) * len(experiment.environments)
    building = sum(_SECONDS_PER_INITDB + need.bytes / _BUILD_BYTES_PER_SECOND for need in needs)
    return Forecast(
        seconds_per_block=per_block,
        seconds_building=building,
        seconds_total=building + per_block * experiment.blocks,
        disk_bytes=_disk(experiment, workloads, needs, way),
        datasets=needs,
    )


def _seconds(cell: Cell, workloads: Mapping[str, Workload]) -> float:
    """One run with everything around it: clone, start, warm-up, checkpoint, stop."""
    clone = _data_bytes(cell, workloads) / _CLONE_BYTES_PER_SECOND
    return cell.run + warmup_of(cell) + _SECONDS_AROUND_A_RUN + clone


def _data_bytes(cell: Cell, workloads: Mapping[str, Workload]) -> int:
    return _EMPTY_CLUSTER + workload_of(cell, workloads).bytes_per_scale * cell.scale


def _datasets(experiment: Experiment, workloads: Mapping[str, Workload]) -> tuple[DatasetNeed, ...]:
    """One for each server, kind of cluster, kind of data and scale; environments that differ in settings share it."""
    needs: dict[object, DatasetNeed] = {}
    for environment in experiment.environments:
        for cell in experiment.cells:
            workload = workload_of(cell, workloads)
            scripts = (cell.options.get("setup_sql"), environment.options.get("setup_sql"))
            cluster = (environment.checksums, tuple(sorted(environment.initdb.items())), scripts)
            key = (environment.server.text, cluster, workload.data, workload.bytes_per_scale, cell.scale)
            need = DatasetNeed(
                server=environment.server.text,
                workload=cell.workload,
                scale=cell.scale,
                bytes=_data_bytes(cell, workloads),
            )
            needs.setdefault(key, need)
    return tuple(needs.values())


def _disk(
    experiment: Experiment, workloads: Mapping[str, Workload], needs: Iterable[DatasetNeed], way: Interleave
) -> int:
    """The peak: all datasets, one clone with its WAL for each environment that is up, and the evidence."""
    clones = [
        max(
            _data_bytes(cell, workloads) + _wal_bytes(environment, cell, workload_of(cell, workloads))
            for cell in experiment.cells
        )
        for environment in experiment.environments
    ]
    up = sum(clones) if way is Interleave.SLICES else max(clones)
    runs = experiment.blocks * len(experiment.environments) * len(experiment.cells)
    return sum(need.bytes for need in needs) + up + runs * _EVIDENCE_PER_RUN


def _wal_bytes(environment: Environment, cell: Cell, workload: Workload) -> int:
    if not workload.writes:
        return _SEGMENTS
    limit = _size(environment, "max_wal_size", _DEFAULT_MAX_WAL, unit=_MB)
    written = (cell.run + warmup_of(cell)) * _WAL_PER_SECOND
    # PostgreSQL oversteps max_wal_size while a checkpoint is under way.
    return _SEGMENTS + min(math.ceil(limit * 1.5), math.ceil(written))


def _size(environment: Environment, setting: str, default: int, *, unit: int) -> int:
    """A size setting in bytes; numbers without a unit count in the setting's own unit."""
    text = environment.settings.get(setting, "")
    if text.strip().isdecimal():
        return int(text) * unit
    try:
        return parse_bytes(text)
    except ValueError:
        return default


def _budget_notes(experiment: Experiment, forecast: Forecast) -> tuple[str, ...]:
    if experiment.budget is None or experiment.budget >= forecast.seconds_total:
        return ()
    left = max(0.0, experiment.budget - forecast.seconds_building)
    whole = int(left // forecast.seconds_per_block)
    note = (
        f"the budget of {render_duration(experiment.budget)} holds about {whole} of {experiment.blocks} blocks: "
        "the run ends after the last whole block that fits"
    )
    if whole >= _BLOCKS_FOR_A_VERDICT or experiment.blocks < _BLOCKS_FOR_A_VERDICT:
        return (note,)
    needed = forecast.seconds_building + _BLOCKS_FOR_A_VERDICT * forecast.seconds_per_block
    few = (
        f"fewer than {_BLOCKS_FOR_A_VERDICT} blocks cannot give an interval, only large effects show: "
        f"{render_duration(needed)} would hold {_BLOCKS_FOR_A_VERDICT} blocks"
    )
    return (note, few)


# ------------------------------------------------------------------------------------------- refusals


def _refuse(
    experiment: Experiment,
    workloads: Mapping[str, Workload],
    capacity: HostCapacity,
    forecast: Forecast,
    way: Interleave,
) -> None:
    reasons = (
        *_hot_rows(experiment, workloads),
        *_growing_data(experiment, workloads),
        *_too_few_connections(experiment),
        *_too_little_memory(experiment, capacity, way),
        *_too_little_disk(forecast, capacity),
    )
    if not reasons:
        return
    if len(reasons) == 1:
        raise PlanRefusedError(reasons[0][0], remedy=reasons[0][1])
    raise PlanRefusedError(
        f"the plan is refused for {len(reasons)} reasons",
        details=tuple(f"{what} -> {remedy}" for what, remedy in reasons),
        remedy="change the experiment file as each reason says",
    )


def _hot_rows(experiment: Experiment, workloads: Mapping[str, Workload]) -> Iterable[tuple[str, str]]:
    for cell in experiment.cells:
        if workload_of(cell, workloads).hot_row_per_scale and cell.scale < cell.clients:
            yield (
                (
                    f"{cell.identity}: {cell.clients} clients update {cell.scale} rows and wait for each other, "
                    "so that only this lock would be measured"
                ),
                f"use a scale of at least {cell.clients}, fewer clients, or simple-update",
            )


def _growing_data(experiment: Experiment, workloads: Mapping[str, Workload]) -> Iterable[tuple[str, str]]:
    writing = [cell.workload for cell in experiment.cells if workload_of(cell, workloads).writes]
    if writing and experiment.reset is not Reset.CLONE:
        yield (
            f'{writing[0]} writes, and with reset = "{experiment.reset}" later runs would work on other data',
            'write reset = "clone", or measure a workload that only reads',
        )


def _too_few_connections(experiment: Experiment) -> Iterable[tuple[str, str]]:
    clients = max(cell.clients for cell in experiment.cells)
    short: dict[int, list[str]] = {}
    for environment in experiment.environments:
        text = environment.settings.get("max_connections", "")
        limit = int(text) if text.isdecimal() else _DEFAULT_CONNECTIONS
        # The settings of a running server are not known before it is asked.
        if environment.server.kind is not ServerKind.DSN and clients + _SPARE_CONNECTIONS > limit:
            short.setdefault(limit, []).append(environment.name)
    for limit, names in short.items():
        yield (
            f"{', '.join(names)}: {clients} clients do not fit into max_connections = {limit}",
            f"set max_connections to at least {clients + _SPARE_CONNECTIONS}, or use fewer clients",
        )


def _too_little_memory(experiment: Experiment, capacity: HostCapacity, way: Interleave) -> Iterable[tuple[str, str]]:
    own = [environment for environment in experiment.environments if environment.server.kind is not ServerKind.DSN]
    sizes = [_size(environment, "shared_buffers", _DEFAULT_SHARED_BUFFERS, unit=8192) for environment in own]
    needed = sum(sizes) if way is Interleave.SLICES else max(sizes, default=0)
    if needed > capacity.memory * _MEMORY_SHARE:
        yield (
            f"shared_buffers take {render_bytes(needed)} of {render_bytes(capacity.memory)} of memory",
            f"use at most {render_bytes(capacity.memory * _MEMORY_SHARE)} in all servers that are up together",
        )


def _too_little_disk(forecast: Forecast, capacity: HostCapacity) -> Iterable[tuple[str, str]]:
    if forecast.disk_bytes > capacity.free_disk:
        yield (
            (
                f"about {render_bytes(forecast.disk_bytes)} of disk are needed and {render_bytes(capacity.free_disk)} "
                "are free"
            ),
            "use a smaller scale, fewer versions or a smaller max_wal_size, or free some space",
        )
