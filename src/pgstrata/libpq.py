"""How libpq's programs are told where to connect: by environment, so that nothing of it stands in a process list.

libpq has an environment variable for most of its keywords (PostgreSQL's documentation, "Environment Variables"); the
few others go into a connection string as the last argument, which every user of the host can read: no secrets there.
A password stands in a password file, which the host makes for one process (`ports.Command`). psql and load generators
connect alike because all are told from here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from typing import Final
from urllib.parse import unquote

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
"""Variables of the environment that say how to connect."""

_LIKE_CONNINFO: Final = re.compile(r"=|^-|^postgres(?:ql)?://")
"""Names of databases that psql or a load generator would take for a connection string or an option."""

SECRETS: Final = frozenset({"password", "sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key"})
"""Keywords whose values are shown to nobody."""
_IGNORED: Final = frozenset({"authtype", "tty"})
"""Keywords that libpq before 14 takes without effect."""
_UNNAMED: Final = frozenset({
    "fallback_application_name", "keepalives", "keepalives_count", "keepalives_idle", "keepalives_interval",
    "max_protocol_version", "min_protocol_version", "oauth_client_id", "oauth_issuer", "oauth_scope", "replication",
    "requiressl", "sslkeylogfile", "tcp_user_timeout",
})  # fmt: skip
"""Keywords without an environment variable."""
KEYWORDS: Final = frozenset({*_PLACES, *_VARIABLES, *SECRETS, *_IGNORED, *_UNNAMED} - {"servicefile"})
"""All that libpq 9.6 to 18 knows; `servicefile` is a keyword from 19 on, its variable is older."""

# Blanks are those of ASCII, as for libpq. A backslash at the end stands for nothing.
_PAIR: Final = re.compile(
    r"\s*(?P<key>[a-z_]+)\s*=\s*(?:'(?P<quoted>(?:[^'\\]|\\.)*)'|(?!')(?P<plain>(?:[^\s\\]|\\.)*)\\?)",
    re.ASCII | re.DOTALL,
)
_BLANK_REST: Final = re.compile(r"\s*\Z", re.ASCII)
_SERVICE: Final = re.compile(r"[A-Za-z0-9_.-]+")
_SCHEME: Final = re.compile(r"postgres(?:ql)?://", re.IGNORECASE)
# Stricter than libpq where people and programs would read another host or password than it does: @ stands once, before
# any ? (but for values of parameters), and # nowhere.
_URI: Final = re.compile(
    r"""
    postgres(?:ql)?://
    (?![^@/?]*\?[^@/]*@)
    (?:(?P<user>[^:@/]*)(?::(?P<password>[^@/]*))?@)?
    (?P<places>[^@/?]*)
    (?:/(?P<dbname>[^@?]*))?
    (?:\?(?P<query>.*))?
    """,
    re.VERBOSE,
)
_NOT_IN_URI: Final = re.compile(r"[\#\s]|%00|%(?![0-9A-Fa-f]{2})", re.ASCII)
_PLACE: Final = re.compile(r"(?:\[(?P<address>[^\[\]]+)\]|(?P<host>[^\[\]:]*))(?::(?P<port>[0-9]*))?", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """A connection as a process takes it: environment, password, last arguments."""

    environment: Mapping[str, str]
    password: Secret | None = None
    arguments: tuple[str, ...] = ()


def compose_connection(address: Address) -> Connection:
    """The address as environment and arguments.

    Raises:
        UsageError: a parameter is a secret that libpq takes from no environment variable.
    """
    environment = {"PGUSER": address.user, "PGDATABASE": address.database, "PGHOST": address.host}
    if address.port:
        environment["PGPORT"] = str(address.port)
    others = {}
    for keyword, value in address.parameters.items():
        check_hideable(keyword)
        if variable := _VARIABLES.get(keyword) or _PLACES.get(keyword):
            environment[variable] = value
        elif keyword not in _IGNORED:
            others[keyword] = value
    if address.password:
        environment.pop("PGPASSFILE", None)  # the host makes one
    return Connection(
        environment={name: value for name, value in environment.items() if value},
        password=address.password,
        arguments=_arguments(address.database, others),
    )


def check_hideable(keyword: str) -> None:
    """UsageError for a parameter that is a secret and that libpq takes from no file but a service file."""
    if keyword in SECRETS:
        raise UsageError(
            f"the connection parameter {keyword} would be visible in the process list",
            where="server",
            remedy="keep it in a service file and write dsn:SERVICE, or use a key without passphrase",
        )


def parse_conninfo(text: str) -> Mapping[str, str]:
    """Keywords of a connection string as libpq reads them: a URI, `key=value` pairs, or the bare name of a service.

    Raises:
        UsageError: none of the three, or one that is easily misread; the message shows nothing of it.
    """
    if "\0" in text:
        raise unreadable()
    if scheme := _SCHEME.match(text):
        if not scheme[0].islower():
            raise UsageError(
                "libpq knows the scheme of a connection URI in small letters only",
                where="server",
                remedy="write postgresql://",
            )
        return _parse_uri(text)
    if "=" not in text and not _SERVICE.fullmatch(text):
        raise unreadable()
    return _parse_pairs(text) if "=" in text else {"service": text}


def _parse_uri(text: str) -> Mapping[str, str]:
    """As `conninfo_uri_parse_options` in libpq's fe-connect.c does."""
    found = _URI.fullmatch(text)
    if found is None or _NOT_IN_URI.search(text):
        raise unreadable()
    hosts, ports = zip(*map(_parse_place, found["places"].split(",")), strict=True)
    query = found["query"] or ""
    asked = dict(map(_parse_parameter, query.removesuffix("&").split("&") if query else ()))
    named = {
        "user": _decode(found["user"] or ""),
        "password": _decode(found["password"] or ""),
        "host": _decode(",".join(hosts)),
        "port": ",".join(ports) if any(ports) else "",
        "dbname": _decode(found["dbname"] or ""),
    }
    return {key: value for key, value in named.items() if value} | asked


