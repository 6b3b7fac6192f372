"""What a recorder has to know of its server before it asks, and what it will not be able to see there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

from pgstrata.app.running_server import require_read_only
from pgstrata.collectors import live
from pgstrata.collectors.lines import whole_lines
from pgstrata.collectors.live.relations import relations_period
from pgstrata.collectors.live.statements import IDENTITIES_SINCE
from pgstrata.errors import HostNotFitError, ParseError, SqlError
from pgstrata.ports.session import ServerSession

OLDEST: Final = 100000
NEWEST: Final = 189999
"""The newest version whose statistics are known."""
_FIELDS: Final = (
    "version", "number", "read_only", "sees_all", "standby", "started", "address", "backend", "activities", "counting",
    "loaded", "identities", "catalogue", "database", "clock", "connections", "buffers", "timing",
)  # fmt: skip
_NUMBER: Final = re.compile(r"[0-9]{1,18}(?:\.[0-9]{1,18})?", re.ASCII)
_LOOPBACK: Final = frozenset({"", "127.0.0.1", "::1"})
_SYSTEM: Final = "SELECT system_identifier AS pgstrata FROM pg_control_system()"
_SYSTEM_FACT: Final = "system"
_LIMITS: Final = "limits"
_NUMBERS: Final = ("number", "started", "backend", "catalogue")


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveServer:
    """A server as it was when the recorder connected."""

    said: Mapping[str, str]
    system: str

    @property
    def version(self) -> int:
        """server_version_num."""
        return int(self.said["number"])

    @property
    def started(self) -> float:
        """When the postmaster was started, Unix seconds of the server's clock."""
        return float(self.said["started"])

    @property
    def counts_statements(self) -> bool:
        """Whether pg_stat_statements can be asked."""
        return bool(self.said["counting"] and self.said["loaded"])

    @property
    def may_be_here(self) -> bool:
        """Whether it was reached at an address of this machine."""
        return self.said["address"] in _LOOPBACK

    def limits(self, *, host: bool, log: str = "", refused: Iterable[str] = ()) -> tuple[str, ...]:
        """Codes of what will not be seen.

        Args:
            host: whether the host's counters will be.
            log: the code for why its log will not be, if the host is; empty: it will.
            refused: views of counters that the server does not show.
        """
        return (*self._limits(host=host, log=log), *(f"no_{view}" for view in refused))

    def _limits(self, *, host: bool, log: str) -> Iterator[str]:
        if self.said["sees_all"] != "t":
            yield "no_pg_monitor"
        if self.said["activities"] != "on":
            yield "no_activities"
        if not self.said["loaded"]:
            yield "statements_not_loaded"
        elif not self.said["counting"]:
            yield "no_extension"
        if self.version < IDENTITIES_SINCE or self.said["identities"] == "off":
            yield "no_query_ids"
        if not host:
            yield "no_host"
        elif log:
            yield log
        if self.said["timing"] == "off":
            yield "no_io_timing"
        if relations_period(int(self.said["catalogue"])) is None:
            yield "many_tables"
        if self.said["standby"] == "t":
            yield "standby"
        if self.version > NEWEST:
            yield "newer_server"

    def facts(self, limits: Iterable[str]) -> Mapping[str, str]:
        """What the archive keeps of it; `limits` are codes of what is not seen."""
        return {
            **({_SYSTEM_FACT: self.system} if self.system else {}),
            "server_version": self.said["version"],
            "database": self.said["database"],
            "server_started": self.said["started"],
            "max_connections": self.said["connections"],
            "shared_buffers": self.said["buffers"],
            _LIMITS: " ".join(limits),
        }


def observe_server(session: ServerSession) -> LiveServer:
    """Ask a server what it is.

    Raises:
        HostNotFitError: sessions would not be read-only, or it is too old.
        SqlError: it cannot be asked.
    """
    answer = "\n".join(whole_lines(session.rows((files(live) / "sql" / "server.sql").read_text("utf-8"))))
    words = answer.split("\t")
    said = dict(zip(_FIELDS, words, strict=False))
    if len(words) != len(_FIELDS) or not all(_NUMBER.fullmatch(said[name]) for name in _NUMBERS):
        raise ParseError(f"the server's answer has an unexpected format: {answer[:200]!r}")
    require_read_only(said["read_only"])
    if int(said["number"]) < OLDEST:
        raise HostNotFitError(
            f"a server of version {said['version']} cannot be watched",
            where="DSN",
            remedy="servers from PostgreSQL 10 on can be watched; `pgstrata run` measures older ones",
        )
    system = ""
    with suppress(SqlError):
        system = session.rows(_SYSTEM).decode().strip()
    return LiveServer(said=said, system=system)


def compare_servers(before: LiveServer | None, now: LiveServer) -> tuple[bool, str]:
    """Whether another postmaster answers than the one that was lost, and what to say of it."""
    if before is None or abs(now.started - before.started) <= 1:
        return False, ""
    moved = before.said["address"] != now.said["address"]
    return True, "another server with the same data answers; " if moved else "the server was restarted; "
