"""The server's statistics before and after a run, as text, and as measurements of the window between them.

A capture is a line `name<TAB>value` for each counter. What is read of each view lies beside as `sql/VIEW.VERSION.sql`:
the highest that is not newer than the server is used, and nothing of views that came later. All were run on real
servers.

Any user may read all that is asked for. What the capture itself costs, some hundred buffer hits, is in the counters.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from pgstrata.collectors.statements import compose_views, query_first
from pgstrata.errors import ParseError
from pgstrata.model.metrics import Measurement
from pgstrata.model.reasons import Reason
from pgstrata.ports.collector import CaptureSubject, Window

_PER_TRANSACTION: Final = (
    ("wal_per_tx", "lsn.position"),
    ("wal_records_per_tx", "wal.records"),
    ("wal_fpi_per_tx", "wal.fpi"),
    ("blocks_hit_per_tx", "database.blks_hit"),
    ("blocks_read_per_tx", "database.blks_read"),
)
_RESET: Final = ".stats_reset"
_ONLY_GROWING: Final = ("database.", "wal.", "lsn.", "checkpoints.")
_COMPLETE: Final = 0.95
"""Share of the client's transactions that the server's statistics must have seen for their sums to be believed."""


def parse_window(before: bytes, after: bytes, window: Window) -> tuple[Measurement, ...]:
    """Measurements of the window between two captures; counters that are missing or went backwards give none.

    - `wal_per_tx`: distance of the insert positions, of the whole server, as are records and full-page images.
    - `blocks_*_per_tx`: of the current database, all sessions; left out where the server's statistics have not (yet)
      counted the client's transactions.
    - `checkpoints`: timed and requested; the timed ones that a server skips for idleness are among them, because only
      18 counts apart what was done.
    - `autovacuums`: tables of the current database that autovacuum finished with.
    - `database_size`: at the end.

    Raises:
        ParseError: a line is not a name and a number; the message quotes it.
    """
    counters = Counters(first=parse_counters(before), last=parse_counters(after))
    return tuple(Measurement(metric=metric, value=value) for metric, value in _values(counters, window))


def doubt_resets(before: bytes, after: bytes) -> tuple[Reason, ...]:
    """A doubt where counters were reset between two captures, by somebody or by a crash, so that some are not known.

    Raises:
        ParseError: a line is not a name and a number; the message quotes it.
    """
    first, last = parse_counters(before), parse_counters(after)
    measured = {name for name in last if name.startswith(_ONLY_GROWING)}
    reset = {name for name in measured if name.endswith(_RESET) and first.get(name) != last[name]}
    fallen = {name for name in measured & first.keys() if last[name] < first[name]}
    views = sorted({name.partition(".")[0] for name in reset | (fallen - {"database.size"})})
    return (Reason(code="counters_reset", names=tuple(views)),) if views else ()


def parse_counters(capture: bytes) -> Mapping[str, float]:
    """A capture as numbers by name; NULL, the empty text, is left out.

    Raises:
        ParseError: a line is not a name and a number; the message quotes it.
    """
    lines = capture.decode("utf-8", "replace").split("\n")
    return known(read_counter(line) for line in lines if line)


def read_counter(line: str, where: str = "") -> tuple[str, float]:
    """Name and value of a line of the evidence `where`; NaN for NULL.

    Raises:
        ParseError: the line is not a name and a number; the message quotes it.
    """
    name, tab, value = line.partition("\t")
    number = _number(value)
    if not (name and tab) or number is None:
        raise ParseError(f"unknown shape of a line in the server's statistics: {line[:200]!r}", where=where)
    return name, number


def known(counters: Iterable[tuple[str, float]]) -> Mapping[str, float]:
    """Counters by name, without those that are NaN."""
    return {name: value for name, value in counters if not math.isnan(value)}


def _number(text: str) -> float | None:
    if not text:
        return math.nan
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """What the server had counted at two moments."""

    first: Mapping[str, float]
    last: Mapping[str, float]

    def increase(self, name: str) -> float | None:
        """How much it grew; None if it is missing, went backwards, or its view was reset in between."""
        start, end = self.first.get(name), self.last.get(name)
        reset = f"{name.partition('.')[0]}.stats_reset"
        if start is None or end is None or end < start or self.first.get(reset) != self.last.get(reset):
            return None
        return end - start

    def have_seen(self, transactions: int) -> bool:
        """Whether the current database's statistics hold the client's transactions."""
        ended = (self.increase("database.xact_commit"), self.increase("database.xact_rollback"))
        return sum(count for count in ended if count is not None) >= _COMPLETE * transactions


def _values(counters: Counters, window: Window) -> Iterator[tuple[str, float]]:
    transactions = window.transactions + window.outside
    if transactions > 0:
        seen = counters.have_seen(transactions)
        for metric, name in _PER_TRANSACTION:
            increase = counters.increase(name)
            if increase is not None and (seen or not name.startswith("database.")):
                yield metric, increase / transactions
    timed, requested = counters.increase("checkpoints.timed"), counters.increase("checkpoints.requested")
    if timed is not None and requested is not None:
        yield "checkpoints", timed + requested
    autovacuums = counters.increase("tables.autovacuum_count")
    if autovacuums is not None:
        yield "autovacuums", autovacuums
    if "database.size" in counters.last:
        yield "database_size", counters.last["database.size"]


VIEWS: Final = ("database", "size", "tables", "position", "checkpoints", "wal", "wal_io", "io")
_SHARED_MEMORY_SINCE: Final = 150000
"""Up to 14 a process of its own collects the statistics and hands out files that are up to half a second old."""

_SETTLE: Final = "SELECT pg_sleep(0.6)"
_STATEMENT: Final = "SELECT c.name, c.value::text AS value FROM (\n{views}) AS c (name, value)\n"


class PgstatCollector:
    """Implements `ports.Collector` and `ports.DoubtsCaptures` with the views of the current database and its server."""

    name = "pgstat"
    with_clients = False

    def capture(self, subject: CaptureSubject) -> bytes:
        version = subject.server.build.version.number
        if version < _SHARED_MEMORY_SINCE:
            subject.sql.query(subject.server.address, _SETTLE)
        composed = compose_views(__package__, VIEWS, version)
        asked = [(number, _STATEMENT.format(views=views)) for number, views in composed]
        number, table = query_first(subject, asked)
        rows = (("snapshot", str(number)), *((row["name"], row["value"]) for row in table.records()))
        return "".join(f"{name}\t{value}\n" for name, value in rows).encode()

    def parse(self, before: bytes, after: bytes, window: Window) -> tuple[Measurement, ...]:
        return parse_window(before, after, window)

    def doubt(self, before: bytes, after: bytes) -> tuple[Reason, ...]:
        return doubt_resets(before, after)