def _parse_place(text: str) -> tuple[str, str]:
    """Host and port, each as written."""
    match = _PLACE.fullmatch(text)
    if match is None:
        raise unreadable()
    return match["address"] or match["host"] or "", match["port"] or ""


def _parse_parameter(text: str) -> tuple[str, str]:
    key, *values = map(_decode, text.split("="))
    if len(values) != 1:
        raise unreadable()
    return ("sslmode", "require") if (key, *values) == ("ssl", "true") else (key, values[0])


def _decode(text: str) -> str:
    """Percent-encoded bytes as characters; a `+` is a plus sign, unlike in forms of the web."""
    return unquote(text, errors="surrogateescape")


def _parse_pairs(text: str) -> Mapping[str, str]:
    found: dict[str, str] = {}
    position = 0
    while not _BLANK_REST.match(text, position):
        match = _PAIR.match(text, position)
        if match is None:
            raise unreadable()
        quoted = match["quoted"]
        found[match["key"]] = re.sub(r"\\(.)", r"\1", match["plain"] if quoted is None else quoted, flags=re.DOTALL)
        position = match.end()
    return found


def render_passfile(password: str) -> bytes:
    """A password file for one connection, whatever its host, port, database and user.

    Raises:
        UsageError: the password has a line break.
    """
    if "\n" in password or "\r" in password:
        raise UsageError("a password has a line break", where="server", remedy="libpq reads a password file by lines")
    escaped = re.sub(r"([:\\])", r"\\\1", password)
    return f"*:*:*:*:{escaped}\n".encode("utf-8", "surrogateescape")


def unreadable() -> UsageError:
    """A connection string that is refused."""
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


def quote_dollars(value: str) -> str:
    """A text as a constant of SQL in dollars: no character of it means anything to psql."""
    tags = (f"$pgstrata{number}$" for number in count())
    # a value may end like a tag that lacks its last dollar
    tag = next(tag for tag in tags if tag not in f"{value}{tag[:-1]}")
    return f"{tag}{value}{tag}"


def quote_literal(value: str) -> str:
    """A text as a constant of SQL, whatever is in it; for servers with standard_conforming_strings (on from 9.1)."""
    return "'" + value.replace("'", "''") + "'"
