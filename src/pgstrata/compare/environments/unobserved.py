"""What samplers and counters missed, for a whole study: all runs stay in it, and why they differ rests on less."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from typing import Final

from pgstrata.model.doubts import Unseen
from pgstrata.model.reasons import Reason
from pgstrata.model.study import Study

UNSEEN: Final = frozenset({"sampler_lost", "samples_missing", "counters_reset"})
"""Codes of reasons of a run that say so."""
_MOST: Final = 6
_NUMBER: Final = re.compile(r"\d+")


def unseen_warnings(study: Study) -> tuple[Unseen, ...]:
    """A doubt for each environment and reason, figures in it aside, with the first run of which it was given.

    Of very many the rest is counted.
    """
    found: dict[tuple[str, str, tuple[str, ...]], list[tuple[str, Reason]]] = {}
    for run in sorted(study.runs, key=lambda run: (run.block, run.identity)):
        for reason in run.reasons:
            if reason.code in UNSEEN:
                key = (run.environment, reason.code, _without_figures(reason))
                found.setdefault(key, []).append((run.identity, reason))
    made = {name: sum(run.environment == name for run in study.runs) for name, _, _ in found}
    doubts = [
        Unseen(
            code=code,
            environment=name,
            number=len(cases),
            of=made[name],
            reason=cases[0][1],
            first=cases[0][0],
        )
        for (name, code, _), cases in sorted(found.items())
    ]
    left = len(doubts) - _MOST
    return (*doubts[:_MOST], replace(doubts[_MOST], kinds=left)) if left > 0 else tuple(doubts)


def _without_figures(reason: Reason) -> tuple[str, ...]:
    """What its fields hold, numbers in words of others aside."""
    values = (getattr(reason, field.name) for field in fields(reason))
    return tuple(_NUMBER.sub("#", str(value)) for value in values if not isinstance(value, int | float))
