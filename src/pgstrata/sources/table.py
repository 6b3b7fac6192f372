"""A table of what others measured, as text: separator, header, rows. What cannot be used is refused with a remedy."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pgstrata.errors import UsageError
from pgstrata.model.answer import ALL_CELLS
from pgstrata.model.observation import Observation, PairingKey, Repeats
from pgstrata.sources.further import add_further
from pgstrata.units import printable, render_names, shorten

SEPARATORS: Final = (",", ";", "\t")
COLUMNS: Final = ("block", "environment", "cell", "metric", "value")
REQUIRED: Final = ("environment", "value")
UNNAMED: Final = "value"
"""The metric of a table that does not name one."""

_NUMBER: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_WITH_COMMA: Final = re.compile(r"[+-]?\d[\d.,' ]*,[\d.,' ]*", re.ASCII)
_NOT_MEASURED: Final = frozenset({"nan", "na", "n/a", "null", "none", "-", "?", "inf", "infinity"})
MOST_ROWS: Final = 100_000
MOST_METRICS: Final = 100
MOST_COLUMNS: Final = 1000
MOST_FIELDS: Final = 5_000_000
"""Most fields of all rows together."""
_MOST_PROBLEMS: Final = 5
_MOST_NAMES: Final = 10
_LONGEST_QUOTE: Final = 40
_LEAVE_OUT: Final = "leave out the whole row of a run that gave no result: what lacks it is left out too, and counted"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultTable:
    """The usable columns of a table, and the rows of one metric as observations, in the order of the file.

    `metric` is `UNNAMED` where neither the table nor its reader names one; `ignored` are further columns that say more
    than environment and cell do. Values are finite and above zero. Blocks are numbered as they first appear; without a
    column for them nothing has a key, and without one for cells all is of `ALL_CELLS`. `repeats` is what the file says
    of them, None where it has no such column.
    """

    source: str
    columns: frozenset[str]
    ignored: tuple[str, ...]
    metric: str
    observations: tuple[Observation, ...]
    repeats: Repeats | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Record:
    """A row as text: the fields of the known columns, and of all others."""

    line: int
    fields: dict[str, str]
    others: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fault:
    line: int
    what: str
    remedy: str


def parse_table(text: str, source: str, *, metric: str | None = None) -> ResultTable:
    """The rows of one metric.

    Args:
        text: a header and rows, separated by comma, semicolon or tabulator; quotation marks as in RFC 4180.
        source: what messages call it.
        metric: which metric to take where there are several, or what the values are where no column says it.

    Raises:
        UsageError: the text is no such table, or a row of this metric has no usable value; the first few are named.
    """
    separator = _sniff_separator(text)
    records = _read_records(text.removeprefix("\ufeff"), source, separator)
    line, header = next(records, (0, []))
    if not header:
        raise UsageError("the file is empty", where=source, remedy=_name_columns())
    refuse_wide(len(header), where=source)
    places, others = _read_header(header, f"{source}:{line}")
    rows = _to_records(records, source, len(header), places, others)
    if not rows:
        raise UsageError("there is no row below the header", where=source, remedy="add one row for each result")
    if "metric" in places:
        metric = _choose_metric(rows, source, metric)
        rows = [row for row in rows if row.fields["metric"] == metric]
    metric = metric or UNNAMED
    observations = _to_observations(rows, source, metric, unique="block" in places)
    further = add_further(observations, [row.others for row in rows], tuple(others))
    return ResultTable(
        source=source,
        columns=frozenset(places),
        ignored=further.ignored,
        metric=metric,
        observations=further.observations,
        repeats=further.repeats,
    )


def parse_metrics(text: str, source: str) -> tuple[ResultTable, ...]:
    """As `parse_table`, for each metric of the text."""
    records = _read_records(text.removeprefix("\ufeff"), source, _sniff_separator(text))
    _, header = next(records, (0, []))
    place = next((place for place, name in enumerate(header) if name.casefold() == "metric"), None)
    if place is None:
        return (parse_table(text, source),)
    names = dict.fromkeys(fields[place] for _, fields in records if place < len(fields) and fields[place])
    if len(names) > MOST_METRICS:
        what = f"the file has {len(names):,} metrics, and at most {MOST_METRICS} can be exported together"
        raise UsageError(what, where=source, remedy="split the file by its metrics")
    return tuple(parse_table(text, source, metric=name) for name in names) or (parse_table(text, source),)


def refuse_wide(columns: int, *, where: str = "") -> None:
    """UsageError where a table has more columns than are read."""
    if columns > MOST_COLUMNS:
        what = f"there are {columns:,} columns, and at most {MOST_COLUMNS:,} are read"
        raise UsageError(what, where=where, remedy="leave out those that are not needed")


def refuse_fields(fields: int, *, where: str = "") -> None:
    """UsageError where a table has more fields than are read."""
    if fields > MOST_FIELDS:
        what = f"there are more than {MOST_FIELDS:,} fields"
        raise UsageError(what, where=where, remedy="split the file, or leave out columns that are not needed")


# ------------------------------------------------------------------------------------------------ text to fields


def _sniff_separator(text: str) -> str:
    """The separator that makes the most known names of the header, and where none does the most fields."""
    header = next((line for line in text.removeprefix("\ufeff").splitlines() if line.strip()), "")

    def worth(separator: str) -> tuple[int, int]:
        fields = [field.strip(' "').casefold() for field in header.split(separator)]
        return len(set(fields) & set(COLUMNS)), len(fields)

    return max(SEPARATORS, key=worth)


def _read_records(text: str, source: str, separator: str) -> Iterator[tuple[int, list[str]]]:
    """The line at which each record begins, and its fields; lines without any text are passed over."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True, skipinitialspace=True)
    while True:
        line = reader.line_num + 1
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            remedy = 'close what "quotation marks" open, and write a mark within them twice'
            raise UsageError(
                f"the line cannot be read as a table: {error}", where=f"{source}:{line}", remedy=remedy
            ) from None
        if any(field.strip() for field in fields):
            yield line, [_clean(field) for field in fields]


