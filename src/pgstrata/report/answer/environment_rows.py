"""A study arranged for showing: one row per environment in each cell, runs by validity, facts of the rig."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from pgstrata.compare import exclusive_settings
from pgstrata.compare.headlines import primary_comparisons
from pgstrata.model.answer import Answer, Comparison
from pgstrata.model.experiment import Cell, Environment
from pgstrata.model.metrics import METRICS
from pgstrata.model.runs import RunRecord, RunStatus, Validity
from pgstrata.model.study import Study
from pgstrata.report.blocks.model import NO_RESULT, Fact, Facts
from pgstrata.report.sentences.names import name_environment
from pgstrata.report.sentences.verdicts import name_reference
from pgstrata.sources.runs import may_enter
from pgstrata.units import render_bytes, render_value

# Facts of a machine that readers look for, and one that is long.
_FIRST = ("cpu", "cpus", "memory", "kernel", "os", "model")
_RANKS = {name: place for place, name in enumerate((*_FIRST, "", "cmdline"))}
# The parts of a transaction's cost that belong beside every throughput, and what TPC-C counts.
COSTS = (
    "server_cpu_per_tx",
    "client_cpu_per_tx",
    "client_share",
    "latency_p95",
    "wal_per_tx",
    "new_orders",
    "power",
    "checkpoint_trough",
)
COUNTED = frozenset({"new_orders", "power"})
"""Those that are no cost of a transaction, but its throughput in another count."""
COST_TITLES: Mapping[str, str] = {
    "server_cpu_per_tx": "server CPU",
    "client_cpu_per_tx": "client CPU",
    "client_share": "client share",
    "latency_p95": "p95 latency",
    "wal_per_tx": "WAL",
    "new_orders": "new orders",
    "power": "queries by geometric mean",
    "checkpoint_trough": "checkpoint trough",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentRow:
    """One environment in one cell: medians over its usable runs, and its comparison (None for the baseline)."""

    environment: Environment
    name: str
    runs: int
    value: float | None
    costs: tuple[float | None, ...]
    comparison: Comparison | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CellRows:
    """All environments of one cell, in the order of the experiment."""

    cell: Cell
    rows: tuple[EnvironmentRow, ...]


def arrange_cells(answer: Answer) -> tuple[CellRows, ...]:
    """The primary metric and its costs, cell by cell."""
    experiment = answer.study.plan.experiment
    found = {(item.environment, item.cell): item for item in primary_comparisons(answer)}
    runs = usable_runs(answer.study)
    return tuple(
        CellRows(
            cell=cell,
            rows=tuple(
                EnvironmentRow(
                    environment=environment,
                    name=name_environment(environment, experiment),
                    runs=len(runs[key]),
                    value=median_of(runs[key], experiment.metric),
                    costs=tuple(median_of(runs[key], metric) for metric in COSTS),
                    comparison=found.get(key),
                )
                for environment in experiment.environments
                for key in ((environment.name, cell.identity),)
            ),
        )
        for cell in experiment.cells
    )


def usable_runs(study: Study) -> defaultdict[tuple[str, str], list[RunRecord]]:
    """Those that may enter a comparison, by environment and cell; none where there are none."""
    runs: defaultdict[tuple[str, str], list[RunRecord]] = defaultdict(list)
    for run in study.runs:
        if may_enter(run):
            runs[run.environment, run.cell].append(run)
    return runs


def arrange_pairs(answer: Answer) -> tuple[EnvironmentRow, ...]:
    """All pairs of environments, where they were asked for; named with what they are compared with."""
    experiment = answer.study.plan.experiment
    return tuple(comparison_row(answer, item, f" against {name_reference(item, experiment)}") for item in answer.pairs)


def comparison_row(answer: Answer, comparison: Comparison, suffix: str = "") -> EnvironmentRow:
    """One comparison by itself."""
    experiment = answer.study.plan.experiment
    environment = experiment.environment(comparison.environment)
    return EnvironmentRow(
        environment=environment,
        name=f"{name_environment(environment, experiment)}{suffix}",
        runs=comparison.runs,
        value=comparison.value,
        costs=(),
        comparison=comparison,
    )


def median_of(runs: Iterable[RunRecord], metric: str) -> float | None:
    """Median of a metric over runs; None without a value."""
    found = [value for run in runs for value in (run.value(metric),) if value is not None and math.isfinite(value)]
    return median(found) if found else None


def render_measurement(value: float | None, metric: str) -> str:
    """A value in its unit, without the unit that the column says already."""
    if value is None:
        return NO_RESULT
    return render_value(value, METRICS[metric].unit).removesuffix("/s").removesuffix("/tx")


def unusual_runs(study: Study) -> tuple[RunRecord, ...]:
    """Suspect, invalid and failed runs, invalid ones first, in the order of execution."""
    found = [run for run in study.runs if run.validity is not Validity.VALID or run.status is not RunStatus.COMPLETED]
    return tuple(sorted(found, key=lambda run: (may_enter(run), run.started)))


def render_status(run: RunRecord) -> str:
    """collapsed, failed, or how valid the run is."""
    return str(run.validity) if run.status is RunStatus.COMPLETED else str(run.status)


def setup_overhead(study: Study) -> list[tuple[str, Sequence[float]]]:
    """Seconds that each step around the measured windows took, run by run; the costliest step first."""
    steps: dict[str, list[float]] = defaultdict(list)
    for run in study.runs:
        for step, seconds in run.dead_time.items():
            steps[step].append(seconds)
    return sorted(steps.items(), key=lambda item: -sum(item[1]))


def rig_facts(study: Study) -> tuple[Fact, ...]:
    """The machine as it was observed, CPU, kernel and memory first, then the client where it was another one."""
    if study.plan.experiment.elsewhere:
        return _apart_facts(study)
    facts = _machine_facts(study.host.facts)
    client = {name: value for name, value in study.client.facts.items() if study.host.facts.get(name) != value}
    if study.client.facts and not client:
        return (*facts, Fact(name="client", value="on the same machine"))
    return (*facts, *(Fact(name=f"client: {fact.name}", value=fact.value) for fact in _machine_facts(client)))


def host_facts(study: Study, environment: Environment) -> Mapping[str, str]:
    """What was observed of the machine of an environment's server, from its first start on."""
    found = study.environments.get(environment.name)
    facts = found.facts if found is not None else {}
    return {name: value for name, value in facts.items() if name.startswith("host.")}


