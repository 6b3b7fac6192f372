"""What a recorder cannot see, in sentences without a full stop."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

LIMITS: Final = {
    "no_pg_monitor": "sessions of other roles are not seen: GRANT pg_monitor TO the recorder's role",
    "no_activities": "track_activities is off, so the server does not show what sessions do: set it to on",
    "statements_not_loaded": "pg_stat_statements is not loaded: calls and latencies of statements are not known",
    "no_extension": "the extension pg_stat_statements is not in this database: calls and latencies of statements are "
    "not known; run CREATE EXTENSION pg_stat_statements, or connect to a database that has it",
    "no_query_ids": "the server gives no query ids: statements are identified by their normalised texts",
    "no_host": "the server is on another machine: CPU, memory and disks of its host, and its log, are not seen; if ssh "
    "reaches it, name it: --host ssh:NAME",
    "no_log": "the server's log cannot be read, so errors, checkpoints and deadlocks are not seen. Run the recorder as "
    "a user who may read its file; before PostgreSQL 17, GRANT EXECUTE ON FUNCTION pg_current_logfile() TO its role",
    "many_tables": "the database has so many tables that their statistics are not read",
    "standby": "the server is a standby: its throughput counts read-only transactions",
    "newer_server": "the server is newer than this pgstrata: statistics that are new in it are not read",
}


def say_limits(codes: Iterable[str]) -> list[str]:
    """Those that are known, in this order."""
    return [LIMITS[code] for code in codes if code in LIMITS]
