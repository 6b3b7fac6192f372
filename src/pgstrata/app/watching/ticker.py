"""Whole seconds, one after the other, by a clock that never jumps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pgstrata.ports.host import Clock

STEP: Final = 2.0
"""Seconds by which the wall clock has to leave the other one behind to count as stepped."""


@dataclass(slots=True)
class Ticker:
    """Moments in whole Unix seconds: the wall clock's at the start, and from then on the monotonic clock's.

    Where the wall clock is stepped forward, moments follow; where it is stepped back they do not, so that no second
    comes twice.
    """

    clock: Clock
    _offset: float = 0.0
    _told: float = 0.0

    def __post_init__(self) -> None:
        self._offset = self.clock.wall() - self.clock.monotonic()

    def now(self) -> float:
        """Unix seconds."""
        return self.clock.monotonic() + self._offset

    def wait(self) -> int:
        """Sleep until the next whole second; that second."""
        now = self.now()
        due = int(now) + 1
        self.clock.sleep(max(0.0, due - now))
        return due

    def stepped(self) -> float:
        """By how many seconds the wall clock was stepped since somebody asked; 0 where it was not."""
        away = self.clock.wall() - self.clock.monotonic() - self._offset
        if abs(away - self._told) < STEP:
            return 0.0
        step = away - self._told
        if away >= STEP:
            self._offset += away
            away = 0.0
        self._told = away
        return step
