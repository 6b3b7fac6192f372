"""What looks wrong, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pgstrata.model.anomaly import Anomaly, AnomalyKind
from pgstrata.model.answer import Answer
from pgstrata.model.experiment import Experiment
from pgstrata.report.sentences.names import count, name_cell, name_environment
from pgstrata.units import render_percent_change

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
