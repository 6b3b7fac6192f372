"""Tables of comparisons: effects of environments, of pairs, of factors, costs and percentiles."""

from collections.abc import Sequence

from pgstrata.compare.headlines import headline_comparisons
from pgstrata.compare.sustained import find_sustained_rates
from pgstrata.model.answer import Answer, FactorEffect, QuantileShift, StatementShift
from pgstrata.model.experiment import Cell, Experiment
from pgstrata.model.metrics import SUSTAINED_RATE
from pgstrata.report.answer.environment_rows import (
    COST_TITLES,
    COSTS,
    COUNTED,
    CellRows,
    EnvironmentRow,
    render_measurement,
)
from pgstrata.report.answer.statements import StatementRow
from pgstrata.report.blocks.model import NO_RESULT, Column, ColumnPlace, Shape, Table
from pgstrata.report.figures.percentiles import name_percentile, shifts_of
from pgstrata.report.sentences.factors import label_contrast, name_contrast
from pgstrata.report.sentences.names import name_where
from pgstrata.report.sentences.verdicts import (
    render_adjusted,
    render_decided,
    render_figures,
    render_p,
    render_sureness,
    render_threshold,
    shown_interval,
    tell_change,
    tell_interval,
    verdict_label,
)
from pgstrata.units import render_duration

_BASELINE = "baseline"


def headline_table(rows: Sequence[EnvironmentRow]) -> Table:
    """Environments over all cells."""
    return Table(names=_names(rows), columns=(*_effect_columns(rows), *_decision_columns(rows, explored=False)))


def comparison_table(rows: Sequence[EnvironmentRow]) -> Table:
    """Comparisons with the baseline, one a row."""
    return Table(names=_names(rows, "comparison"), columns=tuple(_effect_columns(rows)), breaks=len("environment"))


def pair_table(rows: Sequence[EnvironmentRow]) -> Table:
    """Pairs of environments, with the blocks behind them, and p adjusted for their number."""
    found = [row.comparison for row in rows if row.comparison]
    columns = (
        *_effect_columns(rows),
        Column(title="blocks", cells=tuple(str(item.blocks) for item in found), place=ColumnPlace.MORE),
        Column(title="adjusted p", cells=tuple(map(render_adjusted, found)), place=ColumnPlace.MORE),
    )
    # names of pairs are long: on a terminal rather broken than without the figures
    return Table(names=_names(rows, "pair"), columns=columns, breaks=len("environment"))


def cell_table(answer: Answer, cell: CellRows) -> Table:
    """The primary metric of a cell's environments, what they differ by, and what a transaction costs."""
    metric = answer.study.plan.experiment.metric
    rows = cell.rows
    value = tuple(render_measurement(row.value, metric) for row in rows)
    known = [place for place in range(len(COSTS)) if any(row.costs[place] is not None for row in rows)]
    used = [place for place in known if COSTS[place] != metric]
    costs = [
        Column(
            title=COST_TITLES[COSTS[place]],
            cells=tuple(render_measurement(row.costs[place], COSTS[place]) for row in rows),
            place=ColumnPlace.LEAD if COSTS[place] in COUNTED else ColumnPlace.ASIDE,
        )
        for place in used
    ]
    columns = (
        Column(title=metric, cells=value, place=ColumnPlace.LEAD),
        *(column for column in costs if column.place is ColumnPlace.LEAD),
        *_sustained_columns(answer, cell),
        *_effect_columns(rows),
        *_decision_columns(rows, explored=bool(headline_comparisons(answer))),
        Column(title="runs", cells=tuple(str(row.runs) for row in rows), place=ColumnPlace.MORE),
        *(column for column in costs if column.place is ColumnPlace.ASIDE),
    )
    return Table(names=_names(rows), columns=columns, aside=("per transaction", "CPU and WAL per transaction"))


def _sustained_columns(answer: Answer, cell: CellRows) -> list[Column]:
    """The interval of each environment's own rate, where one was searched."""
    known = {item.environment: item for item in find_sustained_rates(answer.study) if item.cell == cell.cell.identity}
    if not known:
        return []
    spans = [item.interval if (item := known.get(row.environment.name)) else None for row in cell.rows]
    ends = [() if span is None else (span.low, span.high) for span in spans]
    texts = tuple(
        " to ".join(render_measurement(end, SUSTAINED_RATE.name) for end in pair) or NO_RESULT for pair in ends
    )
    return [Column(title="95 % interval", cells=texts, place=ColumnPlace.LEAD)]


