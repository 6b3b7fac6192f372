"""Sentences on differences that depend on the number of clients, on drops and on collapses."""

from collections.abc import Iterator
from typing import Final

from pgstrata.compare.ladders import LadderEnd, find_ladder_ends
from pgstrata.model.answer import Answer, LoadDrop, LoadFinding, LoadRange, Verdict
from pgstrata.model.experiment import Experiment
from pgstrata.model.metrics import METRICS
from pgstrata.model.study import Study
from pgstrata.report.sentences.names import count, name_environment, say_on, say_size
from pgstrata.report.sentences.verdicts import render_interval, render_threshold
from pgstrata.units import render_percent_change

_MOST_SAID: Final = 6


def load_sentences(answer: Answer) -> tuple[str, ...]:
    """Differences that depend on the load; they lead the answer, because a mean over all loads hides them."""
    experiment = answer.study.plan.experiment
    return tuple(say_load(each, experiment) for each in answer.load_findings if each.changes)[:_MOST_SAID]


def drop_sentences(answer: Answer) -> tuple[str, ...]:
    """Drops and collapses as clients are added, each from one environment's own figures."""
    experiment = answer.study.plan.experiment
    return tuple(text for each in answer.load_findings for text in _say_drops(each, experiment))[:_MOST_SAID]


def ladder_sentences(study: Study) -> tuple[str, ...]:
    """Where each ladder until throughput falls has ended."""
    return tuple(_say_ladder(end, study.plan.experiment) for end in find_ladder_ends(study))


def _say_ladder(end: LadderEnd, experiment: Experiment) -> str:
    best = "highest throughput: " + "; ".join(
        f"{name_environment(experiment.environment(name), experiment)} with "
        f"{count(max(rates, key=lambda clients: rates[clients]), 'client')}"
        for name, rates in end.climbed.items()
    )
    last = count(end.cells[-1].clients, "client")
    where = f"{end.cells[-1].workload}, {end.cells[-1].size}"
    if not end.fallen:
        return f"{where}: the ladder ends at {last}, though throughput has not fallen in every environment ({best})"
    *some, most = [str(cell.clients) for cell in end.beyond] or [""]
    names = f"{', '.join(some)} and {most}" if some else most
    beyond = f"; cells with {names} clients are left out" if names else ""
    return (
        f"{where}: the ladder ends at {last}, where every environment has lost a tenth of its best throughput "
        f"({best}; measured before the first block){beyond}"
    )


def say_load(finding: LoadFinding, experiment: Experiment) -> str:
    """18 on select-only: no difference larger than 3 % up to 16 clients, -12 % [-14, -10] throughput from 32 on."""
    said = [f"{_say_range(each, finding, experiment)} {_say_place(each, finding)}" for each in finding.ranges]
    turns = ", better at some loads and worse at others" if finding.turns else ""
    chance = f"p = {finding.p:.2g}, " if finding.p is not None else ""
    return f"{_name(finding, experiment)}{turns}: {', '.join(said)} ({chance}exploratory)"


def _say_range(part: LoadRange, finding: LoadFinding, experiment: Experiment) -> str:
    figures = "" if part.effect is None else _say_change(part.effect, render_interval(part.interval))
    match part.verdict:
        case Verdict.EQUIVALENT:
            return f"no difference larger than {render_threshold(experiment.threshold)}"
        case Verdict.BETTER | Verdict.WORSE:
            return f"{figures} {METRICS[finding.metric].title}"
        case Verdict.NEGLIGIBLE:
            return f"{figures}, negligible,"
        case _:
            return f"not decided ({figures})" if figures else "not decided"


def _say_place(part: LoadRange, finding: LoadFinding) -> str:
    if part.first == finding.clients[0]:
        return f"up to {count(part.last, 'client')}"
    if part.last == finding.clients[-1]:
        return f"from {count(part.first, 'client')} on"
    if part.first == part.last:
        return f"with {count(part.first, 'client')}"
    return f"from {part.first} to {count(part.last, 'client')}"


def _say_drops(finding: LoadFinding, experiment: Experiment) -> Iterator[str]:
    name = _name(finding, experiment)
    for drop in finding.drops:
        yield f"{name}: {_say_drop(drop, METRICS[finding.metric].title)}"
    if finding.collapsed_from is not None:
        yield f"{name}: collapses at {count(finding.collapsed_from, 'client')}"


def _say_drop(drop: LoadDrop, title: str) -> str:
    change = _say_change(drop.effect, render_interval(drop.interval))
    return f"{change} {title} from {drop.fewer} to {count(drop.more, 'client')}"


def _say_change(effect: float, interval: str) -> str:
    return f"{render_percent_change(effect)} {interval}".rstrip()


def _name(finding: LoadFinding, experiment: Experiment) -> str:
    """18 on select-only; with the size of its data where there are several."""
    cell = experiment.cell(finding.cells[0])
    several = len({say_size(each) for each in experiment.cells}) > 1
    curve = f"{cell.workload} {say_size(cell)}" if several else cell.workload
    name = name_environment(experiment.environment(finding.environment), experiment)
    return name + say_on(curve, name)
