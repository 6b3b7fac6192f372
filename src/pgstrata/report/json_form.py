"""The answer as JSON: schema number 1. Fields are added, never changed, within one schema number."""

from __future__ import annotations

import json
import math
from typing import Any

from pgstrata.model.answer import Answer, Comparison, Interval, ResultWarning
from pgstrata.model.experiment import Cell, Environment, Experiment
from pgstrata.model.metrics import METRICS

SCHEMA = 1


def answer_json(answer: Answer) -> str:
    """One JSON document; numbers that are none become null."""
    study = answer.study
    experiment = study.plan.experiment
    document = {
        "schema": SCHEMA,
        "study": study.name,
        "question": experiment.question,
        "baseline": _environment(experiment.environment(experiment.baseline)),
        "metric": experiment.metric,
        "threshold": experiment.threshold,
        "comparisons": [_comparison(experiment, comparison) for comparison in answer.comparisons],
        "rig": {"host": dict(study.host.facts), "client": dict(study.client.facts)},
        "floor": None,
        "warnings": [_warning(warning) for warning in answer.warnings],
    }
    return json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def _environment(environment: Environment) -> dict[str, Any]:
    return {
        "name": environment.name,
        "levels": {level.factor: level.value for level in environment.levels},
        "control": environment.control.value if environment.control is not None else None,
    }


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


def _comparison(experiment: Experiment, comparison: Comparison) -> dict[str, Any]:
    cell = comparison.cell
    return {
        "environment": _environment(experiment.environment(comparison.environment)),
        "cell": cell if cell == "all" else _cell(experiment.cell(cell)),
        "metric": comparison.metric,
        "direction": METRICS[comparison.metric].direction.value,
        "verdict": comparison.verdict.value,
        "effect": _number(comparison.effect),
        "interval": _interval(comparison.interval),
        "equivalence_interval": _interval(comparison.equivalence_interval),
        "confidence": comparison.confidence,
        "repeated_p": None,
        "blocks": comparison.blocks,
        "decided_at": None,
        "runs": comparison.runs,
        "invalid": comparison.invalid,
        "value": _number(comparison.value),
        "baseline_value": _number(comparison.baseline_value),
        "exploratory": comparison.exploratory,
        "warnings": [_warning(warning) for warning in comparison.warnings],
    }


def _interval(interval: Interval | None) -> list[float] | None:
    if interval is None or not (math.isfinite(interval.low) and math.isfinite(interval.high)):
        return None
    return [interval.low, interval.high]


def _number(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _warning(warning: ResultWarning) -> dict[str, str]:
    return {"code": warning.code, "text": warning.text}
