"""Where the time of a transaction goes, and where the difference between two environments comes from."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Part(StrEnum):
    """What a piece of a transaction's time was spent on.

    CLIENT: client and network. CPU: the session's server process on a CPU. QUEUE: that process ready, without a CPU.
    RUNNING: CPU and QUEUE together, where the host does not tell them apart. WAIT: a wait event of the server's. REST:
    what no other part explains; below zero where parts were counted twice.
    """

    CLIENT = "client"
    CPU = "cpu"
    QUEUE = "run queue"
    RUNNING = "running"
    WAIT = "wait"
    REST = "rest"


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountRow:
    """Seconds of a transaction's time in one part, wait event (`TYPE/EVENT`, else empty) and query (may be empty)."""

    part: Part
    event: str
    query: str
    seconds: float
    samples: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Where the time of one transaction went in one window; the rows add up to `seconds`.

    `seconds` = clients x measured seconds / transactions; `samples` are those of the clients' sessions.
    """

    seconds: float
    samples: int
    rows: tuple[AccountRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """An interval in seconds per transaction."""

    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Contribution:
    """What one part, event or query adds to a difference: seconds per transaction, environment minus reference.

    `value` and `reference` are means over the blocks, `difference` = `value` - `reference`. `interval` is None where
    there are too few blocks for one. `resolved`: the interval, widened for the number of rows, leaves out zero.
    """

    part: Part | None
    event: str
    query: str
    value: float
    reference: float
    difference: float
    interval: Span | None
    resolved: bool
    samples: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribution:
    """The difference in time per transaction between two environments in one cell, split.

    `parts` (by part and event), `queries` (by query) and `rows` (by part, event and query) each add up to `total`.
    `causes` are the resolved ones of `rows`, the one with the largest certain share first; none where the total itself
    is not resolved. `samples` are those of both environments.
    """

    environment: str
    reference: str
    cell: str
    blocks: int
    samples: int
    total: Contribution
    parts: tuple[Contribution, ...]
    queries: tuple[Contribution, ...]
    rows: tuple[Contribution, ...]
    causes: tuple[Contribution, ...]
