"""Looks at the profile of pg_wait_sampling by a psql of its own, twice a second, and never resets it.

The server itself samples what its processes wait for, a hundred times a second as it comes; what was counted between
two looks is what sessions waited for meanwhile. It is used where the library is loaded: in servers of our own where the
experiment loads it in all of them, in running ones where somebody did. Not in slices: it goes on through the others'
turns, in which sessions wait for their clients.

A line is a row of one look: time (seconds), pid, whether it is a session of the driver, type and name of the wait
event, samples since the server's start, rows of the look. Rows of other processes are sums over all events.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Final

from pgstrata.collectors.lines import whole_lines
from pgstrata.collectors.sessions.counts import GRACE, while_complete
from pgstrata.collectors.sessions.parse import unify_names
from pgstrata.collectors.statements import (
    PLAIN_STRINGS,
    Use,
    create_extension,
    find_schema,
    render_watch,
    start_watch,
    statements_for,
    use_where_all_load,
)
from pgstrata.collectors.window_series import MOST_UNSEEN
from pgstrata.errors import ParseError, ServerFailedError
from pgstrata.libpq import quote_literal
from pgstrata.model.activity import ACTIVITY_HERTZ, SessionCount, SessionState, WaitProfile
from pgstrata.model.experiment import Experiment
from pgstrata.model.reasons import Reason
from pgstrata.ports.collector import CaptureSubject, Sampled, Sampling, Window

SAMPLES: Final = "waits.samples"
"""Evidence name of what the sampler wrote."""
_CLIENT: Final = "Client"
_MOST_SAMPLES: Final = 2**53

_Look = tuple["ProfileRow", ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileRow:
    """So often had a process been seen in a wait event, or without one; of processes that are not `ours`, at all.

    The look has so many `rows`.
    """

    time: float
    pid: int
    ours: bool
    wait_type: str
    event: str
    samples: int
    rows: int


def parse_profile(text: bytes, window: Window) -> Sampled:
    """What the driver's sessions waited for while all of them were there; a remark instead where that cannot be told.

    Nothing in slices, of which the profile knows nothing.

    Raises:
        ParseError: a row has an unknown shape.
    """
    looks = while_complete([look for look in _split(text) if any(row.ours for row in look)])
    if window.turns:
        return Sampled()
    if lost := _doubt_looks(looks, window):
        return Sampled(remarks=(lost,))
    profile = _subtract(looks[0], looks[-1])
    if profile.hertz < ACTIVITY_HERTZ:
        return Sampled(remarks=(Reason(code="samples_missing", how="rare", value=profile.hertz),))
    return Sampled(waits=profile)


def parse_rows(text: bytes) -> Iterator[ProfileRow]:
    """Row by row; a last one without its end is left out.

    Raises:
        ParseError: a row has an unknown shape.
    """
    return map(_read, whole_lines(text))


def _read(line: str) -> ProfileRow:
    words = line.split("\t")
    try:
        time, pid, ours, wait_type, event, samples, rows = words
        row = ProfileRow(
            time=float(time), pid=int(pid), ours=ours == "1", wait_type=wait_type, event=event, samples=int(samples),
            rows=int(rows),
        )  # fmt: skip
    except ValueError:
        row = None
    if row is None or not math.isfinite(row.time) or not 0 <= row.samples < _MOST_SAMPLES:
        raise ParseError(f"unknown shape of a row of the profile: {line[:200]!r}", where=SAMPLES)
    return row


def _split(text: bytes) -> Iterator[_Look]:
    """All that one look saw. The last is left out if it was cut."""
    for _, rows in groupby(parse_rows(text), key=lambda row: row.time):
        look = tuple(rows)
        if len({(row.pid, row.wait_type, row.event) for row in look}) == len(look) == look[0].rows:
            yield look


def _doubt_looks(looks: Sequence[_Look], window: Window) -> Reason | None:
    """Why the first and the last look cannot be subtracted; None where they can."""
    seconds = looks[-1][0].time - looks[0][0].time if looks else 0.0
    if seconds <= 0 or seconds + GRACE < (1 - MOST_UNSEEN) * window.seconds:
        return Reason(code="samples_missing", how="short", seconds=seconds)
    if len({frozenset(row.pid for row in look if row.ours) for look in looks}) > 1:
        return Reason(code="samples_missing", how="reconnected")
    if any(_went_back(one, other) for one, other in pairwise(looks)):
        return Reason(code="samples_missing", how="reset")
    return None


def _went_back(before: _Look, after: _Look) -> bool:
    """Whether a process that is there both times has lost samples. An event that is gone has lost all of them."""
    there = {row.pid for row in after}
    known = {(row.pid, row.wait_type, row.event): row.samples for row in after}
    return any(known.get((row.pid, row.wait_type, row.event), 0) < row.samples for row in before if row.pid in there)


def _subtract(first: _Look, last: _Look) -> WaitProfile:
    """What was counted between two looks with the same sessions.

    The extension looks at all processes at once; versions before 1.1.6, and later ones with `sample_cpu` off, count
    those only that wait. How often it looked is what was counted of the process that was seen most, because some of a
    server's always wait (its launchers). In the looks that are left a session ran.
    """
    counts: Counter[tuple[int, str, str]] = Counter()
    for look, sign in ((last, 1), (first, -1)):
        for row in look:
            counts[row.pid, row.wait_type, row.event] += sign * row.samples
    both = {row.pid for row in first} & {row.pid for row in last}
    ours = {row.pid for row in last if row.ours}
    totals: Counter[int] = Counter()
    waits: Counter[tuple[SessionState, str, str]] = Counter()
    for (pid, wait_type, event), samples in counts.items():
        if pid in both:
            totals[pid] += samples
        if pid in ours and wait_type:
            waits[_class_of(wait_type, event)] += samples
    moments = max(totals.values())
    waits[SessionState.RUNNING, "", ""] = moments * len(ours) - waits.total()
    return WaitProfile(
        hertz=moments / (last[0].time - first[0].time),
        counts=tuple(
            SessionCount(state=state, wait_type=wait_type, event=event, query="", samples=samples)
            for (state, wait_type, event), samples in waits.most_common()
            if samples
        ),
    )


def _class_of(wait_type: str, event: str) -> tuple[SessionState, str, str]:
    if wait_type == _CLIENT:
        return SessionState.CLIENT, "", ""
    return SessionState.WAITING, *unify_names(wait_type, event)


EXTENSION: Final = "pg_wait_sampling"
SECONDS: Final = 0.5
"""Between two looks: what lies outside the first and the last one within the window is not seen."""
_OLDEST: Final = 100000
"""Servers before 10 do not show their other processes, which tell how often the extension has looked."""
_BY_PROCESS: Final = f"{EXTENSION}.profile_pid"


class WaitsSampler:
    """Implements `ports.Sampler` with pg_wait_sampling.

    Args:
        use: in which servers.
    """

    name = SAMPLES.partition(".")[0]
    paused = True

    def __init__(self, use: Use | None = None) -> None:
        self._use = use or Use()

    def prepare(self, subject: CaptureSubject) -> None:
        if self._use.concerns(subject):
            create_extension(subject, EXTENSION, _BY_PROCESS)

    def start(self, subject: CaptureSubject, folder: str) -> Sampling | None:
        server = subject.server
        version = server.build.version.number
        if subject.turns or version < _OLDEST or not self._use.concerns(subject):
            return None
        schema = _check(subject)
        if not schema:
            return None
        statement = statements_for(__package__, "profile", version)[0][1]
        application = server.address.parameters.get("application_name", subject.driver)
        script = render_script(statement, schema, application)
        return start_watch(subject, script, folder=folder, name=SAMPLES)

    def parse(self, evidence: Mapping[str, bytes], window: Window) -> Sampled:
        return parse_profile(evidence[SAMPLES], window)


def use_of_waits(experiment: Experiment) -> Use:
    """Nowhere without diagnosis."""
    return use_where_all_load(experiment, EXTENSION) if experiment.diagnosis else Use()


def render_script(statement: str, schema: str, application: str) -> str:
    """The statement for the sessions of an application, with the extension's objects in a schema."""
    text = statement.replace("@schema@", schema).replace("@application@", quote_literal(application))
    return render_watch(text, SECONDS, begin=PLAIN_STRINGS)


def _check(subject: CaptureSubject) -> str:
    """The schema of its objects; empty where the library is not loaded.

    Raises:
        ServerFailedError: it is loaded and of no use.
    """
    asked = f"SELECT setting FROM pg_settings WHERE name = {quote_literal(_BY_PROCESS)}"
    by_process = subject.sql.query(subject.server.address, asked).rows
    if not by_process:
        return ""
    if by_process[0][0] != "on":
        raise _useless(
            subject,
            f"{_BY_PROCESS} is off: the samples do not say which process waited",
            f"set settings.{_BY_PROCESS} = on",
        )
    schema = find_schema(subject, EXTENSION)
    if not schema:
        raise _useless(
            subject,
            f"{EXTENSION} is loaded, but its objects are not in the database",
            f"install its SQL files beside the server's, or allow CREATE EXTENSION {EXTENSION}",
        )
    return schema


def _useless(subject: CaptureSubject, what: str, remedy: str) -> ServerFailedError:
    return ServerFailedError(what, where=subject.server.environment.title, remedy=remedy)
