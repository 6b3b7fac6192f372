"""Steps along the environments of another tool's results: which level brought the change, in sentences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pgstrata.compare.one_look import ImportAnswer
from pgstrata.model.answer import ALL_CELLS, AxisStep, OrderedAxis
from pgstrata.model.metrics import METRICS
from pgstrata.report.sentences.names import TOGETHER, count
from pgstrata.report.sentences.ordered import STEP_WORDS, say_out_of_reach, say_step, say_trend
from pgstrata.sources.table import UNNAMED
from pgstrata.stats.ordered import LEVEL

_MOST_AXES: Final = 8
_MOST_LEVELS: Final = 12


def say_main_steps(answer: ImportAnswer) -> Iterator[str]:
    """What holds of the whole file; without blocks of every cell, because nothing ties them together."""
    axes = [axis for axis in answer.axes if not _is_single(answer, axis)]
    yield from (_say_axis(answer, axis) for axis in axes[:_MOST_AXES])
    left = len(axes) - _MOST_AXES
    if left > 0:
        yield f"--json has the steps of {count(left, 'more cell')}"


def say_single_steps(answer: ImportAnswer) -> list[str]:
    """Of single cells behind a headline over several, exploratory."""
    axes = [axis for axis in answer.axes if _is_single(answer, axis)]
    said = [_say_axis(answer, axis) for axis in axes[:_MOST_AXES]]
    left = len(axes) - _MOST_AXES
    return [*said, f"--json has {left} more"] if left > 0 else said


def say_order(answer: ImportAnswer) -> str:
    """In which order the levels were taken, and at which level steps were looked for."""
    if not answer.axes:
        return ""
    named = ", ".join(answer.levels[:_MOST_LEVELS]) + (", ..." if len(answer.levels) > _MOST_LEVELS else "")
    shared = f", shared by {len(answer.axes)} cells" if not answer.paired and len(answer.axes) > 1 else ""
    blocks = "within blocks" if answer.paired else "of all values, because there are no blocks"
    level = f"{LEVEL * 100:g} %{shared}"
    return f"Ordered as they first appear in the file: {named}; steps by permutation {blocks}, at {level}"


def _is_single(answer: ImportAnswer, axis: OrderedAxis) -> bool:
    return answer.paired and len(answer.cells) > 1 and axis is not answer.axes[0]


def _say_axis(answer: ImportAnswer, axis: OrderedAxis) -> str:
    """Along the environments: 17 brought +4.2 % [+3.1, +5.3] throughput (better, p = 0.002), over 9 blocks."""
    head = f"along the environments{_place(answer, axis)}"
    if axis.p is None or axis.smallest_p is None:
        return f"{head}: fewer than 3 levels have values to compare, too few for a step"
    over = f", over {count(axis.blocks, 'block')}" if answer.paired else ", without blocks"
    if axis.steps:
        return f"{head}: {', '.join(_say_step(answer, step) for step in axis.steps)}{over}{say_out_of_reach(axis)}"
    ends = f"{head} from {axis.levels[0]} to {axis.levels[-1]}"
    if axis.smallest_p > (LEVEL if answer.paired else LEVEL / len(answer.axes)):
        few = count(axis.blocks, "block") if answer.paired else "so few values"
        return f"{ends}: too early for any step, the clearest one in {few} has p = {axis.smallest_p:.2g}"
    return f"{ends}: no step stands out (p = {axis.p:.2g}){over}{say_trend(axis)}{say_out_of_reach(axis)}"


def _place(answer: ImportAnswer, axis: OrderedAxis) -> str:
    if len(answer.cells) <= 1:
        return ""
    return f" on {axis.cell}" if _is_single(answer, axis) or not answer.paired else f" over {TOGETHER}"


def _say_step(answer: ImportAnswer, step: AxisStep) -> str:
    """The level, what it brought, and whether that is good."""
    named = METRICS[answer.question.metric].title if answer.question.metric in METRICS else answer.question.metric
    what = "" if answer.question.metric == UNNAMED else f" {named}"
    said = STEP_WORDS.get(step.verdict, step.verdict)
    return f"{step.after} brought {say_step(step)}{what} ({said}, p = {step.p:.2g})"


def is_over_all(answer: ImportAnswer, axis: OrderedAxis) -> bool:
    """Whether an axis is about the whole file; a file may have a cell that is called "all" too."""
    return axis.cell == ALL_CELLS and not _is_single(answer, axis)
