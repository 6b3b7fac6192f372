"""A running server by connection string: never started, stopped or reconfigured."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote, urlsplit

from pgstrata.errors import UsageError
from pgstrata.libpq import parse_variables
from pgstrata.model.experiment import ServerSpec
from pgstrata.model.secret import Secret
from pgstrata.model.server import Address, Build
from pgstrata.ports.server import Sql
from pgstrata.servers.version import parse_compiler, parse_server_version

_KEYWORD = re.compile(r"\s*(?P<key>[a-z_]+)\s*=\s*(?:'(?P<quoted>(?:[^'\\]|\\.)*)'|(?P<plain>\S*))")


def parse_conninfo(text: str) -> Mapping[str, str]:
    """Keywords of a connection string: a URI, `key=value` pairs, or the bare name of a service.

    Raises:
        UsageError: neither of the three.
    """
    stripped = text.strip()
    if stripped.startswith(("postgresql://", "postgres://")):
        return _parse_uri(stripped)
    if "=" not in stripped:
        return {"service": stripped}
    return _parse_keywords(stripped)


def _parse_uri(text: str) -> Mapping[str, str]:
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        # the message of urlsplit quotes a part of the text, which may be a piece of a password
        raise _unreadable() from None
    found = {
        "host": unquote(parts.hostname or ""),
        "port": str(port or ""),
        "user": unquote(parts.username or ""),
        "password": unquote(parts.password or ""),
        "dbname": unquote(parts.path.lstrip("/")),
        **dict(parse_qsl(parts.query)),
    }
    return {key: value for key, value in found.items() if value}


def _parse_keywords(text: str) -> Mapping[str, str]:
    found: dict[str, str] = {}
    position = 0
    while position < len(text.rstrip()):
        match = _KEYWORD.match(text, position)
        if match is None:
            raise _unreadable()
        quoted = match.group("quoted")
        found[match.group("key")] = re.sub(r"\\(.)", r"\1", quoted) if quoted is not None else match.group("plain")
        position = match.end()
    return found


def _unreadable() -> UsageError:
    return UsageError(
        "a connection string could not be read; it is not shown, because it may hold a password",
        where="server",
        remedy="write dsn:SERVICE, dsn:postgresql://user@host:port/database or dsn:host=... port=... user=...; "
        "in a URI the characters / @ : ? # of a password are written %2F %40 %3A %3F %23",
    )


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
    port = keywords.pop("port", "")
    return Address(
        host=keywords.pop("host", ""),
        port=int(port) if port.isdecimal() else 0,
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
        text = self.sql.query(address_of(spec, self.environ), "SELECT version()").value()
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
