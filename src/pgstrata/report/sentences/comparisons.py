"""Comparisons that came out alike, told in one sentence: what is claimed, how surely, and what it took."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from pgstrata.compare.headlines import DIFFERENT
from pgstrata.model.answer import ALL_CELLS, Answer, Comparison, Lane, Verdict
from pgstrata.model.experiment import Experiment
from pgstrata.model.metrics import METRICS
from pgstrata.model.runs import RunStatus
from pgstrata.report.answer.effort import Effort
from pgstrata.report.sentences.findings import say_doubt
from pgstrata.report.sentences.names import count, name_environment, name_where
from pgstrata.report.sentences.reasons import say_reason
from pgstrata.report.sentences.verdicts import (
    name_reference,
    needed_blocks,
    render_between,
    render_confidence,
    render_figures,
    render_threshold,
    verdict_label,
    verdict_word,
)
from pgstrata.units import render_duration, render_percent_change

# Differences first, then what is no difference, then what nobody can tell.
_RANKS = {
    Verdict.COLLAPSED: 0,
    Verdict.BETTER: 0,
    Verdict.WORSE: 0,
    Verdict.UNSTABLE: 1,
    Verdict.NEGLIGIBLE: 2,
    Verdict.EQUIVALENT: 3,
    Verdict.INCONCLUSIVE: 4,
    Verdict.INSUFFICIENT: 5,
}
SMALL_AND_EARLY = "small_and_early"
BASELINE_COLLAPSED = frozenset({"baseline_collapsed", "both_collapsed"})
_CONFIRM = "; small and found early, it may look larger than it is: confirm in a fresh study"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Comparisons of one environment that came out alike, and are told in one sentence."""

    verdict: Verdict
    name: str
    base: str
    experiment: Experiment
    items: tuple[Comparison, ...]
    effort: Effort
    why: str = ""


def make_cases(answer: Answer, effort: Effort, comparisons: Iterable[Comparison]) -> list[Case]:
    """Comparisons grouped by environment and verdict, differences first."""
    experiment = answer.study.plan.experiment
    groups: dict[tuple[str, str, Verdict, str, str], list[Comparison]] = {}
    for item in comparisons:
        key = (item.environment, item.reference, item.verdict, verdict_label(item), _why(answer, item))
        groups.setdefault(key, []).append(item)
    cases = [
        Case(
            verdict=verdict,
            name=name_environment(experiment.environment(environment), experiment),
            base=name_reference(items[0], experiment),
            experiment=experiment,
            items=tuple(items),
            effort=effort,
            why=why,
        )
        for (environment, _, verdict, _, why), items in groups.items()
    ]
    return sorted(cases, key=lambda case: _RANKS[case.verdict])


def group_by_environment(cases: Iterable[Case]) -> list[list[Case]]:
    """The cases of each environment, in order of their first one."""
    groups: dict[str, list[Case]] = {}
    for case in cases:
        groups.setdefault(case.items[0].environment, []).append(case)
    return list(groups.values())


# ------------------------------------------------------------------------------------------------ one case


def say_case(case: Case) -> str:
    """The sentence, without a full stop, in the metric's own words."""
    limit = render_threshold(case.experiment.threshold)
    match case.verdict:
        case Verdict.BETTER | Verdict.WORSE:
            return f"{say_figures(case, _compare_words(case), render_figures)}{_confirm(case)}"
        case Verdict.NEGLIGIBLE:
            head = f"{_compare_words(case)}, but by less than {limit} (real, but negligible)"
            return say_figures(case, head, render_figures)
        case Verdict.EQUIVALENT:
            return say_figures(case, f"no difference larger than {limit} between {case.name} and {case.base}", tested)
        case Verdict.INCONCLUSIVE:
            return say_figures(case, f"{case.name} and {case.base} cannot be told apart", found, note=" (inconclusive)")
        case Verdict.UNSTABLE:
            text = f"{case.name} is unstable{say_on(places(case))}, no single percentage describes it ({_blocks(case)})"
            return f"{text}: {case.why}" if case.why else text
        case Verdict.COLLAPSED:
            return f"{case.name} collapsed{say_on(places(case))}: {case.why}"
        case _:
            return _say_insufficient(case)


def _compare_words(case: Case) -> str:
    first = case.items[0]
    word = verdict_word(first)
    if word in {"faster", "slower"}:
        return f"{case.name} is {word} than {case.base}"
    return f"{case.name} has {word} {METRICS[first.metric].title} than {case.base}"


def _confirm(case: Case) -> str:
    found_early = any(doubt.code == SMALL_AND_EARLY for item in case.items for doubt in item.warnings)
    return _CONFIRM if found_early else ""


def say_figures(
    case: Case, head: str, render: Callable[[Comparison], str], *, place: bool = True, note: str = ""
) -> str:
    """The figures of one comparison behind its name, those of several cells each before theirs."""
    if len(case.items) == 1:
        where = say_on(name_where(case.items[0].cell, case.experiment)) if place else ""
        return f"{head}{where}{note}: {render(case.items[0])}{say_course(case.items[0], case.effort)}"
    alike = len({item.blocks for item in case.items}) == 1
    parts = [
        f"{render(item)} on {name_where(item.cell, case.experiment)}"
        + ("" if alike else f" over {count(item.blocks, 'block')}")
        for item in case.items
    ]
    return f"{head}{note}: {', '.join(parts)}" + (f", over {_blocks(case)}" if alike else "")


