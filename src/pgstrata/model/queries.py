"""What a server counts of each statement while transactions run."""

from dataclasses import dataclass

from pgstrata.model.attribution import ValueInterval


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryCount:
    """One statement, per transaction: `calls` times, `seconds` of executing in all its calls together.

    `query` is the normalised text. Blocks are those of shared_buffers; `plans` and `plan_seconds` are there where the
    server tracks planning. None: this version of the server does not count it.
    """

    query: str
    calls: float
    seconds: float
    rows: float
    blocks_hit: float
    blocks_read: float
    wal_bytes: float | None = None
    plans: float | None = None
    plan_seconds: float | None = None
    jit_functions: float | None = None
    jit_seconds: float | None = None

    @property
    def latency(self) -> float:
        """Seconds of one call."""
        return self.seconds / self.calls


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryCounts:
    """What was counted of all statements in a run; `lost` says what of it is missing and why, empty for nothing."""

    queries: tuple[QueryCount, ...]
    lost: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryChange:
    """A statement's share in a difference of the time per transaction, in seconds: more calls, and slower calls.

    `by_calls` + `by_latency` is exactly the difference of calls x latency. `calls` are per transaction, `latency` is
    of one call; both are means over the blocks. `interval` is that of the difference at 95 %, None for a single block.
    """

    query: str
    calls: float
    reference_calls: float
    latency: float
    reference_latency: float
    by_calls: float
    by_latency: float
    interval: ValueInterval | None = None

    @property
    def difference(self) -> float:
        """Seconds per transaction."""
        return self.by_calls + self.by_latency


@dataclass(frozen=True, slots=True, kw_only=True)
class QueriesCompared:
    """Statements of one environment and cell beside those of another, in `blocks` blocks; the largest share first.

    `lost` are sentences about what the servers did not count.
    """

    environment: str
    reference: str
    cell: str
    blocks: int
    changes: tuple[QueryChange, ...]
    lost: tuple[str, ...]
