"""The answer on other tools' results: sentences, steps, tables, doubts, in plain text of 78 columns; and JSON."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from pgstrata.compare.headlines import DIFFERENT
from pgstrata.compare.import_doubts import fewest_values
from pgstrata.compare.one_look import BaselineFrom, ImportAnswer
from pgstrata.model.answer import ALL_CELLS, AxisStep, Comparison, OrderedAxis, Verdict
from pgstrata.model.doubts import DependentValues
from pgstrata.model.metrics import METRICS
from pgstrata.report.blocks.layout import render_tables
from pgstrata.report.blocks.model import Column, begin
from pgstrata.report.blocks.text import wrap
from pgstrata.report.json.answer import axis_fields, comparison_fields, warning_fields
from pgstrata.report.json.fields import SCHEMA, pick_fields, render_document
from pgstrata.report.sentences.answer import capitalise
from pgstrata.report.sentences.factors import STEP_WORDS, say_out_of_reach, say_step, say_trend
from pgstrata.report.sentences.findings import say_doubt
from pgstrata.report.sentences.names import TOGETHER, count
from pgstrata.report.sentences.verdicts import (
    Words,
    needed_blocks,
    render_between,
    render_confidence,
    render_figures,
    render_interval,
    render_threshold,
    verdict_label,
    verdict_word,
    words_of,
)
from pgstrata.sources.table import UNNAMED
from pgstrata.stats.boundaries import ALPHA
from pgstrata.stats.ordered import LEVEL
from pgstrata.units import Direction, render_percent_change

_MOST_SENTENCES: Final = 8
_MOST_DOUBTS: Final = 12
# Differences first, then what is no difference, then what nobody can tell.
_RANKS: Final = (
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
# These only repeat what the sentence about the comparison says already.
_SAID: Final = frozenset({"undecided", "insufficient_blocks", "insufficient_values"})


def render_decision(answer: ImportAnswer) -> str:
    """The answer in words, tables, doubts; no line is longer than 78 columns, if the names allow it."""
    told = (_say_answer(answer), say_main_steps(answer))
    parts = [
        *([line for text in said for line in wrap(f"{capitalise(text)}.")] for said in told),
        wrap(_say_terms(answer)),
        *_tables(answer),
        _single_steps(answer),
        _doubts(answer),
    ]
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


# ------------------------------------------------------------------------------------------------ sentences


def _say_answer(answer: ImportAnswer) -> Iterator[str]:
    """A sentence for each headline; where they would be too many, a count and the differences."""
    ordered = sorted(answer.headlines, key=lambda item: _RANKS.index(item.verdict))
    if len(ordered) <= _MOST_SENTENCES:
        yield from (say_finding(answer, item) for item in ordered)
        return
    labels: dict[str, int] = {}
    for item in ordered:
        label = _label(answer, item)
        labels[label] = labels.get(label, 0) + 1
    parts = ", ".join(f"{label} in {number}" for label, number in labels.items())
    yield f"{count(len(ordered), 'comparison')} with {answer.question.baseline}: {parts}"
    told = [item for item in ordered if item.verdict in DIFFERENT]
    yield from (say_finding(answer, item) for item in told[:_MOST_SENTENCES])


def say_finding(answer: ImportAnswer, item: Comparison) -> str:
    """One comparison as a sentence without a full stop."""
    name, base, place = item.environment, answer.question.baseline, _place(answer, item)
    limit, over = render_threshold(answer.question.threshold), f"{_looks(answer)} {_count_values(answer, item)}"
    sure = f"at {render_confidence(item.confidence)} confidence, {over}"
    match item.verdict:
        case Verdict.BETTER | Verdict.WORSE:
            return f"{_say_difference(answer, item)}{place}: {render_figures(item)} {sure}"
        case Verdict.NEGLIGIBLE:
            head = f"{_say_difference(answer, item)}, but by less than {limit} (real, but negligible)"
            return f"{head}{place}: {render_figures(item)} {sure}"
        case Verdict.EQUIVALENT:
            between = render_between(item.equivalence_interval or item.interval)
            return f"no difference larger than {limit} between {name} and {base}{place}: {between}, {over}"
        case Verdict.INCONCLUSIVE:
            between = render_between(item.interval)
            return f"{name} and {base} cannot be told apart{place} (inconclusive): {between} {sure}"
        case Verdict.INSUFFICIENT:
            return _say_insufficient(answer, item)
        case _:
            head = f"the difference between {name} and {base} is {item.verdict}{place}"
            return f"{head}: no single percentage describes it, {over}"


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


def _label(answer: ImportAnswer, item: Comparison) -> str:
    """The verdict in a table; where the word does not tell whether it is better, that too."""
    label = verdict_label(item, _words(answer, item))
    return f"{label}, {item.verdict}" if item.verdict in DIFFERENT and item.metric not in METRICS else label


def _place(answer: ImportAnswer, item: Comparison) -> str:
    if len(answer.cells) <= 1:
        return ""
    return f" over {TOGETHER}" if _is_whole(item) else f" on {item.cell}"


def _is_whole(item: Comparison) -> bool:
    """Whether a comparison is about the whole file; a file may have a cell that is called "all" too."""
    return item.cell == ALL_CELLS and not item.exploratory


def _count_values(answer: ImportAnswer, item: Comparison) -> str:
    if answer.paired:
        return count(item.blocks, "block")
    return f"{item.values:,} values against {item.baseline_values:,}"


def _looks(answer: ImportAnswer) -> str:
    return "with a look after each of" if answer.sequential else "at one look over"


def _say_insufficient(answer: ImportAnswer, item: Comparison) -> str:
    name, base, place = item.environment, answer.question.baseline, _place(answer, item)
    shared = f" with {len(answer.headlines)} headlines" if len(answer.headlines) > 1 else ""
    if any(isinstance(doubt, DependentValues) for doubt in item.warnings):
        return f"{name} and {base} cannot be told apart{place}: the {_count_values(answer, item)} depend on each other"
    if answer.paired:
        blocks = _count_values(answer, item).replace("block", "usable block")
        needed = needed_blocks(item)
        early = "too early" if answer.sequential else "too few blocks"
        return f"{early} to tell {name} from {base}{place}: {blocks}, an interval{shared} needs {needed}"
    fewest = fewest_values(item.level)
    there = f"{item.values} against {item.baseline_values}"
    return (
        f"too few values to tell {name} from {base}{place}: {there} support no interval{shared}, it takes {fewest} "
        f"against {fewest}"
    )


def _say_terms(answer: ImportAnswer) -> str:
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


# ------------------------------------------------------------------------------------------------ tables


def _tables(answer: ImportAnswer) -> Iterator[list[str]]:
    """One table of environments; where there are several cells one of cells for each environment."""
    if len(answer.cells) <= 1:
        names = Column(title="environment", cells=tuple(item.environment for item in answer.headlines))
        yield from render_tables(names, _figure_columns(answer, answer.headlines))
        return
    for environment in answer.question.environments:
        items = [item for item in (*answer.headlines, *answer.explored) if item.environment == environment]
        names = Column(title="cell", cells=tuple("all cells" if _is_whole(item) else item.cell for item in items))
        first, *others = render_tables(names, _figure_columns(answer, items))
        yield [*wrap(f"{environment} against {answer.question.baseline}"), *first]
        yield from others


def _figure_columns(answer: ImportAnswer, items: Sequence[Comparison]) -> list[Column]:
    """The baseline's value stands beside each environment's: blocks that are left out may differ between them."""
    number = (
        Column(title="blocks", cells=tuple(f"{item.blocks:,}" for item in items))
        if answer.paired
        else Column(title="values", cells=tuple(f"{item.values:,} : {item.baseline_values:,}" for item in items))
    )
    return [
        Column(title="baseline", cells=tuple(_render(item.baseline_value) for item in items)),
        Column(title=answer.question.metric, cells=tuple(_render(item.value) for item in items)),
        Column(
            title="effect",
            cells=tuple(render_percent_change(item.effect) if item.effect is not None else "-" for item in items),
        ),
        Column(title="interval, %", cells=tuple(render_interval(item.interval) or "-" for item in items)),
        number,
        Column(title="verdict", cells=tuple(_label(answer, item) for item in items), words=True),
    ]


def _render(value: float | None) -> str:
    """A median in the file's own unit, whatever that is."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if 1e4 <= value < 1e12 else f"{value:.4g}"  # noqa: PLR2004 - where exponents would begin


