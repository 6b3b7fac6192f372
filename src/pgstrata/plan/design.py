"""How the environments of a block take turns in each cell: in slices where that is honest, run by run elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final

from pgstrata.experiment.layers import find_layer_key
from pgstrata.experiment.layers.declaration import Together
from pgstrata.model.driver import Capabilities
from pgstrata.model.experiment import Cell, ControlKind, Environment, Experiment, Interleave, Reset, ServerKind
from pgstrata.model.plan import Design, HostCapacity
from pgstrata.model.reasons import Reason
from pgstrata.model.workload import Workload
from pgstrata.plan.load import resident_bytes, workload_of
from pgstrata.plan.placement import choose_placement

# Length and number of slices of a visit; `bench/slices.py` measures what they are worth on a machine. A round of more
# environments has shorter slices, so that each still lies beside its baseline: noise changes within tenths of a second.
SLICE_SECONDS: Final = 0.25
ROUND_SECONDS: Final = 0.5
SHORTEST_SLICE: Final = 0.1
# The set-up of a visit grows with its environments: more rounds share it, and are needed, because a round of more
# environments follows the noise less well (`bench/rounds.py`). Slices that write scatter more: they wait for the disk.
# A threshold below 2 % needs many visits anyway, so that precise ones are worth their time. All numbers are even: the
# median of one round more hardly scatters less.
ROUNDS: Final = 8
ROUNDS_FOR_EACH_MORE: Final = 2
MOST_ROUNDS: Final = 16
FINE_THRESHOLD: Final = 0.02
DISCARDED_ROUNDS: Final = 1
# Before its slices each environment runs alone this long: warm, and measured without any log. So many blocks tell the
# absolute throughput well enough; differences come from the slices.
SLICED_WARMUP: Final = 1.0
STRETCHED_BLOCKS: Final = 6
# Each persistent client runs this long before its first pause, connecting and preparing its statements.
LEAD_SECONDS: Final = 0.4
MEMORY_SHARE: Final = 0.8
# Writing workloads in which slices with a settled gap and long runs agreed on a known truth.
AGREED: Final[frozenset[str]] = frozenset()

MOVES_WORK: Final = re.compile(
    r"synchronous_commit|commit_delay|commit_siblings|fsync|full_page_writes|wal_.*|max_wal_size|min_wal_size|"
    r"checkpoint_.*|bgwriter_.*|backend_flush_after|autovacuum.*|vacuum_.*"
)
"""Settings that decide when a server writes: a paused server does it in the other one's slice, and a cell that writes
nothing does not notice them."""
_WRITES: Final = re.compile(
    r"\b(insert|update|delete|truncate|merge|copy|create|alter|drop|vacuum|analyze|reindex|cluster|refresh|lock|"
    r"call|do|notify|nextval|setval|for\s+(no\s+key\s+)?update|for\s+(key\s+)?share|into)\b",
    re.IGNORECASE,
)
_COMMENT: Final = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)


def auto_warmup(run: float) -> float:
    """Seconds of warm-up before a run of `run` seconds: a tenth of it, at least 1 and at most 60."""
    return min(60.0, max(1.0, run / 10))


def warmup_of(cell: Cell, design: Design | None = None) -> float:
    """Seconds of warm-up of a cell: its own, or the automatic one of its design."""
    if cell.warmup is not None:
        return cell.warmup
    return SLICED_WARMUP if design is not None and design.sliced else auto_warmup(cell.run)


def choose_designs(
    experiment: Experiment,
    workloads: Mapping[str, Workload],
    capacity: HostCapacity,
    drivers: Mapping[str, Capabilities],
    wanted: Interleave,
) -> tuple[Design, ...]:
    """One design for each cell, with its reason."""
    return tuple(
        _placed(_choose(experiment, cell, workloads, capacity, drivers, wanted), experiment, cell, workloads, drivers)
        for cell in experiment.cells
    )


def _placed(
    design: Design,
    experiment: Experiment,
    cell: Cell,
    workloads: Mapping[str, Workload],
    drivers: Mapping[str, Capabilities],
) -> Design:
    placement, because = choose_placement(experiment, cell, workloads, drivers)
    return replace(design, placement=placement, free_because=because)


def _choose(
    experiment: Experiment,
    cell: Cell,
    workloads: Mapping[str, Workload],
    capacity: HostCapacity,
    drivers: Mapping[str, Capabilities],
    wanted: Interleave,
) -> Design:
    arms = len(experiment.environments)
    writing = writes(cell, workloads)
    if wanted is Interleave.RUNS:
        return _run_by_run(cell, Reason(code="runs_asked"), writing=writing)
    if wanted is Interleave.SLICES:
        return sliced(cell, Reason(code="slices_asked"), settle=writing, arms=arms, threshold=experiment.threshold)
    against = next(iter(obstacles(experiment, cell, workloads, capacity, drivers)), None)
    if against is None and writing and (cell.scripts or cell.workload not in AGREED):
        against = Reason(code="flushing")
    if against is None and not cell.scripts and workload_of(cell, workloads).long_transactions:
        against = Reason(code="long_transactions")
    if against is not None:
        return _run_by_run(cell, against, writing=writing)
    because = Reason(code="together" if writing else "nothing_written")
    return sliced(cell, because, settle=writing, arms=arms, threshold=experiment.threshold)


def _run_by_run(cell: Cell, reason: Reason, *, writing: bool) -> Design:
    return Design(cell=cell.identity, interleave=Interleave.RUNS, reason=reason, writes=writing)


def sliced(cell: Cell, reason: Reason, *, settle: bool, arms: int, threshold: float) -> Design:
    """The design in slices of a cell with so many environments, whose differences matter from `threshold` on."""
    shared = max(SHORTEST_SLICE, min(SLICE_SECONDS, ROUND_SECONDS / max(1, arms)))
    return Design(
        cell=cell.identity,
        interleave=Interleave.SLICES,
        reason=reason,
        settle=settle,
        slice_seconds=SLICE_SECONDS if settle else round(shared, 3),
        rounds=MOST_ROUNDS if settle else rounds_of(arms, threshold),
        discarded=DISCARDED_ROUNDS,
        writes=settle,
        # what was asked for, or dirties buffers, is done each time
        stretched=STRETCHED_BLOCKS if cell.warmup is None and not settle else None,
    )


def rounds_of(arms: int, threshold: float) -> int:
    """The rounds of a visit of so many environments that write nothing."""
    if threshold < FINE_THRESHOLD:
        return MOST_ROUNDS
    return min(MOST_ROUNDS, ROUNDS + ROUNDS_FOR_EACH_MORE * max(0, arms - 2))


def writes(cell: Cell, workloads: Mapping[str, Workload]) -> bool:
    """Whether a cell writes; scripts of the author's own do where one of their words may mean it."""
    if cell.scripts:
        return any(_may_write(script.text) for script in cell.scripts)
    return workload_of(cell, workloads).writes


