"""The report as one HTML file that needs nothing else: no script, no network, no fonts from elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from jinja2 import Environment as Templates
from jinja2 import PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from pgstrata.compare import exclusive_settings
from pgstrata.model.answer import Answer, Study, Verdict
from pgstrata.model.experiment import Cell
from pgstrata.model.metrics import METRICS
from pgstrata.model.runs import RunRecord
from pgstrata.report.charts import draw_along, draw_by_block, draw_over_time
from pgstrata.report.doubts import doubt_sentences
from pgstrata.report.drawing import Figure
from pgstrata.report.effects import draw_effects, draw_effects_along
from pgstrata.report.limits import unmeasured
from pgstrata.report.names import count, name_cell, name_environment
from pgstrata.report.points import find_axes, spread
from pgstrata.report.profile import StatementRow, make_profile
from pgstrata.report.rows import (
    COST_TITLES,
    COSTS,
    CellRows,
    EnvironmentRow,
    arrange_cells,
    asked_settings,
    count_blocks,
    dead_times,
    differing_facts,
    group_servers,
    observed_environments,
    render_measurement,
    render_status,
    rig_facts,
    unusual_runs,
)
from pgstrata.report.verdicts import render_interval, render_threshold, verdict_label
from pgstrata.report.words import answer_sentences, capitalise
from pgstrata.units import render_duration, render_percent_change

_MOST_AXES = 8
_MOST_DOTS = 6000
_MOST_PANELS = 240
_MOST_UNUSUAL = 200
_MOST_DIFFERENCES = 200
_FEW_CELLS = 4
_SIGNS = {
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
class _Row:
    """One line of a cell's table, as text; `kind` is the verdict, for its style."""

    name: str
    value: str
    effect: str
    interval: str
    verdict: str
    kind: str
    costs: tuple[str, ...]
    runs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Statement:
    """One statement, with latency and difference from the baseline in each environment, as text."""

    text: str
    cells: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _CellPart:
    """What is shown of one cell."""

    title: str
    rows: tuple[_Row, ...]
    costs: tuple[str, ...]
    effects: Figure | None
    statements: tuple[_Statement, ...]
    profile_note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Unusual:
    """A run that is not simply valid."""

    identity: str
    status: str
    reasons: str


