"""Every figure of an answer as one CSV table: a row for each comparison, percentile, statement, step, part of time."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from itertools import chain
from typing import TypedDict

from pgstrata.compare.one_look import ImportAnswer
from pgstrata.model.answer import Answer, Comparison, CpuFinding, FactorEffect, Interval, OrderedAxis
from pgstrata.model.attribution import Attribution, Contribution
from pgstrata.model.bisect import Bisection
from pgstrata.model.merged import Between, MergedAnswer
from pgstrata.model.runs import name_of_statement
from pgstrata.report.sentences.causes import PART_NAMES


class _Ends(TypedDict, total=False):
    """Of an interval, empty where there is none."""

    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberRow:
    """A row of the table; what does not apply is empty.

    `effect`, `low` and `high` are ratios to the reference (1.03 is 3 % more), for parts of time differences in seconds
    per transaction. `value` and `baseline_value` are in the base unit of the metric: 1/s, seconds, bytes.
    """

    kind: str
    part: str = ""
    environment: str
    reference: str
    cell: str
    metric: str
    item: str = ""
    verdict: str = ""
    effect: float | None = None
    low: float | None = None
    high: float | None = None
    confidence: float | None = None
    value: float | None = None
    baseline_value: float | None = None
    blocks: int | None = None
    decided_at: int | None = None
    p: float | None = None
    adjusted_p: float | None = None
    runs: int | None = None
    invalid: int | None = None
    exploratory: bool | None = None
    control: bool | None = None


def render_numbers(rows: Iterable[NumberRow]) -> str:
    """CSV with a header; numbers have all their digits."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    names = [each.name for each in fields(NumberRow)]
    writer.writerow(names)
    writer.writerows([_to_cell(getattr(row, name)) for name in names] for row in rows)
    return text.getvalue()


def _to_cell(value: str | float | None) -> str | float:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else value


def study_numbers(answer: Answer) -> Iterator[NumberRow]:
    """Comparisons of all metrics, pairs, factors, steps, percentiles, statements, CPU; parts of time if asked for."""
    baseline = answer.study.plan.experiment.baseline
    yield from (_comparison("comparison", item, baseline) for item in answer.comparisons)
    yield from (_comparison("pair", item, baseline) for item in answer.pairs)
    yield from map(_factor, answer.effects)
    yield from chain.from_iterable(map(_steps, answer.axes))
    yield from (_cpu(item, baseline) for item in answer.cpu_findings)
    for shift in answer.shifts:
        yield NumberRow(
            kind="percentile", environment=shift.environment, reference=baseline, cell=shift.cell, metric=shift.metric,
            verdict=shift.verdict.value, effect=shift.effect, **_ends(shift.interval), confidence=1 - shift.level,
            value=shift.value, baseline_value=shift.baseline_value, blocks=shift.blocks, exploratory=True,
        )  # fmt: skip
    for each in answer.statement_shifts:
        yield NumberRow(
            kind="statement", environment=each.environment, reference=baseline, cell=each.cell, metric=each.metric,
            item=name_of_statement(each.statement) or each.statement, verdict=each.verdict.value, effect=each.effect,
            **_ends(each.interval), confidence=1 - each.level, value=each.value, baseline_value=each.baseline_value,
            blocks=each.blocks, decided_at=each.decided_at, exploratory=True,
        )  # fmt: skip
    yield from chain.from_iterable(map(_times, answer.attributions))


def merged_numbers(answer: MergedAnswer) -> Iterator[NumberRow]:
    """Comparisons within each part, then differences between parts."""
    experiment = answer.parts[0].study.plan.experiment
    for each in answer.comparisons:
        yield _comparison("comparison", each.comparison, experiment.baseline, each.part)
    for kind, items in (("difference between parts", answer.effects), ("value between parts", answer.levels)):
        yield from (_between(kind, item, experiment.metric) for item in items)


