"""Collectors: raw text before and after the measured window, and the pure parser of the two.

Samplers: child processes that write down what they see during the window, and the pure parser of that.
Explainers: plans of the workload's statements.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

from pgstrata.model import experiment
from pgstrata.model.activity import ProcessCount, SessionCount, WaitProfile
from pgstrata.model.driver import DEFAULT_DRIVER
from pgstrata.model.metrics import Measurement, Series
from pgstrata.model.queries import QueryCounts
from pgstrata.model.query_plans import QueryPlan
from pgstrata.model.reasons import Reason
from pgstrata.model.shared import SharedResources
from pgstrata.ports.clients import FurtherClient
from pgstrata.ports.driver import Statement
from pgstrata.ports.host import Host, Process
from pgstrata.ports.server import RunningServer, Sql

PLANS: Final = "plans.txt"
"""Evidence name of the plans of a workload's statements."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureSubject:
    """What a collector looks at; `clients` are the client's machines where these are others than the server's.

    `turns`: the server takes turns in slices with others. `reconnects`: so many clients connect anew for each
    transaction; 0 where their sessions last. `driver` is as in `Window`.
    """

    host: Host
    sql: Sql
    server: RunningServer
    clients: tuple[Host, ...] = ()
    turns: bool = False
    reconnects: int = 0
    driver: str = DEFAULT_DRIVER


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The measured window, as far as parsing needs it. CPU in seconds; pids identify whose time is whose.

    In slices `seconds` is the time of this environment's own turns in a longer window; `client_pids` its persistent
    client, whose CPU time is counted between the captures instead of `client_cpu`; `resident_pids` are servers and
    clients of the environments that it took turns with, as far as they are on the server's host; `outside` counts
    transactions before and between the slices, which the server's own statistics hold too.

    `turns` are begin and end of its slices in order of time, in seconds of the wall clock of the client's machine;
    empty for a run that was alone.

    `sampler_pids` and `client_sampler_pids` are samplers on the server's and the client's host, of all environments
    that took turns; `sampler_backends` are the servers' processes that answer them.

    `apart`: the client was on another host than the server. There are `client_pids`, `client_resident_pids`, clients of
    the environments that it took turns with, and `client_transport_pids`, pgstrata itself; `resident_cpu` is what those
    other clients used. `shared` is what the two hosts have in common. `further_clients` are the machines of a load
    that comes from several but the first, whose clients `client_cpu` holds too.

    `driver` names the processes and sessions of the load generator.
    """

    seconds: float
    transactions: int
    client_cpu: float
    postmaster_pid: int | None
    transport_pids: tuple[int, ...]
    server_version: int
    client_pids: tuple[int, ...] = ()
    resident_pids: tuple[int, ...] = ()
    outside: int = 0
    apart: bool = False
    client_transport_pids: tuple[int, ...] = ()
    shared: SharedResources = SharedResources.NOTHING
    turns: tuple[tuple[float, float], ...] = ()
    sampler_pids: tuple[int, ...] = ()
    client_sampler_pids: tuple[int, ...] = ()
    sampler_backends: tuple[int, ...] = ()
    client_resident_pids: tuple[int, ...] = ()
    resident_cpu: float = 0.0
    driver: str = DEFAULT_DRIVER
    further_clients: tuple[FurtherClient, ...] = ()


class Collector(Protocol):
    """Captures raw text before and after the measured window; a pure parser makes measurements of the two."""

    @property
    def name(self) -> str:
        """Evidence is kept as NAME.before and NAME.after."""

    @property
    def with_clients(self) -> bool:
        """Whether it looks while the clients are there where these live through slices: as at their processes.

        Else it does before they come and after they have gone.
        """

    def capture(self, subject: CaptureSubject) -> bytes:
        """Raw text, as it is kept; nothing where there is nothing to look at."""

    def parse(self, before: bytes, after: bytes, window: Window) -> tuple[Measurement, ...]:
        """Pure. Counters that went backwards or are missing give no measurement; ParseError on unknown shapes."""


@runtime_checkable
class SeesClients(Protocol):
    """A collector whose captures hold the clients where these are on another host than the server."""

    def see_clients(self, before: bytes, after: bytes, window: Window) -> Window:
        """Pure: the window with the CPU time of clients that lived through it. ParseError on unknown shapes."""


@runtime_checkable
class Prepares(Protocol):
    """A collector or sampler that needs something in the server."""

    def prepare(self, subject: CaptureSubject) -> None:
        """Put it there; the server has just been started on a clone."""


@runtime_checkable
class CountsQueries(Protocol):
    """A collector whose captures tell of single statements, too."""

    def parse_queries(self, before: bytes, after: bytes, window: Window) -> QueryCounts | None:
        """Pure: what was counted of each statement; None where it cannot be told. ParseError on unknown shapes."""


@runtime_checkable
class DoubtsCaptures(Protocol):
    """A collector whose captures may tell of different countings, as after a reset of the counters."""

    def doubt(self, before: bytes, after: bytes) -> tuple[Reason, ...]:
        """Pure: why what was counted between the two is not known, for the run's reasons; nothing where it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """A sampler at work: its process on `host`, which writes into the file `output` and complains into `errors`.

    When it is told to end it takes `patience` seconds at most. What it wrote goes through `conceal` before it is kept.
    `prompt`: what it sees depends on whether the server's process that answers it gets a CPU at once.
    """

    host: Host
    process: Process
    output: str
    errors: str
    patience: float = 5.0
    conceal: Callable[[bytes], bytes] | None = None
    prompt: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampled:
    """What samples of a window say; `remarks` are doubts about them, for the run's reasons.

    `waits` are what the server itself sampled of the sessions, None where it does not.
    """

    measurements: tuple[Measurement, ...] = ()
    series: tuple[Series, ...] = ()
    sessions: tuple[SessionCount, ...] = ()
    processes: tuple[ProcessCount, ...] = ()
    waits: WaitProfile | None = None
    remarks: tuple[Reason, ...] = ()


class Sampler(Protocol):
    """A child process that writes down what it sees during the window; a pure parser makes values of it.

    Where environments take turns in slices, one that is `paused` is paused and resumed with its environment's client;
    the others go on through all turns. What it wrote is kept as NAME.samples, its complaints as NAME.samples.err.
    """

    @property
    def name(self) -> str:
        """Short, and part of the names of its evidence."""

    @property
    def paused(self) -> bool:
        """Whether it is at work only in the turns of its environment; then it runs on the client's host."""

    def start(self, subject: CaptureSubject, folder: str) -> Sampling | None:
        """Start it with its files in a folder that exists on its host; None where there is nothing to look at.

        It writes a first sample at once, and a last one when it is sent TERM if measurements need one.
        """

    def parse(self, evidence: Mapping[str, bytes], window: Window) -> Sampled:
        """Pure: from everything that was kept of the run; ParseError on unknown shapes.

        What it did not see, because it died or fell behind, gives no value.
        """


class Explainer(Protocol):
    """Asks a server for the plans of a workload's statements before a run, and executes none of them."""

    def capture(self, subject: CaptureSubject, statements: Sequence[Statement], protocol: experiment.Protocol) -> bytes:
        """Plans as they are kept; nothing where there is no statement with a plan.

        What cannot be explained is said there and is no error.
        """

    def parse(self, evidence: bytes) -> tuple[QueryPlan, ...]:
        """Pure: what `capture` gave; ParseError on unknown shapes."""
