"""How samplers say that they fell behind, or were not there, for too much of a window. Pure."""

from __future__ import annotations

from typing import Final

from pgstrata.model.runs import Reason

MOST_UNSEEN: Final = 0.2
"""Share of a window that may go unseen without a word."""


def doubt_unseen(share: float, what: str, so: str) -> tuple[Reason, ...]:
    """A remark where more than `MOST_UNSEEN` of the measured time was not seen.

    Args:
        share: of the measured time, 0 to 1.
        what: was not seen, in the plural.
        so: what follows.
    """
    if share <= MOST_UNSEEN:
        return ()
    return (Reason(code="samples_missing", text=f"{what} were not seen in {share:.0%} of the measured time: {so}"),)
