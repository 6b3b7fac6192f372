"""The answer as JSON: schema number 1. Fields are added, never changed, within one schema number."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from pgstrata.model.anomaly import Anomaly
from pgstrata.model.answer import (
    ALL_CELLS,
    Answer,
    AxisStep,
    Comparison,
    FactorEffect,
    Interval,
    OrderedAxis,
    QuantileShift,
    ResultWarning,
    Study,
)
from pgstrata.model.experiment import Cell, Environment, Experiment
from pgstrata.model.metrics import METRICS
from pgstrata.model.plan import Plan
from pgstrata.report.floor import floor_json, floors_json, visible_effect
from pgstrata.report.scatter import find_scatter

SCHEMA = 1


def answer_json(answer: Answer) -> str:
    """One JSON document; numbers that are none become null."""
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
        "rig": {"host": dict(study.host.facts), "client": dict(study.client.facts)},
        "floor": floor_json(plan, answer.comparisons),
        "floors": floors_json(plan, answer.comparisons),
        "designs": [_design(plan, cell) for cell in experiment.cells],
        "scatter": [entry for cell in experiment.cells for entry in _scatter(study, cell)],
        "effects": [_effect(experiment, effect) for effect in answer.effects],
        "axes": [_axis(experiment, axis) for axis in answer.axes],
        "anomalies": [_anomaly(anomaly) for anomaly in answer.anomalies],
        "shift": _shifts(answer),
        "warnings": [_warning(warning) for warning in answer.warnings],
    }
    return json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def _environment(environment: Environment) -> dict[str, Any]:
    return {
        "name": environment.name,
        "levels": {level.factor: level.value for level in environment.levels},
        "control": environment.control.value if environment.control is not None else None,
    }


def _place(experiment: Experiment, cell: str) -> dict[str, Any] | str:
    return cell if cell == ALL_CELLS else _cell(experiment.cell(cell))


def _cell(cell: Cell) -> dict[str, Any]:
    return {
        "identity": cell.identity,
        "workload": cell.workload,
        "scale": cell.scale,
        "clients": cell.clients,
        "threads": cell.threads,
        "protocol": cell.protocol.value,
        "run": _number(cell.run),
        "rate": _number(cell.rate),
    }


def _comparison(plan: Plan, comparison: Comparison) -> dict[str, Any]:
    experiment = plan.experiment
    reference = comparison.reference or experiment.baseline
    return {
        "environment": _environment(experiment.environment(comparison.environment)),
        "reference": reference,
        "cell": _place(experiment, comparison.cell),
        "metric": comparison.metric,
        "direction": METRICS[comparison.metric].direction.value,
        "verdict": comparison.verdict.value,
        "effect": _number(comparison.effect),
        "interval": _interval(comparison.interval),
        "equivalence_interval": _interval(comparison.equivalence_interval),
        "confidence": comparison.confidence,
        "level": comparison.level,
        "lane": comparison.lane.value,
        "repeated_p": _number(comparison.repeated_p),
        "adjusted_p": _number(comparison.adjusted_p),
        "blocks": comparison.blocks,
        "planned_blocks": comparison.planned_blocks,
        "decided_at": comparison.decided_at,
        "smallest_visible_effect": visible_effect(plan, comparison),
        "runs": comparison.runs,
        "invalid": comparison.invalid,
        "value": _number(comparison.value),
        "baseline_value": _number(comparison.baseline_value),
        "exploratory": comparison.exploratory,
        "control": comparison.control,
        "warnings": [_warning(warning) for warning in comparison.warnings],
    }


# ------------------------------------------------------------------------------------------------ design, floor


def _design(plan: Plan, cell: Cell) -> dict[str, Any]:
    design = plan.design(cell.identity)
    return {
        "cell": cell.identity,
        "interleave": design.interleave.value,
        "text": design.describe(cell.run),
        "reason": design.reason,
        "slice_seconds": design.slice_seconds if design.sliced else None,
        "rounds": design.rounds if design.sliced else None,
        "discarded": design.discarded if design.sliced else None,
    }


def _scatter(study: Study, cell: Cell) -> list[dict[str, Any]]:
    return [
        {
            "environment": item.environment,
            "cell": item.cell,
            "visits": item.components.visits,
            "rounds": item.components.rounds,
            "sd_rounds": _number(item.components.sigma_round),
            "sd_visits": _number(item.components.sigma_visit),
            "sd_between_visits": _number(item.components.sigma_start),
            "sd_between_visits_upper": _number(item.components.sigma_start_upper),
        }
        for item in find_scatter(study, cell.identity)
    ]


# ------------------------------------------------------------------------------------------------ factors


def _effect(experiment: Experiment, effect: FactorEffect) -> dict[str, Any]:
    return {
        "kind": effect.kind.value,
        "factor": effect.factor,
        "level": effect.level,
        "reference": effect.reference,
        "given": _given(effect),
        "cell": _place(experiment, effect.cell),
        "metric": effect.metric,
        "verdict": effect.verdict.value,
        "effect": _number(effect.effect),
        "interval": _interval(effect.interval),
        "blocks": effect.blocks,
        "repeated_p": _number(effect.repeated_p),
        "decided_at": effect.decided_at,
        "exploratory": True,
    }


def _given(effect: FactorEffect) -> Mapping[str, str] | None:
    if effect.given is None:
        return None
    factor, level, reference = effect.given
    return {"factor": factor, "level": level, "reference": reference}


def _axis(experiment: Experiment, axis: OrderedAxis) -> dict[str, Any]:
    return {
        "factor": axis.factor,
        "levels": list(axis.levels),
        "cell": _place(experiment, axis.cell),
        "metric": axis.metric,
        "steps": [_step(step) for step in axis.steps],
        "p": _number(axis.p),
        "trend_p": _number(axis.trend_p),
        "blocks": axis.blocks,
    }


def _step(step: AxisStep) -> dict[str, Any]:
    return {
        "before": step.before,
        "after": step.after,
        "effect": _number(step.effect),
        "interval": _interval(step.interval),
        "p": _number(step.p),
    }


def _anomaly(anomaly: Anomaly) -> dict[str, Any]:
    return {
        "kind": anomaly.kind.value,
        "environment": anomaly.environment,
        "cell": anomaly.cell,
        "witness": anomaly.witness,
        "metric": anomaly.metric,
        "effect": _number(anomaly.effect),
        "blocks": list(anomaly.blocks),
        "outcome": anomaly.outcome.value,
        "new_blocks": list(anomaly.new_blocks),
        "asked": anomaly.asked,
        "again": _number(anomaly.again),
    }


# ------------------------------------------------------------------------------------------------ latency


def _shifts(answer: Answer) -> list[dict[str, Any]]:
    """The shift function, an entry for each environment and cell."""
    found: dict[tuple[str, str], list[QuantileShift]] = {}
    for shift in answer.shifts:
        found.setdefault((shift.environment, shift.cell), []).append(shift)
    return [
        {
            "environment": environment,
            "cell": cell,
            "simultaneous": False,
            "quantiles": [_quantile(item) for item in items],
        }
        for (environment, cell), items in found.items()
    ]


def _quantile(shift: QuantileShift) -> dict[str, Any]:
    return {
        "metric": shift.metric,
        "quantile": shift.quantile,
        "threshold": shift.threshold,
        "verdict": shift.verdict.value,
        "effect": _number(shift.effect),
        "interval": _interval(shift.interval),
        "confidence": 1 - shift.level,
        "level": shift.level,
        "blocks": shift.blocks,
        "value": _number(shift.value),
        "baseline_value": _number(shift.baseline_value),
    }


# ------------------------------------------------------------------------------------------------ numbers


def _interval(interval: Interval | None) -> list[float] | None:
    if interval is None or not (math.isfinite(interval.low) and math.isfinite(interval.high)):
        return None
    return [interval.low, interval.high]


def _number(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _warning(warning: ResultWarning) -> dict[str, str]:
    return {"code": warning.code, "text": warning.text}
