"""A connection that stays open: a psql that is given one statement after the other (`ports.ServerSession`)."""

from __future__ import annotations

import secrets
from typing import Final

from pgstrata.errors import SessionLostError, SqlError
from pgstrata.libpq import quote_dollars
from pgstrata.model.server import Address, Build
from pgstrata.ports.session import DialogueStarter, Exchange
from pgstrata.servers.psql import compose_psql, explain_failure, find_error

_OPTIONS: Final = ("-q", "-t", "-A", "-F", "\t", "-f", "-")
_CONNECTING: Final = 20.0
"""Seconds for each of several hosts: libpq tries one after the other."""
_SILENT: Final = b"the server did not answer in time"
_DONE: Final = "00000"
_GONE: Final = ("08", "57P0")
"""Beginnings of SQLSTATEs after which a connection is of no use: a pooler gives them as ordinary errors."""


class PsqlSession:
    """Connected from construction on; SqlError where there is no connection.

    Args:
        start: starts programs.
        tools: the build whose psql is used.
        address: of the server.
        mark: begins the line that ends an answer. Functions of strangers can write lines, but do not know it.
    """

    def __init__(self, start: DialogueStarter, tools: Build, address: Address, mark: str | None = None) -> None:
        self._address = address
        self._mark = f"@{secrets.token_hex(8)}." if mark is None else mark
        self._number = 0
        try:
            self._dialogue = start(compose_psql(tools, address, _OPTIONS))
        except OSError as error:
            what = f"psql cannot be started: {error.strerror or error}"
            raise SqlError(what, remedy="look at the limits of processes, files and memory of this machine") from error
        try:
            first, state = self._exchange("SELECT 1\n;", _CONNECTING * (1 + address.host.count(",")))
        except BaseException:
            self._dialogue.close()
            raise
        # a server or libpq may warn of something else while it connects
        if first.ended or state != _DONE:
            self._dialogue.close()
            raise explain_failure(address, first.complaints or _SILENT, lost=True)

    @property
    def pid(self) -> int:
        return self._dialogue.pid

    def rows(self, statement: str, *, timeout: float = 30.0) -> bytes:
        return self._ask(f"{statement.rstrip().rstrip(';')}\n;", timeout)

    def rows_of_text(self, statement: str, *, timeout: float = 30.0) -> bytes:
        # functions in it raise errors of any state; that a connection is gone shows with the next statement
        return self._ask(f"SELECT {quote_dollars(statement)} AS pgstrata \\gexec", timeout, gone=())

    def _ask(self, words: str, timeout: float, gone: tuple[str, ...] = _GONE) -> bytes:
        said, state = self._exchange(words, timeout)
        if said.ended or state.startswith(gone):
            found = explain_failure(self._address, said.complaints or _SILENT, lost=True)
            raise SessionLostError(found.what, where=found.where, remedy=found.remedy)
        if state != _DONE:
            found = explain_failure(self._address, said.complaints)
            raise SqlError(found.what, sqlstate=state, where=found.where, remedy=found.remedy)
        return said.output

    def close(self) -> None:
        self._dialogue.close()

    def _exchange(self, words: str, timeout: float) -> tuple[Exchange, str]:
        """What was said, and the SQLSTATE: servers translate the words of their errors.

        Where a statement given as a text has failed, psql says none: it is in the complaints.
        """
        self._number += 1
        mark = f"{self._mark}{self._number}"
        asked = f"{words}\n\\warn :SQLSTATE\n\\warn {mark}\n"
        said = self._dialogue.exchange(asked.encode(), mark.encode(), timeout=timeout)
        if said.ended:
            return said, ""
        complaints, _, stated = said.complaints.removesuffix(b"\n").rpartition(b"\n")
        state = stated.decode("ascii", "replace")
        if not state and (found := find_error(complaints.decode("utf-8", "replace"))):
            state = found[0]
        return Exchange(output=said.output, complaints=complaints, ended=False), state
