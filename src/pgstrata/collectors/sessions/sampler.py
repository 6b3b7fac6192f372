"""Samples pg_stat_activity by a psql of its own, at a fixed rate, into a file.

The statements lie beside as `sql/sample.VERSION.sql`: the highest that is not newer than the server is used. Constants
of query texts are replaced on the server, so that none of them reaches the evidence. Any user may sample: what sessions
of other users do is hidden from one without the right to see it, and does not count.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from typing import Final

from pgstrata.collectors.sessions.counts import parse_sessions
from pgstrata.collectors.sessions.parse import SAMPLES, hide_queries
from pgstrata.collectors.statements import (
    PLAIN_STRINGS,
    constants_expression,
    render_watch,
    start_watch,
    statements_for,
)
from pgstrata.libpq import quote_literal
from pgstrata.model.activity import ACTIVITY_HERTZ
from pgstrata.model.old_servers import WAITS_SINCE
from pgstrata.ports.collector import CaptureSubject, Sampled, Sampling, Window

SECONDS: Final = 1 / ACTIVITY_HERTZ
"""Between two samples. At 10 Hz the statement costs about 0.004 CPUs on the server and 0.002 in psql (measured)."""
SETTLE: Final = 0.005
"""Seconds between the request for a sample and the look.

psql that asks, and the server's process that it wakes, take the CPUs of others, on a crowded host often the client's:
then its sessions wait for it. With commits of 0.4 ms by two clients on two CPUs, which others used too, sessions were
in IO/WalSync for 40.0 % of their time by the server's own clock; a look at once saw them there in 34 % of 900 samples,
and waiting for their clients in 26 %, pg_wait_sampling in 15 %. After 2, 5 or 20 ms of sleep a look agreed with both
within the error of so many samples (1.6 %). The sleep costs 0.002 CPUs, 0.005 in slices (select-only, 2 clients), and
keeps rows from being pruned for its time.
"""
# The client's clock is read on both sides of the server's.
_CLOCKS: Final = """\
\\set before `date +%s.%N`
SELECT extract(epoch FROM clock_timestamp()) AS server \\gset
\\set after `date +%s.%N`
\\echo @ :before :server :after {seconds}
"""
_ASLEEP: Final = ":'asleep'"
# psql leaves out what is not to be asked: even unasked, a function that a user may not call is an error.
_WHERE_ASKED: Final = """
\\if :kernel
({asleep})
\\else
''
\\endif
"""


class SessionsSampler:
    """Implements `ports.Sampler` with pg_stat_activity; paused and resumed with the client whose sessions it sees."""

    name = SAMPLES.partition(".")[0]
    paused = True

    def __init__(self, *, query_text: bool = True) -> None:
        self._conceal = None if query_text else hide_queries

    def start(self, subject: CaptureSubject, folder: str) -> Sampling | None:
        server = subject.server
        if 0 < server.build.version.number < WAITS_SINCE:
            # without wait events every session that waits would be taken for one at work
            return None
        application = server.address.parameters.get("application_name", subject.driver)
        statement = statements_for(__package__, "sample", server.build.version.number)[0][1]
        script = render_script(statement, application, reconnects=subject.reconnects)
        return start_watch(subject, script, folder=folder, name=SAMPLES, conceal=self._conceal, prompt=True)

    def parse(self, evidence: Mapping[str, bytes], window: Window) -> Sampled:
        return parse_sessions(evidence[SAMPLES], window)


def render_script(statement: str, application: str, *, reconnects: int = 0) -> str:
    """The statement for the sessions of an application, after the clocks.

    `reconnects`: so many clients connect anew for each transaction, so that samples may see none of their sessions.
    """
    begin = PLAIN_STRINGS + _CLOCKS.format(seconds=SECONDS)
    if _ASLEEP in statement:
        begin += _read("kernel.sql")
        statement = statement.replace(_ASLEEP, _WHERE_ASKED.format(asleep=_read("asleep.sql")))
    if reconnects:
        statement += _read("look.sql")
    parameters = {
        "application": quote_literal(application),
        "constant": constants_expression(),
        "settle": f"{SETTLE:g}",
        "reconnects": str(reconnects),
    }
    for name, value in parameters.items():
        statement = statement.replace(f":'{name}'", value)
    return render_watch(statement, SECONDS, begin=begin)


def _read(name: str) -> str:
    return (files(__package__) / "sql" / name).read_text("utf-8")
