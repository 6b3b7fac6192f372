"""Collectors: raw text before and after the measured window, and the pure parser of the two."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from pgstrata.model.metrics import Measurement
from pgstrata.model.shared import Shared
from pgstrata.ports.host import Host
from pgstrata.ports.server import RunningServer, Sql


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What a collector looks at; `client` is the client's machine where that is another one than the server's."""

    host: Host
    sql: Sql
    server: RunningServer
    client: Host | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The measured window, as far as parsing needs it. CPU in seconds; pids identify whose time is whose.

    In slices `seconds` is the time of this environment's own turns, within a longer window; `client_pid` its persistent
    client, whose CPU time is counted between the captures instead of `client_cpu`; `resident_pids` are servers and
    clients of the environments that it took turns with; `outside` counts transactions before and between the slices,
    which the server's own statistics hold too.

    `apart`: the client was on another host than the server, where `client_door_pids` are pgstrata itself; `shared` is
    what the two hosts have in common.
    """

    seconds: float
    transactions: int
    client_cpu: float
    postmaster_pid: int | None
    door_pids: tuple[int, ...]
    server_version: int
    client_pid: int | None = None
    resident_pids: tuple[int, ...] = ()
    outside: int = 0
    apart: bool = False
    client_door_pids: tuple[int, ...] = ()
    shared: Shared = Shared.NOTHING


class Collector(Protocol):
    """Captures raw text before and after the measured window; a pure parser makes measurements of the two."""

    @property
    def name(self) -> str:
        """Evidence is kept as NAME.before and NAME.after."""
        ...

    def capture(self, subject: Subject) -> bytes:
        """Raw text, as it is kept; nothing where there is nothing to look at."""
        ...

    def parse(self, before: bytes, after: bytes, window: Window) -> tuple[Measurement, ...]:
        """Pure. Counters that went backwards or are missing give no measurement; ParseError on unknown shapes."""
        ...