def import_numbers(answer: ImportAnswer) -> Iterator[NumberRow]:
    """Comparisons of a table of other tools' results, and steps along its environments."""
    yield from (_comparison("comparison", item, answer.question.baseline) for item in answer.comparisons)
    yield from chain.from_iterable(map(_steps, answer.axes))


def search_numbers(found: Bisection) -> Iterator[NumberRow]:
    """The comparisons of a search: of the ends, then of each level."""
    for step in (found.ends, *found.steps):
        if step.comparison is not None:
            yield _comparison("comparison", step.comparison, found.levels[0], environment=step.level)


def _comparison(kind: str, item: Comparison, baseline: str, part: str = "", *, environment: str = "") -> NumberRow:
    return NumberRow(
        kind=kind, part=part, environment=environment or item.environment, reference=item.reference or baseline,
        cell=item.cell, metric=item.metric, verdict=item.verdict.value, effect=item.effect, **_ends(item.interval),
        confidence=item.confidence, value=item.value, baseline_value=item.baseline_value, blocks=item.blocks,
        decided_at=item.decided_at, p=item.repeated_p, adjusted_p=item.adjusted_p, runs=item.runs,
        invalid=item.invalid, exploratory=item.exploratory, control=item.control,
    )  # fmt: skip


def _ends(interval: Interval | None) -> _Ends:
    return _Ends() if interval is None else _Ends(low=interval.low, high=interval.high)


def _factor(item: FactorEffect) -> NumberRow:
    given = f"{item.given[0]} = {item.given[1]} instead of {item.given[2]}" if item.given else ""
    return NumberRow(
        kind=item.kind.value, environment=f"{item.factor} = {item.level}",
        reference=f"{item.factor} = {item.reference}", cell=item.cell, metric=item.metric, item=given,
        verdict=item.verdict.value, effect=item.effect,
        **_ends(item.interval), blocks=item.blocks, decided_at=item.decided_at, p=item.repeated_p, exploratory=True,
    )  # fmt: skip


def _steps(axis: OrderedAxis) -> Iterator[NumberRow]:
    for step in axis.steps:
        yield NumberRow(
            kind="step", environment=step.after, reference=step.before, cell=axis.cell, metric=axis.metric,
            item=axis.factor, verdict=step.verdict.value, effect=step.effect, **_ends(step.interval), p=step.p,
            blocks=axis.blocks, exploratory=True,
        )  # fmt: skip


def _cpu(item: CpuFinding, baseline: str) -> NumberRow:
    return NumberRow(
        kind="server CPU to client CPU", environment=item.environment, reference=baseline, cell=", ".join(item.cells),
        metric="", verdict=item.verdict.value, effect=item.effect, **_ends(item.interval), confidence=1 - item.level,
        blocks=item.blocks, decided_at=item.decided_at, p=item.repeated_p, control=item.control,
    )  # fmt: skip


def _times(item: Attribution) -> Iterator[NumberRow]:
    yield _time(item, item.total, "whole")
    for each in item.parts:
        yield _time(item, each, each.event or ("" if each.part is None else PART_NAMES[each.part]))


def _time(item: Attribution, part: Contribution, name: str) -> NumberRow:
    low, high = (part.interval.low, part.interval.high) if part.interval is not None else (None, None)
    return NumberRow(
        kind="time per transaction", environment=item.environment, reference=item.reference, cell=item.cell,
        metric="seconds", item=name, verdict="" if part.resolved else "unresolved", effect=part.difference, low=low,
        high=high, value=part.value, baseline_value=part.reference, blocks=item.blocks, exploratory=True,
    )  # fmt: skip


def _between(kind: str, item: Between, metric: str) -> NumberRow:
    return NumberRow(
        kind=kind, part=item.part, environment=item.environment, reference=item.reference, cell="", metric=metric,
        verdict=item.verdict.value, effect=item.effect, **_ends(item.interval), blocks=item.values, exploratory=True,
    )  # fmt: skip
