"""The server's statistics of each second as series over the seconds of a run. Pure.

A line of samples is a row: time (seconds, the server's clock), name and value of a counter; NULL is the empty text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from pgstrata.collectors.lines import whole_lines
from pgstrata.collectors.pgstat.parse import Counters, known, read_counter
from pgstrata.collectors.window_series import Values, make_series
from pgstrata.errors import ParseError
from pgstrata.model.metrics import Series
from pgstrata.ports.collector import Window

SAMPLES: Final = "pgstat.samples"
"""Evidence name of what the sampler wrote."""
_TIME: Final = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,9})?")
_MILLISECOND: Final = 1e-3
_RATES: Final[Mapping[str, tuple[Sequence[str], float]]] = {
    "commits": (("database.xact_commit",), 1.0),
    "rollbacks": (("database.xact_rollback",), 1.0),
    "blocks_hit": (("database.blks_hit",), 1.0),
    "blocks_read": (("database.blks_read",), 1.0),
    "rows_returned": (("database.tup_returned",), 1.0),
    "rows_changed": (("database.tup_inserted", "database.tup_updated", "database.tup_deleted"), 1.0),
    "temporary_bytes": (("database.temp_bytes",), 1.0),
    "wal_bytes": (("lsn.position",), 1.0),
    "wal_records": (("wal.records",), 1.0),
    "wal_images": (("wal.fpi",), 1.0),
    "wal_buffers_full": (("wal.buffers_full",), 1.0),
    "wal_writes": (("wal_io.writes",), 1.0),
    "wal_syncs": (("wal_io.syncs",), 1.0),
    "wal_writing": (("wal_io.write_time",), _MILLISECOND),
    "wal_syncing": (("wal_io.sync_time",), _MILLISECOND),
    "checkpoints_due": (("checkpoints.timed", "checkpoints.requested"), 1.0),
    "checkpointer_buffers": (("checkpoints.buffers_written",), 1.0),
    "bgwriter_buffers": (("bgwriter.buffers_clean",), 1.0),
    "backend_buffers": (("backends.buffers_written",), 1.0),
    "backend_fsyncs": (("backends.fsyncs",), 1.0),
    "relation_read": (("io.read_bytes",), 1.0),
    "relation_written": (("io.write_bytes",), 1.0),
    "relation_extended": (("io.extend_bytes",), 1.0),
    "relation_reading": (("io.read_time",), _MILLISECOND),
    "relation_writing": (("io.write_time",), _MILLISECOND),
    "relation_extending": (("io.extend_time",), _MILLISECOND),
}
"""The counters that make up a series, and its unit in theirs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CountersSample:
    """The server's counters at one moment, in seconds of its clock."""

    moment: float
    counters: Mapping[str, float]


def make_server_series(samples: Sequence[CountersSample], window: Window) -> tuple[Series, ...]:
    """A series for each kind of what the server counted."""
    return make_series(samples, window, _rates)


def parse_counter_samples(text: bytes) -> Iterator[CountersSample]:
    """Sample by sample; a last line without its end is left out.

    Raises:
        ParseError: a line has an unknown shape.
    """
    rows = (line.partition("\t") for line in whole_lines(text))
    for time, together in groupby(rows, key=lambda row: row[0]):
        if not _TIME.fullmatch(time):
            raise ParseError(f"unknown time of a sample: {time[:200]!r}", where=SAMPLES)
        yield CountersSample(moment=float(time), counters=known(read_counter(row, SAMPLES) for _, _, row in together))


def _rates(before: CountersSample, after: CountersSample) -> Values:
    """What the server did between two samples; nothing of counters that are missing, went backwards or were reset."""
    counters, seconds = Counters(first=before.counters, last=after.counters), after.moment - before.moment
    found = {}
    for name, (parts, unit) in _RATES.items():
        growths = [growth for part in parts if (growth := counters.increase(part)) is not None]
        rate = sum(growths) * unit / seconds
        if len(growths) == len(parts) and math.isfinite(rate):
            found[name] = rate
    return found
