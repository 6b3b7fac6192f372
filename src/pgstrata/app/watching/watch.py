"""`pgstrata watch`: what is recorded, where, for how long."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pgstrata.app.machine import open_machine
from pgstrata.app.running_server import make_read_only, parse_dsn
from pgstrata.app.watching.host_feed import OpenedHostFeed, RemoteHostFeed
from pgstrata.app.watching.recorder import Recorder
from pgstrata.app.watching.ticker import Ticker
from pgstrata.errors import UsageError
from pgstrata.experiment.hosts import parse_host
from pgstrata.experiment.keys import WrongValueError
from pgstrata.hosts.local_dialogue import LocalDialogue
from pgstrata.model.experiment import HostKind
from pgstrata.servers.psql_session import PsqlSession
from pgstrata.store.archives.thinning import Keep
from pgstrata.store.archives.writer import ArchiveWriter

LEAST_SIZE: Final = 16 << 20
LEAST_TIME: Final = 3600
_TIMEOUT: Final = "3s"


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchTask:
    """What the user asked for.

    `seconds` None is until it is interrupted. `host` is the machine on which the server runs, written as in an
    experiment; None: this one, if the server is reached at one of its addresses.
    """

    dsn: str
    archive: Path
    keep: Keep
    query_text: bool = True
    seconds: float | None = None
    host: str | None = None


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
        HostNotFitError: the server is too old, sessions would not be read-only, or it does not run on `host`.
        HostLostError: `host` cannot be reached.
        SqlError: the server cannot be reached at all.
    """
    _check(task.keep)
    destination = _destination(task.host)
    address = make_read_only(parse_dsn(task.dsn), statement_timeout=_TIMEOUT)
    with open_machine(lambda _: None) as machine, ExitStack() as stack:
        tools = machine.servers.client_tools(tls=True)
        ticker = Ticker(machine.clock)
        there = RemoteHostFeed(destination, ticker.passed, tell) if destination else None
        # whatever fails from here on, the connection to the host ends
        stack.enter_context(closing(there) if there else nullcontext())
        archive = ArchiveWriter.open(task.archive, task.keep)
        recorder = Recorder(
            connect=lambda: PsqlSession(LocalDialogue, tools, address),
            here=OpenedHostFeed(machine.here, ticker.passed),
            there=there,
            archive=archive,
            ticker=ticker,
            tell=tell,
            query_text=task.query_text,
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


def _destination(host: str | None) -> str:
    """What ssh is told; empty for this machine."""
    if host is None:
        return ""
    try:
        spec = parse_host(host)
    except WrongValueError as error:
        raise UsageError(error.what, where="--host", remedy="write ssh:NAME, as ssh knows the machine") from None
    if spec.kind is HostKind.VM:
        raise UsageError("a virtual machine of pgstrata cannot be watched", where="--host", remedy="write ssh:NAME")
    return spec.destination


def _check(keep: Keep) -> None:
    if keep.size < LEAST_SIZE:
        remedy = "give at least 16MB; a day takes up to 50 MB in full detail"
        raise UsageError("an archive of this size is too small", where="--keep-size", remedy=remedy)
    if keep.total < LEAST_TIME or keep.detail < LEAST_TIME:
        where = "--keep" if keep.total < LEAST_TIME else "--keep-seconds"
        raise UsageError("records would be kept for too short a time", where=where, remedy="give at least 1h")
