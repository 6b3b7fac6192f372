"""Statements of two environments: more calls or slower calls, and plans that differ; in words, blocks and fields."""

from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

from pgstrata.compare.causes.queries import compare_queries
from pgstrata.diagnosis.queries import compare_plans
from pgstrata.model.answer import Answer
from pgstrata.model.experiment import ServerKind
from pgstrata.model.queries import QueriesCompared
from pgstrata.model.query_plans import PlanDifference, PlannedWith, PlansCompared
from pgstrata.report.blocks.model import Block, Column, Listing, Paragraph, Section, Table, Tone, Verbatim, begin
from pgstrata.report.json.documents import pick_fields
from pgstrata.report.sentences.causes import half_of, name_query, readable, readable_lines
from pgstrata.report.sentences.names import count, name_both
from pgstrata.units import shorten

_Compared = TypeVar("_Compared", QueriesCompared, PlansCompared)
_MOST_ROWS: Final = 12
_QUERY_WIDTH: Final = 36
_MICROSECOND: Final = 1e-6
EXTENSION: Final = "pg_stat_statements"
_HOW: Final = (
    "Calls and latencies of single statements are not known: load pg_stat_statements in all environments, by "
    'settings.shared_preload_libraries = "pg_stat_statements" below [common]; it has its cost in each.'
)
_HOW_RUNNING: Final = (
    "Calls and latencies of single statements are not known: pg_stat_statements is not loaded in the running servers, "
    "or may not be read."
)
_HOW_LOADED: Final = (
    "Calls and latencies of single statements are not known: pg_stat_statements is loaded, but pgstrata may not create "
    "or read it, or no two runs of a block have its counts."
)
_FIELDS: Final = "query calls reference_calls latency reference_latency difference interval by_calls by_latency"
_OFF: Final = "Calls and latencies of single statements are not kept with `{} = false`."


def compared_queries(answer: Answer, environment: str, cell: str) -> QueriesCompared | None:
    """The statements of an environment beside the baseline's; None where one of the two has no counts."""
    baseline = answer.study.plan.experiment.baseline
    return compare_queries(answer.study.runs, environment=environment, reference=baseline, cell=cell)


def query_blocks(answer: Answer, environment: str, cell: str) -> tuple[Block, ...]:
    """A table of statements, or why there is none."""
    found = compared_queries(answer, environment, cell)
    if found is None:
        return (Listing((_say_missing(answer),)),)
    lost = tuple(f"Runs are left out here: {text}." for text in found.lost)
    return (*(_table(found) if found.changes else ()), *([Listing(lost)] if lost else []))


def query_fields(answer: Answer) -> list[dict[str, Any]]:
    """For the JSON document: each environment and cell that has counts; seconds, and calls per transaction."""
    return [
        {
            **pick_fields(item, "environment reference cell blocks"),
            "queries": [pick_fields(change, _FIELDS) for change in item.changes],
            "lost": list(item.lost),
        }
        for item in _compare_all(answer, compared_queries)
    ]


def _compare_all(answer: Answer, compare: Callable[[Answer, str, str], _Compared | None]) -> list[_Compared]:
    """What is compared with the baseline, in each environment and cell that has something."""
    experiment = answer.study.plan.experiment
    found = (
        compare(answer, environment.name, cell.identity)
        for environment in experiment.environments
        if environment.name != experiment.baseline
        for cell in experiment.cells
    )
    return [item for item in found if item is not None]


def _say_missing(answer: Answer) -> str:
    experiment = answer.study.plan.experiment
    off = [name for name in ("diagnosis", "query_text") if not getattr(experiment, name)]
    if off:
        return _OFF.format(off[0])
    own = [each for each in experiment.environments if each.server.kind is not ServerKind.DSN]
    if not own:
        return _HOW_RUNNING
    if not all(each.loads(EXTENSION) for each in own):
        return _HOW
    return _HOW_LOADED if len(own) == len(experiment.environments) else _HOW_RUNNING


