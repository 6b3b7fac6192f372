"""A part of the stack that can be a factor: asked for, prepared, launched, observed from inside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from pgstrata.model.experiment import Environment
from pgstrata.ports.ledger import Ledger
from pgstrata.ports.server import RunningServer, Sql


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What upper layers ask of lower ones: `shared_memory`, bytes that the server asks of the kernel in one piece."""

    shared_memory: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What layers add to the start of a server and of its client.

    `server` and `client` are words in front of the command, such as ("taskset", "--cpu-list", "0-3"): programs that
    change themselves and then become the command, so that the process id stays. `settings` are added to the server's.
    `data` is the folder in which its clone is to lie, empty for the usual one.
    """

    server: tuple[str, ...] = ()
    client: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    data: str = ""

    def beneath(self, other: Launch) -> Launch:
        """Both: this one is the outer of the two."""
        return Launch(
            server=(*self.server, *other.server),
            client=(*self.client, *other.client),
            settings={**self.settings, **other.settings},
            data=other.data or self.data,
        )


class HostLayer(Protocol):
    """One layer of a host. It changes the host through a ledger only, and only where an environment asks for it.

    Levels stand in `Environment.layers` by key ("pages", "sysctl.vm.swappiness"); they were read and checked before.
    """

    @property
    def name(self) -> str:
        """Name of the layer: memory, sysctl, cpu, limits."""
        ...

    def concerns(self, environment: Environment) -> bool:
        """Whether the environment asks for a level of this layer."""
        ...

    def prepare(self, environment: Environment, needs: Needs, ledger: Ledger) -> Launch:
        """Change what has to be changed for this environment; what is added to its start.

        Raises:
            LevelNotTakenError: the host accepted the level and does not have it; what was changed stays in the ledger.
            HostNotFitError: the host cannot do this at all; the remedy says what would make it possible.
        """
        ...

    def observe(self, server: RunningServer, sql: Sql) -> Mapping[str, str]:
        """Facts seen from inside. Raises LevelNotTakenError where a level that was asked for is not there."""
        ...
