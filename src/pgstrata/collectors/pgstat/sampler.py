"""Takes the server's statistics as text: one line `name<TAB>value` for each counter.

What is read of each view lies beside as `sql/snapshot-VIEW.VERSION.sql`: the highest that is not newer than the server
is used, and nothing of views that came later. All were run on real servers, 9.6 to 18.

Any user may read all that is asked for. What the capture itself costs, some hundred buffer hits, is in the counters.
"""

from __future__ import annotations

from typing import Final

from pgstrata.collectors.pgstat.parse import doubt_resets, parse_window
from pgstrata.collectors.statements import compose_views, query_first
from pgstrata.model.metrics import Measurement
from pgstrata.model.reasons import Reason
from pgstrata.ports.collector import CaptureSubject, Window

VIEWS: Final = ("database", "tables", "position", "background", "wal", "io", "io_wal")
_SHARED_MEMORY_SINCE: Final = 150000
"""Up to 14 a process of its own collects the statistics and hands out files that are up to half a second old."""

_SETTLE: Final = "SELECT pg_sleep(0.6)"


class PgstatCollector:
    """Implements `ports.Collector` and `ports.DoubtsCaptures` with the views of the current database and its server."""

    name = "pgstat"
    with_clients = False

    def capture(self, subject: CaptureSubject) -> bytes:
        version = subject.server.build.version.number
        if version < _SHARED_MEMORY_SINCE:
            subject.sql.query(subject.server.address, _SETTLE)
        number, table = query_first(subject, compose_views(__package__, "snapshot", VIEWS, version))
        rows = (("snapshot", str(number)), *((row["name"], row["value"]) for row in table.records()))
        return "".join(f"{name}\t{value}\n" for name, value in rows).encode()

    def parse(self, before: bytes, after: bytes, window: Window) -> tuple[Measurement, ...]:
        return parse_window(before, after, window)

    def doubt(self, before: bytes, after: bytes) -> tuple[Reason, ...]:
        return doubt_resets(before, after)
