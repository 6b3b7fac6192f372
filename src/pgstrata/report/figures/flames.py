"""Differential flame graphs: who used the CPU in one environment, and where that changed against another."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from pgstrata.compare.causes.stacks import CpuChange, Flames, compare_stacks
from pgstrata.model.answer import Answer
from pgstrata.model.attribution import RunStacks
from pgstrata.report.blocks.model import Figure
from pgstrata.report.figures.frames import Frame, arrange_frames
from pgstrata.report.figures.vega import BETTER, INK, OPEN, PHONE, WIDTH, WORSE, least_width
from pgstrata.report.figures.waterfalls import cut_name
from pgstrata.report.sentences.names import count, name_both, name_difference
from pgstrata.units import render_duration

_ROW: Final = 17
_LETTER: Final = 6.4
_FEWEST_LETTERS: Final = 3
_MOST_DRAWN: Final = 4
_MOST_FUNCTIONS: Final = 12
_LONGEST: Final = 120
_SHARE: Final = 0.002
# How strongly a change is coloured: by its size among the changes of the graph; what is unresolved is grey.
# No stronger than the ink of names can be read on, on light and on dark pages.
_FAINT, _STRONG, _GREY = 0.3, 0.7, 0.22


@dataclass(frozen=True, slots=True, kw_only=True)
class FlamePart:
    """One environment in one cell: the graph, and functions by name without what they called."""

    title: str
    said: str
    figure: Figure
    functions: tuple[tuple[str, CpuChange], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FlameSheet:
    """The largest differences, how many more there are, and what is to be said of all."""

    parts: tuple[FlamePart, ...]
    left: int
    notes: tuple[str, ...]


def make_flames(answer: Answer) -> FlameSheet:
    """Each environment against the baseline; nothing where no stacks were sampled."""
    found = sorted(_compare(answer), key=lambda item: -_relative_size(item[2]))
    return FlameSheet(
        parts=tuple(_part(answer, *item) for item in found[:_MOST_DRAWN]),
        left=max(0, len(found) - _MOST_DRAWN),
        notes=tuple(_notes(answer)),
    )


def _compare(answer: Answer) -> Iterator[tuple[str, str, Flames]]:
    experiment = answer.study.plan.experiment
    sides: dict[tuple[str, str], list[RunStacks]] = {}
    for run in answer.stacks:
        sides.setdefault((run.environment, run.cell), []).append(run)
    for cell in experiment.cells:
        references = sides.get((experiment.baseline, cell.identity), [])
        for environment in experiment.environments:
            runs = sides.get((environment.name, cell.identity), [])
            if environment.name != experiment.baseline and (flames := compare_stacks(runs, references)) is not None:
                yield environment.name, cell.identity, flames


def _relative_size(flames: Flames) -> float:
    return abs(flames.whole.difference) / flames.whole.reference if flames.whole.reference > 0 else 0.0


def _notes(answer: Answer) -> Iterator[str]:
    lacking = sorted({run.lacking for run in answer.stacks if run.lacking})
    if any(run.user_only and run.stacks for run in answer.stacks):
        yield "Without what ran in the kernel: kernel.perf_event_paranoid allows no more (see pgstrata doctor)"
    for text in lacking[:3]:
        yield f"Runs without stacks: {cut_name(text, _LONGEST)}"


def _part(answer: Answer, environment: str, cell: str, flames: Flames) -> FlamePart:
    experiment = answer.study.plan.experiment
    name, reference = name_both(environment, experiment.baseline, experiment)
    title = name_difference(environment, experiment.baseline, cell, experiment)
    said = (
        f"CPU of the server's processes in {name}: {_say_change(flames.whole, reference)}; "
        f"{count(flames.samples, 'sample')} in {count(flames.blocks, 'block')}"
    )
    figure = draw_flames(flames, title, reference)
    return FlamePart(title=title, said=said, figure=figure, functions=_functions(flames))


def _say_change(change: CpuChange, reference: str) -> str:
    """12 µs per transaction, +3 µs against 16 (standard error 1 µs)."""
    error = f"standard error {render_duration(change.error)}{'' if change.resolved else ', within noise'}"
    difference = f"{signed_duration(change.difference)} against {reference}"
    return f"{render_duration(change.value)} per transaction, {difference} ({error})"


def signed_duration(seconds: float) -> str:
    """+3 µs, -12 ms."""
    return f"{'-' if seconds < 0 else '+'}{render_duration(abs(seconds))}"


def _functions(flames: Flames) -> tuple[tuple[str, CpuChange], ...]:
    """Those whose own time changed most; those that are gone are here alone."""
    least = _SHARE * max(flames.whole.value, flames.whole.reference)
    found = [(name, change) for name, change in flames.own.items() if max(change.value, change.reference) >= least]
    ranked = sorted(found, key=lambda item: (not item[1].resolved, -abs(item[1].difference), item[0]))
    return tuple((_readable(name), change) for name, change in ranked[:_MOST_FUNCTIONS])


def _readable(name: str) -> str:
    """Names of functions come from programs: cut, and without control characters."""
    kernel = name.endswith("_[k]")
    return cut_name(name.removesuffix("_[k]"), _LONGEST) + (" (kernel)" if kernel else "")


def draw_flames(flames: Flames, title: str, reference: str) -> Figure:
    """The graph, roots at the bottom; every frame says its figures where a mouse rests on it."""
    frames = arrange_frames(flames)
    label = _describe(title, frames, reference)
    return Figure(title=title, label=label, draw=lambda: _render(frames, flames.whole.value, reference))


def _render(frames: Sequence[Frame], whole: float, reference: str) -> str:
    """Two widths; on a phone nobody rests a mouse on a frame, and frames of less than a pixel are left out."""
    most = max((abs(frame.change.difference) for frame in frames if frame.change.resolved), default=0.0)
    wide = [_draw(frame, WIDTH, most, _tip(frame, whole, reference)) for frame in frames]
    seen = [frame for frame in frames if frame.width * PHONE >= 1]
    narrow = [_draw(frame, PHONE, most) for frame in seen]
    return f"{_wrap(frames, WIDTH, 'wide', wide)}{_wrap(seen, PHONE, 'narrow', narrow)}"


def _wrap(frames: Sequence[Frame], across: int, look: str, marks: Sequence[str]) -> str:
    height = (max((frame.depth for frame in frames), default=0) + 1) * _ROW
    size = f'width="{across}" height="{height}" viewBox="0 {-height} {across} {height}" {least_width(across)}'
    return f'<svg class="{look}" {size}>{"".join(marks)}</svg>'


def _tip(frame: Frame, whole: float, reference: str) -> str:
    share = f"{100 * frame.change.value / whole:.1f} %"
    said = f"{_readable(frame.name)}: {_say_change(frame.change, reference)}; {share} of all"
    return f"<title>{escape(said, quote=False)}</title>"


def _draw(frame: Frame, across: int, most: float, tip: str = "") -> str:
    """A frame above the line y = 0, where the roots stand."""
    left, width = frame.left * across, frame.width * across
    top = -(frame.depth + 1) * _ROW
    name = _readable(frame.name)
    colour, opacity = _colour(frame.change, most)
    letters = int((width - 6) / _LETTER)
    text = ""
    if letters >= _FEWEST_LETTERS:
        shown = escape(cut_name(name, letters), quote=False)
        text = f'<text x="{left + 3:.1f}" y="{top + 12}" fill="{INK}">{shown}</text>'
    rect = (
        f'<rect x="{left:.1f}" y="{top}" width="{max(width - 0.5, 0.4):.1f}" height="{_ROW - 1}" rx="1" '
        f'fill="{colour}" fill-opacity="{opacity:.2f}"/>'
    )
    return f"<g>{tip}{rect}{text}</g>"


def _colour(change: CpuChange, most: float) -> tuple[str, float]:
    if not change.resolved or most <= 0:
        return OPEN, _GREY
    strength = _FAINT + (_STRONG - _FAINT) * min(1.0, abs(change.difference) / most)
    return (WORSE if change.difference > 0 else BETTER), strength


def _describe(title: str, frames: Sequence[Frame], reference: str) -> str:
    """The largest changes in words, for those who do not see colours."""
    changed = sorted(
        (frame for frame in frames if frame.change.resolved), key=lambda item: -abs(item.change.difference)
    )
    said = "; ".join(f"{_readable(item.name)}: {_say_change(item.change, reference)}" for item in changed[:5])
    return f"Flame graph. {title}. {count(len(frames), 'frame')}. {said or 'no frame changed by more than noise'}"
