"""What looked wrong and what became of it, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pgstrata.model.anomaly import Anomaly, AnomalyKind, Repeat
from pgstrata.model.answer import Answer
from pgstrata.model.experiment import Experiment
from pgstrata.report.sentences.names import count, name_cell, name_environment
from pgstrata.units import render_percent_change

MOST_SAID: Final = 10


def anomaly_sentences(answer: Answer) -> tuple[str, ...]:
    """The largest kinks, then the largest runs that strayed; how many more there are is said."""
    experiment = answer.study.plan.experiment
    kinks = [one for one in answer.anomalies if one.kind is AnomalyKind.KINK]
    runs = [one for one in answer.anomalies if one.kind is AnomalyKind.RUN]
    return (*_say_largest(kinks, experiment), *_say_largest(runs, experiment))


def _say_largest(anomalies: Sequence[Anomaly], experiment: Experiment) -> list[str]:
    said = [say_anomaly(one, experiment) for one in anomalies[:MOST_SAID]]
    left = anomalies[MOST_SAID:]
    if not left:
        return said
    outcomes = [f"{sum(one.outcome is outcome for one in left)} {outcome}" for outcome in Repeat]
    return [*said, f"and {len(left)} more: {', '.join(outcomes)}"]


def say_anomaly(anomaly: Anomaly, experiment: Experiment) -> str:
    """One anomaly without a full stop: 18, select-only, scale 10, 8 clients: -18.1 % from ...; confirmed kink: ..."""
    place = f"{_name(anomaly, experiment)}, {name_cell(experiment.cell(anomaly.cell), experiment)}"
    change = render_percent_change(anomaly.effect)
    if anomaly.kind is AnomalyKind.RUN:
        return f"{place}, block {anomaly.blocks[0]}: {change} from its median; {_say_run(anomaly)}"
    seen = experiment.cell(anomaly.witness).clients
    aside = f" (seen at {count(seen, 'client')})" if anomaly.witness != anomaly.cell else ""
    return f"{place}: {change} from the curve through its other points{aside}; {_say_kink(anomaly)}"


def _name(anomaly: Anomaly, experiment: Experiment) -> str:
    return name_environment(experiment.environment(anomaly.environment), experiment)


def _say_kink(anomaly: Anomaly) -> str:
    made = len(anomaly.new_blocks)
    if made < anomaly.asked:
        return f"undecided, not measured again: {made} of {count(anomaly.asked, 'new block')}"
    word = "confirmed kink" if anomaly.outcome is Repeat.CONFIRMED else str(anomaly.outcome)
    return f"{word}: {_again(anomaly)} in {count(made, 'new block')}"


def _say_run(anomaly: Anomaly) -> str:
    if not anomaly.new_blocks:
        return "undecided, not measured again"
    word = "confirmed, it strays again" if anomaly.outcome is Repeat.CONFIRMED else str(anomaly.outcome)
    return f"{word}: {_again(anomaly)} in block {anomaly.new_blocks[0]}"


def _again(anomaly: Anomaly) -> str:
    return render_percent_change(anomaly.again) if anomaly.again is not None else "-"
