"""The sentences of the answer on other tools' results, without a full stop."""

from collections.abc import Iterator, Sequence
from typing import Final

from pgstrata.compare.headlines import DIFFERENT
from pgstrata.compare.import_doubts import fewest_values
from pgstrata.compare.one_look import BaselineFrom, ImportAnswer
from pgstrata.model.answer import ALL_CELLS, AxisStep, Comparison, OrderedAxis, Verdict
from pgstrata.model.doubts import DependentValues
from pgstrata.model.metrics import METRICS
from pgstrata.report.sentences.factors import STEP_WORDS, say_beside, say_out_of_reach, say_step, say_trend
from pgstrata.report.sentences.names import TOGETHER, count, say_on
from pgstrata.report.sentences.verdicts import (
    Words,
    needed_blocks,
    render_between,
    render_confidence,
    render_figures,
    render_threshold,
    shown_interval,
    verdict_label,
    verdict_word,
    words_of,
)
from pgstrata.sources.table import UNNAMED
from pgstrata.stats.boundaries import ALPHA
from pgstrata.stats.ordered import LEVEL
from pgstrata.units import Direction

_MOST_SENTENCES: Final = 8
_MOST_NAMED: Final = 4
_NAMES: Final = "\0"
# Differences first, then what is no difference, then what nobody can tell.
RANKS: Final = (
    Verdict.COLLAPSED,
    Verdict.WORSE,
    Verdict.BETTER,
    Verdict.UNSTABLE,
    Verdict.NEGLIGIBLE,
    Verdict.EQUIVALENT,
    Verdict.INCONCLUSIVE,
    Verdict.INSUFFICIENT,
)
_BASELINES: Final = {
    BaselineFrom.READER: "",
    BaselineFrom.NAME: ", by its name",
    BaselineFrom.NUMBER: ", the lowest number",
    BaselineFrom.ORDER: ", the first level",
}


def say_answer(answer: ImportAnswer) -> Iterator[str]:
    """A sentence for each headline, those with too few values together; of too many a count and the differences."""
    ordered = sorted(answer.headlines, key=lambda item: RANKS.index(item.verdict))
    sentences = list(_say_each(answer, ordered))
    if len(sentences) <= _MOST_SENTENCES:
        yield from sentences
        return
    labels: dict[str, int] = {}
    for item in ordered:
        label = label_of(answer, item)
        labels[label] = labels.get(label, 0) + 1
    parts = ", ".join(f"{label} in {number}" for label, number in labels.items())
    yield f"{count(len(ordered), 'comparison')} with {answer.question.baseline}: {parts}"
    told = [item for item in ordered if item.verdict in DIFFERENT]
    yield from (say_finding(answer, item) for item in told[:_MOST_SENTENCES])


def _say_each(answer: ImportAnswer, ordered: Sequence[Comparison]) -> Iterator[str]:
    alike: dict[str, list[str]] = {}
    for item in ordered:
        if item.verdict is Verdict.INSUFFICIENT:
            alike.setdefault(_say_insufficient(answer, item, _NAMES), []).append(item.environment)
        else:
            yield say_finding(answer, item)
    yield from (text.replace(_NAMES, _name_all(names)) for text, names in alike.items())


def _name_all(names: Sequence[str]) -> str:
    """15, 16 and 17; of many the first and how many more there are."""
    left = len(names) - _MOST_NAMED
    first, last = (names[:_MOST_NAMED], f"{left:,} more") if left > 0 else (names[:-1], names[-1])
    return f"{', '.join(first)} and {last}" if first else last


