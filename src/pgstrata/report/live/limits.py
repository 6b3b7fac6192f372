"""What a recorder cannot see, in sentences without a full stop."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

LIMITS: Final = {
    "no_pg_monitor": "sessions of other roles are not seen: GRANT pg_monitor TO the recorder's role",
    "no_activities": "track_activities is off, so the server does not show what sessions do: set it to on",
    "statements_not_loaded": "pg_stat_statements is not loaded: calls and latencies of statements are not known; add "
    "it to shared_preload_libraries, and restart the server",
    "no_extension": "the extension pg_stat_statements is not in this database: calls and latencies of statements are "
    "not known; run CREATE EXTENSION pg_stat_statements, or connect to a database that has it",
    "no_query_ids": "the server computes no query ids: statements are identified by their normalised texts; from "
    "PostgreSQL 14 on, set compute_query_id to on",
    "no_host": "the server is on another machine or in a container: CPU, memory and disks of its host, and its log, "
    "are not seen. Name its host: --host ssh:NAME, or --host local for a container on this machine",
    "no_log": "the server's log cannot be read, so errors, checkpoints and deadlocks are not seen. Run the recorder as "
    "a user who may read its file; before PostgreSQL 17, GRANT EXECUTE ON FUNCTION pg_current_logfile() TO its role",
    "no_container_log": "the log of the server's container cannot be read, so errors, checkpoints and deadlocks are "
    "not seen. Run the recorder as root on the container's host, and let docker or podman write its log into a file",
    "no_io_timing": "track_io_timing is off: waits for reads and writes are seen, but not how long these took; set it "
    "to on",
    "no_databases": "the server does not show pg_stat_database: throughput and time per transaction are not known",
    "no_position": "the server does not show its position in the WAL: how much WAL it wrote is not known",
    "no_checkpoints": "the server does not show its counters of checkpoints",
    "no_wal": "the server does not show pg_stat_wal: records and full pages in the WAL are not known",
    "no_wal_io": "the server does not show writes of WAL: how many there were, and how long they took, is not known",
    "no_io": "the server does not show its counters of reads and writes",
    "many_tables": "the database has so many tables that their statistics are not read",
    "standby": "the server is a standby: its throughput counts read-only transactions",
    "newer_server": "the server is newer than this pgstrata: statistics that are new in it are not read; use a newer "
    "pgstrata if there is one",
}


def say_limits(codes: Iterable[str]) -> list[str]:
    """Those that are known, in this order."""
    return [LIMITS[code] for code in codes if code in LIMITS]
