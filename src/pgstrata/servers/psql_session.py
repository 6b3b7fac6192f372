"""A connection that stays open: a psql that is given one statement after the other (`ports.ServerSession`)."""

from __future__ import annotations

from typing import Final

from pgstrata.errors import SessionLostError
from pgstrata.model.server import Address, Build
from pgstrata.ports.session import DialogueStarter, Exchange
from pgstrata.servers.psql import compose_psql, explain_failure

_OPTIONS: Final = ("-q", "-t", "-A", "-F", "\t", "-f", "-")
_CONNECTING: Final = 20.0
_SILENT: Final = b"the server did not answer in time"


class PsqlSession:
    """Connected from construction on; SqlError where there is no connection.

    Args:
        start: starts programs.
        tools: the build whose psql is used.
        address: of the server.
    """

    def __init__(self, start: DialogueStarter, tools: Build, address: Address) -> None:
        self._address = address
        self._number = 0
        self._dialogue = start(compose_psql(tools, address, _OPTIONS))
        try:
            first = self._exchange("SELECT 1", _CONNECTING)
        except BaseException:
            self._dialogue.close()
            raise
        if first.ended or first.complaints:
            self._dialogue.close()
            raise explain_failure(address, first.complaints or _SILENT, lost=True)

    @property
    def pid(self) -> int:
        return self._dialogue.pid

    def rows(self, statement: str, *, timeout: float = 30.0) -> bytes:
        said = self._exchange(statement, timeout)
        if said.ended:
            found = explain_failure(self._address, said.complaints or _SILENT, lost=True)
            raise SessionLostError(found.what, where=found.where, remedy=found.remedy)
        if b"ERROR:" in said.complaints:
            raise explain_failure(self._address, said.complaints)
        return said.output

    def close(self) -> None:
        self._dialogue.close()

    def _exchange(self, statement: str, timeout: float) -> Exchange:
        self._number += 1
        mark = f"@{self._number}"
        words = f"{statement.rstrip().rstrip(';')}\n;\n\\warn {mark}\n"
        return self._dialogue.exchange(words.encode(), mark.encode(), timeout=timeout)
