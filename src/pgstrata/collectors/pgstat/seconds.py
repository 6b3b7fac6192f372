"""Samples the server's statistics each second, by a psql of its own, into a file.

The statements lie beside as `sql/seconds.VERSION.sql`, chosen as those of the captures before and after a run. Any user
may read all that is asked for. Slices have no use for it: there it is not started.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pgstrata.collectors.pgstat.series import SAMPLES, make_server_series, parse_counter_samples
from pgstrata.collectors.statements import statements_for
from pgstrata.collectors.stretches import unseen_seconds
from pgstrata.collectors.unseen import doubt_unseen
from pgstrata.ports.collector import Sampled, Sampling, Subject, Window
from pgstrata.ports.server import Sql

SECONDS: Final = 1
_SCRIPT: Final = """\
PREPARE counters AS
{statement};
EXECUTE counters \\watch {seconds}
"""


class CountersSampler:
    """Implements `ports.Sampler` with the statistics views of the current database and its server."""

    def __init__(self, sql: Sql | None = None) -> None:
        self._sql = sql

    @property
    def name(self) -> str:
        return SAMPLES.partition(".")[0]

    @property
    def paused(self) -> bool:
        return True

    def start(self, subject: Subject, folder: str) -> Sampling | None:
        if self._sql is None or subject.turns:
            return None
        server = subject.server
        process = self._sql.watch(
            server.address, render_script(server.build.version.number), folder=folder, name=SAMPLES
        )
        output = f"{folder}/{SAMPLES}"
        return Sampling(host=self._sql.host, process=process, output=output, errors=f"{output}.err")

    def parse(self, evidence: Mapping[str, bytes], window: Window) -> Sampled:
        samples = tuple(parse_counter_samples(evidence[SAMPLES]))
        # the last look was up to a second before the end
        unseen = 0.0 if window.turns else unseen_seconds(samples, window, late=SECONDS)
        return Sampled(
            series=make_server_series(samples, window),
            remarks=doubt_unseen(unseen, "counters of the server", "of that time there are no figures of its views"),
        )


def render_script(version: int) -> str:
    """The statement for that server, prepared once and given again and again."""
    statement = statements_for(__package__, "seconds", version)[0][1]
    return _SCRIPT.format(statement=statement.rstrip(), seconds=SECONDS)
