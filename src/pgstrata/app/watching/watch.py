"""`pgstrata watch`: what is recorded, where, for how long."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pgstrata.app.httpd.listen import Listen
from pgstrata.app.machine import open_machine
from pgstrata.app.running_server import make_read_only, parse_dsn
from pgstrata.app.watching.alarms import Alarms
from pgstrata.app.watching.cost import CostReader
from pgstrata.app.watching.endpoint import Endpoint
from pgstrata.app.watching.hook import Hook, parse_hook, secrets_of
from pgstrata.app.watching.host_feed import HostFeed, OpenedHostFeed, RemoteHostFeed
from pgstrata.app.watching.metrics import measure
from pgstrata.app.watching.plans import PlansAsker
from pgstrata.app.watching.recent import Recent
from pgstrata.app.watching.recorder import Recorder
from pgstrata.app.watching.ticker import Ticker
from pgstrata.diagnosis.live.detection import WEEK
from pgstrata.errors import UsageError
from pgstrata.experiment.hosts import parse_named_host
from pgstrata.experiment.keys import WrongValueError
from pgstrata.hosts.local_dialogue import LocalDialogue
from pgstrata.model.experiment import HostKind, HostSpec
from pgstrata.ports.host import Host
from pgstrata.ports.recording import Follower
from pgstrata.report.live.openmetrics import render_metrics
from pgstrata.servers.psql_session import PsqlSession
from pgstrata.store.archives.thinning import Keep
from pgstrata.store.archives.writer import ArchiveWriter
from pgstrata.units import render_duration

LEAST_SIZE: Final = 16 << 20
LEAST_TIME: Final = 3600
_TIMEOUT: Final = "3s"


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchTask:
    """What the user asked for.

    `seconds` None is until it is interrupted. `plans`: whether plans of statements are kept. `host` is the machine on
    which the server runs, perhaps in a container, written as in an experiment; None: this one, if the server runs on it
    outside of containers. `listen` is where metrics are offered. `on_incident` is a command that is run when an
    incident begins and ends, `rate` the false alarms per second.
    """

    dsn: str
    archive: Path
    keep: Keep
    query_text: bool = True
    plans: bool = True
    seconds: float | None = None
    host: str | None = None
    listen: Listen | None = None
    on_incident: str | None = None
    rate: float = 1 / WEEK


@dataclass(frozen=True, slots=True, kw_only=True)
class Watching:
    """What the recorder found at its start; `metrics` is the address of its metrics, empty without them."""

    version: str
    limits: tuple[str, ...]
    metrics: str = ""


def watch(
    task: WatchTask,
    begun: Callable[[Watching], None],
    tell: Callable[[str], None],
    followers: tuple[Follower, ...] = (),
) -> int:
    """Record a server into an archive; how many looks there were that could be written.

    Args:
        task: what is asked for.
        begun: called once the server has answered.
        tell: says what happens.
        followers: are told what is recorded.

    Raises:
        UsageError: no connection string, or a limit that makes no sense.
        ArchiveInUseError: another recorder writes to the archive.
        HostNotFitError: the server is too old, sessions would not be read-only, it does not run on `host`, or the
            address of the metrics is taken.
        HostLostError: `host` cannot be reached.
        SqlError: the server cannot be reached at all.
    """
    _check(task.keep)
    host = _parse_host(task.host)
    words = None if task.on_incident is None else parse_hook(task.on_incident)
    address = make_read_only(parse_dsn(task.dsn), statement_timeout=_TIMEOUT)
    recent = Recent()
    with open_machine(lambda _: None) as machine, ExitStack() as ending:
        tools = machine.servers.client_tools(tls=True)
        ticker = Ticker(machine.clock)
        there = None if host is None else _open_feed(host, machine.here, ticker, tell)
        if there is not None:
            ending.callback(there.close)
        archive = ArchiveWriter.open(task.archive, task.keep)
        ending.callback(archive.close)
        hook = None
        if words is not None:
            hook = Hook(words, task.archive.absolute(), os.environ, secrets_of(task.dsn, address.password))
        learn = archive.add_texts if task.query_text else _forget
        alarms = Alarms(task.archive, tell, rate=task.rate, hook=hook, query_text=task.query_text)
        recorder = Recorder(
            connect=lambda: PsqlSession(LocalDialogue, tools, address),
            here=OpenedHostFeed(machine.here, ticker.passed),
            there=there,
            archive=archive,
            ticker=ticker,
            tell=tell,
            query_text=task.query_text,
            plans=PlansAsker(ticker.passed, archive.add_plan, learn, tell) if task.plans else None,
            followers=(alarms, *followers, *((recent,) if task.listen else ())),
        )
        alarms.announce = recorder.alarm
        url = ""
        if task.listen:
            endpoint = open_endpoint(task.listen, recorder, recent)
            ending.callback(endpoint.close)
            url = endpoint.url
        alarms.catch_up()
        server = recorder.begin()
        begun(Watching(version=server.said["version"], limits=recorder.limits, metrics=url))
        try:
            recorder.run(task.seconds)
        except KeyboardInterrupt:
            tell(f"stopped{'' if recorder.unsaved_since else ': the archive is complete up to now'}")
        lost = 0 if recorder.unsaved_since is None else int(ticker.now()) - recorder.unsaved_since
        if lost:
            tell(
                f"the records of the last {render_duration(lost)} are lost: they could not be written into the archive"
            )
    return max(0, recorder.looks - lost)


def _forget(_texts: Mapping[str, str]) -> None:
    """Texts that are not kept."""


def _parse_host(host: str | None) -> HostSpec | None:
    """The server's host, as the user names it."""
    if host is None:
        return None
    try:
        spec = parse_named_host(host)
    except WrongValueError as error:
        remedy = "write ssh:NAME, as ssh knows the machine, or local for a container on this machine"
        raise UsageError(error.what, where="--host", remedy=remedy) from None
    if spec.kind is HostKind.VM:
        raise UsageError("a virtual machine of pgstrata cannot be watched", where="--host", remedy="write ssh:NAME")
    return spec


def _open_feed(host: HostSpec, here: Host, ticker: Ticker, tell: Callable[[str], None]) -> HostFeed:
    if host.kind is HostKind.LOCAL:
        return OpenedHostFeed(here, ticker.passed, contained=True, here=True)
    return RemoteHostFeed(host.destination, ticker.passed, tell)


def open_endpoint(listen: Listen, recorder: Recorder, recent: Recent) -> Endpoint:
    """Metrics of a recorder at an address; `recent` has to follow it."""
    cost = CostReader(archive=recorder.archive.folder, psql=lambda: recorder.psql)
    return Endpoint(listen, lambda form: render_metrics(measure(recent.read(recorder.ticker.now()), cost.read()), form))


def _check(keep: Keep) -> None:
    if keep.size < LEAST_SIZE:
        remedy = "give at least 16MB; a day takes up to 50 MB in full detail"
        raise UsageError("an archive of this size is too small", where="--keep-size", remedy=remedy)
    if keep.total < LEAST_TIME or keep.detail < LEAST_TIME:
        where = "--keep" if keep.total < LEAST_TIME else "--keep-seconds"
        raise UsageError("records would be kept for too short a time", where=where, remedy="give at least 1h")
