"""Plans that would produce a lie, or do not fit: refused with all reasons at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from pgstrata.errors import PlanRefusedError
from pgstrata.model import sizes
from pgstrata.model.boot import booted_hosts
from pgstrata.model.driver import Capabilities
from pgstrata.model.experiment import Cell, Experiment, HostSpec, Placement, Reset, ServerKind
from pgstrata.model.plan import Design, Forecast, HostCapacity
from pgstrata.model.reasons import Reason
from pgstrata.model.workload import Workload
from pgstrata.plan.design import MEMORY_SHARE, obstacles, too_much_memory
from pgstrata.plan.load import shared_buffers, workload_of
from pgstrata.plan.placement import hindrances, numbers_clients
from pgstrata.units import render_bytes

MOST_RUNS: Final = 50_000
_DEFAULT_CONNECTIONS: Final = 100
_SPARE_CONNECTIONS: Final = 5
_RUN_BY_RUN: Final = 'write interleave = "runs"'


def refuse(
    experiment: Experiment,
    workloads: Mapping[str, Workload],
    capacity: HostCapacity,
    drivers: Mapping[str, Capabilities],
    forecast: Forecast | None,
    designs: Sequence[Design],
    say: Callable[[Reason], str],
) -> None:
    """Raises PlanRefusedError where there is a reason; `forecast` is of what is on this machine, None for nothing.

    `say` words why a cell cannot be measured in slices.
    """
    raise_if_any(
        (
            *_hot_rows(experiment, workloads),
            *_growing_data(experiment, workloads),
            *_too_few_connections(experiment),
            *_unknown_before_reboots(experiment),
            *_clients_numbered_twice(experiment, workloads),
            *_too_little_memory(experiment.on_host(HostSpec()), capacity),
            *_not_to_be_sliced(experiment, workloads, capacity, drivers, designs, say),
            *_not_to_be_paired(experiment, workloads, drivers, say),
            *(_too_little_disk(forecast, capacity) if forecast is not None else ()),
        )
    )


def _unknown_before_reboots(experiment: Experiment) -> Iterable[tuple[str, str]]:
    """What is measured in all environments before the first block, between which this machine cannot be rebooted."""
    if HostSpec() not in booted_hosts(experiment.environments):
        return
    for cell in experiment.cells:
        if cell.rate_share is not None:
            what = f"the rate of {cell.identity} is a share of what all environments reach, which cannot be measured"
            yield f"{what} before this machine is rebooted", "write the rate as a number of transactions per second"
        if cell.until_falls:
            what = "a ladder that ends where throughput falls cannot be measured before this machine is rebooted"
            yield what, "write clients as a list of numbers"
            return


def _clients_numbered_twice(experiment: Experiment, workloads: Mapping[str, Workload]) -> Iterable[tuple[str, str]]:
    """Scripts that use the number of their client, which starts from 0 on each machine."""
    if all(len(side) == 1 for side in experiment.client_sides):
        return
    for cell in experiment.cells:
        if numbers_clients(cell, workloads):
            what = f"{cell.identity}: its script uses :client_id, which starts from 0 on each machine of the client"
            yield what, "use a random number instead, or let the load come from one machine"


def refuse_size(experiment: Experiment) -> None:
    """Raises PlanRefusedError where a plan would have too many runs, or too much text in it."""
    runs = experiment.blocks * len(experiment.environments) * len(experiment.cells)
    texts = [script.text for cell in experiment.cells for script in (*cell.scripts, *cell.checkout)]
    texts += [text for cell in experiment.cells if cell.data for text in (cell.data.checks, cell.data.consistency)]
    for options in (each.options for part in (experiment.environments, experiment.cells) for each in part):
        texts += options.values()
    size = sum(map(len, texts))
    reasons = []
    if runs > MOST_RUNS:
        what = f"a plan of {runs:,} runs is too large (environments times cells times blocks)"
        reasons.append((what, f"use fewer of them: at most {MOST_RUNS:,} runs, or split the experiment"))
    if size > sizes.PLAN_TEXT:
        what = f"scripts and options would stand in the plan with {render_bytes(size)}"
        remedy = f"use smaller scripts or fewer cells that share them: at most {render_bytes(sizes.PLAN_TEXT)} in all"
        reasons.append((what, remedy))
    raise_if_any(reasons)


def refuse_drivers(
    experiment: Experiment, workloads: Mapping[str, Workload], drivers: Mapping[str, Capabilities]
) -> None:
    """Raises PlanRefusedError where a cell asks for what its driver cannot do, or for a driver that does not exist."""
    reasons = [reason for cell in experiment.cells for reason in _beyond_driver(cell, drivers)]
    reasons += [reason for cell in experiment.cells for reason in _beyond_scripts(experiment, cell, workloads)]
    raise_if_any(reasons, where="[[cells]]")


def _beyond_scripts(experiment: Experiment, cell: Cell, workloads: Mapping[str, Workload]) -> Iterable[tuple[str, str]]:
    """Values of options, of the cell or of an environment, with which its driver has no script of the workload."""
    if cell.scripts:
        return
    workload = workload_of(cell, workloads)
    for name, values in workload.fixed_options(cell.driver).items():
        given = dict.fromkeys(
            workload.values({**cell.options, **each.options})[name] for each in experiment.environments
        )
        for value in given:
            if value not in values:
                known = " or ".join(f'{name} = "{each}"' for each in sorted(values))
                able = [key for key in workload.drivers if value in workload.fixed_options(key).get(name, {value})]
                yield (
                    f'{cell.identity}: the driver {cell.driver} does not run {workload.name} with {name} = "{value}"',
                    " or ".join([f"write {known}", *(f'driver = "{key}"' for key in able)]),
                )


def _beyond_driver(cell: Cell, drivers: Mapping[str, Capabilities]) -> Iterable[tuple[str, str]]:
    if cell.driver not in drivers:
        yield f"{cell.identity}: there is no driver {cell.driver!r}", f"name one of {', '.join(sorted(drivers))}"
        return
    able = drivers[cell.driver]
    who = f"{cell.identity}: the driver {cell.driver}"
    if cell.paced:
        yield from _beyond_rates(cell.rate, able, who)
    if cell.objective is not None and not (able.fixed_rate and able.transaction_log):
        yield f"{who} does not log the latency of each transaction", "leave out objective"
    if cell.latency_limit is not None and not able.skips_late:
        yield f"{who} neither counts nor skips late transactions", "leave out latency_limit"
    if cell.protocol not in able.protocols:
        known = " or ".join(f'"{each}"' for each in able.protocols)
        yield f"{who} does not speak the {cell.protocol} protocol", f"write protocol = {known}"
    if cell.threads != cell.clients and not able.shares_threads:
        yield f"{who} has a thread for each client", "leave out threads, or have as many as clients"
    if cell.profile and not able.profile:
        yield f"{who} does not tell the latency of each statement", "leave out profile"
    if cell.scripts and not able.scripts:
        yield f"{who} does not run scripts", "name a workload instead of scripts"
    if not able.loads_data:
        yield f"{who} does not load its data, and no workload has SQL that does", "use a driver that loads its data"


def _beyond_rates(rate: float | None, able: Capabilities, who: str) -> Iterable[tuple[str, str]]:
    if not able.fixed_rate:
        yield f"{who} cannot keep a fixed rate", "leave out rate"
    elif able.whole_rates and rate is not None and not rate.is_integer():
        yield f"{who} cannot keep a rate of {rate:g} per second", f"use a whole number, such as {max(1, round(rate))}"


def refuse_room(
    part: Experiment,
    workloads: Mapping[str, Workload],
    capacity: HostCapacity,
    forecast: Forecast,
    designs: Sequence[Design],
    *,
    where: str,
    say: Callable[[Reason], str],
) -> None:
    """Raises PlanRefusedError where a part of an experiment, all on one host, does not fit into that host."""
    crowded = (
        (f"{cell.identity} cannot be measured in slices: {say(why)}", _RUN_BY_RUN)
        for cell, design in zip(part.cells, designs, strict=True)
        if design.sliced
        for why in too_much_memory(part, cell, workloads, capacity.memory)
    )
    raise_if_any((*_too_little_memory(part, capacity), *crowded, *_too_little_disk(forecast, capacity)), where=where)


def raise_if_any(reasons: Sequence[tuple[str, str]], where: str = "") -> None:
    """PlanRefusedError with all reasons, each with its remedy."""
    if not reasons:
        return
    if len(reasons) == 1:
        raise PlanRefusedError(reasons[0][0], where=where, remedy=reasons[0][1])
    raise PlanRefusedError(
        f"the plan is refused for {len(reasons)} reasons",
        where=where,
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


def _too_little_memory(experiment: Experiment, capacity: HostCapacity) -> Iterable[tuple[str, str]]:
    own = [environment for environment in experiment.environments if environment.server.kind is not ServerKind.DSN]
    needed = max((shared_buffers(environment) for environment in own), default=0)
    if needed > capacity.memory * MEMORY_SHARE:
        yield (
            f"shared_buffers take {render_bytes(needed)} of {render_bytes(capacity.memory)} of memory",
            f"use at most {render_bytes(capacity.memory * MEMORY_SHARE)}",
        )


def _not_to_be_paired(
    experiment: Experiment,
    workloads: Mapping[str, Workload],
    drivers: Mapping[str, Capabilities],
    say: Callable[[Reason], str],
) -> Iterable[tuple[str, str]]:
    asked = any(each.placement is Placement.PAIRED for each in experiment.environments)
    for cell in experiment.cells:
        if asked or cell.placement is Placement.PAIRED:
            for why in hindrances(experiment, cell, workloads, drivers):
                yield (
                    f"{cell.identity}: sessions cannot be paired: {say(why)}",
                    'write placement = "free", or leave it out',
                )


def _not_to_be_sliced(
    experiment: Experiment,
    workloads: Mapping[str, Workload],
    capacity: HostCapacity,
    drivers: Mapping[str, Capabilities],
    designs: Sequence[Design],
    say: Callable[[Reason], str],
) -> Iterable[tuple[str, str]]:
    for cell, design in zip(experiment.cells, designs, strict=True):
        if design.sliced:
            for why in obstacles(experiment, cell, workloads, capacity, drivers):
                yield f"{cell.identity} cannot be measured in slices: {say(why)}", 'write interleave = "auto" or "runs"'


def _too_little_disk(forecast: Forecast, capacity: HostCapacity) -> Iterable[tuple[str, str]]:
    if forecast.disk_bytes > capacity.free_disk:
        yield (
            (
                f"about {render_bytes(forecast.disk_bytes)} of disk are needed and {render_bytes(capacity.free_disk)} "
                "are free"
            ),
            "use a smaller scale, fewer versions or a smaller max_wal_size, or free some space",
        )
