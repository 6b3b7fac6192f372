"""The answer in sentences: what is claimed, how sure, and never more than that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pgstrata.compare.headlines import (
    DIFFERENT,
    explored_comparisons,
    faulty_controls,
    is_beyond_chance,
    lead_comparisons,
)
from pgstrata.model.answer import Answer, Comparison
from pgstrata.report.answer.effort import Effort, measure_effort
from pgstrata.report.sentences.comparisons import (
    BASELINE_COLLAPSED,
    Case,
    count_verdicts,
    explore,
    group_by_environment,
    make_cases,
    say_case,
    summarise,
)
from pgstrata.report.sentences.contrasts import contrast_sentences
from pgstrata.report.sentences.controls import say_chance, say_control, shout, summarise_control
from pgstrata.report.sentences.names import say_common
from pgstrata.report.sentences.ordered import step_sentences
from pgstrata.report.sentences.verdicts import name_baseline

_MOST_SENTENCES = 8
_MOST_CELLS = 4
_MOST_EXPLORED = 3
# With these a sentence may begin; anything else is the name of an environment.
_FIRST_WORDS = (
    "no ", "the ", "too ", "nothing ", "an ", "a ", "all ", "not ", "stopped ", "both ", "median ", "single ",
    "effect ", "along ", "factors, ", "found ", "this ",
)  # fmt: skip
# These warnings only repeat what the sentence about the comparison says already.
SAID = frozenset({"undecided", "insufficient_blocks", "control_differs", "unstable", *BASELINE_COLLAPSED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """One sentence of the answer; `alarm` if it puts everything else in doubt, `minor` behind the headlines."""

    text: str
    alarm: bool = False
    minor: bool = False


def answer_sentences(answer: Answer) -> tuple[Sentence, ...]:
    """The answer: alarms, then headlines, factors and steps, then single cells, then controls; few, for many cells too.

    Where there is only one cell, it is the headline. What all cells have in common is said once, in a sentence of its
    own.
    """
    effort = measure_effort(answer.study)
    leads = lead_comparisons(answer)
    asked = make_cases(answer, effort, [item for item in leads if not item.control])
    controls = make_cases(answer, effort, [item for item in leads if item.control])
    texts = _say_all(asked, say_case, summarise)
    if not asked:
        texts = [f"nothing to compare: {name_baseline(answer.study.plan.experiment)} is the only environment"]
    common = say_common(answer.study.plan.experiment)
    beside = [
        *contrast_sentences(answer),
        *step_sentences(answer),
        *_explored(answer, effort),
        *_calm_controls(answer, controls),
        *_explored_controls(answer),
        *([common] if leads and common else []),
    ]
    return (
        *(Sentence(text=text, alarm=True) for text in _alarms(answer, effort)),
        *(Sentence(text=capitalise(text)) for text in texts),
        *(Sentence(text=capitalise(text), minor=True) for text in beside),
    )


def say_comparison(answer: Answer, comparison: Comparison) -> str:
    """One comparison as a sentence without a full stop, in the metric's own words."""
    (case,) = make_cases(answer, measure_effort(answer.study), [comparison])
    return say_case(case)


def _say_all(cases: Sequence[Case], say: Callable[[Case], str], shorten: Callable[[Sequence[Case]], str]) -> list[str]:
    """One sentence for each case; where they would be too many or too long, one for each environment."""
    if len(cases) <= _MOST_SENTENCES and all(len(case.items) <= _MOST_CELLS for case in cases):
        return [say(case) for case in cases]
    return [shorten(group) for group in group_by_environment(cases)]


def _explored(answer: Answer, effort: Effort) -> list[str]:
    """Single cells beneath the headlines, one sentence for each environment, or one for very many."""
    cells = [item for item in explored_comparisons(answer) if not item.control]
    cases = make_cases(answer, effort, cells)
    groups = group_by_environment(cases)
    if len(groups) <= _MOST_EXPLORED:
        return [explore(group, _MOST_CELLS) for group in groups]
    return [f"single cells, exploratory: of {len(cells)}, {count_verdicts(cases)}"]


# ------------------------------------------------------------------------------------------------ controls


def alarm_sentences(answer: Answer) -> tuple[str, ...]:
    """Controls that came out different, whole ones before single cells."""
    return _alarms(answer, measure_effort(answer.study))


def _alarms(answer: Answer, effort: Effort) -> tuple[str, ...]:
    faulty, leads = faulty_controls(answer), lead_comparisons(answer)
    groups = ([item for item in faulty if item in leads], [item for item in faulty if item not in leads])
    texts = (text for items in groups for text in _say_all(make_cases(answer, effort, items), say_case, summarise))
    return tuple(map(shout, texts))


def _calm_controls(answer: Answer, controls: Sequence[Case]) -> list[str]:
    everywhere, faulty = lead_comparisons(answer), faulty_controls(answer)

    def shorten(cases: Sequence[Case]) -> str:
        environment = cases[0].items[0].environment
        return summarise_control(cases, sum(item.environment == environment for item in everywhere))

    return _say_all([case for case in controls if case.items[0] not in faulty], say_control, shorten)


def _explored_controls(answer: Answer) -> list[str]:
    """Cells of a control that differ by chance, under a headline that does not."""
    cells = [item for item in explored_comparisons(answer) if item.control]
    differing = [item for item in cells if item.verdict in DIFFERENT and not is_beyond_chance(item)]
    groups = group_by_environment(make_cases(answer, measure_effort(answer.study), differing))
    texts = []
    for group in groups:
        items = [item for case in group for item in case.items]
        everywhere = sum(item.environment == items[0].environment for item in cells)
        texts.append(say_chance(items, group[0].name, everywhere))
    return texts


def capitalise(text: str) -> str:
    """First letter upper case, the rest as it is; environments keep their spelling."""
    return text[:1].upper() + text[1:] if text.startswith(_FIRST_WORDS) else text
