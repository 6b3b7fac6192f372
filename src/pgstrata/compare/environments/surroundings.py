"""Doubts that hold for a whole study: what its host and environments are, and what its runs never contained.

What belongs here: warnings for which one look at the study is enough, because they hold for all its runs alike. What
differs between two arms is said with their comparison (`doubts`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from pgstrata.model.answer import ResultWarning, Study
from pgstrata.model.experiment import Cell
from pgstrata.model.metrics import LATENCY_QUANTILES
from pgstrata.model.runs import RunRecord, RunStatus, Validity

# Read without a system call (vDSO): the processor's own counter, and the ones that hypervisors and arm64 offer.
_FAST_CLOCKS: Final = frozenset(
    {"tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter", "timebase", "tod"}
)
_LITTLE_WAL: Final = 100.0
_WHOLE_CYCLES: Final = 2.0
_STATUS: Final = "settings.huge_pages_status"


def surrounding_warnings(study: Study) -> tuple[ResultWarning, ...]:
    """Warnings about host, environments and cells of a study, each at most once.

    Codes: these_machines, few_clients, clock_source, thp_always, cpu_governor, huge_pages_fallback, checkpoint_free,
    cut_cycles, few_samples.
    """
    cells = study.plan.experiment.cells
    by_cell = {
        cell.identity: [run for run in study.runs if run.cell == cell.identity and _usable(run)] for cell in cells
    }
    return (
        *_of_machines(study),
        *_of_host(study.host.facts, cells, _set_everywhere(study)),
        *_of_pages(study),
        *_of_checkpoints(cells, by_cell),
        *_of_samples(study.plan.experiment.metric, cells, by_cell),
    )


def _of_machines(study: Study) -> Iterator[ResultWarning]:
    """One machine of each kind says nothing about the kinds, however often it is measured."""
    hosts = study.plan.experiment.hosts
    if len(hosts) > 1:
        names = " and ".join(host.text for host in hosts)
        text = (
            f"the answer is about these machines ({names}), not about machines like them: one of each was measured, "
            "and the way from the client to each is part of it"
        )
        yield ResultWarning(code="these_machines", text=text)


def _set_everywhere(study: Study) -> frozenset[str]:
    """Keys of layers that all environments ask for: what the host had before does not matter."""
    asked = [frozenset(environment.layers) for environment in study.plan.experiment.environments]
    return frozenset.intersection(*asked) if asked else frozenset()


def _of_host(facts: Mapping[str, str], cells: Sequence[Cell], given: frozenset[str]) -> Iterator[ResultWarning]:
    cpus = facts.get("host.cpus", "")
    if facts.get("host.virtual") and cpus.isdecimal():
        few = [cell.identity for cell in cells if cell.clients < int(cpus)]
        if few:
            text = (
                f"fewer clients than CPUs ({cpus}) on a virtual machine ({facts['host.virtual']}): waking up an idle "
                f"CPU may cost more than the work: {', '.join(few)}"
            )
            yield ResultWarning(code="few_clients", text=text)
    clock = facts.get("host.clocksource", "")
    if clock and clock not in _FAST_CLOCKS:
        text = f"the clock source is {clock}: each look at the clock is a system call, in client and server"
        yield ResultWarning(code="clock_source", text=text)
    if facts.get("host.thp") == "always" and "thp" not in given:
        text = "transparent huge pages are always on: the kernel may stop a process to find or make a huge page"
        yield ResultWarning(code="thp_always", text=text)
    governor = facts.get("host.governor", "performance")
    if governor != "performance" and "cpu.governor" not in given:
        text = f"the CPU's frequency governor is {governor}: light load may run at a lower frequency than heavy load"
        yield ResultWarning(code="cpu_governor", text=text)


def _of_pages(study: Study) -> Iterator[ResultWarning]:
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
        text = f"huge pages were asked for, and the server got none: {', '.join(without)}"
        yield ResultWarning(code="huge_pages_fallback", text=text)
    if silent:
        text = f"huge_pages = try, and before 17 a server does not say what it got: {', '.join(silent)}"
        yield ResultWarning(code="huge_pages_fallback", text=text)


def _of_checkpoints(cells: Sequence[Cell], by_cell: Mapping[str, Sequence[RunRecord]]) -> Iterator[ResultWarning]:
    """The label of cells that write: without checkpoints, or with a piece of a cycle."""
    free, cut = [], []
    for cell in cells:
        wal = _known(by_cell[cell.identity], "wal_per_tx")
        checkpoints = _known(by_cell[cell.identity], "checkpoints")
        if not checkpoints or not wal or max(wal) <= _LITTLE_WAL:
            continue
        if max(checkpoints) == 0:
            free.append(cell.identity)
        elif min(checkpoints) < _WHOLE_CYCLES:
            cut.append(cell.identity)
    if free:
        text = (
            f"checkpoint-free: no run of {', '.join(free)} contained a checkpoint, so that neither its writes nor the "
            "full-page images after it are in the figures"
        )
        yield ResultWarning(code="checkpoint_free", text=text)
    if cut:
        text = f"fewer than two checkpoint cycles in runs of {', '.join(cut)}: where they were cut is in the figures"
        yield ResultWarning(code="cut_cycles", text=text)


def _of_samples(
    metric: str, cells: Sequence[Cell], by_cell: Mapping[str, Sequence[RunRecord]]
) -> Iterator[ResultWarning]:
    if metric not in LATENCY_QUANTILES:
        return
    few = [cell.identity for cell in cells if by_cell[cell.identity] and not _known(by_cell[cell.identity], metric)]
    if few:
        text = (
            f"no {metric.removeprefix('latency_')} of {', '.join(few)}: fewer than 100 sampled transactions lie beyond "
            "it in any run; longer runs have more"
        )
        yield ResultWarning(code="few_samples", text=text)


def _usable(run: RunRecord) -> bool:
    return run.status is RunStatus.COMPLETED and run.validity is not Validity.INVALID


def _known(runs: Iterable[RunRecord], metric: str) -> list[float]:
    return [value for run in runs if (value := run.value(metric)) is not None]
