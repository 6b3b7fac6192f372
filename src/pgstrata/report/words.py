"""The answer in sentences: what is claimed, how sure, and never more than that."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from pgstrata.model.answer import Answer, Comparison, Verdict
from pgstrata.model.experiment import Experiment
from pgstrata.model.metrics import METRICS
from pgstrata.model.runs import RunStatus
from pgstrata.report.names import count, name_environment, name_where, say_common
from pgstrata.report.verdicts import (
    DIFFERENT,
    name_baseline,
    primary_comparisons,
    render_between,
    render_figures,
    render_threshold,
    verdict_label,
    verdict_word,
)
from pgstrata.stats.rule import MIN_BLOCKS
from pgstrata.units import render_percent_change

_MOST_SENTENCES = 8
_MOST_CELLS = 4
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
_BASELINE_COLLAPSED = {"baseline_collapsed", "both_collapsed"}
# These warnings only repeat what the sentence about the comparison says already.
SAID = frozenset({"undecided", "insufficient_blocks", "control_differs", *_BASELINE_COLLAPSED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """One sentence of the answer; `alarm` if it puts everything else in doubt."""

    text: str
    alarm: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """Comparisons of one environment that came out alike, and are told in one sentence."""

    verdict: Verdict
    name: str
    base: str
    experiment: Experiment
    items: tuple[Comparison, ...]
    why: str = ""


def answer_sentences(answer: Answer) -> tuple[Sentence, ...]:
    """The answer: alarms, then differences, then what could not be told, then the controls; few, for many cells too.

    What all cells have in common is said once, in a sentence of its own.
    """
    primary = primary_comparisons(answer)
    asked = _cases(answer, [comparison for comparison in primary if not comparison.control])
    controls = _cases(answer, [comparison for comparison in primary if comparison.control])
    loud = _say_all(answer, [case for case in controls if _is_alarm(case)], _say_case, _summarise)
    alarms = [Sentence(text=_shout(text), alarm=True) for text in loud]
    texts = _say_all(answer, asked, _say_case, _summarise)
    if not asked:
        texts = [f"nothing to compare: {name_baseline(answer.study.plan.experiment)} is the only environment"]
    calm = [case for case in controls if not _is_alarm(case)]
    texts += _say_all(answer, calm, _say_control, _summarise_control)
    common = say_common(answer.study.plan.experiment)
    if primary and common:
        texts.append(common)
    return (*alarms, *(Sentence(text=capitalise(text)) for text in texts))


def say_comparison(answer: Answer, comparison: Comparison) -> str:
    """One comparison as a sentence without a full stop, in the metric's own words."""
    (case,) = _cases(answer, [comparison])
    return _say_case(case)


def _cases(answer: Answer, comparisons: Iterable[Comparison]) -> list[_Case]:
    experiment = answer.study.plan.experiment
    base = name_baseline(experiment)
    groups: dict[tuple[str, Verdict, str, str], list[Comparison]] = {}
    for item in comparisons:
        key = (item.environment, item.verdict, verdict_label(item), _why(answer, item))
        groups.setdefault(key, []).append(item)
    cases = [
        _Case(
            verdict=verdict,
            name=name_environment(experiment.environment(environment), experiment),
            base=base,
            experiment=experiment,
            items=tuple(items),
            why=why,
        )
        for (environment, verdict, _, why), items in groups.items()
    ]
    return sorted(cases, key=lambda case: _RANKS[case.verdict])


def _say_all(
    answer: Answer,
    cases: Sequence[_Case],
    say: Callable[[_Case], str],
    summarise: Callable[[Answer, Sequence[_Case]], str],
) -> list[str]:
    """One sentence for each case; where they would be too many or too long, one for each environment."""
    if len(cases) <= _MOST_SENTENCES and all(len(case.items) <= _MOST_CELLS for case in cases):
        return [say(case) for case in cases]
    return [summarise(answer, group) for group in _by_environment(cases)]


