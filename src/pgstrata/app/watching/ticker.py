"""Whole seconds, one after the other, by a clock that never jumps."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from pgstrata.ports.host import Clock

STEP: Final = 2.0
"""Seconds by which the wall clock has to leave the other one behind to count as stepped."""
HELD: Final = 60
"""Seconds that are waited for after a step back, so that none comes twice; after a longer one moments follow it."""


@dataclass(slots=True)
class Ticker:
    """Moments in whole Unix seconds: the wall clock's at first and after a step of it, else the monotonic one's."""

    clock: Clock
    _offset: float = 0.0
    _stepped: float = 0.0
    _last: int = 0

    def __post_init__(self) -> None:
        self._offset = self.clock.wall() - self.clock.monotonic()

    def now(self) -> float:
        """Unix seconds."""
        return self.clock.monotonic() + self._offset

    def passed(self) -> float:
        """Seconds since any moment, for durations: no step of the wall clock changes them."""
        return self.clock.monotonic()

    def wait(self) -> int:
        """Sleep until the next whole second that has not been yet; that second."""
        self._follow()
        now = self.now()
        due = int(now) + 1
        if due <= self._last < due + HELD:
            due = self._last + 1
        self.clock.sleep(max(0.0, due - now))
        self._follow()
        self._last = max(due, int(self.now()))
        return self._last

    def stepped(self) -> float:
        """Seconds by which the wall clock was stepped since the last call; 0 where it was not.

        The clock of a machine that was suspended has stepped forward.
        """
        step, self._stepped = self._stepped, 0.0
        return step

    def _follow(self) -> None:
        away = self.clock.wall() - self.clock.monotonic() - self._offset
        if abs(away) >= STEP:
            self._offset += away
            self._stepped += away


@dataclass(slots=True)
class Dues:
    """What has to be done at each multiple of a period."""

    _done: dict[str, int] = field(default_factory=dict)

    def come(self, what: str, period: int, moment: int) -> bool:
        """Whether a multiple of the period has come since somebody asked, also where that second itself was missed."""
        before, now = self._done.get(what), moment // period
        self._done[what] = now
        return moment % period == 0 if before is None else before != now
