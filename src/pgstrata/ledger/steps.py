"""The steps of a ledger, between which it can be stopped: a test that kills pgstrata does so exactly there."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum


class LedgerStep(StrEnum):
    """Moments of a change and of its undoing, in their order."""

    BEFORE_ENTRY = "before-entry"
    BEFORE_CHANGE = "before-change"
    CHANGED = "changed"
    COMPLETED = "completed"
    BEFORE_UNDO = "before-undo"
    UNDO_BEGUN = "undo-begun"
    UNDONE = "undone"
    CLOSED = "closed"


At = Callable[[LedgerStep], None]
"""What a ledger calls at each step."""


def go_on(_step: LedgerStep) -> None:
    """Nothing happens at a step: what a ledger does unless it is tested."""
