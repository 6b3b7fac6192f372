"""Attributions and accounts as fields of the JSON document: seconds per transaction, or the base unit of a metric."""

from __future__ import annotations

from typing import Any

from pgstrata.model.answer import Answer
from pgstrata.model.attribution import Attribution, Contribution, CountedUse, LevelAccount, Origin, ValueInterval
from pgstrata.report.answer.queries import query_fields
from pgstrata.report.answer.query_plans import plan_fields


def why_fields(answer: Answer) -> dict[str, Any]:
    """What `show --why` shows, in full."""
    return {
        "attributions": [_attribution(item) for item in answer.attributions],
        "unattributed": [
            {"environment": item.environment, "reference": item.reference, "cell": item.cell, "why": item.why,
             "remedy": item.remedy}
            for item in answer.unattributed
        ],
        "accounts": [_account(item) for item in answer.accounts],
        "plans": plan_fields(answer),
        "queries": query_fields(answer),
    }  # fmt: skip


def _attribution(item: Attribution) -> dict[str, Any]:
    return {
        "environment": item.environment,
        "reference": item.reference,
        "cell": item.cell,
        "method": item.method.value,
        "blocks": item.blocks,
        "samples": item.samples,
        "origin": _origin(item.origin),
        "total": _contribution(item.total),
        "parts": [_contribution(each) for each in item.parts],
        "queries": [_contribution(each) for each in item.queries],
        "rows": [_contribution(each) for each in item.rows],
        "causes": [_contribution(each) for each in item.causes],
        "beside": [_beside(each) for each in item.beside],
        "processes": [_contribution(each) for each in item.processes],
    }


def _origin(item: Origin) -> dict[str, Any]:
    return {"source": item.source.value, "hertz": item.hertz, "statement_samples": item.statement_samples}


def _contribution(item: Contribution) -> dict[str, Any]:
    return {
        "part": item.part.value if item.part is not None else None,
        "event": item.event,
        "query": item.query,
        "value": item.value,
        "reference": item.reference,
        "difference": item.difference,
        "interval": _span(item.interval),
        "resolved": item.resolved,
        "samples": item.samples,
        "blocker": item.blocker,
        "place": item.place,
        "process": item.process,
    }


def _beside(item: CountedUse) -> dict[str, Any]:
    return {
        "metric": item.metric,
        "value": item.value,
        "reference": item.reference,
        "difference": item.difference,
        "interval": _span(item.interval),
        "blocks": item.blocks,
    }


def _span(span: ValueInterval | None) -> list[float] | None:
    return None if span is None else [span.low, span.high]


def _account(item: LevelAccount) -> dict[str, Any]:
    return {
        "environment": item.environment,
        "cell": item.cell,
        "blocks": item.blocks,
        "method": item.method.value,
        "seconds": item.account.seconds,
        "samples": item.account.samples,
        "origin": _origin(item.account.origin),
        "rows": [
            {"part": row.part.value, "event": row.event, "seconds": row.seconds, "samples": row.samples}
            for row in item.account.rows
        ],
    }
