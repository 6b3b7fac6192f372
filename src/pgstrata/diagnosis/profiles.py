"""Windows whose samples were taken by the server itself: many, without statements, which the few of pgstrata's tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from pgstrata.diagnosis.account import Seen
from pgstrata.model.activity import SessionCount, SessionState
from pgstrata.model.attribution import Origin, SampleSource

_Event = tuple[SessionState, str, str]


def use_profiles(sides: Sequence[Sequence[Seen]]) -> tuple[tuple[tuple[Seen, ...], ...], Origin]:
    """The windows with the server's samples, where all of them have such; else as they are.

    All or none: the two ways to look call a session that answers its client by different names, so that an account of
    one is compared with one of the same way only.
    """
    as_they_are = tuple(tuple(side) for side in sides)
    rates = [seen.profile.hertz for side in sides for seen in side if seen.profile is not None]
    if not rates or len(rates) < sum(map(len, sides)):
        return as_they_are, Origin()
    origin = Origin(
        source=SampleSource.PROFILE, hertz=float(np.mean(rates)),
        statement_samples=sum(seen.samples for side in sides for seen in side),
    )  # fmt: skip
    return tuple(map(_use, as_they_are)), origin


def _use(side: Sequence[Seen]) -> tuple[Seen, ...]:
    """Each event's samples of a profile, divided among statements as those of pg_stat_activity in the same window are.

    A window in which none of these saw the event takes the division of all windows of its side; an event that none of
    them saw has no statement.
    """
    pooled = _by_event([count for seen in side for count in seen.sessions])
    made = []
    for seen in side:
        assert seen.profile is not None
        own = _by_event(seen.sessions)
        sessions = [
            part
            for count in seen.profile.counts
            for part in _divide(count, own.get(_event(count)) or pooled.get(_event(count)) or {("", ""): 1})
        ]
        made.append(replace(seen, sessions=tuple(sessions), statement_samples=seen.samples))
    return tuple(made)


def _event(count: SessionCount) -> _Event:
    return count.state, count.wait_type, count.event


def _by_event(sessions: Sequence[SessionCount]) -> Mapping[_Event, Counter[tuple[str, str]]]:
    """Samples by query and blocker."""
    found: dict[_Event, Counter[tuple[str, str]]] = {}
    for count in sessions:
        found.setdefault(_event(count), Counter())[count.query, count.blocker] += count.samples
    return found


def _divide(count: SessionCount, among: Mapping[tuple[str, str], int]) -> list[SessionCount]:
    """Whole samples in these proportions, by largest remainders, so that their sum stays."""
    total = sum(among.values())
    exact = {key: count.samples * samples / total for key, samples in among.items()}
    given = {key: int(value) for key, value in exact.items()}
    left = count.samples - sum(given.values())
    for key in sorted(exact, key=lambda key: given[key] - exact[key])[:left]:
        given[key] += 1
    return [
        replace(count, query=query, blocker=blocker, samples=samples)
        for (query, blocker), samples in given.items()
        if samples
    ]
