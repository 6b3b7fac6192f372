"""Comparisons that came out alike, told in one sentence: what is claimed, how surely, and what it took.

What it took is the machine time that was spent on both environments until the verdict fell. Controls have sentences of
their own: an alarm where the baseline differs from itself, else that it does not.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pgstrata.compare.headlines import DIFFERENT
from pgstrata.model.answer import ALL_CELLS, Answer, Comparison, Lane, Verdict
from pgstrata.model.experiment import Experiment
from pgstrata.model.metrics import METRICS, SUSTAINED_RATE
from pgstrata.model.runs import RunRecord, RunStatus
from pgstrata.model.study import Study
from pgstrata.report.sentences.findings import say_doubt_of
from pgstrata.report.sentences.names import count, join_names, name_environment, name_where, say_objectives, say_on
from pgstrata.report.sentences.reasons import say_reason
from pgstrata.report.sentences.verdicts import (
    name_reference,
    needed_blocks,
    render_between,
    render_confidence,
    render_figures,
    render_threshold,
    shown_interval,
    verdict_label,
    verdict_word,
)
from pgstrata.sources.runs import may_enter
from pgstrata.units import render_digits, render_duration, render_percent_change


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """The runs of a study by environment and cell."""

    experiment: Experiment
    runs: Mapping[tuple[str, str], Sequence[RunRecord]]

    def seconds(self, comparison: Comparison) -> float | None:
        """Seconds measured and spent around it, in both environments, up to the last block looked at; None without.

        Other environments of the same blocks are not counted, nor is what was prepared before the first block.
        """
        arms = [
            [run for cell in self._cells(comparison) for run in self.runs.get((name, cell), ())]
            for name in (comparison.environment, comparison.reference or self.experiment.baseline)
        ]
        last = self._last_block(comparison, arms)
        spent = [
            run.measured_seconds + sum(run.dead_time.values())
            for arm in arms
            for run in arm
            if last is None or run.block <= last
        ]
        return sum(spent) or None

    def _cells(self, comparison: Comparison) -> list[str]:
        if comparison.cell != ALL_CELLS:
            return [comparison.cell]
        return [cell.identity for cell in self.experiment.cells]

    def _last_block(self, comparison: Comparison, arms: Sequence[Sequence[RunRecord]]) -> int | None:
        """The number of the block that the verdict fell after, or the last one looked at."""
        own, base = ({run.block for run in arm if may_enter(run)} for arm in arms)
        usable = sorted(own & base)
        looked_at = comparison.decided_at or comparison.blocks
        return usable[looked_at - 1] if 0 < looked_at <= len(usable) else None


def measure_effort(study: Study) -> Effort:
    """Made once for all comparisons of a study."""
    runs: dict[tuple[str, str], list[RunRecord]] = {}
    for run in study.runs:
        runs.setdefault((run.environment, run.cell), []).append(run)
    return Effort(experiment=study.plan.experiment, runs=runs)


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
MISSED = "objective_missed"
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
            return say_figures(case, f"no difference larger than {limit} between {case.name} and {case.base}", found)
        case Verdict.INCONCLUSIVE:
            return say_figures(case, f"{case.name} and {case.base} cannot be told apart", found, note=" (inconclusive)")
        case Verdict.UNSTABLE:
            where, blocks = say_on(places(case)), _blocks(case)
            text = f"{case.name} is unstable{where}, and no single percentage describes it ({blocks})"
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
    if first.metric == SUSTAINED_RATE.name:
        return f"{case.name} sustains {word} transactions per second than {case.base} {say_objectives(case.experiment)}"
    return f"{case.name} has {word} {METRICS[first.metric].title} than {case.base}"


def _confirm(case: Case) -> str:
    found_early = any(doubt.code == SMALL_AND_EARLY for item in case.items for doubt in item.warnings)
    return _CONFIRM if found_early else ""


def say_figures(
    case: Case, head: str, render: Callable[[Comparison], str], *, place: bool = True, note: str = ""
) -> str:
    """The figures of one comparison behind its name, those of several cells each before theirs."""
    if len(case.items) == 1:
        where = say_on(name_where(case.items[0].cell, case.experiment), head) if place else ""
        return f"{head}{where}{note}: {render(case.items[0])}{say_course(case.items[0], case.effort)}"
    alike = len({item.blocks for item in case.items}) == 1
    parts = [
        f"{render(item)}{say_on(name_where(item.cell, case.experiment))}"
        + ("" if alike else f" over {count(item.blocks, 'block')}")
        for item in case.items
    ]
    return f"{head}{note}: {', '.join(parts)}" + (f", over {_blocks(case)}" if alike else "")


def say_course(comparison: Comparison, effort: Effort) -> str:
    """How surely, after how many blocks and after what time: at 95.5 % confidence, decided after 8 of 60 blocks, 80 s.

    Equivalence has a confidence of its own.
    """
    blocks = f"{comparison.decided_at or comparison.blocks} of {count(comparison.planned_blocks, 'block')}"
    seconds = effort.seconds(comparison)
    took = f", {render_duration(round(seconds))}" if seconds is not None and seconds >= 1 else ""
    sure = comparison.verdict in DIFFERENT | {Verdict.NEGLIGIBLE, Verdict.INCONCLUSIVE}
    confidence = f" at {render_confidence(comparison.confidence)} confidence" if sure else ""
    if comparison.lane is Lane.ONE_LOOK:
        return f"{confidence}, at one look over {count(comparison.blocks, 'block')}"
    if comparison.decided_at is not None:
        return f"{confidence}, decided after {blocks}{took}"
    return f"{confidence} after {blocks}{took}"


def found(comparison: Comparison) -> str:
    """Between -1.1 % and +4.0 %: all that is known of the difference."""
    return render_between(shown_interval(comparison))


def _blocks(case: Case) -> str:
    """7 blocks, or 5 to 7 blocks."""
    numbers = [item.blocks for item in case.items]
    most = count(max(numbers), "block")
    return most if min(numbers) == max(numbers) else f"{min(numbers)} to {most}"


def places(case: Case) -> str:
    """The cells of a case in words."""
    return join_names([name_where(item.cell, case.experiment) for item in case.items])


def _say_insufficient(case: Case) -> str:
    if case.why:
        return f"no comparison of {case.name} with {case.base}{say_on(places(case), case.base)}: {case.why}"
    return f"not enough blocks yet to compare {case.name} with {_say_lack(case)}"


def _say_lack(case: Case) -> str:
    """14 on select-only: 8 usable blocks so far, an interval needs 9; the plan has only 8."""
    usable = _blocks(case).replace("block", "usable block")
    needed = max(map(needed_blocks, case.items))
    text = f"{case.base}{say_on(places(case), case.base)}: {usable} so far, an interval needs {needed}"
    planned = case.items[0].planned_blocks
    return f"{text}; the plan has only {planned}" if planned < needed else text


def gather_early(cases: Sequence[Case]) -> list[Case]:
    """The cases, those that lack the same blocks for an interval as one that has the names of all."""
    groups: dict[str, list[Case]] = {}
    for number, case in enumerate(cases):
        early = case.verdict is Verdict.INSUFFICIENT and not case.why
        groups.setdefault(_say_lack(case) if early else str(number), []).append(case)
    return [replace(group[0], name=join_names([case.name for case in group])) for group in groups.values()]


def _why(answer: Answer, comparison: Comparison) -> str:
    """Why there is nothing to compare; empty where there is."""
    if comparison.verdict is Verdict.COLLAPSED:
        return _why_collapsed(answer, comparison)
    experiment = answer.study.plan.experiment
    codes = {Verdict.INSUFFICIENT: BASELINE_COLLAPSED, Verdict.UNSTABLE: {"unstable"}}.get(comparison.verdict, set())
    return next((say_doubt_of(doubt, experiment) for doubt in comparison.warnings if doubt.code in codes), "")


def _why_collapsed(answer: Answer, comparison: Comparison) -> str:
    for run in answer.study.runs:
        there = run.environment == comparison.environment and comparison.cell in {run.cell, ALL_CELLS}
        if there and run.status is RunStatus.COLLAPSED and run.reasons:
            if run.reasons[0].code == MISSED:
                return say_reason(run.reasons[0])
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
        label + say_on(" and ".join(f"{name_where(item.cell, experiment)}{_size(item)}" for item in items))
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


def shout(said: str) -> str:
    """The alarm, to be read before everything else."""
    return f"THE CONTROL DIFFERS FROM ITSELF: DO NOT TRUST ANY OTHER DIFFERENCE OF THIS STUDY. {said}"


def say_control(case: Case) -> str:
    """A control that is no reason for alarm."""
    head, base = f"the control ({case.name})", case.base
    match case.verdict:
        case Verdict.INSUFFICIENT:
            numbers = sorted({item.blocks for item in case.items})
            blocks = " to ".join(str(number) for number in (numbers[0], numbers[-1])[: len(numbers)])
            needed = max(map(needed_blocks, case.items))
            where = say_on(places(case)) if len(case.experiment.cells) > 1 else ""
            return f"{head} has too few blocks to say anything yet{where}: {blocks} of {needed}"
        case Verdict.NEGLIGIBLE:
            claim = _place_claim(case, f"{head} differs slightly from {base}")
            return f"{say_figures(case, claim, render_figures, place=False)}: do not trust differences of that size"
        case Verdict.EQUIVALENT:
            limit = render_threshold(case.experiment.threshold)
            claim = _place_claim(case, f"{head} does not differ from {base} by more than {limit}")
            return say_figures(case, f"{claim}, as it must be", found, place=False)
        case _:
            claim = _place_claim(case, f"{head} cannot be told apart from {base}")
            return f"{say_figures(case, claim, found, place=False)}{_hidden(case)}"


def _place_claim(case: Case, claim: str) -> str:
    """A claim about a control with its cell; where there are several figures, each names its own."""
    named = len(case.experiment.cells) > 1 and len(case.items) == 1
    return claim + say_on(places(case), claim) if named else claim


def _hidden(case: Case) -> str:
    """How large a difference of a control could be that its interval does not exclude."""
    spans = [item.interval for item in case.items if item.interval is not None]
    ends = [abs(end - 1) for span in spans for end in (span.low, span.high)]
    return f"; a fault of up to {render_digits(100 * max(ends))} % would not show" if ends else ""


def summarise_control(cases: Sequence[Case], all_cells: int) -> str:
    """The calm cells of one control by number."""
    name, base = cases[0].name, cases[0].base
    told = [item for case in cases if case.verdict is not Verdict.INSUFFICIENT for item in case.items]
    if not told:
        return f"the control ({name}) has too few blocks to say anything yet"
    traces = sum(item.verdict is Verdict.NEGLIGIBLE for item in told)
    trace = f" (in {traces} of them it differs slightly)" if traces else ""
    cells = f"{len(told)} of {count(all_cells, 'cell')}"
    return f"the control ({name}) shows no relevant difference from {base} in {cells}, as it must be{trace}"


def say_chance(items: Sequence[Comparison], name: str, all_cells: int) -> str:
    """Single cells of a control that differ no more than so many cells do by chance."""
    figures = ", ".join(render_figures(item) for item in items)
    return (
        f"the control ({name}) differs in {len(items)} of {count(all_cells, 'cell')} ({figures}), no more than so many "
        "cells do by chance"
    )
