"""What happened while a plan is carried out, and where it is told."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened while a plan is carried out; `kind` is stable, the other fields depend on it."""

    kind: EventKind
    run: str = ""
    text: str = ""
    status: str = ""
    validity: str = ""
    value: float | None = None
    done: int = 0
    total: int = 0
    seconds_left: float | None = None


class EventKind(StrEnum):
    """Kinds of events; the names are part of `--events`."""

    STUDY_STARTED = "study_started"
    BUILDING = "building"
    STEP = "step"
    PROGRESS = "progress"
    RUN_FINISHED = "run_finished"
    BLOCK_FINISHED = "block_finished"
    NOTE = "note"
    WARNING = "warning"
    STUDY_FINISHED = "study_finished"


class Events(Protocol):
    """Where events go."""

    def emit(self, event: Event) -> None:
        """Tell it."""
