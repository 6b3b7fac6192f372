"""On which CPUs sessions run: whether they are paired with CPUs in a cell, and which CPU each one is dealt. Pure.

A session is a client and its backend. Where the kernel puts the two decides throughput by up to a factor of four, and
changes whenever they connect and whenever others work. Putting both on one CPU, the same in all environments of a
visit, takes that chance out of the comparison.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from pgstrata.model.driver import Capabilities
from pgstrata.model.experiment import Cell, Environment, Experiment, Placement, ServerKind
from pgstrata.model.reasons import Reason
from pgstrata.model.workload import Workload
from pgstrata.plan.load import workload_of

_PROCESSES: Final = re.compile(
    r"max_parallel_.*|max_worker_processes|parallel_.*|min_parallel_.*|debug_parallel_query|force_parallel_mode"
)
"""Settings of experiments in which a session may have workers, which nobody pairs with it."""
_READERS: Final = re.compile(r"io_method|io_(min_|max_)?workers")
"""Settings that decide which process reads: the session's own, which is paired, or others, which are free."""
_SERIAL: Final = frozenset({("max_parallel_workers_per_gather", "0")})
_CLIENT_NUMBER: Final = re.compile(r":['\"]?client_id\b")
_SCHEDULING: Final = re.compile(
    r"cpu\.policy|cpu\.quota|cpu\.server|cpu\.client|sysctl\.kernel\.(sched|numa).*|kernel|boot\.options|vm\.cpus"
)
"""Layers that are about where processes run: with paired sessions their question would not be asked any more.

Another kernel, or other words of its command line (isolcpus, preempt), may wake and place processes in another way.
"""


def choose_placement(
    experiment: Experiment,
    cell: Cell,
    workloads: Mapping[str, Workload],
    drivers: Mapping[str, Capabilities],
) -> tuple[Placement, Reason | None]:
    """Free or paired, and why not paired where nobody asked for either.

    What all environments ask for goes before what the cell does, as it does in each of them (`Design.pairs`).
    """
    asked = {each.placement or Placement.AUTO for each in experiment.environments}
    if len(asked) == 1 and Placement.AUTO not in asked:
        return asked.pop(), None
    if cell.placement is not Placement.AUTO:
        return cell.placement, None
    against = next(iter(hindrances(experiment, cell, workloads, drivers)), None)
    against = against or next(iter(_doubts(experiment, cell)), None)
    return (Placement.FREE, against) if against else (Placement.PAIRED, None)


def hindrances(
    experiment: Experiment, cell: Cell, workloads: Mapping[str, Workload], drivers: Mapping[str, Capabilities]
) -> Iterable[Reason]:
    """Why the sessions of a cell cannot be paired, whoever asks for it."""
    if not drivers[cell.driver].placeable:
        yield Reason(code="not_placeable", names=(cell.driver,))
    if workload_of(cell, workloads).reconnects:
        yield Reason(code="sessions_end")
    if any(environment.server.kind is ServerKind.DSN for environment in experiment.environments):
        yield Reason(code="not_ours")
    if cell.profile:
        yield Reason(code="one_profile")
    if numbers_clients(cell, workloads):
        yield Reason(code="numbered_clients")
    if any(len(side) > 1 for side in experiment.client_sides):
        yield Reason(code="load_divided")


def numbers_clients(cell: Cell, workloads: Mapping[str, Workload]) -> bool:
    """Whether a script uses the number of its client, which each process counts from 0."""
    own = (each.script for each in workload_of(cell, workloads).scripts)
    return any(_CLIENT_NUMBER.search(script.text) for script in (*cell.scripts, *own))


def _doubts(experiment: Experiment, cell: Cell) -> Iterable[Reason]:
    """Why sessions had better be free unless somebody asks for pairs."""
    environments = experiment.environments
    if cell.paced or cell.latency_limit is not None or cell.objective is not None:
        yield Reason(code="rate_free")
    if experiment.apart:
        yield Reason(code="apart_free")
    if len({environment.connection for environment in environments}) > 1:
        yield Reason(code="asks_scheduling", names=("connection",))
    if experiment.only_host is None:
        # each has a kernel and CPUs of its own
        yield Reason(code="asks_scheduling", names=("host",))
    if names := _about_scheduling(environments):
        yield Reason(code="asks_scheduling", names=names)
    if names := _about_readers(environments):
        yield Reason(code="asks_scheduling", names=names)
    given = {(name, value) for each in environments for name, value in each.settings.items()}
    if names := tuple(sorted({name for name, _ in given - _SERIAL if _PROCESSES.fullmatch(name)})):
        yield Reason(code="parallel_free", names=names)


def _about_scheduling(environments: Sequence[Environment]) -> tuple[str, ...]:
    names = sorted({key for each in environments for key in each.layers if _SCHEDULING.fullmatch(key)})
    return tuple(name for name in names if len({each.layers.get(name) for each in environments}) > 1)


def _about_readers(environments: Sequence[Environment]) -> tuple[str, ...]:
    names = sorted({name for each in environments for name in each.settings if _READERS.fullmatch(name)})
    return tuple(name for name in names if len({each.settings.get(name) for each in environments}) > 1)


def deal(sessions: int, cpus: int, seed: int) -> tuple[int, ...]:
    """The place among `cpus` CPUs of each session: dealt out evenly, which session gets which drawn from the seed."""
    order = list(range(cpus))
    source = random.Random(seed)  # noqa: S311 - an order, not a secret
    source.shuffle(order)
    places = [order[number % cpus] for number in range(sessions)]
    source.shuffle(places)
    return tuple(places)
