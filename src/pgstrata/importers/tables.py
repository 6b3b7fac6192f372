"""Readers of tables of other tools: one row for each run, one column for each environment, Otava."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Final

from pgstrata.errors import UsageError
from pgstrata.importers.assemble import REPEATED
from pgstrata.importers.results import Contents, ReadingTerms, Result, contents_of, refuse_many
from pgstrata.importers.rows import (
    Table,
    find_time,
    is_time,
    moment_of,
    name_times,
    read_rows,
    say_lacking,
    to_number,
    told,
)
from pgstrata.model.metrics import METRICS

_ATTRIBUTES: Final = re.compile(r"(?<![a-z])(?:commit|branch|version|build|sha|revision|tag)(?![a-z])", re.IGNORECASE)
_MOST_NAMES: Final = 10


def read_long(text: str, terms: ReadingTerms) -> Contents:
    """Read one row for each run: columns of dimensions, and of values (`--metric`, or else names of metrics).

    A column that is called like a time and holds nothing but times is when the runs began.
    """
    table = read_rows(text, terms.columns)
    if not table.names:
        return contents_of((), table.wrong)
    metrics = _find_metrics(table, terms.metrics)
    if not metrics and any(to_number(name) is not None for name in table.names):
        raise UsageError(
            "the first line has numbers where the names of columns are expected",
            where="--columns",
            remedy="name the columns, such as --columns kernel,clients,tps (- skips one)",
        )
    if not metrics:
        listed = ", ".join(table.names[:_MOST_NAMES])
        raise UsageError(
            f"it is not clear which of these columns hold values: {listed}",
            where="--metric",
            remedy=f"name them, such as --metric {table.names[-1]}",
        )
    moment = find_time(table)
    moment = None if moment in terms.compared else moment
    results: list[Result] = []
    unusable = list(table.wrong)
    for row in table.rows:
        found = {column: number for column in metrics if (number := to_number(row.fields[column])) is not None}
        lacking = [column for column in metrics if column not in found]
        if lacking:
            unusable.append((row.line, say_lacking(row, lacking)))
        if found:
            said = {name: row.fields[name] for name in table.names if name not in (*metrics, moment, "seconds")}
            results.append(
                Result(
                    measurements={metrics[column]: value for column, value in found.items()},
                    line=row.line,
                    said=told(said),
                    started=moment_of(row, moment),
                    seconds=to_number(row.fields.get("seconds", "")) or 0.0,
                )
            )
    return contents_of(results, unusable)


def _find_metrics(table: Table, wanted: Sequence[str]) -> Mapping[str, str]:
    """Metrics by the column that holds their values: those that the user names, or else those that pgstrata knows."""
    known = {name.casefold(): name for name in wanted or METRICS}
    found = {column: known[column.casefold()] for column in table.names if column.casefold() in known}
    twice = next((name for name in found.values() if list(found.values()).count(name) > 1), None)
    if twice is not None:
        listed = ", ".join(column for column, name in found.items() if name == twice)
        raise UsageError(
            f"several columns hold values of {twice}: {listed}",
            where="--columns",
            remedy="write - for the columns that are not used",
        )
    return found


def read_wide(text: str, terms: ReadingTerms) -> Contents:
    """Read one column for each environment; the columns of `--index` are not compared, but identify the rows."""
    table = read_rows(text, terms.columns)
    _refuse_unknown(table, terms.index, "--index")
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
            number = to_number(row.fields[name])
            if number is None:
                unusable.append((row.line, say_lacking(row, [name])))
                continue
            results.append(Result(measurements={metric: number}, line=row.line, said={**told(index), factor: name}))
    return contents_of(results, unusable, factor)


def read_otava(text: str, terms: ReadingTerms) -> Contents:
    """Read a history in Otava's format: a time column, attributes such as the commit, a column for each metric."""
    table = read_rows(text, terms.columns)
    moment = next((name for name in table.names if is_time(name)), None)
    if moment is None:
        return Contents(results=(), unusable=((1, f"there is no time column ({name_times()})"),))
    _refuse_unknown(table, terms.metrics, "--metric")
    others = [name for name in table.names if name != moment]
    metrics = terms.metrics or tuple(name for name in others if _is_metric(table, name))
    attributes = [name for name in others if name not in metrics]
    compared = next(chain(filter(_ATTRIBUTES.search, attributes), filter(_is_environment, attributes)), moment)
    results: list[Result] = []
    unusable = list(table.wrong)
    for row in table.rows:
        started = moment_of(row, moment)
        measured = {name: number for name in metrics if (number := to_number(row.fields[name])) is not None}
        lacking = [name for name in metrics if name not in measured]
        if started is None:
            unusable.append((row.line, f"{row.fields[moment]!r} is not a time"))
        elif lacking:
            unusable.append((row.line, say_lacking(row, lacking)))
        if measured and started is not None:
            said = {name: row.fields[name] for name in table.names if name not in metrics and name != moment}
            if compared == moment:
                said[moment] = started.isoformat()
            results.append(Result(measurements=measured, line=row.line, said=told(said), started=started))
    return contents_of(results, unusable, compared, history=not _is_environment(compared))


def _is_metric(table: Table, name: str) -> bool:
    """Whether a column holds only numbers or empty fields, and does not have the name of an attribute."""
    fields = [row.fields[name] for row in table.rows]
    numbers = all(to_number(field) is not None for field in fields if field) and any(fields)
    return numbers and not _ATTRIBUTES.search(name) and name.casefold() not in REPEATED


def _is_environment(name: str) -> bool:
    """The column of histories that pgstrata exports."""
    return name.casefold() == "environment"


def _refuse_unknown(table: Table, names: Sequence[str], option: str) -> None:
    unknown = next((name for name in names if name not in table.names), None)
    if unknown is not None:
        remedy = f"choose among {', '.join(table.names[:_MOST_NAMES])}"
        raise UsageError(f"there is no column {unknown!r}", where=option, remedy=remedy)