def _by_environment(cases: Iterable[_Case]) -> list[list[_Case]]:
    groups: dict[str, list[_Case]] = {}
    for case in cases:
        groups.setdefault(case.items[0].environment, []).append(case)
    return list(groups.values())


def _say_case(case: _Case) -> str:
    limit = render_threshold(case.experiment.threshold)
    match case.verdict:
        case Verdict.BETTER | Verdict.WORSE:
            return _say_figures(case, _compare_words(case), render_figures, "over")
        case Verdict.NEGLIGIBLE:
            return _say_figures(case, f"{_compare_words(case)}, but by less than {limit}", render_figures, "over")
        case Verdict.EQUIVALENT:
            head = f"no difference larger than {limit} between {case.name} and {case.base}"
            return _say_figures(case, head, _tested, "over")
        case Verdict.INCONCLUSIVE:
            return _say_figures(case, f"{case.name} and {case.base} cannot be told apart", _found, "after")
        case Verdict.UNSTABLE:
            return f"{case.name} is unstable on {_places(case)}: no single percentage describes it ({_blocks(case)})"
        case Verdict.COLLAPSED:
            return f"{case.name} collapsed on {_places(case)}: {case.why}"
        case _:
            return _say_insufficient(case)


def _compare_words(case: _Case) -> str:
    first = case.items[0]
    word = verdict_word(first)
    if word in {"faster", "slower"}:
        return f"{case.name} is {word} than {case.base}"
    return f"{case.name} has {word} {METRICS[first.metric].title} than {case.base}"


def _say_figures(case: _Case, head: str, render: Callable[[Comparison], str], over: str, *, place: bool = True) -> str:
    """The figures of one cell behind its name, those of several cells each before theirs."""
    if len(case.items) == 1:
        where = f" on {name_where(case.items[0].cell, case.experiment)}" if place else ""
        return f"{head}{where}: {render(case.items[0])} {over} {_blocks(case)}"
    alike = len({item.blocks for item in case.items}) == 1
    parts = [
        f"{render(item)} on {name_where(item.cell, case.experiment)}"
        + ("" if alike else f" {over} {count(item.blocks, 'block')}")
        for item in case.items
    ]
    return f"{head}: {', '.join(parts)}" + (f", {over} {_blocks(case)}" if alike else "")


def _found(comparison: Comparison) -> str:
    return render_between(comparison.interval)


def _tested(comparison: Comparison) -> str:
    return render_between(comparison.equivalence_interval or comparison.interval)


def _blocks(case: _Case) -> str:
    """7 blocks, or 5 to 7 blocks."""
    numbers = [item.blocks for item in case.items]
    most = count(max(numbers), "block")
    return most if min(numbers) == max(numbers) else f"{min(numbers)} to {most}"


def _places(case: _Case) -> str:
    *others, last = [name_where(item.cell, case.experiment) for item in case.items]
    return f"{', '.join(others)} and {last}" if others else last


def _say_insufficient(case: _Case) -> str:
    if case.why:
        return f"no comparison of {case.name} with {case.base} on {_places(case)}: {case.why}"
    usable = _blocks(case).replace("block", "usable block")
    text = (
        f"too early to tell {case.name} from {case.base} on {_places(case)}: {usable}, an interval needs {MIN_BLOCKS}"
    )
    planned = case.items[0].planned_blocks
    return f"{text}, and the plan has only {planned}" if planned < MIN_BLOCKS else text


def _why(answer: Answer, comparison: Comparison) -> str:
    """Why there is nothing to compare; empty where there is."""
    if comparison.verdict is Verdict.COLLAPSED:
        return _why_collapsed(answer, comparison)
    if comparison.verdict is Verdict.INSUFFICIENT:
        texts = [warning.text for warning in comparison.warnings if warning.code in _BASELINE_COLLAPSED]
        return texts[0] if texts else ""
    return ""


