"""The answer on a study as a JSON document: comparisons, axes, doubts as sentences, and what `--why` adds.

Times of attributions are seconds per transaction, what is counted beside them is in the base unit of its metric.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from pgstrata.compare.ladders import LadderEnd, find_ladder_ends
from pgstrata.compare.sustained import find_sustained_rates
from pgstrata.model.answer import (
    ALL_CELLS,
    Answer,
    Comparison,
    CpuFinding,
    FactorEffect,
    LoadFinding,
    LoadTrend,
    OrderedAxis,
    StatementShift,
    SustainedRate,
)
from pgstrata.model.attribution import Attribution, LevelAccount, Unattributed
from pgstrata.model.doubts import Doubt
from pgstrata.model.experiment import HERE, Cell, Environment, Experiment, name_hosts
from pgstrata.model.metrics import METRICS
from pgstrata.model.plan import Plan
from pgstrata.model.price import Worth
from pgstrata.model.runs import name_of_statement
from pgstrata.model.study import Study
from pgstrata.report.answer.environment_rows import host_facts
from pgstrata.report.answer.notes import find_scatter, seconds_json
from pgstrata.report.answer.queries import plan_fields, query_fields
from pgstrata.report.json.documents import SCHEMA, pick_fields, render_document
from pgstrata.report.planning.floor import floor_json, floors_json, visible_effect
from pgstrata.report.sentences.causes import say_obstacle
from pgstrata.report.sentences.findings import say_doubt
from pgstrata.report.sentences.reasons import say_reason, say_why_so
from pgstrata.sources.rates import maximum_key
from pgstrata.units import Direction

_COMPARISON: Final = (
    "verdict effect interval equivalence_interval confidence level lane repeated_p adjusted_p blocks planned_blocks "
    "decided_at"
)


def warning_fields(doubts: Iterable[Doubt]) -> list[dict[str, str]]:
    """Code and sentence of each."""
    return [{"code": doubt.code, "text": say_doubt(doubt)} for doubt in doubts]


def comparison_fields(
    item: Comparison,
    *,
    environment: Mapping[str, Any],
    reference: str,
    cell: Mapping[str, Any] | str,
    direction: Direction,
    visible: float | None = None,
) -> dict[str, Any]:
    """A comparison.

    Args:
        item: what was compared.
        environment: the environment, in full.
        reference: name of what it is compared with.
        cell: the cell, in full, or that it is all of them.
        direction: which values of the metric are better.
        visible: the smallest effect, as a share, that the comparison could have shown; None where nobody knows.
    """
    return {
        "environment": environment,
        "reference": reference,
        "cell": cell,
        "metric": item.metric,
        "direction": direction.value,
        **pick_fields(item, _COMPARISON),
        "smallest_visible_effect": visible,
        **pick_fields(item, "runs invalid value baseline_value exploratory control"),
        "warnings": warning_fields(item.warnings),
    }


def axis_fields(axis: OrderedAxis, *, cell: Mapping[str, Any] | str) -> dict[str, Any]:
    """An ordered axis; `cell` as in `comparison_fields`."""
    return {
        **pick_fields(axis, "factor levels"),
        "cell": cell,
        "metric": axis.metric,
        "steps": [pick_fields(step, "before after effect interval beside p verdict") for step in axis.steps],
        **pick_fields(axis, "p smallest_p out_of_reach trend_p blocks"),
    }


_CELL = "identity workload scale=stated_scale clients threads protocol run rate rate_share objective=objective_text"
_ANOMALY = "kind environment cell witness metric effect blocks following"


def answer_json(answer: Answer, *, why: bool = False) -> str:
    """One JSON document; numbers that are none become null. `why`: attributions were asked for."""
    study = answer.study
    plan = study.plan
    experiment = plan.experiment
    document = {
        "schema": SCHEMA,
        "study": study.name,
        "question": experiment.question,
        "baseline": _environment(experiment.environment(experiment.baseline)),
        "metric": experiment.metric,
        "threshold": experiment.threshold,
        **({"declared": True} if experiment.synthetic is not None else {}),
        "comparisons": [_comparison(plan, comparison) for comparison in answer.comparisons],
        "pairs": [_comparison(plan, comparison) for comparison in answer.pairs],
        "rig": _rig(study),
        "floor": floor_json(plan, answer.comparisons),
        "floors": floors_json(plan, answer.comparisons),
        "refreshed": None,
        "designs": [_design(plan, cell) for cell in experiment.cells],
        "scatter": [entry for cell in experiment.cells for entry in _scatter(study, cell)],
        "seconds": [entry for cell in experiment.cells if (entry := seconds_json(study, cell.identity)) is not None],
        "effects": [_effect(experiment, effect) for effect in answer.effects],
        "cpu_findings": [_by_cpu(experiment, item) for item in answer.cpu_findings],
        "axes": [axis_fields(axis, cell=_place(experiment, axis.cell)) for axis in answer.axes],
        "sustained": [_sustained(item) for item in find_sustained_rates(study)],
        "rates": [_rate(study, cell) for cell in experiment.cells if cell.rate_share is not None],
        "worth": worth_fields(answer.worth),
        "ladders": [_ladder(end) for end in find_ladder_ends(study)],
        "load_findings": [_by_load(experiment, item) for item in answer.load_findings],
        "load_trends": [_trend(experiment, item) for item in answer.load_trends],
        "anomalies": [pick_fields(anomaly, _ANOMALY) for anomaly in answer.anomalies],
        "shift": _shifts(answer),
        "statements": [_statement(item) for item in answer.statement_shifts],
        "warnings": warning_fields(answer.warnings),
    }
    if why:
        document["why"] = why_fields(answer)
    return render_document(document)


def worth_fields(worth: Worth | None) -> dict[str, Any] | None:
    """Costs and values for the money; the interval of a cost is that of the rate, with its ends exchanged."""
    if worth is None:
        return None
    return {
        "costs": [
            {
                **pick_fields(cost, "environment cells blocks rate interval confidence dominated_by"),
                "price": pick_fields(cost.price, "amount currency as_of includes source"),
                "per_unit": cost.per_unit(cost.rate),
                "of_a_million": cost.of_a_million(cost.rate),
                "of_a_million_interval": sorted(map(cost.of_a_million, cost.interval)) if cost.interval else None,
            }
            for cost in worth.costs
        ],
        "findings": [
            pick_fields(
                finding,
                "environment cells metric price_ratio verdict effect interval blocks decided_at repeated_p",
            )
            for finding in worth.findings
        ],
        "unpriced": list(worth.unpriced),
    }


def _rate(study: Study, cell: Cell) -> dict[str, Any]:
    """The rate of a cell that is a share of the slowest maximum; null where nothing was measured yet."""
    names = [each.name for each in study.plan.experiment.environments]
    maxima = {name: study.maxima.get(maximum_key(name, cell)) for name in names}
    return {"cell": cell.identity, "share": cell.rate_share, "rate": study.rates.get(cell.identity), "maxima": maxima}


def _ladder(end: LadderEnd) -> dict[str, Any]:
    """Cells by identity; what was climbed as a list, because numbers are no keys."""
    climbed = {
        name: [{"clients": clients, "tps": tps} for clients, tps in rates.items()]
        for name, rates in end.climbed.items()
    }
    return {
        "cells": [cell.identity for cell in end.cells],
        "left_out": [cell.identity for cell in end.beyond],
        "fallen": end.fallen,
        "climbed": climbed,
    }


def _sustained(item: SustainedRate) -> dict[str, Any]:
    return pick_fields(item, "environment cell objective=objective.text value interval confidence runs")


def _by_load(experiment: Experiment, item: LoadFinding) -> dict[str, Any]:
    """An environment along a curve over clients."""
    return {
        "environment": _environment(experiment.environment(item.environment)),
        "ranges": [pick_fields(each, "first last verdict effect interval blocks") for each in item.ranges],
        "drops": [pick_fields(each, "fewer more effect interval blocks") for each in item.drops],
        **pick_fields(item, "cells clients metric collapsed_from p reachable blocks"),
    }


def _trend(experiment: Experiment, item: LoadTrend) -> dict[str, Any]:
    """An environment along clients or scale."""
    return {
        "environment": _environment(experiment.environment(item.environment)),
        **pick_fields(item, "axis cells levels metric verdict effect interval first last blocks"),
    }


def _rig(study: Study) -> dict[str, Any]:
    """The baseline's machine and the client; where a server is on another one, each environment's with its network."""
    rig: dict[str, Any] = {"host": dict(study.host.facts), "client": dict(study.client.facts)}
    experiment = study.plan.experiment
    if experiment.elsewhere:
        rig["environments"] = {
            each.name: {
                "host": each.host.text,
                **({} if each.client_hosts == HERE else {"client": name_hosts(each.client_hosts)}),
                "facts": dict(host_facts(study, each)),
                "network": dict(study.networks[each.name].facts) if each.name in study.networks else {},
            }
            for each in experiment.environments
        }
    return rig


def _environment(environment: Environment) -> dict[str, Any]:
    return {
        **pick_fields(environment, "name label"),
        "levels": {level.factor: level.value for level in environment.levels},
        **pick_fields(environment, "control"),
    }


def _place(experiment: Experiment, cell: str) -> dict[str, Any] | str:
    return cell if cell == ALL_CELLS else pick_fields(experiment.cell(cell), _CELL)


def _comparison(plan: Plan, comparison: Comparison) -> dict[str, Any]:
    experiment = plan.experiment
    return comparison_fields(
        comparison,
        environment=_environment(experiment.environment(comparison.environment)),
        reference=comparison.reference or experiment.baseline,
        cell=_place(experiment, comparison.cell),
        direction=METRICS[comparison.metric].direction,
        visible=visible_effect(plan, comparison),
    )


def _design(plan: Plan, cell: Cell) -> dict[str, Any]:
    design = plan.design(cell.identity)
    return {
        **pick_fields(design, "cell interleave"),
        "text": design.describe(cell.run, plan.experiment.environments),
        "reason": say_why_so(design),
        "placement": str(design.placement),
        "free_because": "" if design.free_because is None else say_reason(design.free_because),
        **pick_fields(design if design.sliced else None, "slice_seconds rounds discarded"),
    }


def _scatter(study: Study, cell: Cell) -> list[dict[str, Any]]:
    found = find_scatter(study, cell.identity)
    return [{**pick_fields(item, "environment cell"), **pick_fields(item.components, _SCATTER)} for item in found]


def _effect(experiment: Experiment, effect: FactorEffect) -> dict[str, Any]:
    return {
        **pick_fields(effect, "kind factor level reference"),
        "given": dict(zip(("factor", "level", "reference"), effect.given, strict=True)) if effect.given else None,
        "cell": _place(experiment, effect.cell),
        **pick_fields(effect, "metric verdict effect interval blocks repeated_p decided_at"),
        "exploratory": True,
    }


_SCATTER = (
    "visits rounds sd_rounds=sigma_round sd_visits=sigma_visit sd_between_visits=sigma_start "
    "sd_between_visits_upper=sigma_start_upper"
)
_CPU_FINDING = "verdict effect interval level repeated_p blocks decided_at control alone"
_SIZE = "metric verdict effect interval"


def _by_cpu(experiment: Experiment, item: CpuFinding) -> dict[str, Any]:
    return {
        "environment": item.environment,
        "reference": experiment.baseline,
        "cells": list(item.cells),
        **pick_fields(item, _CPU_FINDING),
        "sizes": [pick_fields(size, _SIZE) for size in (item.server_cpu, item.client_cpu, item.throughput)],
    }


def _shifts(answer: Answer) -> list[dict[str, Any]]:
    """The shift function, an entry for each environment and cell."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for shift in answer.shifts:
        fields = {
            **pick_fields(shift, "metric quantile threshold verdict effect interval"),
            "confidence": 1 - shift.level,
            **pick_fields(shift, "level blocks value baseline_value"),
        }
        found.setdefault((shift.environment, shift.cell), []).append(fields)
    return [
        {"environment": environment, "cell": cell, "simultaneous": True, "quantiles": items}
        for (environment, cell), items in found.items()
    ]


