"""Samples of sessions counted by part, event and statement, and under which of these they are shown."""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from pgstrata.diagnosis.account import FEWEST_SAMPLES, Seen, count_asleep, sleep_of
from pgstrata.model.activity import SessionCount, SessionState
from pgstrata.model.attribution import Part

Key = tuple[Part, str, str]
"""Part, event and query of a row."""
Counted = Mapping[Key, float]
"""Samples of one window."""
CLIENT: Final = (Part.CLIENT, "", "")
TOGETHER: Final = "\0"
"""Placeholder for several statements that were put together; one that is not known is something else."""
_Event = tuple[Part, str]
"""Part and event."""


def count_side(side: Sequence[Seen]) -> list[Counted]:
    """Samples by key in each window of a side; those of whom nobody knows whether they slept are divided."""
    sleep = sleep_of(side)
    found: list[Counted] = []
    for seen in side:
        counted: defaultdict[Key, float] = defaultdict(float)
        for count in seen.sessions:
            asleep = count_asleep(count, sleep)
            if asleep:
                counted[Part.REST, "", count.query] += asleep
            if asleep < count.samples:
                counted[_key(count)] += count.samples - asleep
        found.append(counted)
    return found


def name_unknown(sides: Sequence[Sequence[Counted]]) -> list[list[Counted]]:
    """Counts in which samples of unknown statements are divided as the other samples of the same part and event.

    As those of their side, or where these are fewer than `FEWEST_SAMPLES` as those of all; else they stay without one.
    """
    everywhere = _known([counted for side in sides for counted in side])
    named = []
    for side in sides:
        here = _known(side)
        among = {place: here[place] if _is_enough(here.get(place)) else known for place, known in everywhere.items()}
        named.append([_divide_unknown(counted, among) for counted in side])
    return named


def _known(windows: Sequence[Counted]) -> Mapping[_Event, Mapping[str, float]]:
    """Samples whose statement is known, by part and event, then by statement."""
    found: defaultdict[_Event, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    for (part, event, query), samples in (row for counted in windows for row in counted.items()):
        if query:
            found[part, event][query] += samples
    return found


def _is_enough(known: Mapping[str, float] | None) -> bool:
    return known is not None and sum(known.values()) >= FEWEST_SAMPLES


def _divide_unknown(counted: Counted, among: Mapping[_Event, Mapping[str, float]]) -> Counted:
    named: defaultdict[Key, float] = defaultdict(float)
    for (part, event, query), samples in counted.items():
        known = among.get((part, event))
        if query or known is None or not _is_enough(known):
            named[part, event, query] += samples
            continue
        total = sum(known.values())
        for each, weight in known.items():
            named[part, event, each] += samples * weight / total
    return named


def _key(count: SessionCount) -> Key:
    """Where samples of a state belong; those of whom nobody knows whether they slept are RUNNING."""
    match count.state:
        case SessionState.CLIENT:
            return CLIENT
        case SessionState.CONNECTING:
            return Part.CONNECT, "", ""
        case SessionState.WAITING:
            return Part.WAIT, f"{count.wait_type}/{count.event}", count.query
        case SessionState.ASLEEP:
            return Part.REST, "", count.query
        case _:
            return Part.RUNNING, "", count.query


def fold(counted: Sequence[Sequence[Counted]]) -> Mapping[Key, Key]:
    """Under which key each one is shown.

    Waits for events that were seen too seldom become waits without one, in their statement; then statements that were
    seen too seldom in an event become one.
    """
    total: defaultdict[Key, float] = defaultdict(float)
    events: defaultdict[str, float] = defaultdict(float)
    for key, samples in (row for side in counted for window in side for row in window.items()):
        total[key] += samples
        events[key[1]] += samples
    named = {key: key if events[key[1]] >= FEWEST_SAMPLES else (key[0], "", key[2]) for key in total}
    # a statement awake and asleep stands alone in both or in none
    often: defaultdict[tuple[bool, str, str], float] = defaultdict(float)
    for key, (part, event, query) in named.items():
        often[part is Part.WAIT, event, query] += total[key]
    folded: dict[Key, Key] = {}
    for key in sorted(total, key=lambda key: -total[key]):
        part, event, query = named[key]
        alone = query != TOGETHER and often[part is Part.WAIT, event, query] >= FEWEST_SAMPLES
        folded[key] = (part, event, query if alone else "")
    return folded


def find_commonest(
    sides: Sequence[Sequence[Seen]], tell: Callable[[SessionCount], str], folded: Mapping[Key, Key]
) -> Mapping[Key, str]:
    """What most samples of each row tell; samples of unknown statements do not count."""
    found: dict[Key, Counter[str]] = {}
    for count in (count for side in sides for seen in side for count in seen.sessions):
        said, key = tell(count), folded.get(_key(count))
        if said and key is not None:
            found.setdefault(key, Counter())[said] += count.samples
    return {key: counted.most_common(1)[0][0] for key, counted in found.items()}
