"""`pgstrata watch`: what is recorded, where, for how long."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pgstrata.app.machine import open_machine
from pgstrata.app.running_server import make_read_only, parse_dsn
from pgstrata.app.watching.recorder import Recorder
from pgstrata.app.watching.ticker import Ticker
from pgstrata.errors import UsageError
from pgstrata.hosts.local_dialogue import LocalDialogue
from pgstrata.ports.recording import Follower
from pgstrata.servers.psql_session import PsqlSession
from pgstrata.store.archives.thinning import Keep
from pgstrata.store.archives.writer import ArchiveWriter

LEAST_SIZE: Final = 16 << 20
LEAST_TIME: Final = 3600
_TIMEOUT: Final = "3s"


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchTask:
    """What the user asked for; `seconds` None is until it is interrupted."""

    dsn: str
    archive: Path
    keep: Keep
    query_text: bool = True
    seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Watching:
    """What the recorder found at its start."""

    version: str
    limits: tuple[str, ...]


def watch(
    task: WatchTask,
    begun: Callable[[Watching], None],
    tell: Callable[[str], None],
    followers: tuple[Follower, ...] = (),
) -> int:
    """Record a server into an archive; how many looks there were.

    Args:
        task: what is asked for.
        begun: called once the server has answered.
        tell: says what happens.
        followers: are told what is recorded.

    Raises:
        UsageError: no connection string, or a limit that makes no sense.
        ArchiveInUseError: another recorder writes to the archive.
        HostNotFitError: the server is too old, or sessions would not be read-only.
        SqlError: the server cannot be reached at all.
    """
    _check(task.keep)
    address = make_read_only(parse_dsn(task.dsn), statement_timeout=_TIMEOUT)
    with open_machine(lambda _: None) as machine:
        tools = machine.servers.client_tools(tls=True)
        archive = ArchiveWriter.open(task.archive, task.keep)
        recorder = Recorder(
            connect=lambda: PsqlSession(LocalDialogue, tools, address),
            here=machine.here,
            archive=archive,
            ticker=Ticker(machine.clock),
            tell=tell,
            query_text=task.query_text,
            followers=followers,
        )
        try:
            server = recorder.begin()
            begun(Watching(version=server.said["version"], limits=recorder.limits))
            try:
                recorder.run(task.seconds)
            except KeyboardInterrupt:
                tell("stopped: the archive is complete up to now")
        finally:
            archive.close()
    return recorder.looks


def _check(keep: Keep) -> None:
    if keep.size < LEAST_SIZE:
        remedy = "give at least 16MB; a day takes up to 50 MB in full detail"
        raise UsageError("an archive of this size is too small", where="--keep-size", remedy=remedy)
    if keep.total < LEAST_TIME or keep.detail < LEAST_TIME:
        where = "--keep" if keep.total < LEAST_TIME else "--keep-seconds"
        raise UsageError("records would be kept for too short a time", where=where, remedy="give at least 1h")
