"""What happened while a plan is carried out, and where it is told."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How an environment stands against the baseline after so many blocks, over all cells or in the only one.

    Ratios to the baseline (0.97 is 3 % less), None where there is none yet; `decided_at` is the number of blocks at the
    verdict, 0 while the comparison is open.
    """

    environment: str
    verdict: str
    blocks: int
    effect: float | None = None
    low: float | None = None
    high: float | None = None
    decided_at: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened while a plan is carried out; `kind` is stable, the other fields depend on it.

    `seconds_left` is what is left at most, `budget_left` what is left of the budget; None where there is none.
    """

    kind: EventKind
    run: str = ""
    text: str = ""
    status: str = ""
    validity: str = ""
    value: float | None = None
    done: int = 0
    total: int = 0
    seconds_left: float | None = None
    budget_left: float | None = None
    standings: tuple[Standing, ...] = ()


class EventKind(StrEnum):
    """Kinds of events; the names are part of `--events`."""

    STUDY_STARTED = "study_started"
    BUILDING = "building"
    STEP = "step"
    PROGRESS = "progress"
    RUN_FINISHED = "run_finished"
    BLOCK_FINISHED = "block_finished"
    STANDINGS = "standings"
    NOTE = "note"
    WARNING = "warning"
    STUDY_FINISHED = "study_finished"


class Events(Protocol):
    """Where events go."""

    def emit(self, event: Event) -> None:
        """Tell it."""
