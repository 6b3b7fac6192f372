"""What the HTML report's tables hold, as text: one record for each line."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from pgstrata.model.answer import Answer, Comparison, QuantileShift, Verdict
from pgstrata.model.experiment import Cell
from pgstrata.model.metrics import METRICS
from pgstrata.model.runs import RunRecord
from pgstrata.report.designs import cell_notes, say_values
from pgstrata.report.drawing import Figure
from pgstrata.report.effects import draw_effects
from pgstrata.report.names import name_cell, name_environment
from pgstrata.report.profile import StatementRow, make_profile
from pgstrata.report.quantiles import draw_quantiles, name_percentile, shifts_of
from pgstrata.report.rows import (
    COST_TITLES,
    COSTS,
    CellRows,
    EnvironmentRow,
    arrange_cells,
    render_measurement,
    render_status,
)
from pgstrata.report.scatter import find_scatter, name_scatter
from pgstrata.report.verdicts import (
    Judged,
    render_adjusted,
    render_decided,
    render_figures,
    render_interval,
    render_p,
    render_spread,
    render_sureness,
    render_threshold,
    shown_interval,
    verdict_label,
)
from pgstrata.report.words import capitalise
from pgstrata.units import render_duration, render_percent_change

SIGNS = {
    Verdict.BETTER: "▲",
    Verdict.WORSE: "▼",
    Verdict.EQUIVALENT: "=",
    Verdict.NEGLIGIBLE: "≈",
    Verdict.INCONCLUSIVE: "?",
    Verdict.INSUFFICIENT: "…",
    Verdict.UNSTABLE: "!",
    Verdict.COLLAPSED: "✕",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a table of comparisons, as text; `kind` is the verdict, for its style."""

    name: str
    value: str
    effect: str
    interval: str
    verdict: str
    kind: str
    decided: str
    p: str
    adjusted: str
    confidence: str
    costs: tuple[str, ...]
    blocks: str
    runs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One statement, with latency and difference from the baseline in each environment, as text."""

    text: str
    cells: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """Percentiles of latency: a title for each, and for each environment text, kind and words of each verdict."""

    titles: tuple[str, ...]
    lines: tuple[tuple[str, tuple[tuple[str, str, str], ...]], ...]
    figure: Figure | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CellPart:
    """What is shown of one cell."""

    title: str
    values: str
    lines: tuple[Line, ...]
    costs: tuple[str, ...]
    notes: tuple[str, ...]
    effects: Figure | None
    shift: Shift | None
    statements: tuple[Statement, ...]
    profile_note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScatterLine:
    """Where the scatter of one environment in one cell comes from, as text."""

    name: str
    cell: str
    rounds: str
    visits: str
    between: str
    most: str
    seen: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Unusual:
    """A run that is not simply valid."""

    identity: str
    status: str
    reasons: str


def make_cell_parts(answer: Answer, drawn: Collection[Cell]) -> list[CellPart]:
    """Every cell; those in `drawn` with charts."""
    return [_cell_part(answer, cell, drawn=cell.cell in drawn) for cell in arrange_cells(answer)]


def _cell_part(answer: Answer, cell: CellRows, *, drawn: bool) -> CellPart:
    experiment = answer.study.plan.experiment
    used = [place for place in range(len(COSTS)) if any(row.costs[place] is not None for row in cell.rows)]
    title = name_cell(cell.cell, experiment)
    profile = make_profile(answer.study, cell.cell.identity)
    return CellPart(
        title=title,
        values=_upper(f"{METRICS[experiment.metric].title}: {say_values(answer.study.plan, cell.cell)}"),
        lines=tuple(make_line(row, experiment.metric, used) for row in cell.rows),
        costs=tuple(COST_TITLES[COSTS[place]] for place in used),
        notes=cell_notes(answer, cell.cell),
        effects=draw_effects(answer, cell.cell.identity, title) if drawn else None,
        shift=_shift(answer, cell, draw_quantiles(answer, cell.cell.identity, title) if drawn else None),
        statements=tuple(map(_statement, profile.rows)),
        profile_note=capitalise(profile.note),
    )


def make_line(row: EnvironmentRow, metric: str, used: Iterable[int] = ()) -> Line:
    """A row as text; `used` are the places of the costs that were measured."""
    found = row.comparison
    return Line(
        name=row.name,
        value=render_measurement(row.value, metric),
        effect=_render_effect(found),
        interval=render_interval(shown_interval(found)) if found else "",
        verdict=_render_verdict(found) if found else "baseline",
        kind=found.verdict.value if found else "baseline",
        decided=render_decided(found) if found else "",
        p=render_p(found.repeated_p, found) if found else "",
        adjusted=render_adjusted(found) if found else "",
        confidence=render_sureness(found) if found else "",
        costs=tuple(render_measurement(row.costs[place], COSTS[place]) for place in used),
        blocks=str(found.blocks) if found else "",
        runs=row.runs,
    )


def make_glance(answer: Answer) -> list[tuple[str, list[Line]]]:
    """For each cell one entry per environment that is compared: the whole study on one page."""
    experiment = answer.study.plan.experiment
    return [
        (
            name_cell(cell.cell, experiment),
            [make_line(row, experiment.metric) for row in cell.rows if row.environment.name != experiment.baseline],
        )
        for cell in arrange_cells(answer)
    ]


def make_unusual(runs: Sequence[RunRecord]) -> list[Unusual]:
    """Runs that are not simply valid, with their reasons."""
    return [
        Unusual(
            identity=run.identity,
            status=render_status(run),
            reasons="; ".join(reason.text for reason in run.reasons) or "no reason given",
        )
        for run in runs
    ]


def make_scatter(answer: Answer) -> list[ScatterLine]:
    """Of all cells in slices."""
    experiment = answer.study.plan.experiment
    return [
        ScatterLine(
            name=name_scatter(item, answer.study),
            cell=name_cell(cell, experiment),
            rounds=render_spread(item.components.sigma_round),
            visits=render_spread(item.components.sigma_visit),
            between=render_spread(item.components.sigma_start),
            most=render_spread(item.components.sigma_start_upper),
            seen=item.components.visits,
        )
        for cell in experiment.cells
        for item in find_scatter(answer.study, cell.identity)
    ]


def compared_names(answer: Answer) -> list[str]:
    """All environments but the baseline, in the order of the experiment."""
    experiment = answer.study.plan.experiment
    others = [item for item in experiment.environments if item.name != experiment.baseline]
    return [name_environment(item, experiment) for item in others]


def _render_effect(comparison: Comparison | None) -> str:
    effect = comparison.effect if comparison else None
    return render_percent_change(effect) if effect is not None else ""


def _render_verdict(judged: Judged) -> str:
    return f"{SIGNS[judged.verdict]} {verdict_label(judged)}"


def _shift(answer: Answer, cell: CellRows, figure: Figure | None) -> Shift | None:
    """The latencies of the baseline, then what each environment makes of them; None without any percentile."""
    shifts = shifts_of(answer, cell.cell.identity)
    if not shifts:
        return None
    # whichever environment has a percentile, it has the latency of the baseline beside its own
    steps: dict[float, QuantileShift] = {}
    for item in sorted(shifts, key=lambda item: item.quantile):
        steps.setdefault(item.quantile, item)
    found = {(item.environment, item.quantile): item for item in shifts}
    lines = []
    for row in cell.rows:
        name = row.environment.name
        if row.comparison is not None:
            lines.append((row.name, tuple(_shifted(found.get((name, step))) for step in steps)))
        elif name == answer.study.plan.experiment.baseline:
            lines.append((row.name, tuple(_unshifted(item) for item in steps.values())))
    titles = (f"{name_percentile(item)}, threshold {render_threshold(item.threshold)}" for item in steps.values())
    return Shift(titles=tuple(titles), lines=tuple(lines), figure=figure)


def _unshifted(shift: QuantileShift) -> tuple[str, str, str]:
    """The baseline's own latency, as one of its comparisons has it."""
    return render_measurement(shift.baseline_value, shift.metric), "baseline", ""


def _shifted(found: QuantileShift | None) -> tuple[str, str, str]:
    if found is None:
        return "-", "baseline", ""
    return render_figures(found), found.verdict.value, _render_verdict(found)


def _statement(row: StatementRow) -> Statement:
    latencies = [render_duration(item) if item is not None else "-" for item in row.seconds]
    changes = [render_percent_change(item) if item is not None else "" for item in row.changes]
    return Statement(text=row.text, cells=tuple(zip(latencies, changes, strict=True)))


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]