@lru_cache(maxsize=1000)
def _may_write(script: str) -> bool:
    # what opens no comment is taken out, because each would be sought to the end of the text
    last = script.rfind("*/") + 1
    script = script[:last] + script[last:].replace("/*", " ")
    return _WRITES.search(_COMMENT.sub(" ", script)) is not None


def obstacles(
    experiment: Experiment,
    cell: Cell,
    workloads: Mapping[str, Workload],
    capacity: HostCapacity,
    drivers: Mapping[str, Capabilities],
) -> Iterable[Reason]:
    """Why the environments must not take turns in slices in a cell, the most basic reason first."""
    environments = experiment.environments
    if not drivers[cell.driver].pausable:
        yield Reason(code="driver", names=(cell.driver,))
    if any(environment.server.kind is ServerKind.DSN for environment in environments):
        yield Reason(code="running")
    yield from _on_several_machines(experiment)
    yield from _layers_apart(environments)
    if experiment.reset is not Reset.CLONE:
        yield Reason(code="reset", names=(experiment.reset,))
    if cell.paced or cell.latency_limit is not None:
        yield Reason(code="fixed_rate")
    if cell.objective is not None:
        yield Reason(code="searched")
    if cell.profile:
        yield Reason(code="profile")
    if writes(cell, workloads):
        if experiment.apart:
            yield Reason(code="written_apart")
        if moving := _moving(environments):
            yield Reason(code="moving", names=tuple(sorted(moving)))
    memory = capacity.memory_of(experiment.only_host) if experiment.only_host is not None else None
    if memory is not None:
        yield from too_much_memory(experiment, cell, workloads, memory)


def _on_several_machines(experiment: Experiment) -> Iterable[Reason]:
    if experiment.only_host is None:
        yield Reason(code="several_machines")
    if len(experiment.client_sides) > 1:
        yield Reason(code="clients_apart")
    if any(len(side) > 1 for side in experiment.client_sides):
        yield Reason(code="load_divided")


def too_much_memory(
    experiment: Experiment, cell: Cell, workloads: Mapping[str, Workload], memory: int
) -> Iterable[Reason]:
    """Why all servers of an experiment cannot be up together on a machine with so many bytes of memory."""
    needed = sum(resident_bytes(environment, cell, workloads) for environment in experiment.environments)
    if needed > memory * MEMORY_SHARE:
        yield Reason(code="memory", value=needed, of=memory)


def _layers_apart(environments: Iterable[Environment]) -> Iterable[Reason]:
    """Why layers below the servers keep them apart: some belong to the whole host, some to one server at a time."""
    environments = tuple(environments)
    if any(environment.control is ControlKind.REBOOT for environment in environments):
        yield Reason(code="rebooted")
    levels = [environment.layers for environment in environments]
    keys = {key: find_layer_key(key).together for each in levels for key in each}
    if alone := [key for key, together in keys.items() if together is Together.FOR_ONE]:
        yield Reason(code="for_one", names=tuple(alone))
    # CPU time has periods of 0.1 s: of a slice of 0.25 s half a CPU is 0.15 s, not 0.125
    for key in (key for key, together in keys.items() if together is Together.BY_PERIODS):
        yield Reason(code="by_periods", names=(key,))
    differing = [key for key in keys if len({each.get(key) for each in levels}) > 1]
    if shared := [key for key in differing if keys[key] is Together.NO]:
        yield Reason(code="of_host", names=tuple(shared))


def _moving(environments: Sequence[Environment]) -> set[str]:
    """Settings that move work in time and differ between environments."""
    names = {name for environment in environments for name in environment.settings if MOVES_WORK.fullmatch(name)}
    return {name for name in names if len({environment.settings.get(name) for environment in environments}) > 1}
