"""Work that child processes do, in steps: several such works are begun together and awaited one after the other.

There is one thread and no event loop. A work is a generator that yields whenever a child of its own is busy; it waits
for that child when it is resumed. Closing it ends what it has begun.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack
from typing import Final, TypeAlias, TypeVar

T = TypeVar("T")
_ENDED: Final = object()

Steps: TypeAlias = Generator[None, None, T]
"""Yields nothing, and returns the result."""


def finish(steps: Steps[T]) -> T:
    """All steps of one work without anything beside it; its result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result


def finish_all(works: Sequence[Steps[None]]) -> None:
    """Several works side by side: each is begun, then each is awaited in its turn; all are closed if one fails."""
    with ExitStack() as closing:
        for work in works:
            closing.callback(work.close)
        going = list(works)
        while going:
            going = [work for work in going if next(work, _ENDED) is not _ENDED]
