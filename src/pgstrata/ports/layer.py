"""A part of the stack that can be a factor: asked for, prepared, launched, observed from inside.

What a layer changes on a host goes through the host's ledger, which undoes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from pgstrata.model.changes import Change
from pgstrata.model.experiment import Environment
from pgstrata.model.launch import Launch, Needs
from pgstrata.ports.server import RunningServer, Sql


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


class HostLayer(Protocol):
    """One layer of a host. It changes the host through a ledger only, and only where an environment asks for it.

    Levels stand in `Environment.layers` by key ("pages", "sysctl.vm.swappiness"); they were read and checked before.
    """

    @property
    def name(self) -> str:
        """Name of the layer: memory, sysctl, cpu, limits."""

    def concerns(self, environment: Environment) -> bool:
        """Whether the environment asks for a level of this layer."""

    def prepare(self, environment: Environment, needs: Needs, ledger: Ledger) -> Launch:
        """Change what has to be changed for this environment; what is added to its start.

        Raises:
            LevelNotTakenError: the host accepted the level and does not have it; what was changed stays in the ledger.
            HostNotFitError: the host cannot do this at all; the remedy says what would make it possible.
        """

    def observe(self, server: RunningServer, sql: Sql) -> Mapping[str, str]:
        """Facts seen from inside. Raises LevelNotTakenError where a level that was asked for is not there."""


@runtime_checkable
class ExplainsDeath(Protocol):
    """A layer that can be the reason why a server dies."""

    def explain_death(self, environment: Environment) -> str:
        """Why a server of this environment died since its layers were prepared, as far as the layer is the reason."""