def render_html(answer: Answer) -> str:
    """The whole report. Foreign text is escaped everywhere."""
    templates = Templates(
        loader=PackageLoader("pgstrata.report", "templates"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters["svg"] = _trusted_svg
    templates.filters["duration"] = render_duration
    study = answer.study
    experiment = study.plan.experiment
    panels = len(experiment.cells) * len(experiment.environments)
    common, own = asked_settings(study)
    unusual = unusual_runs(study)
    differences = differing_facts(study)
    return templates.get_template("report.html.j2").render(
        question=experiment.question,
        sentences=answer_sentences(answer),
        doubts=doubt_sentences(answer),
        summary=_summary(study),
        metric=experiment.metric,
        metric_title=METRICS[experiment.metric].title,
        threshold=render_threshold(experiment.threshold),
        cells=_cell_parts(answer, _drawable_cells(answer, marks=panels, most=_MOST_PANELS)),
        compared=[
            name_environment(item, experiment) for item in experiment.environments if item.name != experiment.baseline
        ],
        glance=_glance(answer) if len(experiment.cells) > _FEW_CELLS else (),
        axes=_axis_figures(answer),
        times=_figures(answer, draw_over_time, _drawable_cells(answer, marks=panels, most=_MOST_PANELS)),
        blocks=_figures(answer, draw_by_block, _drawable_cells(answer, marks=len(study.runs), most=_MOST_DOTS)),
        all_cells=len(experiment.cells),
        open_details=len(experiment.cells) <= _FEW_CELLS,
        rig=rig_facts(study),
        servers=group_servers(study),
        common_settings=common,
        own_settings=[
            (name_environment(experiment.environment(name), experiment), facts) for name, facts in own.items()
        ],
        differences=differences[:_MOST_DIFFERENCES],
        differences_left=max(0, len(differences) - _MOST_DIFFERENCES),
        observed=[name_environment(item, experiment) for item in observed_environments(study)],
        unusual=[_unusual(run) for run in unusual[:_MOST_UNUSUAL]],
        unusual_left=max(0, len(unusual) - _MOST_UNUSUAL),
        exclusive=exclusive_settings(study.environments, experiment),
        limits=unmeasured(answer),
        dead_times=dead_times(study),
        unmeasured_time=sum(time.total for time in dead_times(study)),
        measured=sum(run.measured_seconds for run in study.runs),
        study=study,
        notes=experiment.notes,
    )


def _trusted_svg(figure: Figure) -> Markup:
    """Charts are drawn from escaped text by the renderer of the charts; they are the only markup that is not ours."""
    return Markup(figure.svg)  # noqa: S704


def _summary(study: Study) -> str:
    planned = len(study.plan.blocks)
    seconds = render_duration(sum(run.measured_seconds for run in study.runs))
    unusual = len(unusual_runs(study))
    text = f"{count_blocks(study)} of {count(planned, 'planned block')}, {count(len(study.runs), 'run')}"
    return f"{text}, {seconds} measured" + (f", {unusual} not simply valid" if unusual else "")


def _cell_parts(answer: Answer, drawn: Collection[Cell]) -> list[_CellPart]:
    return [_cell_part(answer, cell, drawn=cell.cell in drawn) for cell in arrange_cells(answer)]


def _cell_part(answer: Answer, cell: CellRows, *, drawn: bool) -> _CellPart:
    experiment = answer.study.plan.experiment
    used = [place for place in range(len(COSTS)) if any(row.costs[place] is not None for row in cell.rows)]
    title = name_cell(cell.cell, experiment)
    profile = make_profile(answer.study, cell.cell.identity)
    return _CellPart(
        title=title,
        rows=tuple(_row(row, experiment.metric, used) for row in cell.rows),
        costs=tuple(COST_TITLES[COSTS[place]] for place in used),
        effects=draw_effects(answer, cell.cell.identity, title) if drawn else None,
        statements=tuple(map(_statement, profile.rows)),
        profile_note=capitalise(profile.note),
    )


def _statement(row: StatementRow) -> _Statement:
    latencies = [render_duration(item) if item is not None else "-" for item in row.seconds]
    changes = [render_percent_change(item) if item is not None else "" for item in row.changes]
    return _Statement(text=row.text, cells=tuple(zip(latencies, changes, strict=True)))


def _glance(answer: Answer) -> list[tuple[str, list[_Row]]]:
    """For each cell one entry per environment that is compared: the whole study on one page."""
    experiment = answer.study.plan.experiment
    return [
        (
            name_cell(cell.cell, experiment),
            [_row(row, experiment.metric, ()) for row in cell.rows if row.environment.name != experiment.baseline],
        )
        for cell in arrange_cells(answer)
    ]


def _row(row: EnvironmentRow, metric: str, used: Iterable[int]) -> _Row:
    comparison = row.comparison
    effect = comparison.effect if comparison else None
    return _Row(
        name=row.name,
        value=render_measurement(row.value, metric),
        effect=render_percent_change(effect) if effect is not None else "",
        interval=render_interval(comparison.interval) if comparison else "",
        verdict=f"{_SIGNS[comparison.verdict]} {verdict_label(comparison)}" if comparison else "baseline",
        kind=comparison.verdict.value if comparison else "baseline",
        costs=tuple(render_measurement(row.costs[place], COSTS[place]) for place in used),
        runs=row.runs,
    )


def _axis_figures(answer: Answer) -> list[Figure]:
    axes = find_axes(answer.study.plan.experiment)[:_MOST_AXES]
    drawn = [draw(answer, axis) for axis in axes for draw in (draw_along, draw_effects_along)]
    return [figure for figure in drawn if figure is not None]


def _figures(answer: Answer, draw: Callable[[Answer, str, str], Figure | None], cells: Iterable[Cell]) -> list[Figure]:
    experiment = answer.study.plan.experiment
    drawn = [draw(answer, cell.identity, name_cell(cell, experiment)) for cell in cells]
    return [figure for figure in drawn if figure is not None]


def _drawable_cells(answer: Answer, *, marks: int, most: int) -> tuple[Cell, ...]:
    """Of a very large study only so many cells, evenly chosen, that the file stays small.

    Args:
        answer: the study.
        marks: marks that all cells together would need.
        most: marks that there may be.
    """
    cells = answer.study.plan.experiment.cells
    return tuple(spread(cells, max(1, most * len(cells) // max(1, marks))))


def _unusual(run: RunRecord) -> _Unusual:
    reasons = "; ".join(reason.text for reason in run.reasons) or "no reason given"
    return _Unusual(identity=run.identity, status=render_status(run), reasons=reasons)