def contrast_table(effects: Sequence[FactorEffect], experiment: Experiment) -> Table:
    """Main effects and interactions; those of single cells say so."""
    decided = (f"after {one.decided_at}" if one.decided_at is not None else f"not in {one.blocks}" for one in effects)
    columns = [
        Column(title="effect", cells=tuple(tell_change(one.effect) for one in effects), joint=": "),
        Column(title="interval, %", cells=tuple(tell_interval(one.interval) for one in effects), joint=" "),
        Column(
            title="verdict",
            cells=tuple(map(label_contrast, effects)),
            verdicts=tuple(one.verdict.value if one.given is None else one.kind.value for one in effects),
            words=True,
        ),
        Column(title="decided", cells=tuple(decided), words=True),
        Column(
            title="p",
            cells=tuple(NO_RESULT if p is None else f"≤ {p:.2g}" for p in (one.repeated_p for one in effects)),
            joint=", p ",
        ),
    ]
    if len({one.cell for one in effects}) > 1:
        cells = tuple(name_where(one.cell, experiment) for one in effects)
        columns.append(Column(title="cell", cells=cells, words=True, joint=", on "))
    names = Column(title="contrast", cells=tuple(map(name_contrast, effects)))
    return Table(names=names, columns=tuple(columns), shape=Shape.SENTENCES)


def statement_table(cell: CellRows, rows: Sequence[StatementRow]) -> Table:
    """Latencies of statements in each environment, with their differences from the baseline."""
    columns = tuple(
        Column(
            title=environment.name,
            cells=tuple(_duration(row.seconds[place]) for row in rows),
            beside=tuple(_say_shift(row.shifts[place]) for row in rows),
        )
        for place, environment in enumerate(cell.rows)
    )
    names = Column(title="statement", cells=tuple(row.title for row in rows))
    return Table(names=names, columns=columns, shape=Shape.RECORDS, code=True, style="facts")


def _say_shift(shift: StatementShift | None) -> str:
    if shift is None:
        return ""
    return verdict_label(shift) if shift.effect is None else f"{render_figures(shift)}, {verdict_label(shift)}"


def percentile_table(answer: Answer, cell: Cell, rows: Sequence[EnvironmentRow]) -> Table | None:
    """The latencies of the baseline, then what each environment makes of them; None without any percentile."""
    shifts = sorted(shifts_of(answer, cell.identity), key=lambda item: item.quantile)
    if not shifts:
        return None
    baseline = answer.study.plan.experiment.baseline
    shown = [row for row in rows if row.comparison is not None or row.environment.name == baseline]
    found = {(item.environment, item.quantile): item for item in shifts}
    # whichever environment has a percentile, it has the latency of the baseline beside its own
    steps: dict[float, QuantileShift] = {}
    for item in shifts:
        steps.setdefault(item.quantile, item)
    columns = []
    for quantile, step in steps.items():
        items = [found.get((row.environment.name, quantile)) if row.comparison else None for row in shown]
        own = render_measurement(step.baseline_value, step.metric)
        columns.append(
            Column(
                title=f"{name_percentile(step)}, threshold {render_threshold(step.threshold)}",
                cells=tuple(
                    own if row.environment.name == baseline else render_figures(item) if item else NO_RESULT
                    for row, item in zip(shown, items, strict=True)
                ),
                beside=tuple(verdict_label(item) if item else "" for item in items),
                verdicts=tuple(item.verdict.value if item else _BASELINE for item in items),
                words=True,
            )
        )
    return Table(names=_names(shown), columns=tuple(columns))


def _names(rows: Sequence[EnvironmentRow], title: str = "environment") -> Column:
    return Column(title=title, cells=tuple(row.name for row in rows))


def _effect_columns(rows: Sequence[EnvironmentRow]) -> list[Column]:
    """Effect, interval and verdict of each environment."""
    found = [row.comparison for row in rows]
    effects = (tell_change(item.effect) if item else "" for item in found)
    intervals = (tell_interval(shown_interval(item)) if item else "" for item in found)
    return [
        Column(title="effect", cells=tuple(effects)),
        Column(title="interval, %", cells=tuple(intervals)),
        Column(
            title="verdict",
            cells=tuple(verdict_label(item) if item else _BASELINE for item in found),
            verdicts=tuple(item.verdict.value if item else _BASELINE for item in found),
            words=True,
        ),
    ]


def _decision_columns(rows: Sequence[EnvironmentRow], *, explored: bool) -> list[Column]:
    """After how many blocks the verdict fell, and how far from chance it is; the confidence of headlines.

    `explored` cells have a p adjusted for their number instead of a confidence of their own.
    """
    found = [row.comparison for row in rows]
    title, sureness = ("adjusted p", render_adjusted) if explored else ("confidence", render_sureness)
    decided = tuple(render_decided(item) if item else "" for item in found)
    p = tuple(render_p(item.repeated_p, item) if item else "" for item in found)
    return [
        Column(title="decided", cells=decided, words=True, place=ColumnPlace.MORE),
        Column(title="p", cells=p, place=ColumnPlace.MORE),
        Column(title=title, cells=tuple(sureness(item) if item else "" for item in found), place=ColumnPlace.MORE),
    ]


def _duration(seconds: float | None) -> str:
    return NO_RESULT if seconds is None else render_duration(seconds)