def _why_collapsed(answer: Answer, comparison: Comparison) -> str:
    for run in answer.study.runs:
        there = run.environment == comparison.environment and run.cell == comparison.cell
        if there and run.status is RunStatus.COLLAPSED and run.reasons:
            return f"it ran out of a resource at this load ({run.reasons[0].text})"
    return "it ran out of a resource at this load"


# ------------------------------------------------------------------------------------------------ controls


def _is_alarm(case: _Case) -> bool:
    return case.verdict in DIFFERENT | {Verdict.COLLAPSED, Verdict.UNSTABLE}


def _shout(said: str) -> str:
    return f"THE CONTROL CAME OUT DIFFERENT: {said}. DOUBT EVERY OTHER DIFFERENCE OF THIS STUDY"


def _say_control(case: _Case) -> str:
    head, base = f"the control ({case.name})", case.base
    where = f" on {_places(case)}" if len(case.experiment.cells) > 1 else ""
    # Where there are several figures each names its cell.
    place = where if len(case.items) == 1 else ""
    match case.verdict:
        case Verdict.INSUFFICIENT:
            blocks = _blocks(case).partition(" block")[0]
            return f"{head} has too few blocks to say anything yet{where}: {blocks} of {MIN_BLOCKS}"
        case Verdict.NEGLIGIBLE:
            claim = f"{head} differs from {base} by a trace{place}"
            return f"{_say_figures(case, claim, render_figures, 'over', place=False)}: doubt differences of that size"
        case Verdict.EQUIVALENT:
            limit = render_threshold(case.experiment.threshold)
            claim = f"{head} does not differ from {base} by more than {limit}{place}, as it must be"
            return _say_figures(case, claim, _tested, "over", place=False)
        case _:
            claim = f"{head} cannot be told apart from {base}{place}, as it must be"
            return _say_figures(case, claim, _found, "after", place=False)


def _summarise_control(answer: Answer, cases: Sequence[_Case]) -> str:
    name, base = cases[0].name, cases[0].base
    told = [item for case in cases if case.verdict is not Verdict.INSUFFICIENT for item in case.items]
    if not told:
        return f"the control ({name}) has too few blocks to say anything yet"
    environment = cases[0].items[0].environment
    all_cells = sum(item.environment == environment for item in primary_comparisons(answer))
    traces = sum(item.verdict is Verdict.NEGLIGIBLE for item in told)
    trace = f" (in {traces} of them it differs by a trace)" if traces else ""
    cells = f"{len(told)} of {count(all_cells, 'cell')}"
    return f"the control ({name}) shows no relevant difference from {base} in {cells}, as it must be{trace}"


# ------------------------------------------------------------------------------------------------ many cells


def _summarise(_answer: Answer, cases: Sequence[_Case]) -> str:
    labels: dict[str, list[Comparison]] = {}
    for case in cases:
        labels.setdefault(verdict_label(case.items[0]), []).extend(case.items)
    parts = [f"{label} in {len(found)}{_range(found)}" for label, found in labels.items()]
    cells = count(sum(len(case.items) for case in cases), "cell")
    return f"{cases[0].name} against {cases[0].base} in {cells}: {'; '.join(parts)}"


def _range(comparisons: Sequence[Comparison]) -> str:
    """Sizes are named only where a difference is claimed."""
    claimed = [item.effect for item in comparisons if item.verdict in DIFFERENT and item.effect is not None]
    if not claimed:
        return ""
    low, high = render_percent_change(min(claimed)), render_percent_change(max(claimed))
    return f" ({low})" if low == high else f" ({low} to {high})"


def capitalise(text: str) -> str:
    """First letter upper case, the rest as it is; environments keep their spelling."""
    known = ("no ", "the ", "too ", "nothing ", "an ", "a ", "all ", "not ", "stopped ", "both ", "median ")
    return text[:1].upper() + text[1:] if text.startswith(known) else text