def _single_steps(answer: ImportAnswer) -> list[str]:
    said = [line for text in say_single_steps(answer) for line in wrap(text, first="- ", rest="  ")]
    return ["Steps in single cells, exploratory", *said] if said else []


# ------------------------------------------------------------------------------------------------ doubts


def _doubts(answer: ImportAnswer) -> list[str]:
    said = [doubt for item in answer.headlines for doubt in item.warnings if doubt.code not in _SAID]
    texts = list(dict.fromkeys(map(say_doubt, (*answer.warnings, *said))))
    left = len(texts) - _MOST_DOUBTS
    if left > 0:
        texts = [*texts[:_MOST_DOUBTS], f"{count(left, 'more doubt')}: --json has them all"]
    ends = ("" if text.endswith("?") else "." for text in texts)
    return [
        line
        for text, end in zip(texts, ends, strict=True)
        for line in wrap(f"{begin(text)}{end}", first="! ", rest="  ")
    ]


# ------------------------------------------------------------------------------------------------ JSON


def decision_json(answer: ImportAnswer) -> str:
    """A document of the shape of `show --json`; what only a study has is null."""
    document = {
        "schema": SCHEMA,
        "study": None,
        "question": None,
        "source": answer.source,
        "baseline": _environment(answer.question.baseline),
        "metric": answer.question.metric,
        "threshold": answer.question.threshold,
        "paired": answer.paired,
        "comparisons": [_comparison(answer, item) for item in (*answer.headlines, *answer.explored)],
        "pairs": [],
        "rig": None,
        "floor": None,
        "floors": [],
        "refreshed": None,
        "designs": [],
        "scatter": [],
        "seconds": [],
        "effects": [],
        "cpu_findings": [],
        "axes": [
            axis_fields(axis, cell=_cell_field(axis.cell, single=_is_single(answer, axis))) for axis in answer.axes
        ],
        "anomalies": [],
        "shift": [],
        "warnings": warning_fields(answer.warnings),
    }
    return render_document(document)