def say_finding(answer: ImportAnswer, item: Comparison) -> str:
    """One comparison as a sentence without a full stop."""
    name, base = item.environment, answer.question.baseline
    limit, over = render_threshold(answer.question.threshold), f"{_looks(answer)} {_count_values(answer, item)}"
    sure = f"at {render_confidence(item.confidence)} confidence, {over}"
    match item.verdict:
        case Verdict.BETTER | Verdict.WORSE:
            return f"{_with_place(answer, item, _say_difference(answer, item))}: {render_figures(item)} {sure}"
        case Verdict.NEGLIGIBLE:
            head = f"{_say_difference(answer, item)}, but by less than {limit} (real, but negligible)"
            return f"{_with_place(answer, item, head)}: {render_figures(item)} {sure}"
        case Verdict.EQUIVALENT:
            between = render_between(shown_interval(item))
            head = f"no difference larger than {limit} between {name} and {base}"
            return f"{_with_place(answer, item, head)}: {between}, {over}"
        case Verdict.INCONCLUSIVE:
            between = render_between(item.interval)
            head = f"{name} and {base} cannot be told apart"
            return f"{_with_place(answer, item, head)} (inconclusive): {between} {sure}"
        case Verdict.INSUFFICIENT:
            return _say_insufficient(answer, item, name)
        case _:
            head = f"the difference between {name} and {base} is {item.verdict}"
            return f"{_with_place(answer, item, head)}: no single percentage describes it, {over}"


def _say_difference(answer: ImportAnswer, item: Comparison) -> str:
    """Faster or slower where the metric is known; otherwise higher or lower, and which of them is better."""
    words = _words(answer, item)
    name, base, word = item.environment, answer.question.baseline, verdict_word(item, words)
    if item.metric not in METRICS:
        good = "better" if word == words.better else "worse"
        return f"the {item.metric} of {name} is {word} than that of {base}, which is {good}"
    return (
        f"{name} is {word} than {base}"
        if word in {"faster", "slower"}
        else f"{name} has {word} {METRICS[item.metric].title} than {base}"
    )


def _words(answer: ImportAnswer, item: Comparison) -> Words:
    """Of a metric that pgstrata does not know only higher and lower can be said."""
    if item.metric in METRICS:
        return words_of(item.metric)
    better, worse = ("higher", "lower") if answer.question.direction is Direction.HIGHER else ("lower", "higher")
    return Words(better=better, worse=worse, direction=answer.question.direction)


def label_of(answer: ImportAnswer, item: Comparison) -> str:
    """The verdict in a table; where the word does not tell whether it is better, that too."""
    if item.verdict is Verdict.INSUFFICIENT and not answer.sequential:
        # nothing more is to come
        return "too few blocks" if answer.paired else "too few values"
    label = verdict_label(item, _words(answer, item))
    return f"{label}, {item.verdict}" if item.verdict in DIFFERENT and item.metric not in METRICS else label


def _with_place(answer: ImportAnswer, item: Comparison, text: str) -> str:
    """The text with the cell of a comparison behind it, if there are several cells."""
    if len(answer.cells) <= 1:
        return text
    return text + say_on(TOGETHER if is_whole(item) else item.cell, text)


def is_whole(item: Comparison) -> bool:
    """Whether a comparison is about the whole file; a file may have a cell that is called "all" too."""
    return item.cell == ALL_CELLS and not item.exploratory


def _count_values(answer: ImportAnswer, item: Comparison) -> str:
    if answer.paired:
        return count(item.blocks, "block")
    return f"{item.values:,} values against {item.baseline_values:,}"


def _looks(answer: ImportAnswer) -> str:
    return "with a look after each of" if answer.sequential else "at one look over"


def _say_insufficient(answer: ImportAnswer, item: Comparison, name: str) -> str:
    base = answer.question.baseline
    shared = f" with {len(answer.headlines)} headlines" if len(answer.headlines) > 1 else ""
    if any(isinstance(doubt, DependentValues) for doubt in item.warnings):
        head = _with_place(answer, item, f"{name} and {base} cannot be told apart")
        return f"{head}: the {_count_values(answer, item)} depend on each other"
    if answer.paired:
        blocks = _count_values(answer, item).replace("block", "usable block")
        needed = needed_blocks(item)
        few, so_far = ("not enough blocks yet", " so far") if answer.sequential else ("too few blocks", "")
        head = _with_place(answer, item, f"{few} to compare {name} with {base}")
        return f"{head}: {blocks}{so_far}, an interval{shared} needs {needed}"
    fewest = fewest_values(item.level)
    there = f"{item.values} against {item.baseline_values}"
    head = _with_place(answer, item, f"too few values to compare {name} with {base}")
    return f"{head}: {there}, an interval{shared} needs {fewest} against {fewest}"