def _apart_facts(study: Study) -> tuple[Fact, ...]:
    """The client, then each machine on which servers ran, with the way to it."""
    rows = [Fact(name=f"client: {fact.name}", value=fact.value) for fact in _machine_facts(study.client.facts)]
    experiment = study.plan.experiment
    for spec in experiment.hosts:
        environment = experiment.on_host(spec).environments[0]
        seen = _machine_facts(host_facts(study, environment))
        rows += [Fact(name=f"{spec.text}: {fact.name}", value=fact.value) for fact in seen]
        if not environment.apart:
            rows.append(Fact(name=f"{spec.text}: client", value="on the same machine"))
        if (network := study.networks.get(environment.name)) is not None:
            rows.append(Fact(name=f"{spec.text}: network", value=_say_network(network.facts)))
    return tuple(rows)


def _say_network(facts: Mapping[str, str]) -> str:
    trip, offset = (_seconds(facts, name) for name in ("round_trip", "clock_offset"))
    if "network.round_trip" not in facts:
        return f"its clock was {offset:+.3f} s off the client's"
    return f"round trip {trip * 1e3:.2f} ms; its clock was {offset:+.3f} s off this machine's"


def _seconds(facts: Mapping[str, str], name: str) -> float:
    """NaN where nobody can read it, as in a study that somebody changed."""
    try:
        return float(facts.get(f"network.{name}", "nan"))
    except ValueError:
        return math.nan


def _machine_facts(found: Mapping[str, str]) -> tuple[Fact, ...]:
    host = {name.removeprefix("host.").removeprefix("client."): value for name, value in found.items()}
    if "memory" in host:
        host["memory"] = _render_memory(host["memory"])
    names = sorted(host, key=lambda name: _RANKS.get(name, len(_FIRST)))
    return tuple(Fact(name=name, value=host[name]) for name in names)


def _render_memory(text: str) -> str:
    number, _, unit = text.partition(" ")
    return render_bytes(float(number) * 1024) if number.isdecimal() and unit == "kB" else text


def group_servers(study: Study) -> tuple[Facts, ...]:
    """What the servers said of themselves, each below the names of the environments that have it."""
    experiment = study.plan.experiment
    groups: dict[tuple[Fact, ...], list[str]] = {}
    for environment in observed_environments(study):
        told = study.environments[environment.name].facts
        names = [name for name in ("version", "supplier", "compiler") if told.get(f"server.{name}")]
        if facts := tuple(Fact(name=name, value=told[f"server.{name}"]) for name in names):
            groups.setdefault(facts, []).append(name_environment(environment, experiment))
    return tuple(Facts(facts, title="; ".join(names)) for facts, names in groups.items())


def asked_settings(study: Study) -> tuple[tuple[Fact, ...], Mapping[str, tuple[Fact, ...]]]:
    """Settings asked for in all environments alike, and by environment name those that are not."""
    environments = study.plan.experiment.environments
    common = dict(environments[0].settings) if environments else {}
    for environment in environments:
        common = {name: value for name, value in common.items() if environment.settings.get(name) == value}
    own = {
        environment.name: _facts({name: value for name, value in environment.settings.items() if name not in common})
        for environment in environments
    }
    return _facts(common), {name: facts for name, facts in own.items() if facts}


def _facts(values: Mapping[str, str]) -> tuple[Fact, ...]:
    return tuple(Fact(name=name, value=value) for name, value in sorted(values.items()))


def differing_facts(study: Study) -> tuple[tuple[str, tuple[str | None, ...]], ...]:
    """Facts that are not the same in all observed environments, with the value in each (None: not there).

    Settings that a whole server does not have are not among them: `exclusive_settings` names those.
    """
    exclusive = {name for _, names in exclusive_settings(study.environments, study.plan.experiment) for name in names}
    left_out = {f"settings.{name}" for name in exclusive}
    facts = [study.environments[item.name].facts for item in observed_environments(study)]
    names = sorted({name for found in facts for name in found if not name.startswith("asked.")} - left_out)
    rows = [(name, tuple(found.get(name) for found in facts)) for name in names]
    return tuple((name, values) for name, values in rows if len(set(values)) > 1)


def observed_environments(study: Study) -> tuple[Environment, ...]:
    """Environments that have a fingerprint, in the order of the experiment: the columns of `differing_facts`."""
    return tuple(item for item in study.plan.experiment.environments if item.name in study.environments)
