"""The last minutes of what a recorder records, as steps and as windows: for looking for incidents beside it."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from typing import Final

from pgstrata.model.archive import COMMITS, ArchiveWindow, SessionClass, Span, StatementUse
from pgstrata.model.incidents import LoadStep
from pgstrata.ports.recording import RecordedSecond

KEPT: Final = 1200
"""Seconds that are kept."""


class Lately:
    """The seconds that were recorded lately.

    Args:
        step: seconds of a step; steps end with whole multiples of it.
    """

    def __init__(self, step: int) -> None:
        self._step = step
        self._seconds: deque[RecordedSecond] = deque()
        self._open: list[RecordedSecond] = []

    def recall(self, seconds: Iterable[RecordedSecond]) -> None:
        """What an archive has of the seconds before the first that is added, in order; an open step goes on."""
        self._seconds.extend(seconds)
        if self._seconds:
            last = self._seconds[-1].moment
            self._open = [each for each in self._seconds if self._end_of(each) > last]

    def add(self, second: RecordedSecond) -> LoadStep | None:
        """A second; the step that ends with it, or that ended before it unseen."""
        if self._seconds and second.moment <= self._seconds[-1].moment:
            return None
        self._seconds.append(second)
        while self._seconds[0].moment <= second.moment - KEPT:
            self._seconds.popleft()
        end = self._end_of(second)
        if self._open and self._end_of(self._open[0]) != end:
            late, self._open = self._open, [second]
            return self._make(late)
        self._open.append(second)
        if second.moment == end:
            done, self._open = self._open, []
            return self._make(done)
        return None

    def _end_of(self, second: RecordedSecond) -> int:
        return -(-second.moment // self._step) * self._step

    def _make(self, seconds: list[RecordedSecond]) -> LoadStep | None:
        looks = [each.look for each in seconds if each.look is not None]
        if not looks:
            return None
        load = sum(number for look in looks for session, number in look.counts.items() if session.is_load)
        rates = [(each.server[COMMITS], each.server_seconds or 1.0) for each in seconds if COMMITS in each.server]
        known = math.fsum(weight for _, weight in rates)
        counted = [
            each.counted
            for each in seconds
            if each.counted is not None and each.counted.complete and each.counted.seconds <= 1.5 * self._step
        ]
        spent, covered = (math.fsum(getattr(each, name) for each in counted) for name in ("spent", "seconds"))
        return LoadStep(
            end=self._end_of(seconds[0]), seconds=self._step, looks=len(looks), load=float(load),
            commits=math.fsum(rate * weight for rate, weight in rates) / known if rates else math.nan,
            spent=spent / covered if covered > 0 else math.nan,
        )  # fmt: skip

    def window(self, span: Span) -> ArchiveWindow | None:
        """The window in cells of a second, as far as it is kept; None where nothing was seen."""
        seconds = [each for each in self._seconds if span.begin <= each.moment < span.end]
        if not any(each.look is not None for each in seconds):
            return None
        begin, size = seconds[0].moment, seconds[-1].moment + 1 - seconds[0].moment
        looks, commits = [0] * size, [math.nan] * size
        sessions: dict[SessionClass, list[int]] = {}
        for each in seconds:
            place = each.moment - begin
            commits[place] = each.server.get(COMMITS, math.nan)
            if each.look is not None:
                looks[place] = 1
                for session, number in each.look.counts.items():
                    sessions.setdefault(session, [0] * size)[place] = number
        uses, counted, transactions = _sum_uses(seconds)
        return ArchiveWindow(
            span=Span(begin=begin, end=begin + size), unit=1, cell=1, looks=tuple(looks),
            sessions={session: tuple(counts) for session, counts in sessions.items()},
            rates={COMMITS: tuple(commits)} if any(map(math.isfinite, commits)) else {},
            statements=uses, counted=counted, transactions=transactions,
        )  # fmt: skip


def _commits(second: RecordedSecond) -> float:
    """Transactions that were counted at it, of all seconds since the last count."""
    return second.server.get(COMMITS, 0.0) * (second.server_seconds or 1.0)


def _sum_uses(seconds: Iterable[RecordedSecond]) -> tuple[dict[str, StatementUse], float | None, float]:
    """Statements of the intervals whose middle is in them, the seconds of these, and the transactions."""
    kept = list(seconds)
    first = kept[0].moment
    uses: dict[str, StatementUse] = {}
    covered, transactions = 0.0, 0.0
    for each in kept:
        if each.counted is None or each.moment - each.counted.seconds / 2 < first:
            continue
        covered += each.counted.seconds
        since = each.moment - round(each.counted.seconds)
        transactions += sum(_commits(one) for one in kept if since < one.moment <= each.moment)
        for key, use in each.counted.uses.items():
            uses[key] = uses[key].plus(use) if key in uses else use
    return uses, covered or None, transactions
