"""The sections that are charts: steps along ordered factors, and how the study went."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from pgstrata.compare.headlines import primary_comparisons
from pgstrata.compare.verdicts.history import tell_stories
from pgstrata.model.answer import ALL_CELLS, Answer, Comparison
from pgstrata.model.experiment import Cell
from pgstrata.report.answer.room import MOST_PANELS, drawable_cells, opens_details, say_left_out
from pgstrata.report.answer.turns import turn_section
from pgstrata.report.blocks.model import (
    Block,
    Details,
    Figure,
    Inline,
    Marked,
    Paragraph,
    Section,
    Tone,
    end,
)
from pgstrata.report.figures.effects import draw_axis
from pgstrata.report.figures.meanwhile import draw_meanwhile
from pgstrata.report.figures.over_time import draw_over_time
from pgstrata.report.figures.runs import draw_by_block
from pgstrata.report.figures.verdict_courses import draw_courses
from pgstrata.report.sentences.factors import primary_axes, say_axis
from pgstrata.report.sentences.names import capitalise, name_cell

_MOST_DOTS = 6000
_MOST_COURSES = 36
_MOST_MEANWHILE = 48
_MOST_STEPS = 4
_STEPS = (
    "Each dot is one block: how far a level lies from the mean of that block over all levels. Background load that "
    "affected the whole block cancels out. Bars are medians. Dashed lines mark steps that chance does not explain, by "
    "a test that permutes the levels within each block."
)
_COURSES = (
    "Each dot is the difference from the baseline in one block. The coloured line is the estimate after so many "
    "blocks, and the bars are its intervals. Measuring ends at the dashed line. There is a difference if a thin "
    "bar excludes zero, and none that matters if a thick bar lies within the grey band of the threshold. Hollow dots "
    "are later blocks, which were not used. Arrows point to values outside the chart."
)
_TIMES = (
    "Some runs of each environment, second by second. All charts have the same scale, which starts at zero unless the "
    "title says otherwise. Dips are often checkpoints."
)
_MEANWHILE: Inline = (
    (
        "Each line is the median over the runs of an environment, for each second, or for longer steps if runs are "
        "longer than two minutes. Throughput and latency come first; marks below them are events in the logs of the "
        "servers in all runs. Up to eight series of the host and the server follow. The first are those whose level "
        "clearly differs from the baseline's, largest difference first; rates are compared per transaction. Then come "
        "the series that vary most. All series are in the study's catalogue, in the table "
    ),
    Marked("series", "code"),
    ".",
)
_BLOCKS = (
    "Every run; a line joins the runs of one block. If the machine becomes faster or slower, whole blocks rise or fall "
    "together, and the difference within a block stays. Crosses are runs that are not in the estimate; those with an "
    "arrow lie outside the chart. The scale is logarithmic, so the same height is the same ratio in every panel. An "
    "environment far from the others has a panel of its own. The dashed line is the median of the baseline."
)


def step_section(answer: Answer) -> Section | None:
    """Every axis in words; those over all cells, and a few of the others with a step, as charts too."""
    experiment = answer.study.plan.experiment
    axes = primary_axes(answer)
    shown = [axis for axis in axes if axis.steps or axis.cell == axes[0].cell][:_MOST_STEPS]
    blocks: list[Block] = []
    for axis in axes:
        blocks.append(Paragraph(end(capitalise(say_axis(axis, experiment)))))
        if axis in shown and (figure := draw_axis(answer, axis)):
            blocks.append(figure)
    if not blocks:
        return None
    return Section("Steps along ordered factors", (Paragraph(_STEPS, Tone.HELP), *blocks))


def how_it_went(answer: Answer) -> tuple[Section, ...]:
    """How the verdicts came about, slices, seconds, host and server meanwhile, blocks: those that can be drawn."""
    plan = answer.study.plan
    cells = plan.experiment.cells
    panels = len(cells) * len(plan.experiment.environments)
    lines = drawable_cells(answer, marks=panels, most=MOST_PANELS)
    courses = drawable_cells(answer, marks=panels, most=_MOST_MEANWHILE)
    dots = drawable_cells(answer, marks=len(answer.study.runs), most=_MOST_DOTS)
    parts = (
        _courses(answer),
        turn_section(answer),
        _folded(answer, "Over time", _TIMES, draw_over_time, lines),
        _folded(answer, "What host and server did meanwhile", _MEANWHILE, draw_meanwhile, courses),
        _folded(answer, "Block by block", _BLOCKS, draw_by_block, dots),
    )
    return tuple(part for part in parts if part is not None)


def _folded(
    answer: Answer,
    title: str,
    explained: Inline,
    draw: Callable[[Answer, str, str], Figure | None],
    cells: Iterable[Cell],
) -> Section | None:
    """A chart for each cell, folded where there are many; None without any."""
    experiment = answer.study.plan.experiment
    drawn = [draw(answer, cell.identity, name_cell(cell, experiment)) for cell in cells]
    figures = [figure for figure in drawn if figure is not None]
    if not figures:
        return None
    left = say_left_out(len(figures), len(experiment.cells))
    text = (*((explained,) if isinstance(explained, str) else explained), left)
    return Section(title, (Paragraph(text, Tone.HELP), *_fold(answer, figures)))


def _fold(answer: Answer, figures: Iterable[Figure]) -> list[Details]:
    return [Details(figure.title, (replace(figure, title=""),), open=opens_details(answer)) for figure in figures]


def _courses(answer: Answer) -> Section | None:
    """How the verdicts came about: headlines first, then cells while there is room."""
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
    figures = [figure for figure in drawn if figure is not None]
    if not figures:
        return None
    left = len(primary) - len(chosen)
    explained = f"{_COURSES} {left} more are not drawn." if left else _COURSES
    return Section("How the verdicts came about", (Paragraph(explained, Tone.HELP), *_fold(answer, figures)))
