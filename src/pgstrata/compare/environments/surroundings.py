"""Doubts that hold for a whole study: what its host and environments are, and what its runs never contained.

What belongs here: warnings for which one look at the study is enough, because they hold for all its runs alike. What
differs between two arms is said with their comparison (`doubts`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import Final

from pgstrata.compare.verdicts.doubts import LITTLE_WAL
from pgstrata.model.doubts import Doubt, FewClients, NamedDoubt, PlainDoubt
from pgstrata.model.experiment import Cell, ServerKind
from pgstrata.model.guards import FAST_CLOCKS
from pgstrata.model.metrics import LATENCY_QUANTILES
from pgstrata.model.runs import RunRecord
from pgstrata.model.study import Study
from pgstrata.sources.runs import may_enter

_LONG_WORK: Final = 0.1
_WHOLE_CYCLES: Final = 2.0
_STATUS: Final = "settings.huge_pages_status"


def surrounding_warnings(study: Study) -> tuple[Doubt, ...]:
    """Doubts about machines, host, environments and cells of a study."""
    cells = study.plan.experiment.cells
    by_cell = {
        cell.identity: [run for run in study.runs if run.cell == cell.identity and may_enter(run)] for cell in cells
    }
    return (
        *claim_warnings(study),
        *_of_host(
            study.host.facts,
            [cell for cell in cells if not _works_for_long(by_cell[cell.identity])],
            _set_everywhere(study),
        ),
        *_of_pages(study),
        *_of_checkpoints(by_cell),
        *_of_samples(study.plan.experiment.metric, by_cell),
    )


def claim_warnings(study: Study) -> tuple[Doubt, ...]:
    """What an answer is about, where that is less than one might think: these machines, these running servers."""
    return (*_of_machines(study), *_of_running_servers(study))


def _of_machines(study: Study) -> Iterator[Doubt]:
    """One machine of each kind says nothing about the kinds, however often it is measured."""
    experiment = study.plan.experiment
    hosts = experiment.machines if len(experiment.client_sides) > 1 else experiment.hosts
    if len(hosts) > 1:
        yield NamedDoubt(code="these_machines", names=tuple(host.text for host in hosts))


def _of_running_servers(study: Study) -> Iterator[Doubt]:
    """Servers that are never restarted keep what their start drew, such as where their memory lies, in every block.

    Environments of one and the same server share it.
    """
    servers = {environment.server.text: environment.server for environment in study.plan.experiment.environments}
    running = tuple(text for text, server in servers.items() if server.kind is ServerKind.DSN and not server.restart)
    if running and len(servers) > 1:
        yield NamedDoubt(code="these_instances", names=running)


def _works_for_long(runs: Iterable[RunRecord]) -> bool:
    """Whether a transaction takes so much CPU time of the server that waking a CPU for its statements shows nowhere."""
    found = _known(runs, "server_cpu_per_tx")
    return bool(found) and median(found) >= _LONG_WORK


def _set_everywhere(study: Study) -> frozenset[str]:
    """Keys of layers that all environments ask for: what the host had before does not matter."""
    asked = [frozenset(environment.layers) for environment in study.plan.experiment.environments]
    return frozenset.intersection(*asked) if asked else frozenset()


def _of_host(facts: Mapping[str, str], cells: Sequence[Cell], given: frozenset[str]) -> Iterator[Doubt]:
    cpus = facts.get("host.cpus", "")
    if facts.get("host.virtual") and cpus.isdecimal():
        few = tuple(cell.identity for cell in cells if cell.clients < int(cpus))
        if few:
            yield FewClients(cpus=int(cpus), machine=facts["host.virtual"], cells=few)
    clock = facts.get("host.clocksource", "")
    if clock and clock not in FAST_CLOCKS:
        yield NamedDoubt(code="clock_source", names=(clock,))
    if facts.get("host.thp") == "always" and "thp" not in given:
        yield PlainDoubt(code="thp_always")
    governor = facts.get("host.governor", "performance")
    if governor != "performance" and "cpu.governor" not in given:
        yield NamedDoubt(code="cpu_governor", names=(governor,))


def _of_pages(study: Study) -> Iterator[Doubt]:
    """`huge_pages = try` falls back without a word, and before 17 no server tells whether it did."""
    without, silent = [], []
    for environment in study.plan.experiment.environments:
        asked = environment.settings.get("huge_pages")
        fingerprint = study.environments.get(environment.name)
        if asked not in {"on", "try"} or fingerprint is None:
            continue
        status = fingerprint.facts.get(_STATUS)
        if status is None and asked == "try":
            silent.append(environment.name)
        elif status not in {None, "on"}:
            without.append(environment.name)
    if without:
        yield NamedDoubt(code="huge_pages_fallback", names=tuple(without))
    if silent:
        yield NamedDoubt(code="huge_pages_fallback", names=tuple(silent), of="try")


def _of_checkpoints(by_cell: Mapping[str, Sequence[RunRecord]]) -> Iterator[Doubt]:
    """The label of cells that write: without checkpoints, or with a piece of a cycle."""
    free, cut = [], []
    for cell, runs in by_cell.items():
        wal, checkpoints = _known(runs, "wal_per_tx"), _known(runs, "checkpoints")
        if not checkpoints or not wal or max(wal) <= LITTLE_WAL:
            continue
        if max(checkpoints) == 0:
            free.append(cell)
        elif min(checkpoints) < _WHOLE_CYCLES:
            cut.append(cell)
    if free:
        yield NamedDoubt(code="checkpoint_free", names=tuple(free))
    if cut:
        yield NamedDoubt(code="cut_cycles", names=tuple(cut))


def _of_samples(metric: str, by_cell: Mapping[str, Sequence[RunRecord]]) -> Iterator[Doubt]:
    if metric not in LATENCY_QUANTILES:
        return
    few = tuple(cell for cell, runs in by_cell.items() if runs and not _known(runs, metric))
    if few:
        yield NamedDoubt(code="few_samples", names=few, of=metric)


def _known(runs: Iterable[RunRecord], metric: str) -> list[float]:
    return [value for run in runs if (value := run.value(metric)) is not None]
