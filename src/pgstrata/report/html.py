"""The report as one HTML file that needs nothing else: no script, no network, no fonts from elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from jinja2 import Environment as Templates
from jinja2 import PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from pgstrata.compare import exclusive_settings
from pgstrata.compare.headlines import primary_comparisons
from pgstrata.model.answer import ALL_CELLS, Answer, Comparison, Study
from pgstrata.model.experiment import Cell
from pgstrata.model.metrics import METRICS
from pgstrata.report.anomalies import anomaly_sentences
from pgstrata.report.charts import draw_along, draw_by_block, draw_over_time
from pgstrata.report.contrasts import contrast_rows
from pgstrata.report.courses import draw_courses
from pgstrata.report.designs import headline_note
from pgstrata.report.doubts import doubt_sentences
from pgstrata.report.drawing import Figure
from pgstrata.report.effects import draw_effects, draw_effects_along
from pgstrata.report.flames import make_flames
from pgstrata.report.ladders import draw_axis
from pgstrata.report.limits import unmeasured
from pgstrata.report.looks import tell_stories
from pgstrata.report.meanwhile_charts import draw_meanwhile
from pgstrata.report.names import count, name_cell, name_environment
from pgstrata.report.ordered import primary_axes, say_axis
from pgstrata.report.points import find_axes, spread
from pgstrata.report.query_plans import make_plan_sheets
from pgstrata.report.rounds import MOST_VISITS, draw_rounds
from pgstrata.report.rows import (
    arrange_headlines,
    arrange_pairs,
    asked_settings,
    dead_times,
    differing_facts,
    group_servers,
    note_pairs,
    observed_environments,
    rig_facts,
    title_pairs,
    unusual_runs,
)
from pgstrata.report.sheets import compared_names, make_cell_parts, make_glance, make_line, make_scatter, make_unusual
from pgstrata.report.ties import tie
from pgstrata.report.verdicts import name_baseline, render_threshold
from pgstrata.report.why import cause_sentences
from pgstrata.report.why_sheets import make_why
from pgstrata.report.words import Sentence, answer_sentences, capitalise
from pgstrata.units import render_duration

_MOST_AXES = 8
_MOST_DOTS = 6000
_MOST_SLICES = 4000
_MOST_PANELS = 240
_MOST_COURSES = 36
_MOST_MEANWHILE = 48
_MOST_STEPS = 4
_MOST_UNUSUAL = 200
_MOST_DIFFERENCES = 200
_FEW_CELLS = 4


class Verbatim(str):
    """Text that is to be copied out of the page: no blank of it becomes another one."""

    __slots__ = ()


def render_html(answer: Answer) -> str:
    """The whole report. Foreign text is escaped everywhere."""
    templates = Templates(
        loader=PackageLoader("pgstrata.report", "templates"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_tie_text,
    )
    templates.filters["svg"] = _trusted_svg
    templates.filters["duration"] = render_duration
    templates.filters["verbatim"] = Verbatim
    return templates.get_template("report.html.j2").render(
        **_head(answer), **_results(answer), **_charts(answer), **_facts(answer), **_runs(answer.study)
    )


def _tie_text(value: object) -> object:
    """A number and its unit stay in one line; charts and what is copied out are left alone."""
    return tie(value) if type(value) is str else value


def _trusted_svg(figure: Figure) -> Markup:
    """Charts are drawn from escaped text by the renderer of the charts; they are the only markup that is not ours."""
    return Markup(figure.svg)  # noqa: S704


def _head(answer: Answer) -> Mapping[str, Any]:
    experiment = answer.study.plan.experiment
    return {
        "study": answer.study,
        "question": experiment.question,
        "sentences": (
            *answer_sentences(answer),
            *(Sentence(text=text, minor=True) for text in cause_sentences(answer)),
        ),
        "doubts": doubt_sentences(answer),
        "summary": _summary(answer.study),
        "metric": experiment.metric,
        "metric_title": METRICS[experiment.metric].title,
        "threshold": render_threshold(experiment.threshold),
        "baseline": name_baseline(experiment),
        "limits": unmeasured(answer),
        "notes": experiment.notes,
    }


def _summary(study: Study) -> str:
    planned = len(study.plan.blocks)
    seconds = render_duration(sum(run.measured_seconds for run in study.runs))
    unusual = len(unusual_runs(study))
    text = f"{study.measured_blocks} of {count(planned, 'planned block')}, {count(len(study.runs), 'run')}"
    return f"{text}, {seconds} measured" + (f", {unusual} not simply valid" if unusual else "")


# ------------------------------------------------------------------------------------------------ results


def _results(answer: Answer) -> Mapping[str, Any]:
    experiment = answer.study.plan.experiment
    panels = len(experiment.cells) * len(experiment.environments)
    headlines = arrange_headlines(answer)
    return {
        "headlines": [make_line(row, experiment.metric) for row in headlines],
        "headline_chart": draw_effects(answer, ALL_CELLS, "All cells together") if headlines else None,
        "headline_note": headline_note(answer),
        "pairs": [make_line(row, experiment.metric) for row in arrange_pairs(answer)],
        "pairs_title": title_pairs(answer) if answer.pairs else "",
        "pairs_note": note_pairs(answer),
        "cells": make_cell_parts(answer, _drawable_cells(answer, marks=panels, most=_MOST_PANELS)),
        "compared": compared_names(answer),
        "glance": make_glance(answer) if len(experiment.cells) > _FEW_CELLS else (),
        "contrasts": contrast_rows(answer),
        "why": make_why(answer),
        "flames": make_flames(answer),
        "plan_sheets": make_plan_sheets(answer),
        "ordered": _ordered(answer),
        "all_cells": len(experiment.cells),
        "open_details": len(experiment.cells) <= _FEW_CELLS,
    }


def _ordered(answer: Answer) -> list[tuple[str, Figure | None]]:
    """Every axis in words; those over all cells, and a few of the others with a step, as charts too."""
    experiment = answer.study.plan.experiment
    axes = primary_axes(answer)
    shown = [axis for axis in axes if axis.steps or axis.cell == axes[0].cell][:_MOST_STEPS]
    return [
        (capitalise(say_axis(axis, experiment)), draw_axis(answer, axis) if axis in shown else None) for axis in axes
    ]


# ------------------------------------------------------------------------------------------------ charts


def _charts(answer: Answer) -> Mapping[str, Any]:
    study = answer.study
    experiment = study.plan.experiment
    panels = len(experiment.cells) * len(experiment.environments)
    few = _drawable_cells(answer, marks=panels, most=_MOST_PANELS)
    slices = _drawable_cells(answer, marks=_count_slices(answer), most=_MOST_SLICES)
    courses, left_out = _courses(answer)
    return {
        "axes": _axis_figures(answer),
        "anomalies": anomaly_sentences(answer),
        "courses": courses,
        "courses_left_out": left_out,
        "rounds": _figures(answer, draw_rounds, slices),
        "scatter": make_scatter(answer),
        "sliced_cells": sum(study.plan.design(cell.identity).sliced for cell in experiment.cells),
        "times": _figures(answer, draw_over_time, few),
        "meanwhile": _figures(answer, draw_meanwhile, _drawable_cells(answer, marks=panels, most=_MOST_MEANWHILE)),
        "blocks": _figures(answer, draw_by_block, _drawable_cells(answer, marks=len(study.runs), most=_MOST_DOTS)),
    }


def _count_slices(answer: Answer) -> int:
    """Marks that the charts of all cells in slices would need."""
    plan = answer.study.plan
    rounds = sum(plan.design(cell.identity).rounds for cell in plan.experiment.cells)
    return rounds * MOST_VISITS * len(plan.experiment.environments)


def _courses(answer: Answer) -> tuple[list[Figure], int]:
    """How the verdicts came about, and how many are not drawn: headlines first, then cells while there is room."""
    experiment = answer.study.plan.experiment
    titles = {
        ALL_CELLS: "All cells together",
        **{cell.identity: name_cell(cell, experiment) for cell in experiment.cells},
    }
    primary = primary_comparisons(answer)
    chosen: list[Comparison] = []
    for cell in titles:
        found = [comparison for comparison in primary if comparison.cell == cell]
        if not chosen or len(chosen) + len(found) <= _MOST_COURSES:
            chosen += found[:_MOST_COURSES]
    stories = tell_stories(answer, chosen)
    drawn = [
        draw_courses(answer, [story for story in stories if story.comparison.cell == cell], title)
        for cell, title in titles.items()
    ]
    return [figure for figure in drawn if figure is not None], len(primary) - len(chosen)


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


# ------------------------------------------------------------------------------------------------ facts


def _facts(answer: Answer) -> Mapping[str, Any]:
    study = answer.study
    experiment = study.plan.experiment
    common, own = asked_settings(study)
    differences = differing_facts(study)
    return {
        "rig": rig_facts(study),
        "servers": group_servers(study),
        "common_settings": common,
        "own_settings": [
            (name_environment(experiment.environment(name), experiment), facts) for name, facts in own.items()
        ],
        "differences": differences[:_MOST_DIFFERENCES],
        "differences_left": max(0, len(differences) - _MOST_DIFFERENCES),
        "observed": [name_environment(item, experiment) for item in observed_environments(study)],
        "exclusive": exclusive_settings(study.environments, experiment),
    }


def _runs(study: Study) -> Mapping[str, Any]:
    unusual = unusual_runs(study)
    return {
        "unusual": make_unusual(unusual[:_MOST_UNUSUAL]),
        "unusual_left": max(0, len(unusual) - _MOST_UNUSUAL),
        "dead_times": dead_times(study),
        "unmeasured_time": sum(time.total for time in dead_times(study)),
        "measured": sum(run.measured_seconds for run in study.runs),
    }
