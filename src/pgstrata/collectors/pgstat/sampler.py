"""Takes the server's statistics as text: one line `name<TAB>value` for each counter.

What is read of each view lies beside as `sql/VIEW.VERSION.sql`: the highest that is not newer than the server is used,
and nothing of views that came later. All were run on real servers, 9.6 to 18.

Any user may read all that is asked for. What the capture itself costs, some hundred buffer hits, is in the counters.
"""

from __future__ import annotations

from typing import Final

from pgstrata.collectors.pgstat.parse import doubt_resets, parse_window
from pgstrata.collectors.statements import compose_views, query_first
from pgstrata.model.metrics import Measurement
from pgstrata.model.runs import Reason
from pgstrata.ports.collector import CaptureSubject, Window

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