def _clean(field: str) -> str:
    """Without blanks around it, in one line, and nothing that a terminal would obey."""
    return printable(" ".join(field.split()))


def _read_header(header: Sequence[str], where: str) -> tuple[dict[str, int], dict[str, int]]:
    """Places of the known columns, and of the others, of which several may have no name."""
    names = [name.casefold() for name in header]
    twice = [name for name in COLUMNS if names.count(name) > 1]
    if twice:
        raise UsageError(f"the header has two columns {twice[0]}", where=where, remedy="rename or remove one of them")
    missing = [name for name in REQUIRED if name not in names]
    if missing:
        what = f"the first line names no column {' and no column '.join(missing)}"
        raise UsageError(
            what,
            where=where,
            details=(f"it names {render_names([*map(_quote, header)], _MOST_NAMES)}",),
            remedy=_name_columns(),
        )
    places: dict[str, int] = {name: names.index(name) for name in COLUMNS if name in names}
    return places, {name or "(no name)": place for place, name in enumerate(header) if place not in places.values()}


def _name_columns() -> str:
    return "begin with a header: block,environment,value, and cell and metric where there are several of them"


def _to_records(
    records: Iterator[tuple[int, list[str]]], source: str, width: int, places: dict[str, int], others: dict[str, int]
) -> list[_Record]:
    found: list[_Record] = []
    faults = []
    for line, fields in records:
        # spreadsheets end all lines with separators for columns that are not used
        if len(fields) < width or any(fields[width:]):
            faults.append(_say_width(line, len(fields), width))
            continue
        if len(found) >= MOST_ROWS:
            what, remedy = f"there are more than {MOST_ROWS:,} rows", "split the file"
            raise UsageError(what, where=f"{source}:{line}", remedy=remedy)
        refuse_fields(width * (len(found) + 1), where=f"{source}:{line}")
        known = {name: fields[place] for name, place in places.items()}
        found.append(_Record(line=line, fields=known, others={name: fields[place] for name, place in others.items()}))
    _refuse(source, faults)
    return found


def _say_width(line: int, fields: int, width: int) -> _Fault:
    remedy = (
        "complete the row, or remove it"
        if fields < width
        else "put a field that holds the separator into quotation marks, and write numbers with a decimal point"
    )
    return _Fault(
        line=line, what=f"{fields} {'field' if fields == 1 else 'fields'}, the header has {width}", remedy=remedy
    )


