"""The answer in sentences: what is claimed, how sure, what puts it in doubt, and what looks wrong; never more."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from pgstrata.compare.headlines import (
    DIFFERENT,
    explored_comparisons,
    faulty_controls,
    is_beyond_chance,
    lead_comparisons,
)
from pgstrata.model.anomaly import Anomaly, AnomalyKind
from pgstrata.model.answer import Answer, Comparison
from pgstrata.model.experiment import Experiment
from pgstrata.report.sentences.comparisons import (
    Case,
    Effort,
    count_verdicts,
    explore,
    gather_early,
    group_by_environment,
    make_cases,
    measure_effort,
    say_case,
    say_chance,
    say_control,
    shout,
    summarise,
    summarise_control,
)
from pgstrata.report.sentences.cpu import cpu_sentences
from pgstrata.report.sentences.factors import contrast_sentences, step_sentences
from pgstrata.report.sentences.load import drop_sentences, load_sentences
from pgstrata.report.sentences.names import capitalise, count, name_cell, name_environment, say_common, say_labels
from pgstrata.report.sentences.rates import rate_sentences
from pgstrata.report.sentences.statements import statement_sentences
from pgstrata.report.sentences.trends import trend_sentences
from pgstrata.report.sentences.verdicts import name_baseline
from pgstrata.report.sentences.worth import worth_sentences
from pgstrata.units import render_percent_change

_MOST_SENTENCES = 8
_MOST_CELLS = 4
_MOST_EXPLORED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """One sentence of the answer; `alarm` if it puts everything else in doubt, `minor` behind the headlines.

    `control` if it is about a control that is no reason for alarm; such sentences are minor, too.
    """

    text: str
    alarm: bool = False
    minor: bool = False
    control: bool = False


def answer_sentences(answer: Answer) -> tuple[Sentence, ...]:
    """The answer: alarms, what depends on the load, headlines, and what stands beside them.

    Beside them stand rates within an objective, statements, drops, what CPU alone shows, factors, single cells and
    controls.

    Few sentences, for many cells too. Where there is only one cell, it is the headline. What all cells have in common
    is said once, in a sentence of its own.
    """
    effort = measure_effort(answer.study)
    leads = lead_comparisons(answer)
    asked = gather_early(make_cases(answer, effort, [item for item in leads if not item.control]))
    controls = make_cases(answer, effort, [item for item in leads if item.control])
    texts = _say_all(asked, say_case, summarise)
    if not asked:
        texts = [f"nothing to compare: {name_baseline(answer.study.plan.experiment)} is the only environment"]
    common, labels = say_common(answer.study.plan.experiment), say_labels(answer.study.plan.experiment)
    texts = [*trend_sentences(answer), *load_sentences(answer), *texts]
    beside = [
        *rate_sentences(answer),
        *worth_sentences(answer),
        *statement_sentences(answer),
        *drop_sentences(answer),
        *cpu_sentences(answer),
        *contrast_sentences(answer),
        *step_sentences(answer),
        *_explored(answer, effort),
    ]
    calm = [*_calm_controls(answer, controls), *_explored_controls(answer)]
    shared = [labels, common] if leads else []
    return (
        *(Sentence(text=text, alarm=True) for text in _alarms(answer, effort)),
        *(Sentence(text=capitalise(text)) for text in texts),
        *(Sentence(text=capitalise(text), minor=True) for text in beside),
        *(Sentence(text=capitalise(text), minor=True, control=True) for text in calm),
        *(Sentence(text=capitalise(text), minor=True) for text in shared if text),
    )


def say_comparison(answer: Answer, comparison: Comparison) -> str:
    """One comparison as a sentence without a full stop, in the metric's own words."""
    (case,) = make_cases(answer, measure_effort(answer.study), [comparison])
    return say_case(case)


def _say_all(cases: Sequence[Case], say: Callable[[Case], str], shorten: Callable[[Sequence[Case]], str]) -> list[str]:
    """One sentence for each case; where they would be too many or too long, one for each environment.

    An environment with a single comparison keeps its interval in either.
    """
    if len(cases) <= _MOST_SENTENCES and all(len(case.items) <= _MOST_CELLS for case in cases):
        return [say(case) for case in cases]
    groups = group_by_environment(cases)
    return [say(group[0]) if _is_single(group) else shorten(group) for group in groups]


def _is_single(cases: Sequence[Case]) -> bool:
    return sum(len(case.items) for case in cases) == 1


def _explored(answer: Answer, effort: Effort) -> list[str]:
    """Single cells beneath the headlines, one sentence for each environment, or one for very many."""
    cells = [item for item in explored_comparisons(answer) if not item.control]
    cases = make_cases(answer, effort, cells)
    groups = group_by_environment(cases)
    if len(groups) <= _MOST_EXPLORED:
        return [explore(group, _MOST_CELLS) for group in groups]
    return [f"single cells, exploratory: of {len(cells)}, {count_verdicts(cases)}"]


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


MOST_SAID: Final = 10
_REMEDY: Final = "to see whether any of this stays, measure it again: pgstrata run EXPERIMENT.toml --study NEW_FOLDER"


def anomaly_sentences(answer: Answer) -> tuple[str, ...]:
    """The largest kinks, then the largest runs that stray; how many more there are, and what tells more."""
    experiment = answer.study.plan.experiment
    kinks = [one for one in answer.anomalies if one.kind is AnomalyKind.KINK]
    runs = [one for one in answer.anomalies if one.kind is AnomalyKind.RUN]
    said = (*_say_largest(kinks, experiment), *_say_largest(runs, experiment))
    return (*said, _REMEDY) if said else ()


def _say_largest(anomalies: Sequence[Anomaly], experiment: Experiment) -> list[str]:
    said = [say_anomaly(one, experiment) for one in anomalies[:MOST_SAID]]
    left = len(anomalies) - MOST_SAID
    return [*said, f"and {left} more"] if left > 0 else said


def say_anomaly(anomaly: Anomaly, experiment: Experiment) -> str:
    """One anomaly without a full stop: 18, select-only, scale 10, 8 clients: -18.1 % from the curve ..."""
    name = name_environment(experiment.environment(anomaly.environment), experiment)
    place = f"{name}, {name_cell(experiment.cell(anomaly.cell), experiment)}"
    change = render_percent_change(anomaly.effect)
    if anomaly.kind is AnomalyKind.RUN:
        after = "" if anomaly.following is None else f"; the next run: {render_percent_change(anomaly.following)}"
        return f"{place}, block {anomaly.blocks[0]}: {change} from its median{after}"
    seen = experiment.cell(anomaly.witness).clients
    aside = f" (seen at {count(seen, 'client')})" if anomaly.witness != anomaly.cell else ""
    return f"{place}: {change} from the curve through its other points{aside}"
