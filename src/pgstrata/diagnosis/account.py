"""The account of a window: which share of a transaction's time went into which part, event and query."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from pgstrata.model.activity import ProcessCount, SessionCount, SessionState, WaitProfile
from pgstrata.model.attribution import Method

_ASKED: Final = frozenset({SessionState.AWAKE, SessionState.ASLEEP, SessionState.PASSING})
_WITHOUT_EVENT: Final = frozenset({SessionState.RUNNING, *_ASKED})
_MOSTLY: Final = 0.5
"""Least share of samples without a wait event for which the kernel was asked; in a session's first second it is not."""
FEWEST_SAMPLES: Final = 5
"""Samples of all sides together below which an event or a statement does not stand alone."""
_CLEAR: Final = 3.0
_LEAST_SHARE: Final = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What is known of one window, of a run or of a server's history.

    `seconds` are those of a transaction: clients x measured seconds / transactions. `cpu` and `queue` are the seconds
    per transaction that the clients' processes had a CPU or waited for one; None where nobody counted them. `sessions`
    are the samples of the clients' sessions, `processes` those of the server's other processes at the same looks,
    `profile` those that the server took by itself of sessions; where these are used
    (`profiles.use_profiles`), statements are told by `statement_samples` only.
    """

    seconds: float
    sessions: tuple[SessionCount, ...]
    cpu: float | None = None
    queue: float | None = None
    profile: WaitProfile | None = None
    statement_samples: int | None = None
    processes: tuple[ProcessCount, ...] = ()

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
    if all(_was_asked(side) for side in sides):
        return Method.ASLEEP if any(_is_clear(side, _asleep(side)) for side in sides) else Method.COUNTED
    return Method.UNNAMED if any(_is_clear(side, _unnamed(side)) for side in sides) else Method.COUNTED


def sleep_of(side: Sequence[Seen]) -> Mapping[str, float]:
    """The share of its time without an event that each statement slept; empty if the kernel was not asked.

    Samples for which the kernel was not asked are divided like the rest of their statement. A statement with fewer than
    `FEWEST_SAMPLES` known samples gets the share of all statements together.
    """
    asleep, known = Counter[str](), Counter[str]()
    for count in (count for seen in side for count in seen.sessions):
        if count.state in {SessionState.AWAKE, SessionState.ASLEEP}:
            known[count.query] += count.samples
            asleep[count.query] += count.samples * (count.state is SessionState.ASLEEP)
    total, slept = known.total(), asleep.total()
    # before the kernel's "awake" was written down, there was none: who was not asleep then is not known to have slept
    if slept == total:
        return {}
    # a session that is idle without an event has a CPU, and a statement that nobody knows
    queries = {count.query for seen in side for count in seen.sessions if count.query or count.state in _ASKED}
    return {
        query: asleep[query] / known[query] if known[query] >= FEWEST_SAMPLES else slept / total for query in queries
    }


def count_asleep(count: SessionCount, sleep: Mapping[str, float]) -> float:
    """How many of these samples were asleep without an event; `sleep` as `sleep_of` their side."""
    match count.state:
        case SessionState.ASLEEP:
            return count.samples
        case SessionState.RUNNING | SessionState.PASSING:
            return count.samples * sleep.get(count.query, 0.0)
        case _:
            return 0.0


def has_unnamed(side: Sequence[Seen]) -> bool:
    """Whether more time was sampled in statements without an event than the kernel counted: some had no name.

    Where one side clearly has such time, this decides for the others, so that two that are alike are split alike.
    """
    return _unnamed(side)[0] > 0


def _was_asked(side: Sequence[Seen]) -> bool:
    """Whether the kernel was asked of sessions in statements without an event whether they sleep."""
    counts = [count for seen in side for count in seen.sessions]
    asked = sum(count.samples for count in counts if count.state in _ASKED)
    unasked = sum(count.samples for count in counts if count.state is SessionState.RUNNING and count.query)
    awake = any(count.state is SessionState.AWAKE for count in counts)
    return asked >= _MOSTLY * (asked + unasked) and (awake or not asked)


def _is_clear(side: Sequence[Seen], found: tuple[float, float]) -> bool:
    """Whether a time with its standard error is beyond three of these, and beyond 2 % of a transaction's."""
    mean, error = found
    level = float(np.mean([seen.seconds for seen in side]))
    return mean > max(_CLEAR * error, _LEAST_SHARE * level)


def _asleep(side: Sequence[Seen]) -> tuple[float, float]:
    """Mean over the windows of the time that was seen asleep without an event, and its standard error."""
    asleep = [sum(each.samples for each in seen.sessions if each.state is SessionState.ASLEEP) for seen in side]
    return _sampled(side, asleep, [0.0] * len(side))


def _unnamed(side: Sequence[Seen]) -> tuple[float, float]:
    """Mean over the windows of the time sampled without an event less what was counted, and its standard error."""
    running = [sum(count.samples for count in seen.sessions if count.state in _WITHOUT_EVENT) for seen in side]
    return _sampled(side, running, [(seen.cpu or 0.0) + (seen.queue or 0.0) for seen in side])


def _sampled(side: Sequence[Seen], samples: Sequence[float], less: Sequence[float]) -> tuple[float, float]:
    """Mean over the windows of the time that some of their samples stand for, `less` something, and its error.

    The standard error is the larger of what the windows show and of what so many samples have at least (binomial).
    """
    values = [
        seen.seconds * number / seen.samples - counted
        for seen, number, counted in zip(side, samples, less, strict=True)
    ]
    share = sum(samples) / sum(seen.samples for seen in side)
    drawn = sum(seen.seconds**2 * share * (1 - share) / seen.samples for seen in side) / len(side) ** 2
    shown = float(np.var(values, ddof=1)) / len(side) if len(side) > 1 else 0.0
    return float(np.mean(values)), math.sqrt(max(drawn, shown))
