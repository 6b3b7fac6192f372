"""Attributions and accounts as fields of the JSON document: seconds per transaction, or the base unit of a metric."""

from __future__ import annotations

from typing import Any

from pgstrata.model.answer import Answer
from pgstrata.model.attribution import Attribution, LevelAccount, Unattributed
from pgstrata.report.answer.queries import query_fields
from pgstrata.report.answer.query_plans import plan_fields
from pgstrata.report.json.fields import pick_fields
from pgstrata.report.sentences.causes import say_obstacle

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
