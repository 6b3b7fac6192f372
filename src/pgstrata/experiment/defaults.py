"""Settings that are chosen where the author gave none, the same in all environments, each with its reason.

What belongs here: choices that follow from the size of the machines, and defaults that differ between major versions.
Nothing depends on what changes from day to day, such as free disk: the same machine gives the same plan tomorrow.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from pgstrata.model.experiment import Cell, Environment, Experiment, HostSpec, ServerKind, ServerSpec
from pgstrata.model.plan import HostCapacity
from pgstrata.model.workload import Workload
from pgstrata.units import render_bytes

_MB: Final = 1024**2
_GB: Final = 1024**3
_SMALLEST_BUFFERS: Final = 128 * _MB
_STEP: Final = 128 * _MB
_LARGEST_BUFFERS: Final = 8 * _GB
_SPARE_CONNECTIONS: Final = 10
_MIN_CONNECTIONS: Final = 100
_SET_BY_LAYERS: Final[Mapping[str, str]] = {"huge_pages": "pages"}
_BY_MEMORY: Final = ("shared_buffers", "effective_cache_size")
_NEWEST: Final = 18  # the embedded server's major


@dataclass(frozen=True, slots=True)
class Choice:
    """A setting that pgstrata gives, and why. `since` is the first major version that knows it, 0 for all."""

    setting: str
    value: str
    reason: str
    since: int = 0


def complete_experiment(
    experiment: Experiment,
    capacity: HostCapacity,
    workloads: Mapping[str, Workload],
) -> Experiment:
    """The experiment with a value for each setting that matters here and that nobody gave.

    A setting that the author gave in any environment is left alone in all: where it is missing it was meant to be the
    server's own default. Running servers (dsn:) get nothing.

    Args:
        experiment: as parsed.
        capacity: the machine; its memory and that of other machines counts, its free disk does not.
        workloads: the workloads that exist, by name; checkpoints are tuned only where one writes.
    """
    experiment = _with_options(experiment, workloads)
    own = _own(experiment)
    if not own:
        note = "nothing is chosen or normalised: the servers run already and keep their settings"
        return replace(experiment, notes=(*experiment.notes, note))
    writing = any(_writes(cell, workloads) for cell in experiment.cells)
    every = (
        *_sized(experiment, _smallest(own, capacity)),
        *(_for_writing() if writing else ()),
        *_normalised(),
        *_of_workloads(experiment, workloads),
    )
    choices = tuple(choice for choice in every if not all(_set_by_layer(choice.setting, each) for each in own))
    chosen, notes = _without_given(choices, own)
    chosen, late = _without_unknown(chosen, own)
    settings = {choice.setting: choice.value for choice in chosen}
    return replace(
        experiment,
        environments=tuple(_with(environment, settings) for environment in experiment.environments),
        notes=(
            *experiment.notes,
            *(f"{choice.setting} = {choice.value}: {choice.reason}" for choice in chosen),
            *notes,
            *late,
            *_cluster_notes(own),
        ),
    )


def hosts_to_ask(experiment: Experiment) -> tuple[HostSpec, ...]:
    """The other machines whose memory decides a setting, because servers run there and nobody gave it."""
    own = _own(experiment)
    if all(any(name in each.settings for each in own) for name in _BY_MEMORY):
        return ()
    return tuple(dict.fromkeys(each.host for each in own if each.host.remote))


def _own(experiment: Experiment) -> list[Environment]:
    """Environments whose servers pgstrata starts."""
    return [environment for environment in experiment.environments if environment.server.kind is not ServerKind.DSN]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Memory:
    """Bytes that a server may count on, and whose they are, for the reason."""

    size: int
    whose: str = ""


def _smallest(own: list[Environment], capacity: HostCapacity) -> _Memory:
    """The least memory of the machines on which servers run, whatever the client's has, or the least limit of it.

    A machine that is not known is left out; this one stands in where none is.
    """
    hosts = list(dict.fromkeys(each.host for each in own))
    known = {host: memory for host in hosts if (memory := capacity.memory_of(host)) is not None}
    least = _Memory(size=capacity.memory, whose=" (this machine's: no machine with servers was asked)")
    if known:
        host = min(known, key=lambda each: known[each])
        which = f"that of {host.text}" if host.remote else "this machine's"
        which += ", the least of those with servers" if len(hosts) > 1 else ""
        least = _Memory(size=known[host], whose=f" ({which})" if any(each.remote for each in hosts) else "")
    limits = [int(level) for each in own if (level := each.layers.get("limits.memory"))]
    if limits and min(limits) < least.size:
        return _Memory(size=min(limits), whose=" (the least limits.memory)")
    return least


def _with_options(experiment: Experiment, workloads: Mapping[str, Workload]) -> Experiment:
    """An option that one environment gives has its default in the others, so that all run the same script."""
    given = {name for environment in experiment.environments for name in environment.options}
    defaults = {
        name: option.default
        for cell in experiment.cells
        if cell.workload in workloads
        for name, option in workloads[cell.workload].options.items()
        if name in given
    }
    if not defaults:
        return experiment
    environments = (
        replace(environment, options=dict(sorted({**defaults, **environment.options}.items())))
        for environment in experiment.environments
    )
    return replace(experiment, environments=tuple(environments))


def _with(environment: Environment, settings: dict[str, str]) -> Environment:
    if environment.server.kind is ServerKind.DSN:
        return environment
    chosen = {name: value for name, value in settings.items() if not _set_by_layer(name, environment)}
    return replace(environment, settings=dict(sorted({**chosen, **environment.settings}.items())))


def _set_by_layer(setting: str, environment: Environment) -> bool:
    """Whether a layer of the host gives the environment that setting."""
    return _SET_BY_LAYERS.get(setting) in environment.layers


def _sized(experiment: Experiment, least: _Memory) -> tuple[Choice, ...]:
    """What follows from the machines and from the load."""
    # in coarse steps: a kernel that reserves a little more memory must not make another plan of the same file
    usable = least.size
    smallest = min(_SMALLEST_BUFFERS, usable // 2)
    buffers = max(min(usable // 4, _LARGEST_BUFFERS) // _STEP * _STEP, smallest) // _MB
    cache = max(usable * 3 // 4 // _STEP * _STEP, 2 * smallest) // _MB
    clients = max((cell.clients for cell in experiment.cells), default=1)
    connections = max(_MIN_CONNECTIONS, clients + _SPARE_CONNECTIONS)
    memory = f"{render_bytes(usable)} of memory{least.whose}"
    return (
        Choice("shared_buffers", f"{buffers}MB", f"a quarter of {memory}, at most 8 GB"),
        Choice("effective_cache_size", f"{cache}MB", f"three quarters of {memory}"),
        Choice("max_connections", f"{connections}", f"enough for {clients} and some more"),
        Choice("random_page_cost", "1.1", "data in memory or on flash; the default is for disks"),
        Choice("huge_pages", "off", "with the default, try, one start may get huge pages and the next may not"),
    )


def _writes(cell: Cell, workloads: Mapping[str, Workload]) -> bool:
    workload = workloads.get("custom" if cell.scripts else cell.workload)
    return workload is None or workload.writes


def _of_workloads(experiment: Experiment, workloads: Mapping[str, Workload]) -> tuple[Choice, ...]:
    """Settings that workloads ask for; of contradicting ones the first counts."""
    found: dict[str, Choice] = {}
    for cell in experiment.cells:
        if not cell.scripts and cell.workload in workloads:
            for name, value in workloads[cell.workload].settings.items():
                found.setdefault(
                    name, Choice(name, value, f"{cell.workload} asks for it; set another value to choose otherwise")
                )
    return tuple(found.values())


def _for_writing() -> tuple[Choice, ...]:
    """What keeps checkpoints alike in all runs."""
    return (
        Choice("max_wal_size", "4GB", "the default of 1 GB forces checkpoints during a run"),
        Choice("checkpoint_timeout", "15min", "a timed checkpoint would hit only some runs"),
        Choice("checkpoint_completion_target", "0.9", "0.5 before 14"),
    )


def _normalised() -> tuple[Choice, ...]:
    """Defaults that differ between major versions, or between machines, and that matter."""
    return (
        Choice("timezone", "GMT", "otherwise taken from the machine"),
        Choice("log_timezone", "GMT", "otherwise taken from the machine"),
        Choice("log_line_prefix", "%m [%p] ", "empty before 10; events of the log have a time"),
        Choice("log_checkpoints", "on", "off before 15; checkpoints are counted"),
        Choice("effective_io_concurrency", "16", "1 before 18"),
        Choice("jit", "off", "off before 12; compiling short queries only adds noise", since=11),
        Choice("hash_mem_multiplier", "2.0", "1.0 before 15", since=13),
        Choice("maintenance_io_concurrency", "16", "10 before 18", since=13),
    )


def _without_given(choices: Iterable[Choice], own: list[Environment]) -> tuple[tuple[Choice, ...], tuple[str, ...]]:
    """Choices that nobody made; a note for each that was made in some environments only."""
    kept: list[Choice] = []
    notes: list[str] = []
    for choice in choices:
        given = [environment for environment in own if choice.setting in environment.settings]
        if not given:
            kept.append(choice)
        elif len(given) < len(own):
            names = ", ".join(environment.name for environment in own if environment not in given)
            notes.append(f"{choice.setting}: given in some environments; in {names} it is the server's own default")
    return tuple(kept), tuple(notes)


def _without_unknown(choices: tuple[Choice, ...], own: list[Environment]) -> tuple[tuple[Choice, ...], tuple[str, ...]]:
    """Without settings that an old server would refuse; where it is not known how old the servers are, without all."""
    oldest = min(_major(environment.server) for environment in own)
    left = ", ".join(choice.setting for choice in choices if choice.since > oldest)
    why = f"version {oldest} does not know them" if oldest else "its version is not known yet"
    note = f"left as each server has it, because {why}: {left}"
    return tuple(choice for choice in choices if choice.since <= oldest), (note,) if left else ()


def _major(server: ServerSpec) -> int:
    """The first number of the version, 0 where it is not known before the server is looked at."""
    match server.kind:
        case ServerKind.EMBEDDED:
            return _NEWEST
        case ServerKind.CATALOGUE | ServerKind.MAVEN:
            return int(server.value.partition(".")[0])
        case ServerKind.PREFIX | ServerKind.BUILD | ServerKind.DSN:
            return 0


def _cluster_notes(own: list[Environment]) -> tuple[str, ...]:
    states = {environment.checksums for environment in own}
    notes = ["autovacuum stays as the server has it (on); its work is counted in each run"]
    if len(states) == 1:
        state = "on" if states.pop() else "off"
        notes.append(f"data checksums are {state} everywhere: off by default before 18, on from 18")
    return tuple(notes)
