"""Where names stand beside the ends of lines, so that none covers another. Pure geometry, in pixels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

LETTER: Final = 6.6
"""Width of a letter of 12 px, rather more than the average of common fonts."""
LINE: Final = 13.0
"""Distance of lines of 12 px below each other, so that they do not touch."""
_TALL: Final = 12.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """The area that a text needs."""

    left: float
    top: float
    width: float
    height: float

    def overlaps(self, other: Box) -> bool:
        """Whether the two share more than an edge."""
        return (
            self.left < other.left + other.width
            and other.left < self.left + self.width
            and self.top < other.top + other.height
            and other.top < self.top + self.height
        )


def text_box(text: str, x: float, middle: float, *, anchor: str = "start") -> Box:
    """The area of a line of text at `x` with its middle at `middle`."""
    width = LETTER * len(text)
    left = {"start": x, "middle": x - width / 2, "end": x - width}[anchor]
    return Box(left=left, top=middle - _TALL / 2, width=width, height=_TALL)


def part_labels(wanted: Sequence[float], low: float, high: float, *, apart: float = LINE) -> tuple[float | None, ...]:
    """Heights near the wanted ones, at least `apart` from each other, between `low` and `high`.

    Neighbours that are too near become one group around the mean of what they want (pool adjacent violators: Barlow,
    Bartholomew, Bremner & Brunk 1972), which gives the least squared shifts. Where there is no room for all, the first
    ones get it, and the others are None.
    """
    most = int((high - low) / apart) + 1 if high >= low else 0
    order = sorted(range(min(len(wanted), most)), key=lambda place: (wanted[place], place))
    groups: list[tuple[float, int]] = []
    for rank, place in enumerate(order):
        mean, size = wanted[place] - rank * apart, 1
        while groups and groups[-1][0] >= mean:
            before, number = groups.pop()
            mean, size = (before * number + mean * size) / (number + size), number + size
        groups.append((mean, size))
    means = [mean for mean, size in groups for _ in range(size)]
    top = high - (len(order) - 1) * apart
    found: list[float | None] = [None] * len(wanted)
    for rank, place in enumerate(order):
        found[place] = min(max(means[rank], low), top) + rank * apart
    return tuple(found)


def thin_out(texts: Sequence[str], places: Sequence[float], *, gap: float = 6) -> tuple[bool, ...]:
    """Which texts, each centred at its place along a line, can stand without touching; the last one always does."""
    boxes = [text_box(text, x, 0, anchor="middle") for text, x in zip(texts, places, strict=True)]
    shown = [False] * len(texts)
    edge, limit = -float("inf"), boxes[-1].left if boxes else 0.0
    for place, box in enumerate(boxes):
        last = place == len(boxes) - 1
        if last or (box.left >= edge and box.left + box.width + gap <= limit):
            shown[place] = True
            edge = box.left + box.width + gap
    return tuple(shown)


def cut_apart(texts: Sequence[str], letters: int) -> list[str]:
    """At most so many letters of each; those that would be alike are cut in their middle instead of at their end."""
    short = [cut(text, letters) for text in texts]
    tail = letters // 2
    return [
        f"{text[: letters - tail - 1].rstrip()}…{text[-tail:].lstrip()}"
        if short.count(one) > 1 and one != text
        else one
        for text, one in zip(texts, short, strict=True)
    ]


def cut(text: str, letters: int) -> str:
    """At most so many letters, with an ellipsis where some are left out."""
    return text if len(text) <= letters else f"{text[: max(1, letters - 1)].rstrip()}…"
