"""The layer `connection`: unix socket, TCP or TLS, chosen at the start and asserted from inside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pgstrata.errors import LevelNotTakenError
from pgstrata.model.experiment import ConnectionKind, ServerKind
from pgstrata.ports.server import RunningServer, Sql

_SEEN: Final = (
    "SELECT coalesce(inet_server_addr()::text, 'socket') AS address, version, cipher FROM pg_stat_ssl "
    "WHERE pid = pg_backend_pid()"
)


class ConnectionLayer:
    """Asserts that the client's connection is of the kind that was asked for."""

    name = "connection"

    def observe(self, server: RunningServer, sql: Sql) -> Mapping[str, str]:
        """`connection.kind` as the server sees it; a running server's own connection is taken as it is."""
        (row,) = sql.query(server.address, _SEEN).records()
        kind = ConnectionKind.SOCKET if row["address"] == "socket" else ConnectionKind.TCP
        if row["version"]:
            kind = ConnectionKind.TLS
        if server.environment.server.kind is not ServerKind.DSN and kind is not server.environment.connection:
            raise LevelNotTakenError(
                f"connection = {server.environment.connection} was asked for, but the server sees {kind}",
                where=f"environment {server.environment.name}",
                remedy="this is a defect of pgstrata: please report it",
            )
        encryption = {"connection.tls": f"{row['version']}, {row['cipher']}"} if row["version"] else {}
        return {"connection.kind": str(kind), **encryption}
