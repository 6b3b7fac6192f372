"""The account of a window: which share of a transaction's time went into which part, event and query."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from pgstrata.model.activity import SessionCount, SessionState, WaitProfile
from pgstrata.model.attribution import Method

_WITHOUT_EVENT: Final = frozenset({SessionState.RUNNING, SessionState.ASLEEP})
_CLEAR: Final = 3.0
_LEAST_SHARE: Final = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What is known of one window, of a run or of a server's history.

    `seconds` are those of a transaction: clients x measured seconds / transactions. `cpu` and `queue` are the seconds
    per transaction that the clients' processes had a CPU or waited for one; None where nobody counted them. `sessions`
    are the samples of the clients' sessions, `profile` those that the server took by itself; where these are used
    (`profiles.use_profiles`), statements are told by `statement_samples` only.
    """

    seconds: float
    sessions: tuple[SessionCount, ...]
    cpu: float | None = None
    queue: float | None = None
    profile: WaitProfile | None = None
    statement_samples: int | None = None

    @property
    def samples(self) -> int:
        return sum(count.samples for count in self.sessions)

    @property
    def told(self) -> int:
        """Samples that tell statements apart."""
        return self.samples if self.statement_samples is None else self.statement_samples


def choose_method(sides: Sequence[Sequence[Seen]]) -> Method:
    """How the parts are told apart, for all windows of a comparison.

    Args:
        sides: the windows of each environment, with samples.
    """
    if any(seen.cpu is None or seen.queue is None for side in sides for seen in side):
        return Method.SAMPLED
    return Method.UNNAMED if any(_is_clearly_unnamed(side) for side in sides) else Method.COUNTED


def has_unnamed(side: Sequence[Seen]) -> bool:
    """Whether more time was sampled in statements without an event than the kernel counted: some had no name.

    Where one side clearly has such time, this decides for the others, so that two that are alike are split alike.
    """
    return _unnamed(side)[0] > 0


def _is_clearly_unnamed(side: Sequence[Seen]) -> bool:
    """Beyond three standard errors, and beyond 2 % of a transaction's time."""
    mean, error = _unnamed(side)
    level = float(np.mean([seen.seconds for seen in side]))
    return mean > max(_CLEAR * error, _LEAST_SHARE * level)


def _unnamed(side: Sequence[Seen]) -> tuple[float, float]:
    """Mean over the windows of the time sampled without an event less what was counted, and its standard error.

    The error is the larger of what the windows show and of what so many samples have at least (binomial).
    """
    running = [sum(count.samples for count in seen.sessions if count.state in _WITHOUT_EVENT) for seen in side]
    values = [
        seen.seconds * number / seen.samples - (seen.cpu or 0.0) - (seen.queue or 0.0)
        for seen, number in zip(side, running, strict=True)
    ]
    share = sum(running) / sum(seen.samples for seen in side)
    drawn = sum(seen.seconds**2 * share * (1 - share) / seen.samples for seen in side) / len(side) ** 2
    shown = float(np.var(values, ddof=1)) / len(side) if len(side) > 1 else 0.0
    return float(np.mean(values)), math.sqrt(max(drawn, shown))