def say_course(comparison: Comparison, effort: Effort) -> str:
    """How surely, after how many blocks and after what time: at 95.5 % confidence, decided after 7 of 24 blocks, 80 s.

    The fast lane promises no confidence, and equivalence has its own.
    """
    blocks = f"{comparison.decided_at or comparison.blocks} of {count(comparison.planned_blocks, 'block')}"
    seconds = effort.seconds(comparison)
    took = f", {render_duration(round(seconds))}" if seconds is not None and seconds >= 1 else ""
    sure = comparison.verdict in DIFFERENT | {Verdict.NEGLIGIBLE, Verdict.INCONCLUSIVE}
    confidence = f" at {render_confidence(comparison.confidence)} confidence" if sure else ""
    if comparison.lane is Lane.FAST:
        return f", a coarse figure: decided by the fast lane after {blocks}{took}"
    if comparison.lane is Lane.ONE_LOOK:
        return f"{confidence}, at one look over {count(comparison.blocks, 'block')}"
    if comparison.decided_at is not None:
        return f"{confidence}, decided after {blocks}{took}"
    return f"{confidence} after {blocks}{took}"


def found(comparison: Comparison) -> str:
    """Between -1.1 % and +4.0 %: all that is known of the difference."""
    return render_between(comparison.interval)


def tested(comparison: Comparison) -> str:
    """The same for equivalence, whose interval is narrower."""
    return render_between(comparison.equivalence_interval or comparison.interval)


def say_on(place: str) -> str:
    """On simple-update; over all cells together."""
    return f" over {place}" if place.startswith("all ") else f" on {place}"


def _blocks(case: Case) -> str:
    """7 blocks, or 5 to 7 blocks."""
    numbers = [item.blocks for item in case.items]
    most = count(max(numbers), "block")
    return most if min(numbers) == max(numbers) else f"{min(numbers)} to {most}"


def places(case: Case) -> str:
    """The cells of a case in words."""
    *others, last = [name_where(item.cell, case.experiment) for item in case.items]
    return f"{', '.join(others)} and {last}" if others else last


def _say_insufficient(case: Case) -> str:
    where = say_on(places(case))
    if case.why:
        return f"no comparison of {case.name} with {case.base}{where}: {case.why}"
    usable = _blocks(case).replace("block", "usable block")
    needed = max(map(needed_blocks, case.items))
    text = f"too early to tell {case.name} from {case.base}{where}: {usable}, an interval needs {needed}"
    planned = case.items[0].planned_blocks
    return f"{text}, and the plan has only {planned}" if planned < needed else text


def _why(answer: Answer, comparison: Comparison) -> str:
    """Why there is nothing to compare; empty where there is."""
    if comparison.verdict is Verdict.COLLAPSED:
        return _why_collapsed(answer, comparison)
    codes = {Verdict.INSUFFICIENT: BASELINE_COLLAPSED, Verdict.UNSTABLE: {"unstable"}}.get(comparison.verdict, set())
    return next((say_doubt(doubt) for doubt in comparison.warnings if doubt.code in codes), "")


def _why_collapsed(answer: Answer, comparison: Comparison) -> str:
    for run in answer.study.runs:
        there = run.environment == comparison.environment and comparison.cell in {run.cell, ALL_CELLS}
        if there and run.status is RunStatus.COLLAPSED and run.reasons:
            return f"it ran out of a resource at this load ({say_reason(run.reasons[0])})"
    return "it ran out of a resource at this load"


# ------------------------------------------------------------------------------------------------ many cells


def summarise(cases: Sequence[Case]) -> str:
    """All cells of one environment by number: slower in 4 (-6.0 % to -3.0 %); cannot tell in 5."""
    cells = count(sum(len(case.items) for case in cases), "cell")
    return f"{cases[0].name} against {cases[0].base} in {cells}: {count_verdicts(cases)}"


def count_verdicts(cases: Sequence[Case]) -> str:
    """Slower in 4 (-6.0 % to -3.0 %); cannot tell in 5."""
    labels = _by_label(cases)
    return "; ".join(f"{label} in {len(items)}{_range(items)}" for label, items in labels.items())


def explore(cases: Sequence[Case], most: int) -> str:
    """The cells of one environment beneath its headline, each by name where they are few."""
    head = f"single cells, exploratory: {cases[0].name} against {cases[0].base}"
    if sum(len(case.items) for case in cases) > most:
        return f"{head}: {count_verdicts(cases)}"
    experiment = cases[0].experiment
    parts = [
        f"{label} on {' and '.join(f'{name_where(item.cell, experiment)}{_size(item)}' for item in items)}"
        for label, items in _by_label(cases).items()
    ]
    return f"{head}: {'; '.join(parts)}"


def _size(comparison: Comparison) -> str:
    """The figures where a difference is claimed."""
    if comparison.verdict not in DIFFERENT | {Verdict.NEGLIGIBLE}:
        return ""
    return f" ({render_figures(comparison)})"


def _by_label(cases: Sequence[Case]) -> dict[str, list[Comparison]]:
    labels: dict[str, list[Comparison]] = {}
    for case in cases:
        labels.setdefault(verdict_label(case.items[0]), []).extend(case.items)
    return labels


def _range(comparisons: Sequence[Comparison]) -> str:
    """Sizes are named only where a difference is claimed."""
    claimed = [item.effect for item in comparisons if item.verdict in DIFFERENT and item.effect is not None]
    if not claimed:
        return ""
    low, high = render_percent_change(min(claimed)), render_percent_change(max(claimed))
    return f" ({low})" if low == high else f" ({low} to {high})"
