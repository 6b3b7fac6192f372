"""Sentences on the rounds of a cell in slices: how visits differ, how they begin, which rounds are outliers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from pgstrata.compare.rounds import CellRounds, Opening
from pgstrata.model.experiment import Experiment
from pgstrata.model.runs import Validity
from pgstrata.report.sentences.names import count, join_names, name_environment
from pgstrata.units import render_percent_change, render_share

_STILL: Final = 1.02
"""Visits whose ratio is smaller are said to be alike."""
_ALIKE: Final = 1 / 3
"""Share of what all environments did together that one may leave it by, if they are said to move alike."""
_WORTH: Final = 0.01
_MOST_NAMED: Final = 3


def say_rounds(found: CellRounds, experiment: Experiment) -> tuple[str, ...]:
    """What the charts of a cell show, the drift between visits first; without full stops."""
    return tuple(_say(found, experiment))


def _say(found: CellRounds, experiment: Experiment) -> Iterator[str]:
    yield _say_drift(found)
    if opening := _say_openings(found.openings, experiment):
        yield opening
    if found.far:
        yield _say_far(found, experiment)
    if spoilt := _say_spoilt(found):
        yield spoilt
    loads = [(visit.background, visit.block) for visit in found.visits if visit.background is not None]
    if loads:
        most, block = max(loads)
        yield f"Other processes used up to {render_share(most)} of the CPUs (block {block})"


def _say_drift(found: CellRounds) -> str:
    """Between the slowest and the fastest of 12 visits throughput differs by 8.1 %, in all environments alike."""
    drift, visits = found.drift, count(len(found.visits), "visit")
    if drift is None:
        return f"Throughput by round in {visits}"
    alone = f"; one environment departs from the others by up to {_apart(drift.own)}"
    if len(found.profiles) <= 1:
        alone = ""
    if drift.together < _STILL:
        return f"Throughput is the same in all {visits} to within {_apart(drift.together)}{alone}"
    trend = "" if drift.trend is None else " and falls over time" if drift.trend < 1 else " and rises over time"
    moved = f"Throughput differs by {_apart(drift.together)} between the slowest and the fastest of {visits}{trend}"
    if alone and drift.own - 1 <= _ALIKE * (drift.together - 1):
        return f"{moved}, in all environments alike"
    return f"{moved}{alone}"


def _apart(ratio: float) -> str:
    return render_percent_change(ratio).lstrip("+±")


def _say_openings(openings: tuple[Opening, ...], experiment: Experiment) -> str:
    """The first 2 rounds of a visit are slower than the rest: 18 by 4.0 %; the largest three."""
    told = sorted((each for each in openings if abs(each.effect - 1) >= _WORTH), key=lambda each: -abs(each.effect - 1))
    if not told:
        return ""
    parts = [
        f"{name_environment(experiment.environment(each.environment), experiment)} {render_percent_change(each.effect)}"
        for each in told[:_MOST_NAMED]
    ]
    rounds = max(each.rounds for each in told)
    first = "The first round of a visit differs" if rounds == 1 else f"The first {rounds} rounds of a visit differ"
    more = f" ({len(told)} environments in all)" if len(told) > _MOST_NAMED else ""
    return f"{first} from the rest: {', '.join(parts)}{more}"


def _say_far(found: CellRounds, experiment: Experiment) -> str:
    """3 rounds are outliers in one environment alone: 18 (2), 16 (1)."""
    counts = Counter(each.environment for each in found.far).most_common()
    parts = [
        f"{name_environment(experiment.environment(name), experiment)} ({number})"
        for name, number in counts[:_MOST_NAMED]
    ]
    more = f" and {count(len(counts) - _MOST_NAMED, 'more environment')}" if len(counts) > _MOST_NAMED else ""
    outliers = "is an outlier" if len(found.far) == 1 else "are outliers"
    rounds = f"{count(len(found.far), 'round')} {outliers}"
    if len(found.profiles) > 1:
        rounds += " in one environment alone"
    return f"{rounds}: {join_names(parts)}{more}"


def _say_spoilt(found: CellRounds) -> str:
    """2 runs are excluded, 1 run is suspect."""
    counts = Counter(turn.validity for visit in found.visits for turn in visit.turns.values())
    parts = [
        f"{count(number, 'run')} {'is' if number == 1 else 'are'} {word}"
        for kind, word in ((Validity.INVALID, "excluded"), (Validity.SUSPECT, "suspect"))
        if (number := counts[kind])
    ]
    return ", ".join(parts)
