"""The words and figures of single verdicts, for sentences, tables and charts alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, assert_never

from pgstrata.model.answer import Comparison, FactorEffect, Interval, Lane, QuantileShift, StatementShift, Verdict
from pgstrata.model.experiment import Experiment
from pgstrata.model.metrics import METRICS
from pgstrata.model.price import ValueFinding
from pgstrata.report.blocks.model import NO_RESULT
from pgstrata.report.sentences.names import name_environment
from pgstrata.stats.boundaries import ALPHA_EQ, FIRST_LOOK, GRID, boundaries_of, fewest_blocks
from pgstrata.units import Direction, render_percent_change

Judged = Comparison | FactorEffect | QuantileShift | StatementShift | ValueFinding
"""What has a verdict by a metric, with an effect and an interval."""


# ------------------------------------------------------------------------------------------------ which comparisons


def name_baseline(experiment: Experiment) -> str:
    """The baseline as people call it."""
    return name_environment(experiment.environment(experiment.baseline), experiment)


def name_reference(comparison: Comparison, experiment: Experiment) -> str:
    """What a comparison compares with, as people call it."""
    name = comparison.reference or experiment.baseline
    return name_environment(experiment.environment(name), experiment)


# ------------------------------------------------------------------------------------------------ words

_NEARLY: Final = 99.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """What better and worse are called, and which values are better."""

    better: str
    worse: str
    direction: Direction


def words_of(metric: str) -> Words:
    """Those of a metric that pgstrata knows: faster and slower, less and more."""
    known = METRICS[metric]
    return Words(better=known.better, worse=known.worse, direction=known.direction)


def verdict_word(judged: Judged, words: Words | None = None) -> str:
    """The verdict in one or two words: faster, slower, no difference, cannot tell, ...; by default the metric's own."""
    return say_verdict(judged.verdict, judged.effect, words or words_of(judged.metric))


def say_verdict(verdict: Verdict, effect: float | None, words: Words) -> str:
    """A verdict on an effect (a ratio) in the words of its metric."""
    match verdict:
        case Verdict.BETTER:
            return words.better
        case Verdict.WORSE:
            return words.worse
        case Verdict.NEGLIGIBLE:
            higher = (effect or 1.0) > 1
            return words.better if higher is (words.direction is Direction.HIGHER) else words.worse
        case Verdict.EQUIVALENT:
            return "no difference"
        case Verdict.INCONCLUSIVE:
            return "cannot tell"
        case Verdict.INSUFFICIENT:
            return "too early"
        case Verdict.UNSTABLE | Verdict.COLLAPSED:
            return str(verdict)
        case _:
            assert_never(verdict)


def verdict_label(judged: Judged, words: Words | None = None) -> str:
    """As `verdict_word`, for tables: a negligible difference says that it is one."""
    word = verdict_word(judged, words)
    return f"{word}, negligible" if judged.verdict is Verdict.NEGLIGIBLE else word


def needed_blocks(comparison: Comparison) -> int:
    """Blocks from which on there is an interval at the comparison's level: more where several share the errors."""
    if comparison.lane is Lane.ONE_LOOK:
        return fewest_blocks(comparison.level)
    return boundaries_of(comparison.horizon).at(max(comparison.level, GRID[-1])).first


# ------------------------------------------------------------------------------------------------ figures


def render_figures(judged: Judged) -> str:
    """The effect with its interval: -3.1 % [-4.2, -1.9]."""
    if judged.effect is None:
        return "size unknown"
    change = render_percent_change(judged.effect)
    return f"{change} {render_interval(judged.interval)}".rstrip()


def shown_interval(comparison: Comparison) -> Interval | None:
    """The interval that the verdict rests on, the same in sentences, tables and charts.

    That is the one of the difference, and of "no difference" the narrower one of equivalence.
    """
    return _inner_interval(comparison) or comparison.interval


def _inner_interval(comparison: Comparison) -> Interval | None:
    return comparison.equivalence_interval if comparison.verdict is Verdict.EQUIVALENT else None


def render_shown(comparison: Comparison) -> str:
    """As `render_figures`, with the interval that is shown; empty without an effect and an interval."""
    change = "" if comparison.effect is None else render_percent_change(comparison.effect)
    return f"{change} {render_interval(shown_interval(comparison))}".strip()


def render_interval(interval: Interval | None) -> str:
    """[-4.2, -1.9] in percent, empty where there is no honest interval."""
    if interval is None:
        return ""
    low, high = (render_percent_change(ratio).removesuffix(" %") for ratio in (interval.low, interval.high))
    return f"[{low}, {high}]"


def tell_change(ratio: float | None) -> str:
    """A change, or that there is none, in a cell of a table."""
    return NO_RESULT if ratio is None else render_percent_change(ratio)


def tell_interval(interval: Interval | None) -> str:
    """An interval, or that there is none, in a cell of a table."""
    return render_interval(interval) or NO_RESULT


def render_between(interval: Interval | None) -> str:
    """Between -3.8 % and +10.1 %, in a sentence."""
    if interval is None:
        return "no interval"
    return f"between {render_percent_change(interval.low)} and {render_percent_change(interval.high)}"


def render_threshold(threshold: float) -> str:
    """3 %, 2.5 %."""
    return f"{threshold * 100:g} %"


def render_confidence(confidence: float) -> str:
    """95.5 %, 96.4 %, 99.95 %: one digit more where so little is left that it counts."""
    percent = confidence * 100
    return f"{round(percent, 1) if percent < _NEARLY else float(f'{percent:.4g}'):g} %"


def render_spread(spread: float) -> str:
    """A spread of ratios in percent, with two digits where it is small: 2.3 %, 0.38 %."""
    digits = 1 if spread >= 0.01 or spread == 0 else 2  # noqa: PLR2004 - one percent
    return f"{spread * 100:.{digits}f} %"


def render_p(p: float | None, comparison: Comparison) -> str:
    """The smallest level at which "no difference" was excluded: ≤ 0.01, or > 0.1 where it was excluded at none."""
    if p is not None:
        return f"≤ {p:.2g}"
    looked = comparison.effect is not None and comparison.blocks >= FIRST_LOOK
    return f"> {GRID[0]:g}" if looked else NO_RESULT


def render_decided(comparison: Comparison) -> str:
    """After how many blocks the verdict fell, for tables: after 8; not in 60."""
    if comparison.lane is Lane.ONE_LOOK:
        return f"one look at {comparison.blocks}"
    if comparison.decided_at is not None:
        return f"after {comparison.decided_at}"
    return f"not in {comparison.blocks}" if comparison.verdict is Verdict.INCONCLUSIVE else NO_RESULT


def render_adjusted(comparison: Comparison) -> str:
    """p after Benjamini-Hochberg over the cells."""
    if comparison.adjusted_p is None:
        return NO_RESULT
    return f"≤ {comparison.adjusted_p:.2g}"


def render_sureness(comparison: Comparison) -> str:
    """The confidence of the interval that is shown."""
    if shown_interval(comparison) is None:
        return NO_RESULT
    return render_confidence(comparison.confidence if _inner_interval(comparison) is None else 1 - ALPHA_EQ)