def _table(found: QueriesCompared) -> Iterator[Block]:
    shown, left = found.changes[:_MOST_ROWS], found.changes[_MOST_ROWS:]
    columns = (
        Column(title="calls", cells=tuple(f"{change.reference_calls:.2f}" for change in shown)),
        Column(title="after", cells=tuple(f"{change.calls:.2f}" for change in shown)),
        Column(title="µs a call", cells=tuple(_micro(change.reference_latency) for change in shown)),
        Column(title="after", cells=tuple(_micro(change.latency) for change in shown)),
        Column(title="by calls", cells=tuple(_change(change.by_calls) for change in shown)),
        Column(title="by latency", cells=tuple(_change(change.by_latency) for change in shown)),
        Column(title="±", cells=tuple(_micro(half_of(each.interval)) if each.interval else "" for each in shown)),
    )
    names = Column(title="µs per transaction", cells=tuple(name_query(change.query, _QUERY_WIDTH) for change in shown))
    yield Table(names=names, columns=columns)
    if left:
        rest = sum(change.difference for change in left)
        yield Paragraph(f"And {count(len(left), 'statement')} more, {_change(rest)} µs together.", Tone.NOTE)
    yield Paragraph(
        f"As pg_stat_statements counted them, means over {count(found.blocks, 'block')}; the ± is that of both changes "
        "together, at 95 %.",
        Tone.NOTE,
    )


def _micro(seconds: float) -> str:
    return f"{seconds / _MICROSECOND:,.1f}"


def _change(seconds: float) -> str:
    return f"{seconds / _MICROSECOND:+,.1f}"


_MOST_LINES: Final = 40
_STATEMENT_WIDTH: Final = 200
_PLAN: Final = "planned_with shape text"


def compared_plans(answer: Answer, environment: str, cell: str) -> PlansCompared | None:
    """The plans of an environment beside the baseline's; None where one of the two has none."""
    study = answer.study
    baseline = study.plan.experiment.baseline
    return compare_plans(study.query_plans, environment=environment, reference=baseline, cell=cell)


def say_plan(item: PlanDifference) -> str:
    """The plan of UPDATE ... differs: Index Scan using ... -> Seq Scan on ..."""
    text = f"the plan of {_name(item.plan.statement)} differs: {'; '.join(item.changes)}"
    if item.plan.planned_with is not item.reference_plan.planned_with:
        asked = {PlannedWith.PARAMETERS: "parameters of any value", PlannedWith.VALUES: "one value of each variable"}
        text += f" (planned for {asked[item.plan.planned_with]}, before for {asked[item.reference_plan.planned_with]})"
    return readable(text)


def say_plans(item: PlansCompared) -> list[str]:
    """What else there is to be said: how many are alike, which changed from run to run, which could not be had."""
    texts = []
    if item.alike:
        verb = "has the same plan" if item.alike == 1 else "have the same plans"
        texts.append(f"{count(item.alike, 'statement')} {verb} in both")
    steady = "was not the same in all runs of an environment"
    texts += [f"the plan of {_name(text)} {steady}" for text in item.unsteady]
    texts += [f"no plan of {_name(text)}: {readable(why)}" for text, why in item.unexplained]
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
    return tuple(
        Section(f"{name}:", (Verbatim("\n".join(readable_lines(plan.text.splitlines(), _MOST_LINES))),))
        for name, plan in texts
    )


def differing_plans(answer: Answer) -> list[PlanDifference]:
    """Those of all environments and cells that differ from the baseline's."""
    return [item for compared in _compare_all(answer, compared_plans) for item in compared.differences]


def plan_fields(answer: Answer) -> list[dict[str, Any]]:
    """For the JSON document: each environment and cell that has plans."""
    return [
        {
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
        for item in _compare_all(answer, compared_plans)
    ]


def _name(statement: str) -> str:
    return shorten(readable(statement), _STATEMENT_WIDTH)
