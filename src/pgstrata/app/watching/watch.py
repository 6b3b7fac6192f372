"""`pgstrata watch`: what is recorded, where, for how long."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pgstrata.app.machine import open_machine
from pgstrata.app.running_server import make_read_only, parse_dsn
from pgstrata.app.watching.alarms import Alarms
from pgstrata.app.watching.hook import Hook, parse_hook
from pgstrata.app.watching.recorder import Recorder
from pgstrata.app.watching.ticker import Ticker
from pgstrata.diagnosis.live.detection import WEEK
from pgstrata.errors import UsageError
from pgstrata.hosts.local_dialogue import LocalDialogue
from pgstrata.servers.psql_session import PsqlSession
from pgstrata.store.archives.thinning import Keep
from pgstrata.store.archives.writer import ArchiveWriter

LEAST_SIZE: Final = 16 << 20
LEAST_TIME: Final = 3600
_TIMEOUT: Final = "3s"


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchTask:
    """What the user asked for; `seconds` None is until it is interrupted.

    `on_incident` is a command that is run when an incident begins and ends, `rate` the false alarms per second.
    """

    dsn: str
    archive: Path
    keep: Keep
    query_text: bool = True
    seconds: float | None = None
    on_incident: str | None = None
    rate: float = 1 / WEEK


@dataclass(frozen=True, slots=True, kw_only=True)
class Watching:
    """What the recorder found at its start."""

    version: str
    limits: tuple[str, ...]


def watch(task: WatchTask, begun: Callable[[Watching], None], tell: Callable[[str], None]) -> int:
    """Record a server into an archive; how many looks there were.

    Args:
        task: what is asked for.
        begun: called once the server has answered.
        tell: says what happens.

    Raises:
        UsageError: no connection string, or a limit that makes no sense.
        ArchiveInUseError: another recorder writes to the archive.
        HostNotFitError: the server is too old, or sessions would not be read-only.
        SqlError: the server cannot be reached at all.
    """
    _check(task.keep)
    words = None if task.on_incident is None else parse_hook(task.on_incident)
    address = make_read_only(parse_dsn(task.dsn), statement_timeout=_TIMEOUT)
    with open_machine(lambda _: None) as machine:
        tools = machine.servers.client_tools(tls=True)
        archive = ArchiveWriter.open(task.archive, task.keep)
        hook = None if words is None else Hook(words, task.archive.absolute(), os.environ, (task.dsn,))
        alarms = Alarms(task.archive, tell, rate=task.rate, hook=hook, query_text=task.query_text)
        recorder = Recorder(
            connect=lambda: PsqlSession(LocalDialogue, tools, address),
            here=machine.here,
            archive=archive,
            ticker=Ticker(machine.clock),
            tell=tell,
            query_text=task.query_text,
            followers=(alarms,),
        )
        alarms.announce = recorder.alarm
        try:
            alarms.catch_up()
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
