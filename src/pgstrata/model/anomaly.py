"""What looked wrong in a study, and what became of it when it was measured again."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class AnomalyKind(StrEnum):
    """What looks wrong: a point of a curve over clients, or a single run."""

    KINK = "kink"
    RUN = "run"


class Repeat(StrEnum):
    """What new blocks made of an anomaly."""

    CONFIRMED = "confirmed"
    TRANSIENT = "transient"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True, kw_only=True)
class Anomaly:
    """One environment in one cell that looks wrong by the primary metric.

    `effect` is a ratio. Of a kink it is the point in the cell `witness`, by which the kink came to light, to the end of
    what the other points of the curve leave open for it; of a run, the run to the median of its environment in the
    cell. `blocks` are those that it was seen in.

    `outcome` rests on `new_blocks` alone, at most `asked` blocks that came later; `again` is their median of the same
    ratio, None without any.
    """

    kind: AnomalyKind
    environment: str
    cell: str
    witness: str
    metric: str
    effect: float
    blocks: tuple[int, ...]
    outcome: Repeat
    new_blocks: tuple[int, ...]
    asked: int
    again: float | None
