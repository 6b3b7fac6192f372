"""A running server by connection string: never started, stopped or reconfigured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pgstrata.libpq import parse_conninfo, parse_variables
from pgstrata.model.experiment import ServerSpec
from pgstrata.model.secret import Secret
from pgstrata.model.server import Address, Build
from pgstrata.ports.server import Sql
from pgstrata.servers.version import parse_compiler, parse_server_version


def address_of(spec: ServerSpec, environ: Mapping[str, str]) -> Address:
    """The address that a `dsn:` level names; its database is where pgstrata logs in to create its own.

    `environ` holds the user's PG* variables, which complete it as libpq would.
    """
    said = parse_conninfo(spec.conninfo.reveal() if spec.conninfo else spec.value)
    keywords = {**parse_variables(environ), **said}
    password = keywords.pop("password", "")
    database = keywords.pop("dbname", "")
    if not database and "service" not in keywords:
        database = "postgres"
    one_port = keywords.get("port", "").isdecimal()
    return Address(
        host=keywords.pop("host", ""),
        port=int(keywords.pop("port")) if one_port else 0,
        user=keywords.pop("user", ""),
        database=database,
        password=Secret(password) if password else None,
        parameters=keywords,
    )


@dataclass(frozen=True, slots=True)
class RunningSource:
    """Implements `ports.ServerSource` for `dsn:` levels: asks the server what it is."""

    sql: Sql
    environ: Mapping[str, str]

    def resolve(self, spec: ServerSpec) -> Build:
        """What the server says of itself; there is no prefix and no digest."""
        text = self.sql.query(address_of(spec, self.environ), "SELECT pg_catalog.version()").value()
        return Build(
            spec=spec,
            prefix="",
            version=parse_server_version(text),
            supplier=f"running server {spec.value}",
            compiler=parse_compiler(text),
            configure="",
            cflags="",
            digest="",
        )