def _statement(item: StatementShift) -> dict[str, Any]:
    """A statement of a cell with a profile, of one environment against the baseline."""
    return {
        **pick_fields(item, "environment cell statement number"),
        "name": name_of_statement(item.statement) or None,
        **pick_fields(item, "metric verdict effect interval level blocks decided_at value baseline_value"),
    }


_ORIGIN = "source hertz statement_samples"
_CONTRIBUTION = "part event query value reference difference interval resolved samples blocker place process"


def why_fields(answer: Answer) -> dict[str, Any]:
    """What `show --why` shows, in full."""
    return {
        "attributions": [_attribution(item) for item in answer.attributions],
        "unattributed": [_unattributed(item) for item in answer.unattributed],
        "accounts": [_account(item) for item in answer.accounts],
        "plans": plan_fields(answer),
        "queries": query_fields(answer),
    }


def _unattributed(item: Unattributed) -> dict[str, Any]:
    why, remedy = say_obstacle(item)
    return {**pick_fields(item, "environment reference cell"), "why": why, "remedy": remedy}


def _attribution(item: Attribution) -> dict[str, Any]:
    lists = {"parts": item.parts, "queries": item.queries, "rows": item.rows, "causes": item.causes}
    return {
        **pick_fields(item, "environment reference cell method blocks samples"),
        "origin": pick_fields(item.origin, _ORIGIN),
        "total": pick_fields(item.total, _CONTRIBUTION),
        **{name: [pick_fields(each, _CONTRIBUTION) for each in rows] for name, rows in lists.items()},
        "beside": [pick_fields(each, "metric value reference difference interval blocks") for each in item.beside],
        "processes": [pick_fields(each, _CONTRIBUTION) for each in item.processes],
    }


def _account(item: LevelAccount) -> dict[str, Any]:
    return {
        **pick_fields(item, "environment cell blocks method"),
        **pick_fields(item.account, "seconds samples"),
        "origin": pick_fields(item.account.origin, _ORIGIN),
        "rows": [pick_fields(row, "part event seconds samples") for row in item.account.rows],
    }
