"""`pgstrata workload draft`: read the statistics of a running server, change nothing there, and write a draft."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import Final

from pgstrata.app.machine import open_machine
from pgstrata.app.running_server import EXTENSION, READ_ONLY, make_read_only, parse_dsn, require_read_only
from pgstrata.errors import HostNotFitError, SqlError, UsageError
from pgstrata.libpq import quote_literal
from pgstrata.model.draft import ColumnFacts, CountedStatement, WorkloadDraft
from pgstrata.model.server import Address
from pgstrata.ports.server import Sql
from pgstrata.servers.psql import PsqlSql
from pgstrata.system.files import create, make_folder, write_error
from pgstrata.workloads import draft as draft_room
from pgstrata.workloads.draft.experiment import SCRIPTS, render_experiment
from pgstrata.workloads.draft.marks import FIRST_NUMBERED, number_marks
from pgstrata.workloads.draft.scripts import choose, make_scripts
from pgstrata.workloads.draft.statements import TableName

MOST_SCRIPTS: Final = 100
_MOST_STATEMENTS: Final = 5000
_LONGEST_TEXT: Final = 65_537
_HIDDEN: Final = "<insufficient privilege>"
_NOT_LOADED: Final = "55000"
"""object_not_in_prerequisite_state"""


def draft_workload(dsn: str, output: Path | None, top: int) -> tuple[Path, WorkloadDraft]:
    """Ask a server, write scripts and an experiment file; the folder, and what is in it.

    Args:
        dsn: a service, or a connection string, with or without `dsn:`.
        output: the folder, which must not be there yet; None for one called like the database.
        top: at most so many statements.

    Raises:
        UsageError: no connection string, or the folder is there.
        HostNotFitError: the server has no pg_stat_statements, or does not show it.
        SqlError: it cannot be asked.
    """
    if not 1 <= top <= MOST_SCRIPTS:
        remedy = f"give an integer from 1 to {MOST_SCRIPTS}"
        raise UsageError(f"a draft cannot have {top} scripts", where="--top", remedy=remedy)
    address = make_read_only(parse_dsn(dsn), statement_timeout="30s")
    with open_machine(lambda _: None) as machine:
        asked = _Asked(PsqlSql(machine.here, machine.servers.client_tools(tls=True)), address)
        asked.require_read_only()
        draft, text = _make(asked, top)
    folder = output or Path(f"draft-{re.sub(r'[^A-Za-z0-9._-]+', '-', draft.database).strip('-.') or 'workload'}")
    _write(folder, draft, text)
    return folder, draft


def _make(asked: _Asked, top: int) -> tuple[WorkloadDraft, str]:
    database, version, major, size = asked.facts()
    counted = asked.counted(database)
    if int(major) < FIRST_NUMBERED:
        counted = tuple(replace(one, text=number_marks(one.text)) if one.text else one for one in counted)
    chosen = choose(counted, top)
    if not chosen.statements:
        raise HostNotFitError(
            "pg_stat_statements has no statement of this database that a script could run",
            where=f"database {database}",
            details=tuple(f"{one.text}: {one.reason}" for one in chosen.left_out[:5]),
            remedy="let the load run for a while first, and connect to the database that it uses; only members of "
            "pg_read_all_stats, before PostgreSQL 10 superusers, see statements of other roles",
        )
    facts = asked.columns(chosen.tables)
    draft = WorkloadDraft(
        database=database,
        version=version,
        scripts=tuple(make_scripts(chosen, facts)),
        left_out=chosen.left_out,
        more=chosen.more,
        more_share=chosen.more_share,
        warnings=tuple(asked.warnings),
    )
    return draft, render_experiment(draft, asked.address, major=major, size=size)


def _write(folder: Path, draft: WorkloadDraft, experiment: str) -> None:
    try:
        make_folder(folder)
        make_folder(folder / SCRIPTS)
        for script in draft.scripts:
            create(folder / SCRIPTS / script.name, script.text.encode())
        create(folder / "experiment.toml", experiment.encode())
    except FileExistsError:
        raise UsageError(
            "the folder exists already; nothing in it is overwritten", where=str(folder), remedy="name another one"
        ) from None
    except OSError as error:
        raise write_error(
            "the draft cannot be written", error, where=folder, remedy="name another folder", kind=UsageError
        ) from None


@dataclass(slots=True)
class _Asked:
    """A server that is asked, by sessions that cannot write; `warnings` say what it does not tell."""

    sql: Sql
    address: Address
    warnings: list[str] = field(default_factory=list)

    def require_read_only(self) -> None:
        """HostNotFitError where a service or a pooler has taken the settings of the connection away."""
        require_read_only(self.sql.query(self.address, READ_ONLY).value())

    def facts(self) -> tuple[str, str, str, int]:
        """Name of the database, version of the server, its major, bytes of the database."""
        statement = (
            "SELECT pg_catalog.current_database() AS name, pg_catalog.current_setting('server_version') AS version, "
            "pg_catalog.current_setting('server_version_num') AS number, "
            "pg_catalog.pg_database_size(pg_catalog.current_database()) AS size"
        )
        (row,) = self.sql.query(self.address, statement).records()
        return row["name"], row["version"], str(int(row["number"]) // 10000), int(row["size"])

    def counted(self, database: str) -> tuple[CountedStatement, ...]:
        """What pg_stat_statements counts of this database, by statement; HostNotFitError where it does not."""
        schema = self._schema(database)
        known = self._columns_of_view(schema)
        time = "total_exec_time" if "total_exec_time" in known else "total_time"
        top_level = "s.toplevel" if "toplevel" in known else "true"
        if "toplevel" not in known:
            self.warnings.append("this server does not distinguish statements in functions from those of clients")
        statement = f"""\
