"""Where the time of a transaction goes, and where the difference between two environments comes from."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from pgstrata.model.activity import ACTIVITY_HERTZ
from pgstrata.model.reasons import Reason


class Part(StrEnum):
    """What a piece of a transaction's time was spent on.

    CLIENT: client and network. CPU: the session's server process on a CPU. QUEUE: that process ready, without a CPU.
    RUNNING: CPU and QUEUE together, where the host does not tell them apart. WAIT: a wait event of the server's. REST:
    off the CPU, without an event that the server names. CONNECT: no session is there yet, of clients that connect anew
    for each transaction.
    """

    CLIENT = "client"
    CPU = "cpu"
    QUEUE = "run queue"
    RUNNING = "running"
    WAIT = "wait"
    REST = "rest"
    CONNECT = "connect"


class Method(StrEnum):
    """How the parts of one comparison were told apart.

    COUNTED: waits as sampled; CPU and run queue as the kernel counts them, without what lies in waits; client and
    network is what is left. ASLEEP: as COUNTED, but in one of the environments sessions sleep without an event: that is
    REST, as sampled. UNNAMED: the same where the kernel was not asked who sleeps, so that REST is what was sampled
    without an event and not counted. SAMPLED: the kernel counted nothing, so all is sampled.
    """

    COUNTED = "counted"
    ASLEEP = "asleep"
    UNNAMED = "unnamed"
    SAMPLED = "sampled"


class SampleSource(StrEnum):
    """Who looked at what sessions do: pgstrata, or the server itself."""

    ACTIVITY = "pg_stat_activity"
    PROFILE = "pg_wait_sampling"


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where the samples of an account come from: `hertz` looks a second in the mean over its windows.

    A PROFILE knows no statements: these are told apart by so many samples of pg_stat_activity, `statement_samples`,
    which is None where all samples tell theirs.
    """

    source: SampleSource = SampleSource.ACTIVITY
    hertz: float = ACTIVITY_HERTZ
    statement_samples: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountRow:
    """Seconds of a transaction's time in one part, wait event (`TYPE/EVENT`, else empty) and query.

    `event` is empty for waits that were seen too seldom to stand alone; `query` where there is none (always for
    CLIENT), where it is not known, and for statements that were seen too seldom.
    """

    part: Part
    event: str
    query: str
    seconds: float
    samples: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Where the time of one transaction went, as a mean over windows; the rows add up to `seconds`.

    `seconds` = clients x measured seconds / transactions; `samples` are those of the clients' sessions.
    """

    seconds: float
    samples: int
    rows: tuple[AccountRow, ...]
    origin: Origin = Origin()


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueInterval:
    """An interval in the unit of what it belongs to, here seconds per transaction."""

    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Contribution:
    """What one part, event or query adds to a difference: seconds per transaction, environment minus reference.

    `value` and `reference` are means over the blocks, `difference` = `value` - `reference`. `interval` is that of 95 %
    for this one alone; None only for a sum that a report makes of several. `resolved`: an interval widened for the
    number of rows leaves out zero. `part` is None for the total and for queries. Of rows that wait for locks `blocker`
    is the statement that was most often at the end of the chain of those that block, where one was seen; of REST
    `place` is the function of the kernel in which sessions slept most often, where it was asked. `process` is the kind
    of process that did it, empty for sessions.
    """

    part: Part | None
    event: str
    query: str
    value: float
    reference: float
    difference: float
    interval: ValueInterval | None
    resolved: bool
    samples: int
    blocker: str = ""
    place: str = ""
    process: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedUse:
    """What was counted per transaction (or per run) beside the account, in the same blocks: means, in base units."""

    metric: str
    value: float
    reference: float
    difference: float
    interval: ValueInterval
    blocks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribution:
    """The difference in time per transaction between two environments in one cell, split.

    `parts` (by part and event), `queries` (by query) and `rows` (by part, event and query) each add up to `total`, the
    largest difference first. `causes` are resolved ones in the direction of the total, the first cause first; none
    where the total itself is not resolved. `samples` are those of both environments, `origin` is who took them.
    `processes` is what the server's other processes did at the same time, in the same unit; no part of the total.
    """

    environment: str
    reference: str
    cell: str
    method: Method
    blocks: int
    samples: int
    total: Contribution
    parts: tuple[Contribution, ...]
    queries: tuple[Contribution, ...]
    rows: tuple[Contribution, ...]
    causes: tuple[Contribution, ...]
    beside: tuple[CountedUse, ...] = ()
    origin: Origin = Origin()
    processes: tuple[Contribution, ...] = ()


class Obstacle(StrEnum):
    """What an attribution is missing."""

    FIXED_RATE = "fixed rate"
    SEARCHED = "searched"
    FEW_BLOCKS = "few blocks"
    SAMPLER_LOST = "sampler lost"
    NO_SESSIONS = "no sessions"
    FEW_SAMPLED = "few sampled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unattributed:
    """Why there is no attribution of a difference: of the `blocks` of both environments some have samples of both.

    `lost` is why a sampler saw nothing, None where none was lost.
    """

    environment: str
    reference: str
    cell: str
    obstacle: Obstacle
    blocks: int
    sampled: int
    lost: Reason | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelAccount:
    """The account of one environment in one cell, over the blocks that all environments of the cell have.

    All of them have the same rows by the same `method`, by part and event only.
    """

    environment: str
    cell: str
    blocks: int
    method: Method
    account: Account


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStacks:
    """Samples by stack, outermost first ("session;main;PostgresMain"), of one run.

    `seconds` is the CPU time per transaction that one sample stands for. `user_only`: the kernel was not seen.
    `lacking` says why there are none.
    """

    environment: str
    cell: str
    block: int
    seconds: float
    stacks: Mapping[str, int]
    user_only: bool = False
    lacking: str = ""
