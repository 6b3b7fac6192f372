"""Samples the server's statistics each second, by a psql of its own, into a file.

What is read of each view lies beside as `sql/seconds-VIEW.VERSION.sql`: the highest that is not newer than the server
is used, and nothing of views that came later. Any user may read all that is asked for. Slices have no use for it: there
it is not started.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pgstrata.collectors.pgstat.series import SAMPLES, make_server_series, parse_counter_samples
from pgstrata.collectors.repeated_statement import render_watch, start_watch
from pgstrata.collectors.statements import statement_for
from pgstrata.collectors.window_series import doubt_unseen, unseen_seconds
from pgstrata.ports.collector import CaptureSubject, Sampled, Sampling, Window

SECONDS: Final = 1
_POSITION: Final = "position"
VIEWS: Final = ("database", _POSITION, "checkpoints", "wal", "wal_io", "io")
_OLDEST: Final = 90600
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
    """By view, as far as a server of that version has it: version and text of what is read of it.

    Servers older than all statements are asked the oldest ones.
    """
    found = {view: statement_for(__package__, f"seconds-{view}", max(version, _OLDEST)) for view in VIEWS}
    return {view: each for view, each in found.items() if each is not None}
