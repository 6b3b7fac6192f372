"""A made-up archive of one day, one look a second: 200 sessions, 100 statements, 100 tables, server and host.

The recorder's code writes the first hour. SQL copies it to the other hours, because writing all would take minutes.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np

from pgstrata.model.archive import (
    COMMITS,
    HOST_RATES,
    RELATION_FIELDS,
    SERVER_RATES,
    Relation,
    RelationUse,
    SessionClass,
    SessionsLook,
    StatementUse,
)
from pgstrata.ports.recording import Counted
from pgstrata.store.archives.schema import ARCHIVE
from pgstrata.store.archives.thinning import Keep
from pgstrata.store.archives.writer import ArchiveWriter

HOUR = 3600
DAY = 24 * HOUR
BEGIN = 1_795_651_200
LEAD = 30
"""Seconds by which the host's CPU and disk rise before the load."""
_CLASSES, _SEEN, _EACH = 80, 40, 5
_STATEMENTS, _COUNTED = 100, 10
_TABLES, _RELATED = 100, 60
_COPIED = (
    "look_second", "session_second", "server_second", "host_second",
    "statement_interval", "statement_use", "relation_interval", "relation_use",
)  # fmt: skip


def make_hours(folder: Path) -> None:
    """Write a day of equal hours into a new folder. Call `make_slow` afterwards."""
    writer = ArchiveWriter.open(folder, Keep())
    writer.add_facts({"server_version": "18.0", "limits": ""})
    writer.add_texts({f"q{number}": f"SELECT {number} FROM stock WHERE id = ?" for number in range(_STATEMENTS)})
    _record_hour(writer)
    writer.close()
    with closing(sqlite3.connect(folder / ARCHIVE)) as connection, connection:
        for table in _COPIED:
            _copy(connection, table)


def make_slow(folder: Path, begin: int, end: int) -> None:
    """Twice the sessions and three quarters of the transactions from one second of the day to another.

    The host's CPU and disk rise `LEAD` seconds earlier. At the end, sums of minutes are written, as a recorder does.
    """
    with closing(sqlite3.connect(folder / ARCHIVE)) as connection, connection:
        for statement, since in (
            ("UPDATE look_second SET load = 2 * load", begin),
            ("UPDATE session_second SET sessions = 2 * sessions", begin),
            (f"UPDATE server_second SET {COMMITS} = 0.75 * {COMMITS}", begin),
            ("UPDATE host_second SET host_user_cpu = 1.5 * host_user_cpu, disk_iops = 2 * disk_iops", begin - LEAD),
        ):
            connection.execute(f"{statement} WHERE moment >= ? AND moment < ?", (BEGIN + since, BEGIN + end))
    writer = ArchiveWriter.open(folder, Keep())
    writer.tidy(BEGIN + DAY)
    writer.close()


def _record_hour(writer: ArchiveWriter) -> None:
    draws = np.random.default_rng(1)
    classes = [
        SessionClass(
            kind="client backend", database="shop", role="clerk", application=f"app{number % 5}", state="active",
            wait_type="" if number % 3 else "IO", event="" if number % 3 else "DataFileRead", statement=f"q{number}",
        )
        for number in range(_CLASSES)
    ]  # fmt: skip
    uses = {
        f"q{number}": StatementUse(calls=100.0, seconds=1.0 + number, rows=100.0, blocks_hit=1e4)
        for number in range(_STATEMENTS)
    }
    spent = sum(use.seconds for use in uses.values())
    relations = {
        Relation(name=f"public.t{number}{'_pkey' * index}", table=f"public.t{number}" if index else ""): RelationUse(
            **dict.fromkeys(RELATION_FIELDS, 10.0)
        )
        for number in range(_TABLES)
        for index in (0, 1)
    }
    for moment in range(BEGIN, BEGIN + HOUR):
        chosen = [classes[place] for place in draws.choice(_CLASSES, _SEEN, replace=False)]
        counts = dict(zip(chosen, (1 + draws.poisson(_EACH - 1, _SEEN)).tolist(), strict=True))
        writer.add_look(moment, SessionsLook(counts=counts, blocked={}))
        writer.add_server(moment, 1.0, dict(zip(SERVER_RATES, draws.normal(1000, 50, len(SERVER_RATES)), strict=True)))
        writer.add_host(moment, 1.0, dict(zip(HOST_RATES, draws.normal(10, 1, len(HOST_RATES)), strict=True)))
        if moment % _COUNTED == 0:
            writer.add_counted(moment, Counted(seconds=_COUNTED, spent=spent, uses=uses, complete=True))
        if moment % _RELATED == 0:
            writer.add_relations(moment, _RELATED, relations)
    writer.flush(BEGIN + HOUR)


def _copy(connection: sqlite3.Connection, table: str) -> None:
    """The first hour's rows to all others."""
    columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    rest = ", ".join(columns[1:])
    for hour in range(1, DAY // HOUR):
        connection.execute(
            f"INSERT INTO {table} SELECT moment + ?, {rest} FROM {table} WHERE moment < ? ORDER BY 1",
            (hour * HOUR, BEGIN + HOUR),
        )
