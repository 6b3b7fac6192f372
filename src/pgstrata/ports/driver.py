"""Load generators: what one execution is asked for and what it reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol, runtime_checkable

from pgstrata.model.driver import Capabilities
from pgstrata.model.experiment import Cell
from pgstrata.model.metrics import Series
from pgstrata.model.server import Address
from pgstrata.model.workload import Workload
from pgstrata.ports.clients import ClientProcesses
from pgstrata.ports.host import Process, StopSignal
from pgstrata.ports.steps import Steps

STRETCH: Final = "stretch."
"""Before the evidence names of the unlogged stretch in front of slices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """One execution of a driver; `sampling_rate` None means no transaction log, `progress` is seconds or None.

    `launch` are words in front of the driver's own command. `cpus` are the CPU of each client, on its own machine;
    empty where the kernel decides.
    """

    cell: Cell
    workload: Workload
    address: Address
    seconds: float
    seed: int
    sampling_rate: float | None = None
    progress: int | None = 1
    transactions: int | None = None
    launch: tuple[str, ...] = ()
    cpus: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A statement that a load gives to the server, without comments; `keyword` is its first word in capitals.

    With parameters, as in the extended protocol, each place of a variable is a parameter of its own; with values, as in
    the simple one, it has one possible value of that variable.
    """

    keyword: str
    with_parameters: str
    with_values: str
    parameters: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressPoint:
    """One progress line: `time` seconds since the start, transactions per second, mean latency in seconds.

    `latency` is None where the driver does not tell the mean. `lag` is the mean time in seconds by which transactions
    began late, None without a fixed rate. `p99` is the 99th percentile of latency of this report, None where the driver
    does not tell it.
    """

    time: float
    tps: float
    latency: float | None
    failed: int = 0
    lag: float | None = None
    p99: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverResult:
    """What a driver reported of one run. Latencies in seconds; `percentiles` by quantile from sampled transactions.

    `outside` counts transactions that are not in `transactions`, because they ended in no slice. `turns` are begin and
    end of the slices, in seconds of the wall clock of the client's machine.
    `by_script` are transactions by the name of their script, where several were mixed.
    `errors` are the lines in which the driver complained; `complete` says whether it came to its own summary.
    """

    complete: bool
    transactions: int
    tps: float | None
    latency_mean: float | None = None
    latency_stddev: float | None = None
    failed: int = 0
    retried: int = 0
    skipped: int = 0
    percentiles: Mapping[float, float] = field(default_factory=dict)
    samples: int = 0
    series: tuple[Series, ...] = ()
    statements: tuple[tuple[float, str], ...] = ()
    by_script: Mapping[str, int] = field(default_factory=dict)
    errors: tuple[str, ...] = ()
    version: str = ""
    outside: int = 0
    turns: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCounts:
    """Logged transactions of one execution at a fixed rate, those in its lead left out.

    `late` were above the limit; `mean` latency in seconds; `growth` is by how many seconds latency grows in a second,
    from the median of the first third of the transactions to that of the last.
    """

    transactions: int
    late: int
    mean: float
    growth: float


@runtime_checkable
class CountsLate(Protocol):
    """A driver's parser that knows the latency of single transactions, counted from their scheduled start. Pure."""

    def count_late(self, evidence: Mapping[str, bytes], *, limit: float, lead: float) -> StepCounts:
        """How many of the transactions that began after `lead` seconds took more than `limit` seconds.

        Raises:
            ParseError: the log has an unknown shape.
        """


class DriverParser(Protocol):
    """What is known of a load generator from the evidence that it left. Pure."""

    @property
    def name(self) -> str:
        """Name of its processes, and of its sessions unless something else sets application_name."""

    def ran(self, evidence: Mapping[str, bytes]) -> bool:
        """Whether the evidence of a run holds anything that an execution left."""

    def parse(self, evidence: Mapping[str, bytes]) -> DriverResult:
        """What `Driver.collect` gave (or what the store kept of it) as a result; ParseError on unknown shapes."""

    def messages(self, evidence: Mapping[str, bytes]) -> tuple[str, ...]:
        """Lines in which it said anything but its figures and its progress."""


class Driver(DriverParser, Protocol):
    """A load generator. Its files for one execution lie in one folder on the client's host."""

    @property
    def capabilities(self) -> Capabilities:
        """What it can do; what it cannot is never asked of it."""

    def facts(self) -> Mapping[str, str]:
        """Version and SHA-256 of its binary."""

    def statements(self, load: Load) -> tuple[Statement, ...]:
        """The statements of a load, those that the driver brings itself among them; as far as it tells."""

    def least_load(self, load: Load) -> Load | None:
        """The same clients asking as little as possible of the server; None where it has no such load."""

    def session_names(self, load: Load) -> Mapping[str, int]:
        """The CPU of the clients of sessions by the name of these (application_name); empty without `Load.cpus`.

        All begin with the driver's name, or with what the address says instead.
        """

    def start(self, load: Load, folder: str, *, on_parent_death: StopSignal = StopSignal.TERM) -> ClientProcesses:
        """Start it; its output and logs go into `folder`, which exists.

        Where `Load.cpus` are given, each client runs on its CPU from its start on.

        A client that will be paused must be killed when the coordinator dies: it would not notice a softer signal.
        """

    def end(self, process: Process) -> None:
        """End a client that would go on for long, paused or not: after the transactions in hand, everything written."""

    def counting(self, folder: str, marks: str, arm: int) -> Steps[Mapping[str, bytes]]:
        """Evidence of a client that ended after turns in slices, its log (`sampling_rate` 1) by slice; in steps.

        The log itself goes: only the counts are evidence. `marks` is a file on the host with a line
        `ROUND ARM START STOP` for each slice, in order of time, in nanoseconds of the wall clock.
        """

    def progress(self, folder: str, offset: int) -> tuple[tuple[ProgressPoint, ...], int]:
        """Progress lines since byte `offset`, and the new offset."""

    def collect(self, folder: str) -> Mapping[str, bytes]:
        """Everything it left, by evidence name, as it is."""
