"""What samplers and counters missed, for a whole study: all runs stay in it, and why they differ rests on less."""

from __future__ import annotations

import re
from typing import Final

from pgstrata.model.answer import ResultWarning, Study
from pgstrata.model.runs import Reason
from pgstrata.units import render_count

UNSEEN: Final = frozenset({"sampler_lost", "samples_missing", "counters_reset"})
"""Codes of reasons of a run that say so."""
_MOST: Final = 6
_NUMBER: Final = re.compile(r"\d+")


def unseen_warnings(study: Study) -> tuple[ResultWarning, ...]:
    """A warning for each environment and sentence, numbers in it aside, with the first run of which it was said.

    Of very many the rest is counted.
    """
    experiment = study.plan.experiment
    found: dict[tuple[str, str, str], list[tuple[str, Reason]]] = {}
    for run in sorted(study.runs, key=lambda run: (run.block, run.identity)):
        for reason in run.reasons:
            if reason.code in UNSEEN:
                key = (run.environment, reason.code, _NUMBER.sub("#", reason.text))
                found.setdefault(key, []).append((run.identity, reason))
    made = {name: sum(run.environment == name for run in study.runs) for name, _, _ in found}
    warnings = []
    for (name, code, _), cases in sorted(found.items()):
        identity, reason = cases[0]
        title = experiment.environment(name).title
        text = f"{title}: in {len(cases)} of {render_count(made[name], 'run')} {reason.text} ({identity})"
        warnings.append(ResultWarning(code=code, text=text))
    left = len(warnings) - _MOST
    if left > 0:
        more = ResultWarning(code=warnings[_MOST].code, text=f"{left} more kinds of what was not seen")
        return (*warnings[:_MOST], more)
    return tuple(warnings)
