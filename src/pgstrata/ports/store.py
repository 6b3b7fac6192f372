"""A study on disk, as the loop writes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

from pgstrata.model.objective import Search
from pgstrata.model.plan import Plan
from pgstrata.model.reasons import Reason
from pgstrata.model.runs import RunRecord
from pgstrata.model.server import Fingerprint
from pgstrata.model.shared import SharedResources
from pgstrata.ports.clients import FurtherClient


@dataclass(frozen=True, slots=True, kw_only=True)
class RunHeader:
    """The facts of one run that no other evidence holds; kept as run.json. Times in seconds.

    `failure` is None for a run that was measured to its end; `failure_kind` is "", "failed" or "collapsed".
    `together` is shared by runs that took turns in slices; from `client_pid` on everything is as in `Window`,
    whose `client_pids` are `client_pid` and `other_client_pids`. `stretched` is False for a run in slices whose visit
    left the unlogged stretch out: it has no throughput in absolute terms. `search` is what a run with an objective did.
    """

    identity: str
    plan: str
    block: int
    environment: str
    cell: str
    started: str
    seconds: float
    wall_drift: float
    client_cpu: float
    postmaster_pid: int | None
    door_pids: tuple[int, ...]
    server_version: int
    sampling_rate: float | None
    warmup_seconds: float
    failure: Reason | None
    failure_kind: str
    remarks: tuple[Reason, ...]
    dead_time: Mapping[str, float]
    facts: Mapping[str, str]
    version: str
    together: str = ""
    client_pid: int | None = None
    resident_pids: tuple[int, ...] = ()
    apart: bool = False
    client_door_pids: tuple[int, ...] = ()
    shared: SharedResources = SharedResources.NOTHING
    sampler_pids: tuple[int, ...] = ()
    client_sampler_pids: tuple[int, ...] = ()
    sampler_backends: tuple[int, ...] = ()
    client_resident_pids: tuple[int, ...] = ()
    other_client_pids: tuple[int, ...] = ()
    stretched: bool = True
    search: Search | None = None
    further_clients: tuple[FurtherClient, ...] = ()


class Evidence(Protocol):
    """The folder of one run in the making; invisible until the store commits it."""

    def keep(self, name: str, content: bytes) -> None:
        """Keep a file verbatim."""

    def keep_shared(self, name: str, content: bytes) -> None:
        """Keep a file that many runs have alike: stored once, linked into each run's folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedRun:
    """A run that has ended: where its evidence waits, its header, and what was derived."""

    evidence: Evidence
    header: RunHeader
    record: RunRecord


class Store(Protocol):
    """A study on disk: catalogue and evidence. One writer at a time.

    `plan` is the study's, with the secrets that its writer gave, and the floors that were frozen when it was made.
    """

    plan: Plan

    def committed(self) -> frozenset[str]:
        """Identities of the runs that are there."""

    def begin(self, identity: str) -> Evidence:
        """A new evidence folder for a run; what an interrupted attempt left of it is removed."""

    def commit(self, *finished: FinishedRun) -> None:
        """Make runs visible: their evidence first, one right after the other, then the catalogue.

        Atomic for each run; DiskFullError, StudyError.
        """

    def records(self) -> tuple[RunRecord, ...]:
        """All runs that are there, with the primary metric and rounds of slices."""

    def keep_fingerprint(self, name: str, fingerprint: Fingerprint) -> None:
        """Remember what was observed: name is host, client, sampling, or environment/NAME."""

    def fingerprint(self, name: str) -> Fingerprint | None:
        """What was remembered under that name, by an earlier pass too."""

    def close(self) -> None:
        """Release the study."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
