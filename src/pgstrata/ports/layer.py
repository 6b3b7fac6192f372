"""A part of the stack that can be a factor: asked for, prepared, launched, observed from inside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from pgstrata.model.experiment import Environment
from pgstrata.model.launch import Launch, Needs
from pgstrata.ports.ledger import Ledger
from pgstrata.ports.server import RunningServer, Sql

__all__ = ["ExplainsDeath", "HostLayer", "Launch", "Needs"]


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
