"""The words and figures of single verdicts, for sentences, tables and charts alike."""

from __future__ import annotations

from typing import assert_never

from pgstrata.model.answer import Answer, Comparison, Interval, Verdict
from pgstrata.model.experiment import Experiment
from pgstrata.model.metrics import METRICS
from pgstrata.report.names import name_environment
from pgstrata.units import Direction, render_percent_change

DIFFERENT = frozenset({Verdict.BETTER, Verdict.WORSE})


def primary_comparisons(answer: Answer) -> tuple[Comparison, ...]:
    """Comparisons by the metric that was declared before the first run."""
    metric = answer.study.plan.experiment.metric
    return tuple(comparison for comparison in answer.comparisons if comparison.metric == metric)


def name_baseline(experiment: Experiment) -> str:
    """The baseline as people call it."""
    return name_environment(experiment.environment(experiment.baseline), experiment)


def verdict_word(comparison: Comparison) -> str:
    """The verdict in one or two words of the metric: faster, slower, no difference, cannot tell, ..."""
    metric = METRICS[comparison.metric]
    match comparison.verdict:
        case Verdict.BETTER:
            return metric.better
        case Verdict.WORSE:
            return metric.worse
        case Verdict.NEGLIGIBLE:
            higher = (comparison.effect or 1.0) > 1
            return metric.better if higher is (metric.direction is Direction.HIGHER) else metric.worse
        case Verdict.EQUIVALENT:
            return "no difference"
        case Verdict.INCONCLUSIVE:
            return "cannot tell"
        case Verdict.INSUFFICIENT:
            return "too early"
        case Verdict.UNSTABLE | Verdict.COLLAPSED:
            return str(comparison.verdict)
        case _:
            assert_never(comparison.verdict)


def verdict_label(comparison: Comparison) -> str:
    """As `verdict_word`, for tables: a negligible difference says that it is one."""
    word = verdict_word(comparison)
    return f"{word}, negligible" if comparison.verdict is Verdict.NEGLIGIBLE else word


def render_figures(comparison: Comparison) -> str:
    """The effect with its interval: -3.1 % [-4.2, -1.9]."""
    if comparison.effect is None:
        return "size unknown"
    change = render_percent_change(comparison.effect)
    return f"{change} {render_interval(comparison.interval)}".rstrip()


def render_interval(interval: Interval | None) -> str:
    """[-4.2, -1.9] in percent, empty where there is no honest interval."""
    if interval is None:
        return ""
    low, high = (render_percent_change(ratio).removesuffix(" %") for ratio in (interval.low, interval.high))
    return f"[{low}, {high}]"


def render_between(interval: Interval | None) -> str:
    """Between -3.8 % and +10.1 %, in a sentence."""
    if interval is None:
        return "no interval"
    return f"between {render_percent_change(interval.low)} and {render_percent_change(interval.high)}"


def render_threshold(threshold: float) -> str:
    """3 %, 2.5 %."""
    return f"{threshold * 100:g} %"
