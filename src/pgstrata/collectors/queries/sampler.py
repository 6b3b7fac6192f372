"""What pg_stat_statements counts of the statements of a database, before and after a run; it is never reset.

What is asked lies beside as `sql/statement.sql`, its columns as `sql/columns.VERSION.sql`: the highest that is not
newer than the server, or an older one where the extension is an older one. It is used where its library is loaded: in
servers of our own where the experiment loads it in all of them, in running ones where somebody did. Constants, which
servers before 16 keep in statements that are no query, are replaced on the server.

A capture is a table: names of columns, then a row for each statement, with a tab between columns.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

from pgstrata.collectors.statements import (
    Use,
    constants_expression,
    create_extension,
    find_schema,
    query_first,
    statements_for,
    use_where_all_load,
)
from pgstrata.diagnosis.query_text import normalise_masked
from pgstrata.errors import ParseError, SqlError
from pgstrata.model.experiment import Experiment
from pgstrata.model.metrics import Measurement
from pgstrata.model.queries import QueryCount, QueryCounts
from pgstrata.ports.collector import CaptureSubject, Window
from pgstrata.ports.server import QueryResult

_COUNTERS: Final = (
    "calls", "seconds", "rows", "blocks_hit", "blocks_read", "wal_bytes", "plans", "plan_seconds", "jit_functions",
    "jit_seconds",
)  # fmt: skip
# Others, such as BEGIN and END, are counted the first time only where they are prepared, from 14 on.
_COUNTED: Final = frozenset({"select", "insert", "update", "delete", "merge", "values", "with", "table"})
# The text is that of the first time: where plans were asked for by PREPARE, that is such a one.
_PREPARED: Final = re.compile(r"prepare \S+ (?:\([^)]*\) )?as ")
_NOTHING_COUNTED: Final = (
    "pg_stat_statements counted no statement, as where compute_query_id is off or pg_stat_statements.track is none"
)
_SERVER: Final = ("since", "deallocations", "reset")

_Key = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """One row; what the server does not count is not a number."""

    query: str
    counters: Mapping[str, float]
    since: float
    deallocations: float
    reset: float


def parse_window(before: bytes, after: bytes, window: Window) -> QueryCounts | None:
    """What was counted between two captures, per transaction; None where there were no transactions.

    The server counts those outside slices too, so that the sums are divided by all transactions between the captures.
    Entries that were thrown away and made anew meanwhile count from then on, and are said to be incomplete; after a
    reset, and where queries have no ids, there is nothing.

    Raises:
        ParseError: a line has an unknown shape.
    """
    transactions = window.transactions + window.outside
    first, last = _parse(before), _parse(after)
    if transactions <= 0:
        return None
    if _was_reset(first, last):
        return QueryCounts(queries=(), lost="somebody reset pg_stat_statements during the run")
    counted: dict[str, list[Mapping[str, float]]] = {}
    gone = [key for key in first if key not in last]
    for key, entry in last.items():
        start = first.get(key)
        again = start is not None and (entry.since > start.since or _backwards(start, entry))
        if again:
            gone.append(key)
        base = None if again else start
        delta = {name: value - (base.counters[name] if base else 0.0) for name, value in entry.counters.items()}
        if delta["calls"] > 0:
            counted.setdefault(entry.query, []).append(delta)
    lost = _say_lost(first, last, len(gone)) or ("" if counted else _NOTHING_COUNTED)
    queries = (_sum(query, deltas, transactions) for query, deltas in counted.items())
    return QueryCounts(queries=tuple(sorted(queries, key=lambda query: -query.seconds)), lost=lost)


def _was_reset(first: Mapping[_Key, _Entry], last: Mapping[_Key, _Entry]) -> bool:
    times = ({entry.reset for entry in entries.values() if not math.isnan(entry.reset)} for entries in (first, last))
    was, is_ = times
    return bool(was and is_ and was != is_)


def _backwards(start: _Entry, end: _Entry) -> bool:
    return any(end.counters[name] < start.counters[name] for name in _COUNTERS)


def _say_lost(first: Mapping[_Key, _Entry], last: Mapping[_Key, _Entry], gone: int) -> str:
    evictions = [max((e.deallocations for e in entries.values()), default=math.nan) for entries in (first, last)]
    evicted = evictions[1] - evictions[0]
    if evicted > 0:
        return f"pg_stat_statements was full and threw entries away {evicted:.0f} times: raise pg_stat_statements.max"
    return f"entries vanished from pg_stat_statements during the run: {gone}" if gone else ""


def _sum(query: str, deltas: Sequence[Mapping[str, float]], transactions: int) -> QueryCount:
    sums = {name: math.fsum(delta[name] for delta in deltas) / transactions for name in _COUNTERS}
    found = {name: None if math.isnan(value) else value for name, value in sums.items()}
    return QueryCount(
        query=query, calls=sums["calls"], seconds=sums["seconds"], rows=sums["rows"], blocks_hit=sums["blocks_hit"],
        blocks_read=sums["blocks_read"], wal_bytes=found["wal_bytes"], plans=found["plans"],
        plan_seconds=found["plan_seconds"], jit_functions=found["jit_functions"], jit_seconds=found["jit_seconds"],
    )  # fmt: skip


def _parse(capture: bytes) -> dict[_Key, _Entry]:
    lines = capture.decode("utf-8", "replace").split("\n")
    names = lines[0].split("\t")
    if missing := {"id", "query", *_COUNTERS, *_SERVER} - set(names):
        raise ParseError(f"columns of pg_stat_statements are missing: {', '.join(sorted(missing))}")
    rows = (dict(zip(names, _cells(line, names), strict=True)) for line in lines[1:] if line)
    return _by_key(rows)


def _cells(line: str, names: Sequence[str]) -> list[str]:
    cells = line.split("\t")
    if len(cells) != len(names):
        raise ParseError(f"unknown shape of a row of pg_stat_statements: {line[:200]!r}")
    return cells


def _by_key(rows: Iterable[Mapping[str, str]]) -> dict[_Key, _Entry]:
    """The same statement inside and outside of functions (from 14 on two entries) counts as one."""
    found: dict[_Key, _Entry] = {}
    for row in rows:
        query = _PREPARED.sub("", normalise_masked(row["query"]))
        if query.partition(" ")[0] not in _COUNTED:
            continue
        counters = {name: _number(row[name]) for name in _COUNTERS}
        key = (row["id"], query)
        if key in found:
            counters = {name: value + found[key].counters[name] for name, value in counters.items()}
        since, deallocations, reset = (_number(row[name]) for name in _SERVER)
        found[key] = _Entry(query=query, counters=counters, since=since, deallocations=deallocations, reset=reset)
    return found


def _number(text: str) -> float:
    if not text:
        return math.nan
    try:
        return float(text)
    except ValueError:
        raise ParseError(f"no number in pg_stat_statements: {text[:200]!r}") from None


EXTENSION: Final = "pg_stat_statements"


class QueriesCollector:
    """Implements `ports.Collector` and `ports.CountsQueries` with pg_stat_statements.

    Args:
        use: in which servers.
    """

    name = "queries"
    with_clients = False

    def __init__(self, use: Use | None = None) -> None:
        self._use = use or Use()

    def prepare(self, subject: CaptureSubject) -> None:
        if self._use.concerns(subject):
            create_extension(subject, EXTENSION, f"{EXTENSION}.max")

    def capture(self, subject: CaptureSubject) -> bytes:
        if not self._use.concerns(subject):
            return b""
        schema = find_schema(subject, EXTENSION)
        table = _query(subject, schema) if schema else None
        return "".join("\t".join(row) + "\n" for row in (table.columns, *table.rows)).encode() if table else b""

    def parse(self, before: bytes, after: bytes, window: Window) -> tuple[Measurement, ...]:  # noqa: ARG002
        return ()

    def parse_queries(self, before: bytes, after: bytes, window: Window) -> QueryCounts | None:
        return parse_window(before, after, window)


def use_of_extension(experiment: Experiment | None) -> Use:
    """Nowhere without diagnosis or texts."""
    if experiment is None or not (experiment.diagnosis and experiment.query_text):
        return Use()
    return use_where_all_load(experiment, EXTENSION)


def _query(subject: CaptureSubject, schema: str) -> QueryResult | None:
    """The answer to the first statement whose columns the extension has; None where it may not or cannot be asked."""
    whole = (files(__package__) / "sql" / "statement.sql").read_text("utf-8")
    whole = whole.replace("@constant@", constants_expression())
    known = statements_for(__package__, "columns", subject.server.build.version.number)
    asked = [(number, whole.replace("@columns@", text.rstrip()).replace("@schema@", schema)) for number, text in known]
    try:
        return query_first(subject, asked)[1]
    except SqlError:
        return None
