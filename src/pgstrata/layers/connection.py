"""The layer `connection`: unix socket or TCP, chosen at the start and asserted from inside."""

from __future__ import annotations

from collections.abc import Mapping

from pgstrata.errors import LevelNotTakenError
from pgstrata.model.experiment import ConnectionKind, ServerKind
from pgstrata.ports.server import RunningServer, Sql


class ConnectionLayer:
    """Asserts that the client's connection is of the kind that was asked for."""

    name = "connection"

    def observe(self, server: RunningServer, sql: Sql) -> Mapping[str, str]:
        """`connection.kind` as the server sees it; a running server's own connection is taken as it is."""
        text = sql.query(server.address, "SELECT coalesce(inet_server_addr()::text, 'socket') AS address").value()
        kind = ConnectionKind.SOCKET if text == "socket" else ConnectionKind.TCP
        if server.environment.server.kind is not ServerKind.DSN and kind is not server.environment.connection:
            raise LevelNotTakenError(
                f"connection = {server.environment.connection} was asked for, but the server sees {kind}",
                where=f"environment {server.environment.name}",
                remedy="this is a defect of pgstrata: please report it",
            )
        return {"connection.kind": str(kind)}
