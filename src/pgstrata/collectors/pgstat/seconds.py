"""The server's statistics of each second, by a psql of its own, into a file; and as series over the seconds of a run.

What is read of each view is the same as in captures (`sampler`). A line of samples is a row: time (seconds, the
server's clock), name and value of a counter; NULL is the empty text. Slices have no use for it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from pgstrata.collectors.lines import whole_lines
from pgstrata.collectors.pgstat.sampler import Counters, known, read_counter
from pgstrata.collectors.statements import render_watch, start_watch, statements_for
from pgstrata.collectors.window_series import Values, doubt_unseen, make_series, unseen_seconds
from pgstrata.errors import ParseError
from pgstrata.model.metrics import Series
from pgstrata.model.old_servers import OLDEST
from pgstrata.ports.collector import CaptureSubject, Sampled, Sampling, Window

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
    return rates_between(Counters(first=before.counters, last=after.counters), after.moment - before.moment)


def rates_between(counters: Counters, seconds: float) -> Values:
    """What the server did each second; nothing of counters that are missing, went backwards or were reset."""
    found = {}
    for name, (parts, unit) in _RATES.items():
        growths = [growth for part in parts if (growth := counters.increase(part)) is not None]
        rate = sum(growths) * unit / seconds
        if len(growths) == len(parts) and math.isfinite(rate):
            found[name] = rate
    return found


SECONDS: Final = 1
_POSITION: Final = "position"
VIEWS: Final = ("database", _POSITION, "checkpoints", "wal", "wal_io", "io")
_SHARED_MEMORY_SINCE: Final = 150000
# Up to 14 reading statistics makes the server write a file with those of all tables of the database. Where there are
# more than some hundred of them, by the size of pg_class, only the position in the WAL is read.
_WITH_FEW_TABLES: Final = """\
SELECT f.name, f.value
FROM (
{view}) f
WHERE (SELECT pg_relation_size('pg_catalog.pg_class') < 524288)
"""
_STATEMENT: Final = """\
SELECT to_char(extract(epoch FROM statement_timestamp()), 'FM9999999990.0000') AS time, c.name, c.value::text AS value
FROM (
{views}) AS c (name, value)
"""


class CountersSampler:
    """Implements `ports.Sampler` with the statistics views of the current database and its server."""

    name = SAMPLES.partition(".")[0]
    paused = True

    def start(self, subject: CaptureSubject, folder: str) -> Sampling | None:
        if subject.turns:
            return None
        script = render_script(subject.server.build.version.number)
        return start_watch(subject, script, folder=folder, name=SAMPLES)

    def parse(self, evidence: Mapping[str, bytes], window: Window) -> Sampled:
        samples = tuple(parse_counter_samples(evidence[SAMPLES]))
        # the last look was up to a second before the end
        unseen = 0.0 if window.turns else unseen_seconds(samples, window, late=SECONDS)
        return Sampled(
            series=make_server_series(samples, window),
            remarks=doubt_unseen(unseen, self.name),
        )


def render_script(version: int) -> str:
    """What is asked of a server of that version each second."""
    views = []
    for view, (_, text) in choose_views(version).items():
        few = version < _SHARED_MEMORY_SINCE and view != _POSITION
        views.append(_WITH_FEW_TABLES.format(view=text) if few else text)
    return render_watch(_STATEMENT.format(views="UNION ALL\n".join(views)), SECONDS)


def choose_views(version: int) -> Mapping[str, tuple[int, str]]:
    """Version and text of the statement for each view that a server of that version has, by view.

    Servers older than all statements are asked the oldest ones.
    """
    best = {view: statements_for(__package__, view, version)[0] for view in VIEWS}
    return {view: each for view, each in best.items() if each[0] <= max(version, OLDEST)}
