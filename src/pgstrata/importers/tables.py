"""Readers of tables of other tools: one row for each run, one column for each environment, Otava, pgbent."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pgstrata.errors import UsageError
from pgstrata.importers.results import Contents, ReadingTerms, Result, refuse_many
from pgstrata.model.metrics import METRICS
from pgstrata.sources.moments import parse_moment
from pgstrata.sources.table import refuse_fields, refuse_wide

_SEPARATORS: Final = (",", ";", "\t", "|")
_SKIPPED: Final = frozenset({"-", "_", ""})
_TIMES: Final = ("started", "time", "timestamp", "date", "start_time")
_ATTRIBUTES: Final = re.compile(r"(?<![a-z])(?:commit|branch|version|build|sha|revision|tag)(?![a-z])", re.IGNORECASE)
_NUMBER: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_MILLISECONDS: Final = 1000
_PGBENT: Final = ("server", "set", "info", "script", "scale", "clients", "workers", "rate_limit", "multi",
                  "server_version", "conn_method", "server_cpu", "server_mem_gb", "server_disk", "uname")  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    line: int
    fields: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """Rows as fields by the names of the columns; `wrong` are lines with another number of fields."""

    names: tuple[str, ...]
    rows: tuple[_Row, ...]
    wrong: tuple[tuple[int, str], ...]


def read_long(text: str, terms: ReadingTerms) -> Contents:
    """Read one row for each run: columns of dimensions, and of values (`--metric`, or else names of metrics)."""
    table = _read(text, terms.columns)
    metrics = tuple(name for name in table.names if name in (terms.metrics or METRICS))
    if not metrics:
        listed = ", ".join(table.names[:10])
        raise UsageError(
            f"it is not clear which of these columns hold values: {listed}",
            where="--metric",
            remedy=f"name them, such as --metric {table.names[-1] if table.names else 'tps'}",
        )
    results: list[Result] = []
    unusable = list(table.wrong)
    for row in table.rows:
        measured = {name: number for name in metrics if (number := _number(row.fields[name])) is not None}
        lacking = [name for name in metrics if name not in measured]
        if lacking:
            unusable.append((row.line, _say_lacking(row, lacking)))
        if measured:
            said = {name: row.fields[name] for name in table.names if name not in (*metrics, "started", "seconds")}
            seconds = _number(row.fields.get("seconds", "")) or 0.0
            started = parse_moment(row.fields.get("started", ""))
            results.append(
                Result(measurements=measured, line=row.line, said=_told(said), started=started, seconds=seconds)
            )
    return _contents(results, unusable)


def read_wide(text: str, terms: ReadingTerms) -> Contents:
    """Read one column for each environment; the columns of `--index` are not compared, but identify the rows."""
    table = _read(text, terms.columns)
    unknown = [name for name in terms.index if name not in table.names]
    if unknown:
        remedy = f"choose among {', '.join(table.names[:10])}"
        raise UsageError(f"there is no column {unknown[0]!r}", where="--index", remedy=remedy)
    factor = terms.compared[0] if terms.compared else "environment"
    metric = terms.metrics[0] if terms.metrics else "value"
    results: list[Result] = []
    unusable = list(table.wrong)
    for row in table.rows:
        index = {name: row.fields[name] for name in terms.index}
        for name in table.names:
            if name in index:
                continue
            refuse_many(len(results) + len(unusable))
            number = _number(row.fields[name])
            if number is None:
                unusable.append((row.line, _say_lacking(row, [name])))
                continue
            results.append(Result(measurements={metric: number}, line=row.line, said={**_told(index), factor: name}))
    return _contents(results, unusable, factor)


def read_otava(text: str, terms: ReadingTerms) -> Contents:
    """Read a history in Otava's format: a time column, attributes such as the commit, a column for each metric."""
    table = _read(text, terms.columns)
    moment = next((name for name in table.names if name.casefold() in _TIMES), None)
    if moment is None:
        return Contents(results=(), unusable=((1, f"there is no time column ({', '.join(_TIMES)})"),))
    others = [name for name in table.names if name != moment]
    metrics = terms.metrics or tuple(name for name in others if _is_metric(table, name))
    compared = next((name for name in others if name not in metrics and _ATTRIBUTES.search(name)), moment)
    results: list[Result] = []
    unusable = list(table.wrong)
    for row in table.rows:
        started = parse_moment(row.fields[moment])
        measured = {name: number for name in metrics if (number := _number(row.fields.get(name, ""))) is not None}
        lacking = [name for name in metrics if name not in measured]
        if started is None:
            unusable.append((row.line, f"{row.fields[moment]!r} is not a time"))
        elif lacking:
            unusable.append((row.line, _say_lacking(row, lacking)))
        if measured and started is not None:
            said = {name: row.fields[name] for name in table.names if name not in metrics and name != moment}
            if compared == moment:
                said[moment] = started.isoformat()
            results.append(Result(measurements=measured, line=row.line, said=_told(said), started=started))
    return _contents(results, unusable, compared)


