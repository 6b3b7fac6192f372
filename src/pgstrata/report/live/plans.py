"""Plans of statements in two windows: in sentences, as blocks with both outlines, for programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pgstrata.model.explanation import Explanation, Outcome
from pgstrata.model.query_plans import LivePlans, PlanChange, PlanProblem, PlanSource, SeenPlan
from pgstrata.report.blocks.model import Block, Listing, Paragraph, Section, Tone, Verbatim, begin, end
from pgstrata.report.json.documents import pick_fields
from pgstrata.report.live.words import local, name_statement
from pgstrata.report.sentences.causes import readable, readable_lines
from pgstrata.report.sentences.names import count
from pgstrata.units import shorten

_TOLD: Final = 0.1
"""Share of the time that came by slower calls, or of the load, from which on a plan is told in the answer."""
_MOST_TOLD: Final = 3
_MOST_SHOWN: Final = 6
_MOST_LINES: Final = 40
_WIDTH: Final = 300
_PROBLEMS: Final[Mapping[str, str]] = {
    PlanProblem.ELSEWHERE: "it runs in another database than the recorder's",
    PlanProblem.CONSTANTS: "its text has constants or several statements",
    PlanProblem.LENGTH: "its text is too long",
    PlanProblem.TEXT: "pg_stat_statements has no text of it",
    PlanProblem.SUPERUSER: (
        "the recorder's role is a superuser, and planning could run functions of other users with its rights"
    ),
}
_NOTE: Final = (
    "Plans are generic ones, for parameters of any value. The recorder asks for them about once a minute, by EXPLAIN "
    "(GENERIC_PLAN) with the rights of its role. Sessions may have used other plans for their values. Plans that "
    "auto_explain logged are those of executions slower than its limit."
)
_SEEN: Final = "first last outline=plan.outline"


def say_when(after: float, by: float) -> str:
    """Between 13:30:05 and 13:31:05."""
    return f"between {local(after):%H:%M:%S} and {local(by):%H:%M:%S}"


def plan_sentences(why: Explanation, texts: Mapping[str, str]) -> Iterator[str]:
    """Changed plans of statements that became slower or that a cause names, without full stops."""
    if why.calls:
        parts = {change.statement: change.by_latency for change in why.calls}
        slower = sum(max(0.0, part) for part in parts.values())
    else:
        parts = {row.statement: row.difference for row in why.statements}
        slower = why.load.value - why.load.reference
    named = {key for cause in why.causes for key in cause.statements}
    if why.outcome in {Outcome.SAME, Outcome.UNKNOWN, Outcome.FEWER}:
        return
    told = [
        change
        for change in why.plans.changes
        if change.statement in named or (slower > 0 and parts.get(change.statement, 0.0) >= _TOLD * slower)
    ]
    for change in told[:_MOST_TOLD]:
        yield say_plan_change(change, texts)


def say_plan_change(change: PlanChange, texts: Mapping[str, str]) -> str:
    """The plan of select ... changed between 13:30:05 and 13:31:05: Index Scan using a on t -> Seq Scan on t."""
    said = shorten(readable("; ".join(change.changes)), _WIDTH)
    name = name_statement(change.statement, texts)
    if change.value.source is PlanSource.LOGGED:
        name += " that auto_explain logged most often"
    if change.after is None or change.by is None:
        return f"The plan of {name} differs: {said}"
    return f"The plan of {name} changed {say_when(change.after, change.by)}: {said}"


def plan_blocks(plans: LivePlans, texts: Mapping[str, str], note: str = _NOTE) -> Iterator[Block]:
    """Changed plans with both outlines, then how many are alike, and which are not known; `note` says what they are."""
    blocks: list[Block] = []
    for change in plans.changes[:_MOST_SHOWN]:
        blocks.append(Listing((end(say_plan_change(change, texts)),)))
        blocks += [_outline("before:", change.reference), _outline("window:", change.value)]
    others = tuple(end(text) for text in _say_others(plans, texts))
    if others:
        blocks.append(Listing(others))
    if blocks:
        yield Section("Plans", (*blocks, Paragraph(note, Tone.NOTE)))


def _outline(title: str, seen: SeenPlan) -> Section:
    return Section(title, (Verbatim("\n".join(readable_lines(seen.plan.outline, _MOST_LINES))),))


def _say_others(plans: LivePlans, texts: Mapping[str, str]) -> Iterator[str]:
    if (left := len(plans.changes) - _MOST_SHOWN) > 0:
        yield f"The plans of {count(left, 'other statement')} changed as well"
    if plans.alike:
        verb = "has" if plans.alike == 1 else "have"
        yield f"{count(plans.alike, 'statement')} {verb} the same plan in both"
    for each in plans.unknown[:_MOST_SHOWN]:
        yield begin(f"no plan of {name_statement(each.statement, texts)}: {_say_problem(each)}")
    if (left := len(plans.unknown) - _MOST_SHOWN) > 0:
        yield f"No plans of {count(left, 'other statement')} either"


def _say_problem(seen: SeenPlan) -> str:
    problem = seen.plan.problem
    return _PROBLEMS.get(problem) or readable(problem)


def plans_json(plans: LivePlans) -> Mapping[str, Any]:
    """The same for programs."""
    return {
        "alike": plans.alike,
        "changes": [
            {
                **pick_fields(change, "statement source=value.source changes after by"),
                "value": pick_fields(change.value, _SEEN),
                "reference": pick_fields(change.reference, _SEEN),
            }
            for change in plans.changes
        ],
        "unknown": [pick_fields(each, "statement problem=plan.problem") for each in plans.unknown],
    }
