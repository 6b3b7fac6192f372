"""Lanes: works on machines that share nothing, side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

Work = Callable[[], None]


class Lanes(Protocol):
    """Does works side by side. One of them runs at a time, and the others when it waits: for a machine, or a time.

    So what they share needs no locks, and each sees what it shares change only where it waits.
    """

    def __call__(self, works: Sequence[Work]) -> None:
        """Do all of them, and return when all have ended.

        Raises:
            KeyboardInterrupt: the user interrupted; each work was, too, where it waited.
            BaseException: what the first of them that failed raised.
        """


def in_turn(works: Sequence[Work]) -> None:
    """Implements `Lanes` without any: one work after the other."""
    for work in works:
        work()