def read_pgbent(text: str, _: ReadingTerms) -> Contents:
    """Read the table `tests` of pgbent's (or pgbench-tools') database as CSV, alone or joined with `testset`."""
    table = _read(text, ())
    if not {"tps", "clients"} <= set(table.names):
        return Contents(results=(), unusable=((1, "this is not the table tests: it lacks the columns tps, clients"),))
    results: list[Result] = []
    unusable = list(table.wrong)
    for row in table.rows:
        tps = _number(row.fields["tps"])
        started, end = (parse_moment(row.fields.get(name, "")) for name in ("start_time", "end_time"))
        if not tps or ("end_time" in row.fields and end is None):
            unusable.append((row.line, f"test {row.fields.get('test', '')} did not finish"))
            continue
        measured = {"tps": tps} | {
            name: number / _MILLISECONDS
            for column, name in (("avg_latency", "latency_mean"), ("percentile_90_latency", "latency_p90"))
            if (number := _number(row.fields.get(column, "")))
        }
        said = {name: row.fields[name] for name in _PGBENT if name in row.fields}
        seconds = (end - started).total_seconds() if started and end and end > started else 0.0
        results.append(Result(measurements=measured, line=row.line, said=_told(said), started=started, seconds=seconds))
    several = len({result.said.get("server") for result in results}) > 1
    return _contents(results, unusable, "server" if several else "")


# ------------------------------------------------------------------------------------------------ text to rows


def _read(text: str, columns: Sequence[str]) -> _Table:
    """The rows; the first names the columns unless they are given. Lines that begin with # are comments."""
    lines = _fields(text.removeprefix("\ufeff"))
    names = tuple(columns or next(lines, (0, []))[1])
    refuse_wide(len(names))
    used = [name for name in names if name not in _SKIPPED]
    twice = next((name for name in used if used.count(name) > 1), None)
    if twice is not None:
        raise UsageError(
            f"two columns are called {twice}", where="--columns", remedy="write - for one that is not used"
        )
    rows: list[_Row] = []
    wrong: list[tuple[int, str]] = []
    for line, fields in lines:
        refuse_many(len(rows) + len(wrong))
        refuse_fields(len(names) * (len(rows) + 1))
        if len(fields) < len(names) or any(fields[len(names) :]):
            wrong.append((line, f"it has {len(fields)} fields, and there are {len(names)} columns"))
            continue
        known = {name: field for name, field in zip(names, fields, strict=False) if name not in _SKIPPED}
        rows.append(_Row(line=line, fields=known))
    return _Table(names=tuple(used), rows=tuple(rows), wrong=tuple(wrong))


def _fields(text: str) -> Iterator[tuple[int, list[str]]]:
    """Line and fields; separated by what the first line has most of, else by blanks."""
    first = next((line for line in text.splitlines() if line.strip() and not line.startswith("#")), "")
    separator = max(_SEPARATORS, key=first.count)
    if separator not in first:
        for number, line in enumerate(text.splitlines(), 1):
            if line.strip() and not line.startswith("#"):
                yield number, line.split()
        return
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True)
    try:
        for fields in reader:
            cleaned = [" ".join(field.split()) for field in fields]
            if any(cleaned) and not cleaned[0].startswith("#"):
                yield reader.line_num, cleaned
    except csv.Error as error:
        raise UsageError(f"it cannot be read as a table: {error}", remedy="check its quotation marks") from None


def _number(text: str) -> float | None:
    number = float(text) if _NUMBER.fullmatch(text) else math.nan
    return number if math.isfinite(number) else None


def _is_metric(table: _Table, name: str) -> bool:
    """Whether a column holds only numbers or empty fields, and does not have the name of an attribute."""
    fields = [row.fields[name] for row in table.rows]
    numbers = all(_number(field) is not None for field in fields if field) and any(fields)
    return numbers and not _ATTRIBUTES.search(name)


def _told(said: Mapping[str, str]) -> dict[str, str]:
    return {name: level for name, level in said.items() if level}


def _say_lacking(row: _Row, names: Sequence[str]) -> str:
    empty = all(not row.fields.get(name) for name in names)
    named = ", ".join(names)
    return f"no value of {named}" if empty else f"{row.fields.get(names[0], '')!r} is not a value of {named}"


def _contents(results: Sequence[Result], unusable: Sequence[tuple[int, str]], compared: str = "") -> Contents:
    if not results and not unusable:
        unusable = ((0, "the table has no rows"),)
    return Contents(results=tuple(results), unusable=tuple(unusable), compared=compared)