def _cell_field(cell: str, *, single: bool) -> dict[str, Any] | str:
    """A file may have a single cell that is called "all", too."""
    return cell if cell == ALL_CELLS and not single else {"identity": cell}


def _environment(name: str) -> dict[str, Any]:
    return {"name": name, "levels": {}, "control": None}


def _comparison(answer: ImportAnswer, item: Comparison) -> dict[str, Any]:
    return {
        **comparison_fields(
            item,
            environment=_environment(item.environment),
            reference=answer.question.baseline,
            cell=_cell_field(item.cell, single=item.exploratory),
            direction=answer.question.direction,
        ),
        **pick_fields(item, "values baseline_values"),
    }


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
    head = f"along the environments{_place_of(answer, axis)}"
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


def _place_of(answer: ImportAnswer, axis: OrderedAxis) -> str:
    if len(answer.cells) <= 1:
        return ""
    return f" on {axis.cell}" if _is_single(answer, axis) or not answer.paired else f" over {TOGETHER}"


def _say_step(answer: ImportAnswer, step: AxisStep) -> str:
    """The level, what it brought, and whether that is good."""
    named = METRICS[answer.question.metric].title if answer.question.metric in METRICS else answer.question.metric
    what = "" if answer.question.metric == UNNAMED else f" {named}"
    said = STEP_WORDS.get(step.verdict, step.verdict)
    return f"{step.after} brought {say_step(step)}{what} ({said}, p = {step.p:.2g})"
