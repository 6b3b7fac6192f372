"""Results of pgbent and pgbench-tools: their tables of tests and systems as CSV or in a dump, and published tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Final

from pgstrata.importers.results import Contents, ReadingTerms, Result, contents_of, name_version, refuse_many
from pgstrata.importers.rows import Row, Table, read_rows, to_number, to_table, told
from pgstrata.sources.moments import parse_moment

_MILLISECONDS: Final = 1000
_LATENCIES: Final = {"avg_latency": "latency_mean", "percentile_90_latency": "latency_p90"}
_SAID: Final = (
    "server", "info", "batch", "script", "scale", "clients", "workers", "rate_limit", "multi", "conn_method", "conn",
    "client_info", "client", "server_info", "server_cpu", "cpu", "server_num_proc", "server_mem", "server_mem_gb",
    "mem_gb", "server_disk", "disk", "server_disk_gb", "server_os_release", "os_rel", "uname",
    "shared_gb", "maint_gb", "max_wal_gb", "w_p_g", "p_m_w", "csum", "fsync", "wal_level", "timeout",
)  # fmt: skip
"""Columns of dimensions: of the tables tests and server, and of the view that pgbent publishes."""
_VERSIONS: Final = ("server_version", "server_ver")
_SETS: Final = ("info", "batch")
"""Columns with the name of the set of tests; a set has another number on each server."""
_SYSTEM: Final = ("server", "server_cpu")
"""Columns of the table of systems."""

_COPY: Final = re.compile(
    r'COPY (?:[\w"]{1,80}\.)?"?(?P<table>tests|testset|server|submission)"? \((?P<columns>[^()]{1,4000})\) FROM stdin;'
)
_INSERT: Final = re.compile(r'^INSERT INTO (?:[\w"]{1,80}\.)?"?(?:tests|submission)"? ', re.MULTILINE)
_ESCAPED: Final = re.compile(r"\\(.)")
_CONTROLS: Final = {"t": "\t", "n": "\n", "r": "\r", "b": "\b", "f": "\f", "v": "\v"}


def read_pgbent(text: str, _: ReadingTerms) -> Contents:
    """Read the table `tests` as CSV, in a dump of pg_dump (with `testset` and `server`), or as pgbent publishes it."""
    table = _read_dump(text)
    if table is None and _INSERT.search(text):
        return _refuse("the dump has INSERT commands: write it without --inserts and --column-inserts")
    table = table or read_rows(text, ())
    if not {"tps", "clients"} <= set(table.names):
        lacks = "this is not the table `tests`: it lacks the column tps or clients"
        system = set(_SYSTEM) <= set(table.names)
        return _refuse("this is only the table of systems: import a dump with the table `tests`" if system else lacks)
    results: list[Result] = []
    unusable = list(table.wrong)
    for row in table.rows:
        started, end = (parse_moment(row.fields.get(name, "")) for name in ("start_time", "end_time"))
        tps = to_number(row.fields["tps"])
        if why := _why_unusable(row, tps, end):
            unusable.append((row.line, f"test {row.fields.get('test', '')} {why}"))
            continue
        measured = {"tps": tps or 0.0} | {
            name: number / _MILLISECONDS
            for column, name in _LATENCIES.items()
            if (number := to_number(row.fields.get(column, "")))
        }
        seconds = (end - started).total_seconds() if started and end and end > started else 0.0
        # the view that is published has the day only
        started = started or parse_moment(row.fields.get("run", ""))
        results.append(
            Result(measurements=measured, line=row.line, said=_describe(row), started=started, seconds=seconds)
        )
    several = len({result.said.get("server") for result in results}) > 1
    return contents_of(results, unusable, "server" if several else "")


def _refuse(why: str) -> Contents:
    return Contents(results=(), unusable=((1, why),))


def _why_unusable(row: Row, tps: float | None, end: datetime | None) -> str:
    """Why a test has no result; empty if it has one. The view that is published has no end of a test."""
    if "end_time" in row.fields and end is None:
        return "did not finish"
    return "" if tps else "has no throughput"


def _describe(row: Row) -> dict[str, str]:
    said = told({name: row.fields[name] for name in _SAID if name in row.fields})
    for name in _VERSIONS:
        said |= name_version(name, row.fields.get(name, ""))
    if not any(name in said for name in _SETS) and row.fields.get("set"):
        said["set"] = row.fields["set"]
    return said


# ------------------------------------------------------------------------------------------------ dumps


def _read_dump(text: str) -> Table | None:
    """The table `tests` of a dump, or else `submission`; None if the text has neither.

    Each test has the `info` of its set, and what the table of systems says of its server.
    """
    if "FROM stdin;" not in text:
        return None
    lines = text.split("\n")
    blocks = {found["table"]: (place, found["columns"]) for place, line in enumerate(lines)
              if line.startswith("COPY ") and (found := _COPY.fullmatch(line.rstrip("\r")))}  # fmt: skip
    tables = {name: to_table(_read_copied(lines, *block)) for name, block in blocks.items()}
    tests = tables.get("tests") or tables.get("submission")
    if tests is None:
        return None
    if "testset" in tables and "info" not in tests.names:
        tests = _add_columns(tests, tables["testset"], ("server", "set"), ("info",))
    if "server" in tables:
        described = tuple(name for name in tables["server"].names if name in _SAID)
        tests = _add_columns(tests, tables["server"], ("server",), described)
    return tests


def _add_columns(table: Table, other: Table, keys: tuple[str, ...], names: tuple[str, ...]) -> Table:
    """Columns of another table, joined by keys; what a row of the table says itself stays."""
    if not set(keys) <= set(table.names) & set(other.names):
        return table
    known = {tuple(row.fields[key] for key in keys): row.fields for row in other.rows}
    rows = []
    for row in table.rows:
        found = known.get(tuple(row.fields[key] for key in keys), {})
        added = {name: found.get(name, "") for name in names if not row.fields.get(name)}
        rows.append(Row(line=row.line, fields={**row.fields, **added}))
    further = tuple(name for name in names if name not in table.names)
    return Table(names=(*table.names, *further), rows=tuple(rows), wrong=table.wrong)


def _read_copied(lines: list[str], place: int, columns: str) -> Iterator[tuple[int, list[str]]]:
    yield place + 1, [name.strip(' "') for name in columns.split(",")]
    for number in range(place + 1, len(lines)):
        line = lines[number].rstrip("\r")
        if line == "\\.":
            return
        refuse_many(number - place)
        yield number + 1, ["" if field == "\\N" else _ESCAPED.sub(_unescape, field) for field in line.split("\t")]


def _unescape(found: re.Match[str]) -> str:
    return _CONTROLS.get(found[1], found[1])
