"""How libpq's programs are told where to connect: by environment, so that nothing of it stands in a process list.

libpq has an environment variable for most of its keywords (PostgreSQL's documentation, "Environment Variables"); the
few others go into a connection string as the last argument, which every user of the host can read: no secrets there.
psql and load generators connect alike because all are told from here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote, urlsplit

from pgstrata.errors import UsageError
from pgstrata.model.secret import Secret
from pgstrata.model.server import Address

_VARIABLES: Final[dict[str, str]] = {
    "application_name": "PGAPPNAME",
    "channel_binding": "PGCHANNELBINDING",
    "client_encoding": "PGCLIENTENCODING",
    "connect_timeout": "PGCONNECT_TIMEOUT",
    "gssdelegation": "PGGSSDELEGATION",
    "gssencmode": "PGGSSENCMODE",
    "gsslib": "PGGSSLIB",
    "hostaddr": "PGHOSTADDR",
    "krbsrvname": "PGKRBSRVNAME",
    "load_balance_hosts": "PGLOADBALANCEHOSTS",
    "options": "PGOPTIONS",
    "passfile": "PGPASSFILE",
    "require_auth": "PGREQUIREAUTH",
    "requirepeer": "PGREQUIREPEER",
    "service": "PGSERVICE",
    "servicefile": "PGSERVICEFILE",
    "ssl_max_protocol_version": "PGSSLMAXPROTOCOLVERSION",
    "ssl_min_protocol_version": "PGSSLMINPROTOCOLVERSION",
    "sslcert": "PGSSLCERT",
    "sslcertmode": "PGSSLCERTMODE",
    "sslcompression": "PGSSLCOMPRESSION",
    "sslcrl": "PGSSLCRL",
    "sslcrldir": "PGSSLCRLDIR",
    "sslkey": "PGSSLKEY",
    "sslmode": "PGSSLMODE",
    "sslnegotiation": "PGSSLNEGOTIATION",
    "sslrootcert": "PGSSLROOTCERT",
    "sslsni": "PGSSLSNI",
    "target_session_attrs": "PGTARGETSESSIONATTRS",
}
_PLACES: Final[dict[str, str]] = {
    "host": "PGHOST",
    "port": "PGPORT",
    "user": "PGUSER",
    "dbname": "PGDATABASE",
    "password": "PGPASSWORD",
}
VARIABLES: Final = (*_PLACES.values(), *_VARIABLES.values())
"""Of the environment, where they say how to connect."""

_LIKE_CONNINFO: Final = re.compile(r"=|^-|^postgres(?:ql)?://")
"""Names of databases that psql or a load generator would take for a connection string or an option."""

_UNHIDEABLE: Final = frozenset({"sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key"})
_UNNAMED: Final = frozenset({
    "fallback_application_name", "keepalives", "keepalives_count", "keepalives_idle", "keepalives_interval",
    "max_protocol_version", "min_protocol_version", "oauth_client_id", "oauth_issuer", "oauth_scope", "replication",
    "requiressl", "ssl", "sslkeylogfile", "tcp_user_timeout",
})  # fmt: skip
"""Keywords without an environment variable; `ssl` is one in URIs only."""
KEYWORDS: Final = frozenset({*_PLACES, *_VARIABLES, *_UNHIDEABLE, *_UNNAMED})
"""All that libpq 9.6 to 18 knows."""

_PAIR: Final = re.compile(
    r"\s*(?P<key>[a-z_]+)\s*=\s*(?:'(?P<quoted>(?:[^'\\]|\\.)*)'|(?P<plain>(?:[^\s\\]|\\.)*))", re.DOTALL
)
_URI: Final = ("postgresql://", "postgres://")


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """A connection as a process takes it: environment, secrets, last arguments."""

    environment: Mapping[str, str]
    secrets: Mapping[str, Secret] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()


def compose_connection(address: Address) -> Connection:
    """The address as environment and arguments.

    Raises:
        UsageError: a parameter is a secret that libpq takes from no environment variable.
    """
    environment = {"PGUSER": address.user, "PGDATABASE": address.database, "PGHOST": address.host}
    if address.port:
        environment["PGPORT"] = str(address.port)
    secrets = {"PGPASSWORD": address.password} if address.password else {}
    others = {}
    for keyword, value in address.parameters.items():
        if keyword == "password":
            secrets["PGPASSWORD"] = Secret(value)
        elif keyword in _UNHIDEABLE:
            raise UsageError(
                f"the connection parameter {keyword} would be visible in the process list",
                remedy="use a password file, or a key without passphrase",
            )
        elif keyword in _VARIABLES:
            environment[_VARIABLES[keyword]] = value
        else:
            others[keyword] = value
    return Connection(
        environment={name: value for name, value in environment.items() if value},
        secrets=secrets,
        arguments=_arguments(address.database, others),
    )


def parse_conninfo(text: str) -> Mapping[str, str]:
    """Keywords of a connection string: a URI, `key=value` pairs, or the bare name of a service.

    Raises:
        UsageError: none of the three; the message shows nothing of it.
    """
    stripped = text.strip()
    if stripped.startswith(_URI):
        return _parse_uri(stripped)
    return _parse_pairs(stripped) if "=" in stripped else {"service": stripped}


def _parse_uri(text: str) -> Mapping[str, str]:
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
        asked = dict(_decoded_pair(pair) for pair in parts.query.split("&") if pair)
    except ValueError:
        # the message of urlsplit quotes a part of the text, which may be a piece of a password
        raise _unreadable() from None
    found = {
        "host": unquote(host or ""),
        "port": str(port or ""),
        "user": unquote(parts.username or ""),
        "password": unquote(parts.password or ""),
        "dbname": unquote(parts.path.lstrip("/")),
        **asked,
    }
    return {key: value for key, value in found.items() if value}


def _decoded_pair(pair: str) -> tuple[str, str]:
    """Of a URI of libpq, where a `+` is a plus sign, unlike in forms of the web."""
    key, equals, value = pair.partition("=")
    if not equals:
        raise ValueError("a parameter without a value")
    return unquote(key), unquote(value)


def _parse_pairs(text: str) -> Mapping[str, str]:
    found: dict[str, str] = {}
    position = 0
    while position < len(text.rstrip()):
        match = _PAIR.match(text, position)
        if match is None:
            raise _unreadable()
        quoted = match["quoted"]
        found[match["key"]] = re.sub(r"\\(.)", r"\1", match["plain"] if quoted is None else quoted, flags=re.DOTALL)
        position = match.end()
    return found


def _unreadable() -> UsageError:
    return UsageError(
        "a connection string could not be read; it is not shown, because it may hold a password",
        where="server",
        remedy="write dsn:SERVICE, dsn:postgresql://user@host:port/database or dsn:host=... port=... user=...; "
        "in a URI the characters / @ : ? # of a password are written %2F %40 %3A %3F %23",
    )


def parse_variables(environ: Mapping[str, str]) -> Mapping[str, str]:
    """The keywords of a connection that stand in an environment."""
    return {keyword: environ[name] for keyword, name in (_VARIABLES | _PLACES).items() if environ.get(name)}


def _arguments(database: str, others: Mapping[str, str]) -> tuple[str, ...]:
    if not others and not _LIKE_CONNINFO.search(database):
        return (database,) if database else ()
    keywords = {"dbname": database, **others} if database else others
    return (" ".join(f"{name}={_quote(value)}" for name, value in sorted(keywords.items())),)


def _quote(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def quote_literal(value: str) -> str:
    """A text as a constant of SQL, whatever is in it; for servers with standard_conforming_strings (on from 9.1)."""
    return "'" + value.replace("'", "''") + "'"
