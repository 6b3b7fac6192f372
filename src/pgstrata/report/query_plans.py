"""Plans of the same statements that differ between environments, in words, lines and fields."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from textwrap import wrap
from typing import Any, Final

from pgstrata.diagnosis.query_plans import compare_plans
from pgstrata.model.answer import Answer
from pgstrata.model.query_plans import PlanDifference, PlannedWith, PlansCompared, QueryPlan
from pgstrata.report.columns import WIDTH, wrap_text
from pgstrata.report.names import count, name_cell, name_environment

_MOST_LINES: Final = 40
_MOST_PARTS: Final = 60
_STATEMENT_WIDTH: Final = 200
_PLAN: Final = "      "


def compared_plans(answer: Answer, environment: str, cell: str) -> PlansCompared | None:
    """The plans of an environment beside the baseline's; None where one of both has none."""
    study = answer.study
    baseline = study.plan.experiment.baseline
    return compare_plans(study.query_plans, environment=environment, reference=baseline, cell=cell)


def say_plan(item: PlanDifference) -> str:
    """The plan of UPDATE ... differs: Index Scan using ... -> Seq Scan on ..."""
    text = f"the plan of {_printable(item.plan.statement, _STATEMENT_WIDTH)} differs: {'; '.join(item.changes)}"
    if item.plan.planned_with is not item.reference_plan.planned_with:
        asked = {PlannedWith.PARAMETERS: "parameters of any value", PlannedWith.VALUES: "one value of each variable"}
        text += f" (planned for {asked[item.plan.planned_with]}, before for {asked[item.reference_plan.planned_with]})"
    return _printable(text)


def say_plans(item: PlansCompared) -> list[str]:
    """What else there is to be said: how many are alike, which changed from run to run, which could not be had."""
    texts = []
    if item.alike:
        verb = "has the same plan" if item.alike == 1 else "have the same plans"
        texts.append(f"{count(item.alike, 'statement')} {verb} in both")
    texts += [f"the plan of {_printable(text, _STATEMENT_WIDTH)} was not the same in all runs of an environment"
              for text in item.unsteady]  # fmt: skip
    texts += [f"no plan of {_printable(text, _STATEMENT_WIDTH)}: {_printable(why)}" for text, why in item.unexplained]
    return texts


def plan_lines(answer: Answer, environment: str, cell: str) -> list[str]:
    """For `show --why`: differing plans with both texts, then the others in a sentence; at most 78 columns."""
    found = compared_plans(answer, environment, cell)
    if found is None:
        return []
    experiment = answer.study.plan.experiment
    names = (name_environment(experiment.environment(name), experiment) for name in (found.reference, environment))
    before, after = names
    lines: list[str] = []
    for item in found.differences:
        lines += _wrap(say_plan(item))
        for name, plan in ((before, item.reference_plan), (after, item.plan)):
            lines += [*wrap_text(f"{name}:", WIDTH, first="    ", rest="    "), *_plan_text(plan)]
    for text in say_plans(found):
        lines += _wrap(text)
    return lines


def plan_texts(plan: QueryPlan) -> list[str]:
    """The lines of a plan, without anything that cannot be printed; of a very long one the first."""
    lines = [_visible(line) for line in plan.text.splitlines()]
    left = len(lines) - _MOST_LINES
    return [*lines[:_MOST_LINES], f"... and {count(left, 'line')} more"] if left > 0 else lines


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanPart:
    """A plan that differs: where, how, and both texts with the names of their environments, the baseline's first."""

    title: str
    said: str
    texts: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSheets:
    """Plans that differ, for the HTML report; `left` are not among them."""

    parts: tuple[PlanPart, ...]
    left: int


def make_plan_sheets(answer: Answer) -> PlanSheets:
    """The plans of all environments and cells that differ from the baseline's."""
    found = [item for compared in _all_compared(answer) for item in compared.differences]
    return PlanSheets(
        parts=tuple(_part(answer, item) for item in found[:_MOST_PARTS]), left=max(0, len(found) - _MOST_PARTS)
    )


def _part(answer: Answer, item: PlanDifference) -> PlanPart:
    experiment = answer.study.plan.experiment
    before, after = (
        name_environment(experiment.environment(name), experiment) for name in (item.reference, item.environment)
    )
    said = say_plan(item)
    return PlanPart(
        title=f"{after} against {before}: {name_cell(experiment.cell(item.cell), experiment)}",
        said=f"{said[:1].upper()}{said[1:]}",
        texts=tuple(
            (name, "\n".join(plan_texts(plan))) for name, plan in ((before, item.reference_plan), (after, item.plan))
        ),
    )


def plan_fields(answer: Answer) -> list[dict[str, Any]]:
    """For the JSON document: each environment and cell that has plans."""
    return [_fields(item) for item in _all_compared(answer)]


def _all_compared(answer: Answer) -> list[PlansCompared]:
    experiment = answer.study.plan.experiment
    found = (
        compared_plans(answer, environment.name, cell.identity)
        for environment in experiment.environments
        if environment.name != experiment.baseline
        for cell in experiment.cells
    )
    return [item for item in found if item is not None]


def _fields(item: PlansCompared) -> dict[str, Any]:
    return {
        "environment": item.environment,
        "reference": item.reference,
        "cell": item.cell,
        "alike": item.alike,
        "differences": [
            {
                "statement": each.plan.statement,
                "changes": list(each.changes),
                "plan": _plan_fields(each.plan),
                "reference_plan": _plan_fields(each.reference_plan),
            }
            for each in item.differences
        ],
        "unsteady": list(item.unsteady),
        "unexplained": [{"statement": text, "why": why} for text, why in item.unexplained],
    }


def _plan_fields(plan: QueryPlan) -> dict[str, Any]:
    return {"planned_with": plan.planned_with.value, "shape": list(plan.shape), "text": plan.text}


def _wrap(text: str) -> list[str]:
    return wrap_text(f"{text[:1].upper()}{text[1:]}.", WIDTH, first="- ", rest="  ")


def _plan_text(plan: QueryPlan) -> Iterable[str]:
    for line in plan_texts(plan):
        indent = _PLAN + " " * min(len(line) - len(line.lstrip()), WIDTH // 2)
        yield from wrap(line.strip(), WIDTH, initial_indent=indent, subsequent_indent=f"{indent}    ")


def _visible(text: str) -> str:
    return "".join(mark if mark.isprintable() else " " if mark == "\t" else "?" for mark in text)


def _printable(text: str, width: int = 0) -> str:
    """In one line, without what cannot be printed."""
    line = _visible(" ".join(text.split()))
    return f"{line[: width - 3].rstrip()}..." if width and len(line) > width else line
