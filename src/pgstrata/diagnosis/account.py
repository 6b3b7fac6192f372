"""The account of a window: which share of a transaction's time went into which part, event and query."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from pgstrata.model.activity import SessionCount, SessionState
from pgstrata.model.attribution import Method

_CLEAR: Final = 3.0
_LEAST_SHARE: Final = 0.02
_CONSTANT: Final = re.compile(r"'(?:[^']|'')*'|\$\d+|\b\d+(?:\.\d+)?\b|\?")
_SPACE: Final = re.compile(r"\s+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What is known of one window, of a run or of a server's history.

    `seconds` are those of a transaction: clients x measured seconds / transactions. `cpu` and `queue` are the seconds
    per transaction that the clients' processes had a CPU or waited for one; None where nobody counted them. `sessions`
    are the samples of the clients' sessions.
    """

    seconds: float
    sessions: tuple[SessionCount, ...]
    cpu: float | None = None
    queue: float | None = None

    @property
    def samples(self) -> int:
        return sum(count.samples for count in self.sessions)

    def share(self, wanted: Callable[[SessionCount], bool]) -> float:
        """Share of the samples."""
        return sum(count.samples for count in self.sessions if wanted(count)) / self.samples


@lru_cache(maxsize=8192)
def identify_query(text: str) -> str:
    """What a normalised statement is known by, in all versions: no constants, one spacing, one case, no semicolon."""
    return _SPACE.sub(" ", _CONSTANT.sub("?", text)).strip().rstrip("; ").lower()


def _is_running(count: SessionCount) -> bool:
    return count.state is SessionState.RUNNING


def _is_io(count: SessionCount) -> bool:
    return count.state is SessionState.WAITING and count.wait_type == "IO"


def choose_method(sides: Sequence[Sequence[Seen]]) -> Method:
    """How the parts are told apart, alike for all windows of a comparison.

    With A the sampled time in a statement without an event, and C + R what the kernel counted: A is larger where time
    goes by off the CPU without a name, C + R is where a CPU is used while an event is shown. Both count where they are
    beyond three standard errors and 2 % of a transaction's time; the second only where it differs between two sides
    together with the time of I/O events, because the system calls of every client have some of it.

    Args:
        sides: the windows of each environment, with samples.
    """
    if any(seen.cpu is None or seen.queue is None for side in sides for seen in side):
        return Method.SAMPLED
    level = min(float(np.mean([seen.seconds for seen in side])) for side in sides)
    apart = [_mean_sampled(side, _is_running, _counted) for side in sides]
    if any(mean > 0 and _is_clear(mean, error, level) for mean, error in apart):
        return Method.UNNAMED
    reads = [_mean_sampled(side, _is_io, _nothing) for side in sides]
    for (gap, gap_error), (read, read_error) in zip(apart[1:], reads[1:], strict=True):
        overlap, more = apart[0][0] - gap, read - reads[0][0]
        if (
            overlap * more > 0
            and _is_clear(overlap, math.hypot(gap_error, apart[0][1]), level)
            and _is_clear(more, math.hypot(read_error, reads[0][1]), level)
        ):
            return Method.OVERLAPPING
    return Method.COUNTED


def _counted(seen: Seen) -> float:
    return (seen.cpu or 0.0) + (seen.queue or 0.0)


def _nothing(_seen: Seen) -> float:
    return 0.0


def _mean_sampled(
    side: Sequence[Seen], wanted: Callable[[SessionCount], bool], less: Callable[[Seen], float]
) -> tuple[float, float]:
    """Mean over the windows of the sampled seconds less something, and its standard error.

    The error is the larger of what the windows show and of what so many samples have at least (binomial).
    """
    share = sum(seen.share(wanted) * seen.samples for seen in side) / sum(seen.samples for seen in side)
    values = np.array([seen.share(wanted) * seen.seconds - less(seen) for seen in side])
    variance = sum(seen.seconds**2 * share * (1 - share) / seen.samples for seen in side) / len(side) ** 2
    shown = float(values.std(ddof=1)) / math.sqrt(len(side)) if len(side) > 1 else 0.0
    return float(values.mean()), max(math.sqrt(variance), shown)


def _is_clear(mean: float, error: float, level: float) -> bool:
    return abs(mean) > max(_CLEAR * error, _LEAST_SHARE * level)
