"""Sentences on statements that have names, such as the queries of an analytic workload."""

from collections.abc import Iterable, Sequence
from typing import Final

from pgstrata.compare.verdicts.judging import threshold_of
from pgstrata.model.answer import Answer, StatementShift, Verdict
from pgstrata.model.runs import name_of_statement
from pgstrata.report.sentences.names import count, name_cell, name_environment, say_on
from pgstrata.report.sentences.verdicts import render_threshold
from pgstrata.units import render_percent_change

_MOST_SAID: Final = 6
_MOST_NAMED: Final = 4
_MOVED: Final = (("faster", Verdict.BETTER), ("slower", Verdict.WORSE))


def statement_sentences(answer: Answer) -> tuple[str, ...]:
    """For each environment and cell, which of the statements with names are faster or slower; none of controls."""
    groups: dict[tuple[str, str], list[StatementShift]] = {}
    controls = {each.name for each in answer.study.plan.experiment.environments if each.control is not None}
    for shift in answer.statement_shifts:
        if shift.environment not in controls and name_of_statement(shift.statement):
            groups.setdefault((shift.cell, shift.environment), []).append(shift)
    return tuple(_say(answer, *place, shifts) for place, shifts in groups.items())[:_MOST_SAID]


def _say(answer: Answer, cell: str, environment: str, shifts: Sequence[StatementShift]) -> str:
    experiment = answer.study.plan.experiment
    name = name_environment(experiment.environment(environment), experiment)
    where = say_on(name_cell(experiment.cell(cell), experiment), name) if len(experiment.cells) > 1 else ""
    threshold = render_threshold(threshold_of(experiment, shifts[0].metric))
    said = [_name_all(word, shifts, verdict) for word, verdict in _MOVED if _number(shifts, verdict)]
    if same := _number(shifts, Verdict.EQUIVALENT, Verdict.NEGLIGIBLE):
        said.append(f"no difference larger than {threshold} in {same}")
    if open_ones := _number(shifts, Verdict.INCONCLUSIVE, Verdict.INSUFFICIENT, Verdict.UNSTABLE, Verdict.COLLAPSED):
        said.append(f"cannot tell for {open_ones}")
    return f"{name}{where}, {count(len(shifts), 'statement')} one by one: {'; '.join(said)}"


def _number(shifts: Iterable[StatementShift], *verdicts: Verdict) -> int:
    return sum(shift.verdict in verdicts for shift in shifts)


def _name_all(word: str, shifts: Sequence[StatementShift], verdict: Verdict) -> str:
    """2 faster (market share -12.3 %, best supplier -8.1 %), the largest changes first."""
    found = sorted((each for each in shifts if each.verdict is verdict), key=lambda each: -abs(_log_size(each)))
    named = [f"{name_of_statement(each.statement)} {render_percent_change(each.effect or 1.0)}" for each in found]
    more = f", and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
    return f"{len(found)} {word} ({', '.join(named[:_MOST_NAMED])}{more})"


def _log_size(shift: StatementShift) -> float:
    effect = shift.effect or 1.0
    return max(effect, 1 / effect)
