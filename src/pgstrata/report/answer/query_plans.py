"""Plans of the same statements that differ between environments, in words, blocks and fields."""

from __future__ import annotations

from typing import Any, Final

from pgstrata.diagnosis.query_plans import compare_plans
from pgstrata.model.answer import Answer
from pgstrata.model.query_plans import PlanDifference, PlannedWith, PlansCompared, QueryPlan
from pgstrata.report.blocks.model import Block, Listing, Section, Verbatim, begin
from pgstrata.report.json.fields import pick_fields
from pgstrata.report.sentences.names import count, name_both

_MOST_LINES: Final = 40
_STATEMENT_WIDTH: Final = 200
_PLAN: Final = "planned_with shape text"


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
    steady = "was not the same in all runs of an environment"
    texts += [f"the plan of {_printable(text, _STATEMENT_WIDTH)} {steady}" for text in item.unsteady]
    texts += [f"no plan of {_printable(text, _STATEMENT_WIDTH)}: {_printable(why)}" for text, why in item.unexplained]
    return texts


def plan_blocks(answer: Answer, environment: str, cell: str) -> tuple[Block, ...]:
    """Differing plans with both texts, then the others in a sentence."""
    found = compared_plans(answer, environment, cell)
    if found is None:
        return ()
    after, before = name_both(environment, found.reference, answer.study.plan.experiment)
    blocks: list[Block] = []
    for item in found.differences:
        blocks += [Listing((f"{begin(say_plan(item))}.",)), *plan_text_blocks(item, before, after)]
    others = tuple(f"{begin(text)}." for text in say_plans(found))
    return (*blocks, *([Listing(others)] if others else []))


def plan_text_blocks(item: PlanDifference, before: str, after: str) -> tuple[Block, ...]:
    """Both plans, each below the name of its environment."""
    texts = ((before, item.reference_plan), (after, item.plan))
    return tuple(Section(f"{name}:", (Verbatim("\n".join(plan_texts(plan))),)) for name, plan in texts)


def differing_plans(answer: Answer) -> list[PlanDifference]:
    """Those of all environments and cells that differ from the baseline's."""
    return [item for compared in _all_compared(answer) for item in compared.differences]


def plan_texts(plan: QueryPlan) -> list[str]:
    """The lines of a plan, without anything that cannot be printed; of a very long one the first."""
    lines = [_visible(line) for line in plan.text.splitlines()]
    left = len(lines) - _MOST_LINES
    return [*lines[:_MOST_LINES], f"... and {count(left, 'line')} more"] if left > 0 else lines


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
        **pick_fields(item, "environment reference cell alike"),
        "differences": [
            {
                **pick_fields(each, "statement=plan.statement changes"),
                "plan": pick_fields(each.plan, _PLAN),
                "reference_plan": pick_fields(each.reference_plan, _PLAN),
            }
            for each in item.differences
        ],
        "unsteady": list(item.unsteady),
        "unexplained": [{"statement": text, "why": why} for text, why in item.unexplained],
    }


def _visible(text: str) -> str:
    return "".join(mark if mark.isprintable() else " " if mark == "\t" else "?" for mark in text)


def _printable(text: str, width: int = 0) -> str:
    """In one line, without what cannot be printed."""
    line = _visible(" ".join(text.split()))
    return f"{line[: width - 3].rstrip()}..." if width and len(line) > width else line