SELECT s.queryid::text AS id, pg_catalog.left(s.query, {_LONGEST_TEXT}) AS query, {top_level} AS top,
       pg_catalog.sum(s.calls) AS calls, pg_catalog.sum(s.{time}) / 1000 AS seconds
FROM {schema}.pg_stat_statements AS s
WHERE s.dbid = (SELECT d.oid FROM pg_catalog.pg_database AS d WHERE d.datname = pg_catalog.current_database())
GROUP BY 1, 2, 3 ORDER BY 5 DESC LIMIT {_MOST_STATEMENTS}"""
        try:
            rows = tuple(self.sql.query(self.address, statement).records())
        except SqlError as error:
            if error.sqlstate == _NOT_LOADED:
                raise _missing(f"{EXTENSION} is not loaded", database) from error
            raise
        found = tuple(map(_counted, rows))
        hidden = sum(one.seconds for one in found if one.text is None)
        if hidden:
            share = hidden / (sum(one.seconds for one in found) or 1)
            self.warnings.append(
                f"this role may not see the texts of statements with {share * 100:.0f} % of the time: "
                "from PostgreSQL 10 on, GRANT pg_read_all_stats TO the role shows them"
            )
        return found

    def _schema(self, database: str) -> str:
        statement = (
            "SELECT pg_catalog.quote_ident(n.nspname) AS name FROM pg_catalog.pg_extension AS e "
            f"JOIN pg_catalog.pg_namespace AS n ON n.oid = e.extnamespace WHERE e.extname = '{EXTENSION}'"
        )
        rows = self.sql.query(self.address, statement).rows
        if not rows:
            raise _missing(f"the extension {EXTENSION} is not in this database", database)
        return rows[0][0]

    def _columns_of_view(self, schema: str) -> frozenset[str]:
        view = quote_literal(f"{schema}.{EXTENSION}")
        statement = f"SELECT attname AS name FROM pg_catalog.pg_attribute WHERE attrelid = {view}::pg_catalog.regclass"
        return frozenset(row[0] for row in self.sql.query(self.address, statement).rows)

    def columns(self, tables: Sequence[TableName]) -> Mapping[TableName, Sequence[ColumnFacts]]:
        """Facts of the columns of tables; those that are not there, or not for this role, are left out."""
        if not tables:
            return {}
        try:
            return dict(self._ask_columns(tables))
        except SqlError:
            found: dict[TableName, Sequence[ColumnFacts]] = {}
            for table in tables:
                with suppress(SqlError):
                    found.update(self._ask_columns((table,)))
            return found

    def _ask_columns(self, tables: Sequence[TableName]) -> Iterator[tuple[TableName, Sequence[ColumnFacts]]]:
        rows = ", ".join(f"({number}, {quote_literal(_quoted(table))})" for number, table in enumerate(tables))
        text = (files(draft_room) / "sql" / "columns.sql").read_text("utf-8").replace("@tables@", rows)
        found: dict[int, list[ColumnFacts]] = {}
        for row in self.sql.query(self.address, text).records():
            found.setdefault(int(row["given"]), []).append(_facts(row))
        yield from ((tables[number], columns) for number, columns in found.items())


def _missing(what: str, database: str) -> HostNotFitError:
    return HostNotFitError(
        what,
        where=f"database {database}",
        remedy=f"add {EXTENSION} to shared_preload_libraries in postgresql.conf, restart the server, run "
        f"CREATE EXTENSION {EXTENSION}; in that database, and let the load run for a while",
    )


def _counted(row: Mapping[str, str]) -> CountedStatement:
    shown = row["query"] and row["query"] != _HIDDEN
    return CountedStatement(
        identity=row["id"],
        text=row["query"] if shown else None,
        calls=int(row["calls"]),
        seconds=float(row["seconds"]),
        top_level=row["top"] == "t",
    )


def _facts(row: Mapping[str, str]) -> ColumnFacts:
    return ColumnFacts(
        schema=row["schema"],
        table=row["table"],
        column=row["column"],
        type=row["type"],
        numeric=row["numeric"] == "t",
        whole=row["whole"] == "t",
        low=_finite(row["low"]),
        high=_finite(row["high"]),
        distinct=_finite(row["distinct"]) or 0.0,
        unique=row["unique"] == "t",
    )


def _finite(text: str) -> float | None:
    value = float(text) if text else math.nan
    return value if math.isfinite(value) else None


def _quoted(table: TableName) -> str:
    """The name as `to_regclass` reads it."""
    parts = (part for part in (table.schema, table.name) if part)
    return ".".join('"' + part.replace('"', '""') + '"' for part in parts)
