"""Windows whose samples were taken by the server itself: many, without statements, which the few of pgstrata's tell."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from pgstrata.diagnosis.account import FEWEST_SAMPLES, Seen
from pgstrata.diagnosis.counting import TOGETHER
from pgstrata.model.activity import SessionCount, SessionState
from pgstrata.model.attribution import Origin, SampleSource

_Event = tuple[SessionState, str, str]
_Name = tuple[SessionState, str, str, str]
"""What pg_stat_activity alone tells of an event: whether and where a session sleeps without one, query, blocker."""
_Among = Mapping[_Event, Counter[_Name]]
_EVERYWHERE: Final = frozenset({SessionState.CLIENT, SessionState.WAITING})
"""What a profile tells, too; all else runs."""


def use_profiles(sides: Sequence[Sequence[Seen]]) -> tuple[tuple[tuple[Seen, ...], ...], Origin]:
    """The windows with the server's samples, where all of them have some; else as they are.

    All or none: the two ways to look err in different ways, so that an account of one is compared with one of the same
    way only. A profile knows nothing of clients that have no session: where there are such, it is not used.
    """
    as_they_are = tuple(tuple(side) for side in sides)
    windows = [seen for side in sides for seen in side]
    rates = [profile.hertz for seen in windows if (profile := seen.profile) is not None and profile.counts]
    connecting = any(count.state is SessionState.CONNECTING for seen in windows for count in seen.sessions)
    if not rates or len(rates) < len(windows) or connecting:
        return as_they_are, Origin()
    origin = Origin(
        source=SampleSource.PROFILE, hertz=float(np.mean(rates)), statement_samples=sum(seen.told for seen in windows)
    )
    everywhere = _among(windows)
    return tuple(_use(side, everywhere) for side in as_they_are), origin


def _use(side: Sequence[Seen], everywhere: _Among) -> tuple[Seen, ...]:
    """Each event's samples of a profile, divided among statements as those of pg_stat_activity in the same window are.

    A window in which none of these saw the event takes the division of all windows of its side, or that of all sides.
    What these saw fewer than `FEWEST_SAMPLES` times in all sides together has no statement.
    """
    together = _among(side)
    made = []
    for seen in side:
        assert seen.profile is not None
        own = _among([seen])
        sessions = []
        for count in seen.profile.counts:
            event = _event(count)
            among = (
                own.get(event)
                or together.get(event)
                or everywhere.get(event)
                or {(count.state, count.event, "", ""): 1}
            )
            sessions += _divide(count, _keep_known(among, everywhere.get(event, Counter())))
        made.append(replace(seen, sessions=tuple(sessions), statement_samples=seen.told))
    return tuple(made)


def _event(count: SessionCount) -> _Event:
    """As a profile knows it."""
    if count.state in _EVERYWHERE:
        return count.state, count.wait_type, count.event
    return SessionState.RUNNING, "", ""


def _among(windows: Sequence[Seen]) -> _Among:
    found: dict[_Event, Counter[_Name]] = {}
    for count in (count for seen in windows for count in seen.sessions):
        found.setdefault(_event(count), Counter())[count.state, count.event, count.query, count.blocker] += (
            count.samples
        )
    return found


def _keep_known(among: Mapping[_Name, int], everywhere: Mapping[_Name, int]) -> Counter[_Name]:
    """A profile in which statements that were seen too seldom are put together."""
    often: Counter[str] = Counter()
    for (_, _, query, _), samples in everywhere.items():
        often[query] += samples
    kept: Counter[_Name] = Counter()
    for (state, event, query, blocker), samples in among.items():
        known = not query or often[query] >= FEWEST_SAMPLES
        kept[(state, event, query, blocker) if known else (state, event, TOGETHER, "")] += samples
    return kept


def _divide(count: SessionCount, among: Mapping[_Name, int]) -> list[SessionCount]:
    """Whole samples in these proportions, by largest remainders, so that their sum stays."""
    total = sum(among.values())
    exact = {key: count.samples * samples / total for key, samples in among.items()}
    given = {key: int(value) for key, value in exact.items()}
    left = count.samples - sum(given.values())
    for key in sorted(exact, key=lambda key: given[key] - exact[key])[:left]:
        given[key] += 1
    return [
        replace(count, state=state, event=event, query=query, blocker=blocker, samples=samples)
        for (state, event, query, blocker), samples in given.items()
        if samples
    ]
