"""Splits text into rows: CSV with any usual separator, columns separated by blanks, Markdown, and psql tables."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Final

from pgstrata.errors import UsageError
from pgstrata.importers.results import refuse_many
from pgstrata.sources.moments import parse_moment
from pgstrata.sources.table import refuse_fields, refuse_wide

_SEPARATORS: Final = (",", ";", "\t", "|")
_SKIPPED: Final = frozenset({"-", "_", ""})
_TIMES: Final = ("started", "start_time", "start", "time", "timestamp", "date")
_LONGEST_NAME: Final = 200
_MOST_NAMED: Final = 100
"""Columns that the reason for a row names; it is shortened later, but there may be one for each row."""
_NUMBER: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_BAR: Final = re.compile(r"(?<!\\)\|")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Fields by the names of their columns, without unused columns."""

    line: int
    fields: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Names of the used columns, the rows, and the lines that could not be read, each with the reason."""

    names: tuple[str, ...]
    rows: tuple[Row, ...]
    wrong: tuple[tuple[int, str], ...]


Lines = Iterable[tuple[int, Sequence[str]]]


def read_rows(text: str, columns: Sequence[str]) -> Table:
    """The rows of a text; the first line names the columns unless they are given. Comments begin with #."""
    text = text.removeprefix("\ufeff")
    framed = _read_framed(text.splitlines(), columns) if "|" in text else None
    return framed or to_table(_fields(text), columns)


def _read_framed(lines: Sequence[str], columns: Sequence[str]) -> Table | None:
    """The first table whose header has a line of dashes below it; None if there is no such table."""
    head = _find_head(lines)
    if head is None:
        return None
    end = next((place for place in range(head + 2, len(lines)) if "|" not in lines[place]), len(lines))
    places = range(head + 2, end) if columns else chain((head,), range(head + 2, end))
    table = to_table(((place + 1, _split_bars(lines[place])) for place in places), columns)
    further = _find_head(lines[end:])
    wrong = ((end + further + 1, "a further table is not read"),) if further is not None else ()
    return Table(names=table.names, rows=table.rows, wrong=(*table.wrong, *wrong))


def to_table(lines: Lines, columns: Sequence[str] = ()) -> Table:
    """Rows of lines that are split into fields; the first line names the columns unless they are given."""
    remaining = iter(lines)
    head, header = (0, columns) if columns else next(remaining, (0, ()))
    names = tuple(columns) or _strip_empty(header)
    refuse_wide(len(names))
    longest = max(map(len, names), default=0)
    if longest > _LONGEST_NAME:
        what = f"a column has a name of {longest:,} characters: the file is no table, or has no header"
        return Table(names=(), rows=(), wrong=((head, what),))
    used = [name for name in names if name not in _SKIPPED]
    twice = next((name for name in used if used.count(name) > 1), None)
    if twice is not None:
        raise UsageError(
            f"two columns are called {twice}", where="--columns", remedy="write - for one that is not used"
        )
    rows: list[Row] = []
    wrong: list[tuple[int, str]] = []
    for line, fields in remaining:
        refuse_many(len(rows) + len(wrong))
        refuse_fields(len(names) * (len(rows) + 1))
        if len(fields) < len(names) or any(fields[len(names) :]):
            wrong.append((line, f"it has {len(fields)} fields, and there are {len(names)} columns"))
            continue
        known = {name: field for name, field in zip(names, fields, strict=False) if name not in _SKIPPED}
        rows.append(Row(line=line, fields=known))
    return Table(names=tuple(used), rows=tuple(rows), wrong=tuple(wrong))


def _strip_empty(names: Sequence[str]) -> tuple[str, ...]:
    """Drop unnamed columns at the end, which come from programs that end each line with a separator."""
    last = next((place for place in range(len(names), 0, -1) if names[place - 1]), 0)
    return tuple(names[:last])


# ------------------------------------------------------------------------------------------------ lines to fields


def _find_head(lines: Sequence[str]) -> int | None:
    """Index of the first header line that has a line of dashes below it."""
    rules = (place for place in range(1, len(lines)) if _is_rule(lines[place]) and "|" in lines[place - 1])
    return next((place - 1 for place in rules), None)


def _is_rule(line: str) -> bool:
    return "--" in line and set(line.strip()) <= set("|+-: ") and ("|" in line or "+" in line)


def _split_bars(line: str) -> list[str]:
    """Fields of a line with vertical bars between them, and perhaps around them."""
    text = line.strip()
    text = text.removeprefix("|")
    if text.endswith("|") and not text.endswith("\\|"):
        text = text[:-1]
    return [" ".join(field.replace("\\|", "|").split()) for field in _BAR.split(text)]


def _fields(text: str) -> Iterator[tuple[int, list[str]]]:
    """Line number and fields. The separator is the one that is most frequent in the first line, or else blanks."""
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
        remedy = f"check line {reader.line_num + 1}: its quotation marks, and whether it is text at all"
        raise UsageError(f"it cannot be read as a table: {error}", remedy=remedy) from None


# ------------------------------------------------------------------------------------------------ fields


def to_number(text: str) -> float | None:
    """A finite number with a decimal point and without a unit."""
    number = float(text) if _NUMBER.fullmatch(text) else math.nan
    return number if math.isfinite(number) else None


def find_time(table: Table) -> str | None:
    """The column with the times of measuring: it has one of the names in `_TIMES`, and only times or empty fields."""
    for name in table.names:
        fields = [row.fields[name] for row in table.rows if row.fields[name]] if name.casefold() in _TIMES else []
        if fields and all(parse_moment(field) is not None for field in fields):
            return name
    return None


def name_times() -> str:
    """Column names that are recognised as times, for messages."""
    return ", ".join(_TIMES)


def is_time(name: str) -> bool:
    """Whether the name of a column is recognised as times."""
    return name.casefold() in _TIMES


def moment_of(row: Row, column: str | None) -> datetime | None:
    """The time of a row."""
    return parse_moment(row.fields[column]) if column is not None else None


def told(said: Mapping[str, str]) -> dict[str, str]:
    """Levels without those that are empty."""
    return {name: level for name, level in said.items() if level}


def say_lacking(row: Row, names: Sequence[str]) -> str:
    """Reason why a row has no value in these columns."""
    empty = all(not row.fields.get(name) for name in names)
    named = ", ".join(names[:_MOST_NAMED])
    return f"no value of {named}" if empty else f"{row.fields.get(names[0], '')!r} is not a value of {named}"
