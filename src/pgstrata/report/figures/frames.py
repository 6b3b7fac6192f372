"""Where the frames of a differential flame graph are drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pgstrata.compare.causes.stacks import CpuChange, Flames, Path

LEAST_WIDTH: Final = 0.002
MOST_FRAMES: Final = 400
_NEARLY: Final = 0.995


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """A frame where it is drawn: `depth` from the root, `left` and `width` as shares of the whole."""

    name: str
    depth: int
    left: float
    width: float
    change: CpuChange


def arrange_frames(flames: Flames) -> tuple[Frame, ...]:
    """Frames from the root on, the widest first within their caller; by their time in the environment.

    What is common to all stacks of a kind of process (main and its like) is left out, as are frames of less than 0.2 %
    of the whole, and of the others all but the widest hundreds.
    """
    total = flames.whole.value
    if total <= 0:
        return ()
    least, limit = LEAST_WIDTH * total, _limit(flames)
    children: dict[Path, list[Path]] = {}
    for path, change in flames.inclusive.items():
        if path and change.value >= least and change.value > limit:
            children.setdefault(path[:-1], []).append(path)
    frames: list[Frame] = []

    def place(path: Path, depth: int, left: float, *, skipping: bool) -> None:
        below = sorted(children.get(path, ()), key=lambda item: (-flames.inclusive[item].value, item))
        for child in below:
            change = flames.inclusive[child]
            alone = change.value >= _NEARLY * flames.inclusive[path].value and len(below) == 1
            called = sum(flames.inclusive[each].value for each in children.get(child, ()))
            skipped = skipping and alone and len(child) > 1 and called >= _NEARLY * change.value
            if not skipped:
                frames.append(
                    Frame(name=child[-1], depth=depth, left=left / total, width=change.value / total, change=change)
                )
            place(child, depth + (not skipped), left, skipping=skipping and (skipped or len(child) == 1))
            left += change.value

    place((), 0, 0.0, skipping=True)
    return tuple(frames)


def _limit(flames: Flames) -> float:
    """What a frame has to be wider than, so that there are not more than there may be."""
    widths = sorted((change.value for path, change in flames.inclusive.items() if path), reverse=True)
    return widths[MOST_FRAMES] if len(widths) > MOST_FRAMES else 0.0
