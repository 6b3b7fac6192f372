"""Looks at the profile of pg_wait_sampling: what the driver's sessions waited for between the first and the last. Pure.

A line is a row of one look: time (seconds), pid, whether it is a session of the driver, type and name of the wait
event, samples since the server's start, rows of the look. Rows of other processes are sums over all events.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Final

from pgstrata.collectors.lines import whole_lines
from pgstrata.collectors.sessions.names import unify_names
from pgstrata.collectors.sessions.window import GRACE, while_complete
from pgstrata.collectors.window_series import MOST_UNSEEN
from pgstrata.errors import ParseError
from pgstrata.model.activity import ACTIVITY_HERTZ, SessionCount, SessionState, WaitProfile
from pgstrata.model.reasons import Reason
from pgstrata.ports.collector import Sampled, Window

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
    if profile is not None and profile.hertz < ACTIVITY_HERTZ:
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
