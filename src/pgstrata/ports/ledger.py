"""The ledger of a host: what was changed there, and its undoing."""

from __future__ import annotations

from typing import Protocol

from pgstrata.model.changes import Change


class Ledger(Protocol):
    """Makes changes of a host and undoes them; each is written down on that host before it is made."""

    def change(self, change: Change) -> str:
        """Read, write down, do, read back.

        Returns:
            The state afterwards, as `change.read` printed it (stripped). Whether that is what was asked for, the layer
            decides.

        Raises:
            LevelNotTakenError: `do` failed, for instance because the kernel refuses the value; what it did is undone.
            HostNotFitError: the undoing failed.
        """

    def mark(self) -> int:
        """A place in the ledger to which `undo_to` goes back."""

    def undo_to(self, mark: int) -> None:
        """Undo everything that was changed since the mark, the latest first.

        All of it is tried; what failed keeps its entry. Raises HostNotFitError that names what failed and why.
        """
