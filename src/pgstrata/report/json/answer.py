"""The answer on a study as a JSON document."""

from __future__ import annotations

from typing import Any

from pgstrata.model.answer import ALL_CELLS, Answer, Comparison, FactorEffect, Study
from pgstrata.model.experiment import Cell, Environment, Experiment
from pgstrata.model.metrics import METRICS
from pgstrata.model.plan import Plan
from pgstrata.report.answer.environment_rows import host_facts
from pgstrata.report.answer.run_seconds import seconds_json
from pgstrata.report.answer.slice_scatter import find_scatter
from pgstrata.report.json.causes import why_fields
from pgstrata.report.json.comparisons import axis_fields, comparison_fields, warning_fields
from pgstrata.report.json.fields import SCHEMA, pick_fields, render_document
from pgstrata.report.planning.components import SCATTER
from pgstrata.report.planning.floor import floor_json, floors_json, visible_effect
from pgstrata.report.sentences.reasons import say_why_so

_CELL = "identity workload scale clients threads protocol run rate"
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
        "axes": [axis_fields(axis, cell=_place(experiment, axis.cell)) for axis in answer.axes],
        "anomalies": [pick_fields(anomaly, _ANOMALY) for anomaly in answer.anomalies],
        "shift": _shifts(answer),
        "warnings": warning_fields(answer.warnings),
    }
    if why:
        document["why"] = why_fields(answer)
    return render_document(document)


def _rig(study: Study) -> dict[str, Any]:
    """The baseline's machine and the client; where a server is on another one, each environment's with its network."""
    rig: dict[str, Any] = {"host": dict(study.host.facts), "client": dict(study.client.facts)}
    experiment = study.plan.experiment
    if experiment.apart:
        rig["environments"] = {
            each.name: {
                "host": each.host.text,
                "facts": dict(host_facts(study, each)),
                "network": dict(study.networks[each.name].facts) if each.name in study.networks else {},
            }
            for each in experiment.environments
        }
    return rig


def _environment(environment: Environment) -> dict[str, Any]:
    return {
        "name": environment.name,
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


# ------------------------------------------------------------------------------------------------ design, floor


def _design(plan: Plan, cell: Cell) -> dict[str, Any]:
    design = plan.design(cell.identity)
    return {
        **pick_fields(design, "cell interleave"),
        "text": design.describe(cell.run),
        "reason": say_why_so(design),
        **pick_fields(design if design.sliced else None, "slice_seconds rounds discarded"),
    }


def _scatter(study: Study, cell: Cell) -> list[dict[str, Any]]:
    found = find_scatter(study, cell.identity)
    return [{**pick_fields(item, "environment cell"), **pick_fields(item.components, SCATTER)} for item in found]


# ------------------------------------------------------------------------------------------------ factors


def _effect(experiment: Experiment, effect: FactorEffect) -> dict[str, Any]:
    return {
        **pick_fields(effect, "kind factor level reference"),
        "given": dict(zip(("factor", "level", "reference"), effect.given, strict=True)) if effect.given else None,
        "cell": _place(experiment, effect.cell),
        **pick_fields(effect, "metric verdict effect interval blocks repeated_p decided_at"),
        "exploratory": True,
    }


# ------------------------------------------------------------------------------------------------ latency


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
        {"environment": environment, "cell": cell, "simultaneous": False, "quantiles": items}
        for (environment, cell), items in found.items()
    ]
