"""Why environments differ, for the HTML report: a waterfall, a sentence and tables for each difference."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pgstrata.model.answer import Answer, OrderedAxis
from pgstrata.model.attribution import Attribution, Contribution, CountedUse, LevelAccount
from pgstrata.report.contributions import choose_decimals, choose_unit, half_of, name_query, name_row, render_half
from pgstrata.report.drawing import Figure
from pgstrata.report.names import count, name_cell, name_environment, name_factor
from pgstrata.report.ordered import axis_groups, primary_axes
from pgstrata.report.timeparts import stack_levels
from pgstrata.report.waterfalls import Stack, draw_stacks, draw_waterfall
from pgstrata.report.why import (
    METHOD_NOTES,
    choose_rows,
    is_clear,
    name_among_rows,
    name_beside,
    name_state,
    render_amount,
    say_attribution,
    say_causes,
    say_left,
    say_missing,
    say_samples,
)
from pgstrata.report.words import capitalise

_MOST_DRAWN: Final = 12
_MOST_OPEN: Final = 4
_MOST_TOLD: Final = 60
_MOST_LEVELS: Final = 6
_MOST_MISSING: Final = 20
_LONGEST_TITLE: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyLine:
    """One line of a table, as text; `whole` is the statement where `name` may have cut it."""

    name: str
    whole: str
    before: str
    after: str
    change: str
    half: str
    samples: str
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyPart:
    """What is shown of one difference: `lines` are its parts and their sum, `rows` the same by statement.

    `beside` is what was counted, `processes` what others than sessions did.
    """

    title: str
    said: str
    causes: str
    figure: Figure | None
    unit: str
    lines: tuple[WhyLine, ...]
    rows: tuple[WhyLine, ...]
    rows_left: str
    beside: tuple[WhyLine, ...]
    processes: tuple[WhyLine, ...]
    processes_left: str
    note: str
    open: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WhySheet:
    """All differences that were split, the largest first; `left` are not shown, `missing` could not be split."""

    parts: tuple[WhyPart, ...]
    left: int
    levels: tuple[Figure, ...]
    missing: tuple[str, ...]
    missing_left: int


def make_why(answer: Answer) -> WhySheet:
    """What is shown of why; nothing where nobody asked."""
    ranked = sorted(answer.attributions, key=_relative_size, reverse=True)
    return WhySheet(
        parts=tuple(_part(answer, item, place) for place, item in enumerate(ranked[:_MOST_TOLD])),
        left=max(0, len(ranked) - _MOST_TOLD),
        levels=tuple(_draw_levels(answer)),
        missing=tuple(capitalise(say_missing(answer, item)) for item in answer.unattributed[:_MOST_MISSING]),
        missing_left=max(0, len(answer.unattributed) - _MOST_MISSING),
    )


def _relative_size(item: Attribution) -> float:
    return abs(item.total.difference) / item.total.reference if item.total.reference > 0 else 0.0


def _part(answer: Answer, item: Attribution, place: int) -> WhyPart:
    experiment = answer.study.plan.experiment
    reference, name = (
        name_environment(experiment.environment(each), experiment) for each in (item.reference, item.environment)
    )
    size, unit = choose_unit(max(item.total.value, item.total.reference))
    several = len({row.query for row in item.rows if row.query}) > 1
    rows, left = choose_rows(item.rows) if several else ([], [])
    others, others_left = choose_rows(item.processes)
    title = f"{name} against {reference}: {name_cell(experiment.cell(item.cell), experiment)}"
    causes = say_causes(item)
    return WhyPart(
        title=title,
        said=capitalise(say_attribution(answer, item)),
        causes=f"{causes[:1].upper()}{causes[1:]}",
        figure=draw_waterfall(item, (reference, name), title) if place < _MOST_DRAWN else None,
        unit=unit,
        lines=_lines([*item.parts, item.total], size),
        rows=_lines(rows, size, name_among_rows),
        rows_left=say_left(left, size, unit) if left else "",
        beside=tuple(map(_beside_line, item.beside)),
        processes=_lines(others, size),
        processes_left=say_left(others_left, size, unit) if others_left else "",
        note=f"{say_samples(item)}; {METHOD_NOTES[item.method]}",
        open=place < _MOST_OPEN,
    )


def _lines(
    items: Sequence[Contribution], size: float, name: Callable[[Contribution], str] = name_row
) -> tuple[WhyLine, ...]:
    halves = [half_of(item.interval) / size for item in items if half_of(item.interval) > 0]
    digits = choose_decimals(min(halves, default=1.0))
    return tuple(
        WhyLine(
            name=name(item), whole=name_query(item.query, _LONGEST_TITLE),
            before=f"{item.reference / size:.{digits}f}", after=f"{item.value / size:.{digits}f}",
            change=f"{item.difference / size:+.{digits}f}", half=render_half(item, size, digits),
            samples=f"{item.samples:,}", state=name_state(resolved=item.resolved),
        )
        for item in items
    )  # fmt: skip


def _beside_line(item: CountedUse) -> WhyLine:
    before, after, change, half = (
        render_amount(value, item.metric)
        for value in (item.reference, item.value, item.difference, half_of(item.interval))
    )
    return WhyLine(
        name=name_beside(item), whole="", before=before, after=after, change=change, half=half, samples="",
        state=name_state(resolved=is_clear(item)),
    )  # fmt: skip


# ------------------------------------------------------------------------------------------------ levels


def _draw_levels(answer: Answer) -> list[Figure]:
    """Along each ordered factor the stacked time per transaction, cell by cell, all else being equal."""
    experiment = answer.study.plan.experiment
    factors: dict[str, OrderedAxis] = {}
    for axis in primary_axes(answer):
        factors.setdefault(axis.factor, axis)
    figures: list[Figure] = []
    for axis in factors.values():
        for cell in experiment.cells:
            found = {item.environment: item for item in answer.accounts if item.cell == cell.identity}
            for group in axis_groups(experiment, axis):
                named = {level: found[name] for level, name in zip(axis.levels, group, strict=True) if name in found}
                if len(named) > 1 and len(figures) < _MOST_LEVELS:
                    figures.append(_draw_group(answer, axis, name_cell(cell, experiment), group, named))
    return figures


def _draw_group(
    answer: Answer, axis: OrderedAxis, cell: str, group: Sequence[str], named: Mapping[str, LevelAccount]
) -> Figure:
    experiment = answer.study.plan.experiment
    slabs = stack_levels([
        {(row.part, row.event): row.seconds for row in item.account.rows} for item in named.values()
    ])  # fmt: skip
    stacks = [Stack(name=level, slabs=found) for level, found in zip(named, slabs, strict=True)]
    rest = {
        f"{name_factor(level.factor)} = {level.value}"
        for level in experiment.environment(group[0]).levels
        if level.factor != axis.factor
    }
    beside = f", {', '.join(sorted(rest))}" if rest else ""
    blocks = count(max(item.blocks for item in named.values()), "block")
    return draw_stacks(stacks, f"Along {name_factor(axis.factor)}: {cell}{beside} (means over {blocks})")
