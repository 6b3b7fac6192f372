"""Results of pgbent and pgbench-tools: their table of tests as CSV or in a dump, and published tables of tests."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from pgstrata.importers.results import Contents, ReadingTerms, Result, name_version, refuse_many
from pgstrata.importers.rows import Row, Table, read_rows, to_number, to_table, told
from pgstrata.importers.tables import contents_of
from pgstrata.sources.moments import parse_moment

_MILLISECONDS: Final = 1000
_LATENCIES: Final = {"avg_latency": "latency_mean", "percentile_90_latency": "latency_p90"}
_SAID: Final = (
    "server", "info", "batch", "script", "scale", "clients", "workers", "rate_limit", "multi", "conn_method", "conn",
    "server_cpu", "cpu", "server_mem_gb", "mem_gb", "server_disk", "disk", "server_os_release", "os_rel", "uname",
)  # fmt: skip
"""Columns of dimensions: of the table tests, and of the view that pgbent publishes."""
_VERSIONS: Final = ("server_version", "server_ver")
_SETS: Final = ("info", "batch")
"""Columns with the name of the set of tests; a set has another number on each server."""

_COPY: Final = re.compile(
    r'COPY (?:[\w"]{1,80}\.)?"?(?P<table>tests|testset)"? \((?P<columns>[^()]{1,4000})\) FROM stdin;'
)
_ESCAPED: Final = re.compile(r"\\(.)")
_CONTROLS: Final = {"t": "\t", "n": "\n", "r": "\r", "b": "\b", "f": "\f", "v": "\v"}


def read_pgbent(text: str, _: ReadingTerms) -> Contents:
    """Read the table `tests`, alone or joined with `testset`, as CSV, in a dump of pg_dump, or as Markdown."""
    table = _read_dump(text) or read_rows(text, ())
    if not {"tps", "clients"} <= set(table.names):
        return Contents(results=(), unusable=((1, "this is not the table tests: it lacks the columns tps, clients"),))
    results: list[Result] = []
    unusable = list(table.wrong)
    for row in table.rows:
        tps = to_number(row.fields["tps"])
        started, end = (parse_moment(row.fields.get(name, "")) for name in ("start_time", "end_time"))
        if not tps or ("end_time" in row.fields and end is None):
            unusable.append((row.line, f"test {row.fields.get('test', '')} did not finish"))
            continue
        measured = {"tps": tps} | {
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


def _describe(row: Row) -> dict[str, str]:
    said = told({name: row.fields[name] for name in _SAID if name in row.fields})
    for name in _VERSIONS:
        said |= name_version(name, row.fields.get(name, ""))
    if not any(name in said for name in _SETS) and row.fields.get("set"):
        said["set"] = row.fields["set"]
    return said


# ------------------------------------------------------------------------------------------------ dumps


def _read_dump(text: str) -> Table | None:
    """The table `tests` of a dump, each row with the `info` of its set; None if the text has no such table."""
    if "FROM stdin;" not in text:
        return None
    lines = text.split("\n")
    blocks = {found["table"]: (place, found["columns"]) for place, line in enumerate(lines)
              if line.startswith("COPY ") and (found := _COPY.fullmatch(line.rstrip("\r")))}  # fmt: skip
    if "tests" not in blocks:
        return None
    tests = to_table(_read_copied(lines, *blocks["tests"]))
    if "testset" not in blocks or {"info", "set"} & set(tests.names) != {"set"}:
        return tests
    sets = to_table(_read_copied(lines, *blocks["testset"]))
    info = {_set_of(row.fields): row.fields.get("info", "") for row in sets.rows}
    rows = tuple(Row(line=row.line, fields={**row.fields, "info": info.get(_set_of(row.fields), "")})
                 for row in tests.rows)  # fmt: skip
    return Table(names=(*tests.names, "info"), rows=rows, wrong=tests.wrong)


def _set_of(fields: Mapping[str, str]) -> tuple[str, str]:
    return fields.get("server", ""), fields.get("set", "")


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
