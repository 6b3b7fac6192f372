"""The rows of samples of pg_stat_activity. Pure.

A line is a row: time (seconds, the server's clock), pid, kind of process, whether it calls itself as the driver does,
state, type and name of the wait event, query id, pid of the process that it helps, pids that block it, query without
constants. Behind the state and a slash stands the kernel's function in which a process without a wait event sleeps, 0
where it does not, or ? where it had gone on before the kernel was asked. Where clients connect anew for each
transaction, a row of the kind "look" stands for the look itself, with their number in place of a pid. A line that
begins with @ has the clocks: the client's before, the server's, the client's after, and the seconds between two
samples.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import groupby
from typing import Final

from pgstrata.collectors.lines import whole_lines
from pgstrata.diagnosis.query_text import hash_query, normalise_masked
from pgstrata.errors import ParseError

SAMPLES: Final = "sessions.samples"
"""Evidence name of what the sampler wrote."""
SESSION: Final = "client backend"
LOOK: Final = "look"
"""Kind of the row that stands for a look; its `pid` is the number of clients that connect for each transaction."""
_SESSIONS: Final = frozenset({SESSION, ""})
_CLOCKS: Final = "@ "
_HEAD: Final = 1000
_QUERY: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSample:
    """One process of the server at one moment; `time` in seconds of the server's wall clock.

    `ours`: it is a session of the driver. Wait events are spelt as the newest server does, `query` is normalised.
    `place` is the kernel's function in which it sleeps without a wait event, 0 where it does not, ? where it had gone
    on; empty where the kernel was not asked.
    """

    time: float
    pid: int
    kind: str
    ours: bool
    state: str
    wait_type: str
    event: str
    blockers: tuple[int, ...]
    query: str
    place: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clocks:
    """The server's clock minus the client's, and the seconds between two samples, as far as the sampler wrote them."""

    offset: float = 0.0
    period: float = 0.1


def parse_samples(text: bytes) -> Iterator[SessionSample]:
    """Row by row; a last one without its end is left out.

    Raises:
        ParseError: a row has an unknown shape.
    """
    return (_read(line) for line in whole_lines(text) if not line.startswith(_CLOCKS))


def parse_clocks(text: bytes) -> Clocks:
    """How far the server's clock is from the client's, where it is farther than one can tell, and the period."""
    for line in text[:_HEAD].decode("utf-8", "replace").split("\n"):
        if line.startswith(_CLOCKS):
            try:
                before, server, after, period = map(float, line.removeprefix(_CLOCKS).split())
            except ValueError:
                break  # a date without fractions of a second, as of another system
            offset = server - (before + after) / 2
            return Clocks(offset=offset if abs(offset) > (after - before) / 2 else 0.0, period=period)
    return Clocks()


def hide_queries(text: bytes) -> bytes:
    """Samples with a hash instead of each query, the same one for whatever differs in constants only."""
    hidden = (line if line.startswith(_CLOCKS) else _hide(line) for line in whole_lines(text))
    return "".join(f"{line}\n" for line in hidden).encode()


def _hide(line: str) -> str:
    words = line.split("\t", _QUERY)
    return "\t".join((*words[:_QUERY], *(hash_query(normalise_masked(query)) for query in words[_QUERY:])))


def split_moments(samples: Iterable[SessionSample]) -> Iterator[tuple[SessionSample, ...]]:
    """All that was seen at once."""
    for _, together in groupby(samples, key=lambda sample: sample.time):
        yield tuple(together)


def _read(line: str) -> SessionSample:
    words = line.split("\t", _QUERY)
    try:
        time, pid, kind, own, state, wait_type, event, _, _, blockers, query = words
        wait_type, event = unify_names(wait_type, event)
        state, _, place = state.partition("/")
        return SessionSample(
            time=float(time),
            pid=int(pid),
            kind=kind,
            ours=own == "1" and kind in _SESSIONS,
            state=state,
            wait_type=wait_type,
            event=event,
            blockers=tuple(map(int, blockers.split())),
            query=normalise_masked(query),
            place=place,
        )
    except ValueError:
        raise ParseError(f"unknown shape of a sample: {line[:200]!r}", where=SAMPLES) from None


_LWLOCK: Final = "LWLock"
_ANY: Final = "*"


def unify_names(wait_type: str, event: str) -> tuple[str, str]:
    """Type and name of a wait event as the newest server prints them; what is not known stays as it is."""
    names = known_names()
    wait_type, _ = names.get((wait_type, _ANY), (wait_type, _ANY))
    if (wait_type, event) in names:
        return names[wait_type, event]
    if wait_type == _LWLOCK:
        # up to 12 each lock that has a name of its own carries this at its end, and none does since
        return wait_type, event.removesuffix("Lock")
    return wait_type, event


@cache
def known_names() -> dict[tuple[str, str], tuple[str, str]]:
    """Type and name of older servers to those of the newest; the name `*` stands for all of a type."""
    text = (files(__package__) / "names.tsv").read_text("ascii")
    rows = (line.split("\t") for line in text.splitlines())
    return {(wait_type, event): (new_type, new_event) for wait_type, event, new_type, new_event in rows}