def say_terms(answer: ImportAnswer) -> str:
    """What the reader may have left to defaults, and what several headlines share."""
    base = f"Baseline: {answer.question.baseline}{_BASELINES[answer.baseline_from]}"
    named = METRICS[answer.question.metric].title if answer.question.metric in METRICS else answer.question.metric
    of = "" if answer.question.metric == UNNAMED else f" of {named}"
    better = f"{answer.question.direction} values{of} are better"
    family = len(answer.headlines)
    shared = f"; {family} headlines share {ALPHA * 100:g} % of error (Holm)" if family > 1 else ""
    explored = f"; cells are exploratory, each at {render_confidence(1 - ALPHA)}" if answer.explored else ""
    once = answer.paired and not answer.sequential
    again = "; if you look after each new block, use --sequential" if once else ""
    order = f" {said}." if (said := say_order(answer)) else ""
    return f"{base}; {better}; threshold {render_threshold(answer.question.threshold)}{shared}{explored}{again}.{order}"


_MOST_AXES: Final = 8
_MOST_LEVELS: Final = 12


def say_main_steps(answer: ImportAnswer) -> Iterator[str]:
    """What holds of the whole file; without blocks of every cell, because nothing ties them together."""
    axes = [axis for axis in answer.axes if not is_single(answer, axis)]
    yield from (say_axis(answer, axis) for axis in axes[:_MOST_AXES])
    left = len(axes) - _MOST_AXES
    if left > 0:
        yield f"--json has the steps of {count(left, 'more cell')}"


def say_single_steps(answer: ImportAnswer) -> list[str]:
    """Of single cells behind a headline over several, exploratory."""
    axes = [axis for axis in answer.axes if is_single(answer, axis)]
    said = [say_axis(answer, axis) for axis in axes[:_MOST_AXES]]
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


def is_single(answer: ImportAnswer, axis: OrderedAxis) -> bool:
    """Whether an axis is of one cell behind a headline over several."""
    return answer.paired and len(answer.cells) > 1 and axis is not answer.axes[0]


def say_axis(answer: ImportAnswer, axis: OrderedAxis) -> str:
    """Along the environments: 17 brought +4.2 % [+3.1, +5.3] throughput (better, p = 0.002), over 9 blocks."""
    head = f"along the environments{_place_of(answer, axis)}"
    if axis.p is None or axis.smallest_p is None:
        return f"{head}: fewer than 3 levels have values to compare, too few for a step"
    over = f", over {count(axis.blocks, 'block')}" if answer.paired else ", without blocks"
    if axis.steps:
        return f"{head}: {', '.join(_say_step(answer, step) for step in axis.steps)}{over}{say_out_of_reach(axis)}"
    ends = f"{head} from {axis.levels[0]} to {axis.levels[-1]}"
    if axis.smallest_p > (LEVEL if answer.paired else LEVEL / len(answer.axes)):
        few = count(axis.blocks, "block") if answer.paired else "so few values"
        what = "too few blocks" if answer.paired else "too few values"
        return f"{ends}: {what} for any step, the clearest one in {few} has p = {axis.smallest_p:.2g}"
    return f"{ends}: no step stands out (p = {axis.p:.2g}){over}{say_trend(axis)}{say_out_of_reach(axis)}"


def _place_of(answer: ImportAnswer, axis: OrderedAxis) -> str:
    if len(answer.cells) <= 1:
        return ""
    return say_on(axis.cell if is_single(answer, axis) or not answer.paired else TOGETHER)


def _say_step(answer: ImportAnswer, step: AxisStep) -> str:
    """The level, what it brought, and whether that is good."""
    named = METRICS[answer.question.metric].title if answer.question.metric in METRICS else answer.question.metric
    what = "" if answer.question.metric == UNNAMED else f" {named}"
    said = STEP_WORDS.get(step.verdict, step.verdict)
    return f"{step.after} brought {say_step(step)}{what} ({said}, p = {step.p:.2g}{say_beside(step)})"
