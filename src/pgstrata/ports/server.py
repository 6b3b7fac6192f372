"""Servers and their data: where they come from, how they are started, cloned, asked and observed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from pgstrata.model.experiment import Cell, Environment, ServerSpec
from pgstrata.model.launch import Launch, Needs
from pgstrata.model.server import Address, Build
from pgstrata.ports.host import Host, Process
from pgstrata.ports.steps import Steps


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryResult:
    """Rows of a query as text, by column name; NULL is the empty text."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def records(self) -> Iterable[Mapping[str, str]]:
        """Each row by column name."""
        return (dict(zip(self.columns, row, strict=True)) for row in self.rows)

    def value(self) -> str:
        """The only value of a table of one row and one column; ValueError otherwise."""
        ((value,),) = self.rows
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class PartAnswer:
    """What psql printed of a part of a script, and the first error in it: empty texts where there was none."""

    output: str = ""
    error: str = ""
    sqlstate: str = ""


BACKEND: Final = ".backend"
"""Behind the name of what a watching session writes: the file with the id of the server's process that answers it."""


class Sql(Protocol):
    """Statements to a server, by the way that the driver takes."""

    def query(self, address: Address, statement: str) -> QueryResult:
        """Rows of one statement; SqlError if it fails."""

    def execute(self, address: Address, script: str) -> None:
        """Run a script, each statement in its own transaction, stopping at the first error (SqlError)."""

    def executing(self, address: Address, script: str) -> Steps[None]:
        """As `execute`, in two steps: begun, then awaited."""

    @property
    def host(self) -> Host:
        """The machine from which statements come."""

    def answers(self, address: Address, parts: Sequence[str]) -> tuple[PartAnswer, ...]:
        """What each part of a script gave, without titles; statements may fail, and later parts run all the same.

        SqlError where there is no connection, or it is lost.
        """

    def watch(self, address: Address, script: str, *, folder: str, name: str) -> Process:
        """A child process that works through a script which does not end, psql's own commands among it.

        It runs on `host`; rows go to FOLDER/NAME as they come, unaligned, with a tab between columns and without
        titles, complaints to FOLDER/NAME.err, the id of the server's process to FOLDER/NAME.backend.
        """


class ServerSource(Protocol):
    """Where a kind of server comes from."""

    def resolve(self, spec: ServerSpec) -> Build:
        """The installed build, fetched first if it must be; every error names a remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """Pristine data: `location` is a data directory on the host, or the name of a template database."""

    identity: str
    location: str
    bytes: int
    seconds_building: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Clone:
    """A fresh copy of a dataset for one run.

    `database` is where the workload's relations are; `folder` is scratch space on the host beside it. `wal` is the
    folder of its WAL where that lies on other storage than the data.
    """

    dataset: Dataset
    location: str
    database: str
    folder: str
    wal: str = ""

    @property
    def folders(self) -> tuple[str, ...]:
        """One folder of each file system that a server on it writes to."""
        return (self.location, self.wal) if self.wal else (self.location,)


class Datasets(Protocol):
    """Builds, verifies, marks, clones and discards pristine data for one environment's server."""

    def ensure(self, environment: Environment, build: Build, cell: Cell) -> Dataset:
        """The pristine dataset, built and verified if there is none yet."""

    def clone(self, dataset: Dataset, name: str, folder: str = "", wal: str = "") -> Clone:
        """A fresh copy, below `folder` or in the usual place; `name` is unique among those that are up.

        Its WAL goes below the folder `wal`, if one is given.
        """

    def cloning(self, dataset: Dataset, name: str, folder: str = "", wal: str = "") -> Steps[Clone]:
        """As `clone`, in steps; nothing is left of it if it fails or is closed."""

    def discarding(self, clone: Clone) -> Steps[None]:
        """As `discard`, in steps."""

    def discard(self, clone: Clone) -> None:
        """Remove a clone; only ever one that carries pgstrata's marker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningServer:
    """A server that is up on a clone. `postmaster_pid` is None if it is not ours or not on a host we see.

    `launch` is what the layers of its host added to its start.
    """

    environment: Environment
    build: Build
    clone: Clone
    address: Address
    postmaster_pid: int | None
    launch: Launch = field(default_factory=Launch)


class ServerControl(Protocol):
    """Starts and stops the server of an environment."""

    def needs(self, environment: Environment, build: Build, dataset: Dataset) -> Needs:
        """What the server will ask of its host; ServerFailedError where it does not say."""

    def start(
        self, environment: Environment, build: Build, clone: Clone, launch: Launch | None = None
    ) -> RunningServer:
        """Start and wait until it answers; ServerFailedError with the end of its log otherwise."""

    def starting(
        self, environment: Environment, build: Build, clone: Clone, launch: Launch | None = None
    ) -> Steps[RunningServer]:
        """As `start`, in steps; it is stopped if it fails or is closed."""

    def stopping(self, server: RunningServer) -> Steps[None]:
        """As `stop`, in steps."""

    def alive(self, server: RunningServer) -> bool:
        """Whether it still runs."""

    def stop(self, server: RunningServer) -> None:
        """Stop cleanly (fast shutdown); stronger after a while."""

    def log(self, server: RunningServer) -> bytes:
        """Everything the server logged since its start."""


class ObservedLayer(Protocol):
    """One part of the stack that is asserted from inside; the parts that change a host come with the host's layers."""

    @property
    def name(self) -> str:
        """Name of the layer."""

    def observe(self, server: RunningServer, sql: Sql) -> Mapping[str, str]:
        """Facts seen from inside. Raises LevelNotTakenError where a level that was asked for is not there."""