def _choose_metric(rows: Sequence[_Record], source: str, asked: str | None) -> str:
    faults = [_say_empty(row.line, "metric") for row in rows if not row.fields["metric"]]
    _refuse(source, faults)
    known = tuple(dict.fromkeys(row.fields["metric"] for row in rows))
    listed = render_names(known, _MOST_NAMES)
    if asked is None and len(known) > 1:
        raise UsageError(
            f"the file mixes {len(known)} metrics: {listed}",
            where=source,
            remedy=f"choose one, such as --metric {known[0]}",
        )
    if asked is not None and asked not in known:
        raise UsageError(f"the file has no metric {_quote(asked)}", where=source, remedy=f"choose one of {listed}")
    return asked or known[0]


# ------------------------------------------------------------------------------------------------ fields to values


def _to_observations(records: Sequence[_Record], source: str, metric: str, *, unique: bool) -> tuple[Observation, ...]:
    """Rows whose fields can all be used; `unique` if block, environment and cell may come together once."""
    found, faults = [], []
    lines: dict[tuple[str, str, str], int] = {}
    keys: dict[str, PairingKey] = {}
    for record in records:
        fields = record.fields
        fault = _find_fault(record)
        if fault is None and unique:
            place = (fields["block"], fields["environment"], fields.get("cell", ""))
            first = lines.setdefault(place, record.line)
            fault = _say_twice(record.line, first, place) if first != record.line else None
        if fault is not None:
            faults.append(fault)
            continue
        label = fields.get("block")
        if label is not None and label not in keys:
            keys[label] = PairingKey(number=len(keys) + 1, label=label)
        found.append(
            Observation(
                target=fields["environment"],
                cell=fields.get("cell", ALL_CELLS),
                measurements={metric: float(fields["value"])},
                provenance=f"{source}:{record.line}",
                key=keys[label] if label is not None else None,
            )
        )
    _refuse(source, faults)
    return tuple(found)


def _find_fault(record: _Record) -> _Fault | None:
    for name in ("block", "environment", "cell"):
        if record.fields.get(name) == "":
            return _say_empty(record.line, name)
    said = _find_value_fault(record.fields["value"])
    return _Fault(line=record.line, what=f"column value: {said[0]}", remedy=said[1]) if said else None


def _find_value_fault(text: str) -> tuple[str, str] | None:
    """What is wrong with a value, and what to do; None if it can be compared."""
    if not text:
        return "it is empty", _LEAVE_OUT
    if text.casefold().lstrip("+-") in _NOT_MEASURED or text in _NOT_MEASURED:
        return f"{_quote(text)} is not a result", _LEAVE_OUT
    if _NUMBER.fullmatch(text) is None:
        if _WITH_COMMA.fullmatch(text):
            return f"{_quote(text)} has a comma in it", "write a decimal point, and nothing between thousands"
        return f"{_quote(text)} is not a number", "write the number alone, without a unit"
    number = float(text)
    if math.isinf(number):
        return f"{_quote(text)} is too large", "give it in a larger unit"
    if number == 0:
        return f"{_quote(text)} cannot be compared, because differences are ratios", _LEAVE_OUT
    if number < 0:
        return f"{_quote(text)} is below zero, and differences are ratios", "compare a quantity that is above zero"
    return None


def _say_empty(line: int, name: str) -> _Fault:
    return _Fault(line=line, what=f"column {name}: it is empty", remedy=f"name the {name} in every row")


def _say_twice(line: int, first: int, key: tuple[str, str, str]) -> _Fault:
    block, environment, cell = key
    place = f", cell {cell}" if cell else ""
    return _Fault(
        line=line,
        what=f"block {block}, environment {environment}{place} is in line {first} already",
        remedy="a block holds each environment once: give one value of its repeats, such as their median",
    )


# ------------------------------------------------------------------------------------------------ messages


def _refuse(source: str, faults: Sequence[_Fault]) -> None:
    """Raise if there is a fault: the first with its remedy, a few more, and how many are left."""
    if not faults:
        return
    first, *others = faults
    details = [f"{source}:{fault.line}: {fault.what}" for fault in others[: _MOST_PROBLEMS - 1]]
    left = len(faults) - _MOST_PROBLEMS
    if left > 0:
        details.append(f"and {left:,} more")
    raise UsageError(first.what, where=f"{source}:{first.line}", details=tuple(details), remedy=first.remedy)


def _quote(text: str) -> str:
    """The text in quotation marks, cut where it is long."""
    return repr(shorten(text, _LONGEST_QUOTE))
