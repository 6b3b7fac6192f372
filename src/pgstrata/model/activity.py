"""What sessions were seen doing: samples counted by state, wait event and query."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

ACTIVITY_HERTZ: Final = 10.0
"""How often a second pg_stat_activity is looked at."""


PREPARED: Final = "prepared transaction"
NO_QUERIES: Final = frozenset(
    {PREPARED, "client backend", "autovacuum worker", "walsender", "parallel worker", "background worker"}
)
"""Placeholders for blockers without query text."""


class SessionState(StrEnum):
    """What a session was doing at the moment of a sample.

    In a statement and waiting for nothing that the server names: AWAKE, on a CPU or waiting for one; ASLEEP, off it,
    both as the kernel says; PASSING, gone on before it was asked; RUNNING, where nobody asked it. WAITING: in a
    statement, waiting for what `wait_type` and `event` name. CLIENT: the server waits for its client. CONNECTING: a
    client that connects anew for each transaction has no session yet.
    """

    RUNNING = "running"
    AWAKE = "awake"
    PASSING = "passing"
    ASLEEP = "asleep"
    WAITING = "waiting"
    CLIENT = "client"
    CONNECTING = "connecting"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionCount:
    """So many samples of the client's sessions were alike.

    `wait_type` and `event` have the spelling of the newest server version; both are empty unless `state` is WAITING. Of
    ASLEEP `event` is the function of the kernel.
    `query` is the normalised text, without constants, or empty where it is not known (always for CLIENT and
    CONNECTING). Of waits for locks `blocker` is the query of the session at the end of the chain of those that block,
    where it is known.
    """

    state: SessionState
    wait_type: str
    event: str
    query: str
    samples: int
    blocker: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessCount:
    """So many samples of the server's other processes were alike; `kind` is that of pg_stat_activity.

    Those that had nothing to do are left out. Parallel workers are here, with the query that they help.
    """

    kind: str
    state: SessionState
    wait_type: str
    event: str
    query: str
    samples: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitProfile:
    """What a server sampled by itself of all of the client's sessions together, `hertz` times a second.

    `counts` know no queries.
    """

    hertz: float
    counts: tuple[SessionCount, ...]
