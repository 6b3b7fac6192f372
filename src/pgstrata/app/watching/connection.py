"""A recorder's connection: what is asked by it, and the last answers."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pgstrata.app.watching.host_feed import HostFeed
from pgstrata.app.watching.server import LiveServer
from pgstrata.collectors.live.relations import RelationsReader
from pgstrata.collectors.live.statements import StatementsReader
from pgstrata.errors import SqlError
from pgstrata.ports.session import ServerSession

_PATIENCE: Final = 5.0
"""Seconds after which a server that does not answer is given up; its own statement_timeout is shorter."""
_NOT_PREPARED: Final = frozenset({"26000", "42P05", "0A000"})
"""SQLSTATEs of a prepared statement that is not there, is there already, or does not fit any more.

Behind a pooler that gives each transaction another session, all of them happen.
"""


@dataclass(slots=True)
class Connected:
    """A connection, what is asked by it, and the last answers."""

    session: ServerSession
    server: LiveServer
    feed: HostFeed | None
    asked: int = 0
    counters: Mapping[str, float] | None = None
    moment: float = 0.0
    statements: StatementsReader = field(default_factory=StatementsReader)
    counted: float = 0.0
    relations: RelationsReader = field(default_factory=RelationsReader)
    related: float = 0.0
    _prepared: set[str] = field(default_factory=set)
    _plain: bool = False

    @property
    def limits(self) -> tuple[str, ...]:
        """Codes of what is not seen by it."""
        return self.server.limits(host=self.feed is not None, log=self.feed is None or self.feed.reads_log)

    def forget(self) -> None:
        """Time has passed that nobody knows the length of: the next looks are the first."""
        self.counters = None
        self.statements.forget()
        self.relations.forget()

    def look(self, statement: str) -> bytes:
        """Ask what is asked again and again: the server prepares it once, where the connection allows it."""
        if self._plain:
            return self.rows(statement)
        # another recorder behind the same pooler prepares the same text by the same name
        name = f"pgstrata_{hashlib.sha256(statement.encode()).hexdigest()[:12]}"
        try:
            if name not in self._prepared:
                self.rows(f"PREPARE {name} AS\n{statement}")
                self._prepared.add(name)
            return self.rows(f"EXECUTE {name}")
        except SqlError as error:
            if error.sqlstate not in _NOT_PREPARED:
                raise
            self._plain = True
        return self.rows(statement)

    def rows(self, statement: str) -> bytes:
        """Ask once; each statement is a transaction of the recorder's own, and counted as such."""
        self.asked += 1
        return self.session.rows(statement, timeout=_PATIENCE)
