"""A load that rises, whatever comes of it: more demand is told of, and is no incident. Pure."""

from __future__ import annotations

import math
from collections import deque
from typing import Final

from pgstrata.diagnosis.live.usual import Usual
from pgstrata.model.incidents import LoadStep
from pgstrata.stats.shifts import CumulativeSum

_REFERENCE: Final = math.log(1.5) / 2
"""Half of a load that is larger by a half."""


class LoadRise:
    """Looks for a load that is larger than in the last hour.

    Args:
        steps: how many are kept.
        fewest: from how many on what is usual is known.
        length: steps between two false alarms.
    """

    def __init__(self, *, steps: int, fewest: int, length: float) -> None:
        self._usual = Usual(steps=steps, fewest=fewest, padding=1.0, length=length, reference=_REFERENCE)
        self._sum = CumulativeSum(reference=_REFERENCE)
        self._recent: deque[LoadStep] = deque(maxlen=steps)

    def keep(self, step: LoadStep) -> None:
        """A usual step."""
        self._usual.add(step.end, step.load, float(step.looks))
        self._recent.append(step)

    def learn(self) -> None:
        """Make what is usual anew."""
        self._usual.learn(None)

    def see(self, step: LoadStep) -> int | None:
        """The next step: since when the load is larger, Unix seconds, if it is."""
        score, base = self._usual.score(step.load, float(step.looks), 0.0), self._usual.base
        if score is None or base is None:
            return None
        self._sum.add(score.value, 1.0, base.rule.clip)
        return step.end - self._sum.since * step.seconds + 1 if self._sum.value > base.rule.threshold else None

    def clear(self) -> None:
        """Forget what was found."""
        self._sum.clear()

    def accept(self, begin: int) -> None:
        """The load since then is usual from now on."""
        self._sum.clear()
        kept = [(each.end, each.load, float(each.looks)) for each in self._recent if each.end > begin]
        if kept:
            self._usual.begin_anew(kept)
            self._usual.learn(None)
