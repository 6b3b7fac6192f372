"""The layers `settings`, written before the start and asserted from inside afterwards, and `connection`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from pgstrata.errors import LevelNotTakenError
from pgstrata.libpq import quote_literal
from pgstrata.model.experiment import ConnectionKind, ServerKind
from pgstrata.model.old_servers import FILE_SETTINGS_SINCE, STAT_SSL_SINCE, settings_of_its_time
from pgstrata.ports.server import RunningServer, Sql

_TRUE: Final = frozenset({"on", "true", "yes", "1"})
_FALSE: Final = frozenset({"off", "false", "no", "0"})
# Factors of PostgreSQL's units to one base per dimension: bytes, milliseconds (guc.c, conversion tables).
_UNITS: Final[Mapping[str, float]] = {
    "B": 1, "kB": 1024, "MB": 1024**2, "GB": 1024**3, "TB": 1024**4,
    "us": 1e-3, "ms": 1, "s": 1e3, "min": 6e4, "h": 3.6e6, "d": 8.64e7,
}  # fmt: skip
_QUANTITY: Final = re.compile(r"^\s*(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(?P<unit>[A-Za-z]*)\s*$")


def render_settings(settings: Mapping[str, str]) -> str:
    """Lines of a postgresql.conf; every value is quoted, which PostgreSQL accepts for all types."""
    return "".join(f"{name} = {_quote_value(value)}\n" for name, value in sorted(settings.items()))


def _quote_value(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"


def same_value(asked: str, *, setting: str, unit: str, kind: str) -> bool:
    """Whether a setting has the value that was asked for.

    Args:
        asked: as written in the experiment, such as 1GB or off.
        setting: `pg_settings.setting`, in base units.
        unit: `pg_settings.unit`, such as 8kB or ms; empty if it has none.
        kind: `pg_settings.vartype`.
    """
    if kind == "bool":
        return _truth(asked) == _truth(setting)
    if kind in {"integer", "real"}:
        return _same_number(asked, setting, unit)
    return asked.strip().lower() == setting.strip().lower()


def _took(asked: str, row: Mapping[str, str]) -> bool:
    """Whether a setting took: the same value, or the server's own reading of a value that has several spellings.

    Only the server knows that `wal_compression = on` is pglz, or what -1 stands for; it says whether it applied the
    line of the file. A plain number must be seen again.
    """
    if same_value(asked, setting=row["setting"], unit=row["unit"], kind=row["vartype"]):
        return True
    automatic = row["vartype"] in {"integer", "real"} and not asked.strip().startswith("-")
    return row["applied"] == "t" and not automatic and row["vartype"] != "bool"


def _truth(text: str) -> bool | None:
    word = text.strip().lower()
    return True if word in _TRUE else False if word in _FALSE else None


def _same_number(asked: str, setting: str, unit: str) -> bool:
    base = _QUANTITY.match(unit if unit[:1].isdigit() else f"1{unit}")
    wanted = _QUANTITY.match(asked)
    if base is None or wanted is None:
        return asked.strip() == setting.strip()
    step = float(base.group("number")) * _UNITS.get(base.group("unit"), 1)
    value = float(wanted.group("number"))
    if wanted.group("unit"):
        value = value * _UNITS.get(wanted.group("unit"), float("nan")) / step
    # PostgreSQL rounds integers to the nearest step of the unit
    return abs(value - float(setting)) <= max(0.5 if base.group("unit") else 0.0, abs(value) * 1e-6)


# Some servers of 9.5 count the WAL in segments and do not say so.
_SETTINGS: Final = (
    "SELECT s.name, s.setting, s.vartype, "
    "coalesce(s.unit, CASE WHEN s.name IN ('max_wal_size', 'min_wal_size') THEN '16MB' ELSE '' END) AS unit, "
    "coalesce(bool_or(f.applied AND f.error IS NULL), false) AS applied "
    "FROM pg_settings s LEFT JOIN pg_file_settings f ON lower(f.name) = lower(s.name) "
    "WHERE lower(s.name) IN ({names}) GROUP BY 1, 2, 3, 4"
)
_OLD_SETTINGS: Final = (
    "SELECT s.name, s.setting, coalesce(s.unit, '') AS unit, s.vartype, false AS applied "
    "FROM pg_settings s WHERE lower(s.name) IN ({names})"
)


class SettingsLayer:
    """Asserts every setting that the environment asks for, from inside the running server."""

    name = "settings"

    def observe(self, server: RunningServer, sql: Sql) -> Mapping[str, str]:
        """The asked settings as the server has them; LevelNotTakenError names the first that did not take."""
        # a layer of the host may need a setting otherwise than it was chosen, such as huge_pages
        version = server.build.version.number
        asked = settings_of_its_time({**server.environment.settings, **server.launch.settings}, version)
        if not asked:
            return {}
        # names of settings are case-insensitive: pg_settings has TimeZone and DateStyle
        names = ", ".join(quote_literal(name.lower()) for name in asked)
        table = sql.query(
            server.address,
            (_SETTINGS if not version or version >= FILE_SETTINGS_SINCE else _OLD_SETTINGS).format(names=names),
        )
        found = {row["name"].lower(): row for row in table.records()}
        for name, value in asked.items():
            row = found.get(name.lower())
            # a setting of an extension (dotted) that is not loaded is not in pg_settings
            if row is None and "." in name:
                continue
            if row is None or not _took(value, row):
                seen = "not there" if row is None else f"{row['setting']}{row['unit'] and ' x ' + row['unit']}"
                raise LevelNotTakenError(
                    f"{name} = {value} was asked for, but the running server says: {seen}",
                    where=f"environment {server.environment.name}",
                    remedy="remove the setting, or give a value that this version accepts",
                )
        return {f"asked.{name}": row["setting"] for name, row in found.items()}


_SEEN: Final = (
    "SELECT coalesce(inet_server_addr()::text, 'socket') AS address, version, cipher FROM pg_stat_ssl "
    "WHERE pid = pg_backend_pid()"
)
_OLD_SEEN: Final = (
    "SELECT coalesce(host(inet_server_addr()), 'socket') AS address, ''::text AS version, ''::text AS cipher"
)


class ConnectionLayer:
    """Asserts that the client's connection is of the kind that was asked for."""

    name = "connection"

    def observe(self, server: RunningServer, sql: Sql) -> Mapping[str, str]:
        """`connection.kind` as the server sees it; a running server's own connection is taken as it is."""
        old = 0 < server.build.version.number < STAT_SSL_SINCE
        (row,) = sql.query(server.address, _OLD_SEEN if old else _SEEN).records()
        kind = ConnectionKind.SOCKET if row["address"] == "socket" else ConnectionKind.TCP
        # an old server does not say; the client insists on TLS where it was asked for, and would not be connected
        unseen = old and kind is ConnectionKind.TCP and server.environment.connection is ConnectionKind.TLS
        if row["version"] or unseen:
            kind = ConnectionKind.TLS
        if server.environment.server.kind is not ServerKind.DSN and kind is not server.environment.connection:
            raise LevelNotTakenError(
                f"connection = {server.environment.connection} was asked for, but the server sees {kind}",
                where=f"environment {server.environment.name}",
                remedy="this is a defect of pgstrata: please report it",
            )
        encryption = {"connection.tls": f"{row['version']}, {row['cipher']}"} if row["version"] else {}
        return {"connection.kind": str(kind), **encryption}
