"""Runs and points of curves that look wrong."""

from dataclasses import dataclass
from enum import StrEnum


class AnomalyKind(StrEnum):
    """What looks wrong: a point of a curve over clients, or a single run."""

    KINK = "kink"
    RUN = "run"


@dataclass(frozen=True, slots=True, kw_only=True)
class Anomaly:
    """One environment in one cell that looks wrong by the primary metric.

    `effect` is a ratio. Of a kink it is the point in the cell `witness`, by which the kink came to light, to the end of
    what the other points of the curve leave open for it; of a run, the run to the median of its environment in the
    cell. `blocks` are those that it was seen in. `following` is the next run of the environment in the cell to the same
    median, None for kinks and after the last run.
    """

    kind: AnomalyKind
    environment: str
    cell: str
    witness: str
    metric: str
    effect: float
    blocks: tuple[int, ...]
    following: float | None = None
