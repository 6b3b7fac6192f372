"""Examine a host: which layers can be factors there, what measuring costs, how quiet it is. Nothing is changed.

Every probe is bounded in time, and what fails is a line of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from pgstrata.app.machine import SystemClock
from pgstrata.app.site import Site, site_here
from pgstrata.collectors.canary import time_loop
from pgstrata.collectors.hostfacts.abilities import judge_layers, observe_abilities
from pgstrata.collectors.hostfacts.conditions import observe_conditions
from pgstrata.collectors.hostfacts.parse import parse_host_facts
from pgstrata.collectors.hostfacts.probes import (
    LEAST_DISK,
    judge_canary,
    judge_fsync,
    judge_limits,
    judge_state,
    judge_timing,
    judge_window,
    unfit_reasons,
)
from pgstrata.collectors.hostfacts.sampler import capture_host_facts
from pgstrata.collectors.pgtest import FSYNC, TIMING, parse_fsync, parse_timing, remove_trial, run_fsync, run_timing
from pgstrata.collectors.procfs.parse import parse_window
from pgstrata.collectors.procfs.sampler import capture_counters, observe_ticks
from pgstrata.errors import HostLostError, HostNotFitError, PgstrataError
from pgstrata.hosts.local import LocalHost
from pgstrata.layers.registry import Ground, files_of, privileged_changes, programs_in, programs_of
from pgstrata.layers.storage.making import DEVICES
from pgstrata.ledger.entries import host_state, own_commands
from pgstrata.model.abilities import Abilities, HostCase
from pgstrata.model.changes import Change, restore_command
from pgstrata.model.doctor import Elevated, Examination, LayerFinding, Possible, Probe
from pgstrata.model.packages import PACKAGES
from pgstrata.ports.collector import Window
from pgstrata.ports.host import Clock, Host
from pgstrata.servers.catalogue import CATALOGUE, EMBEDDED, Wheel
from pgstrata.servers.fetch import Fetcher
from pgstrata.servers.shelf import ServerSite
from pgstrata.servers.supply import installed_prefixes
from pgstrata.system.commands import holding
from pgstrata.system.trust import as_keeper

_Answer = TypeVar("_Answer")

_CANARIES: Final = 9
_WINDOW: Final = 1.0
_TRIAL: Final = ".pgstrata-doctor-"
"""Name of the file that pg_test_fsync writes, before the process id of the coordinator."""
_NO_SERVER: Final = "there is no server to ask yet: pgstrata servers fetch embedded"


@dataclass(frozen=True, slots=True, kw_only=True)
class Installations:
    """Servers that are there without fetching anything: prefixes of `fetched` ones by level, and `installed` ones.

    `fetched` ones lie on this machine, `installed` ones on the host. `lack` is why none can be fetched for the host.
    `sent` is the folder on another host to which the programs of this machine were sent, `unsent` why they were not.
    """

    fetched: Mapping[str, str]
    installed: tuple[str, ...]
    lack: str = ""
    sent: str | None = None
    unsent: str = ""

    @property
    def prefixes(self) -> tuple[str, ...]:
        """Where programs can be run on the host, those with the fewest needs first."""
        ready = tuple(self.fetched.values()) if self.sent is None else (self.sent,) * bool(self.sent)
        return (*ready, *reversed(self.installed))


def examine_here() -> Examination:
    """This machine, as the user of pgstrata. UsageError where a variable of the environment names no usable folder."""
    with closing(LocalHost()) as host:
        site = site_here(host)
        return examine(site, SystemClock(), find_installations(host, site.places.cache, site.machine))


def examine(site: Site, clock: Clock, installations: Installations) -> Examination:
    """A host with the folders that pgstrata uses or will use there; `installations.prefixes` are folders there."""
    host, places = site.transport, site.places
    abilities = observe_abilities(host, DEVICES)
    folder = _nearest_folder(host, places.data)
    free = host.free_bytes(folder)
    facts = parse_host_facts(capture_host_facts(host)).facts
    case = HostCase(abilities=abilities, package=lambda name: PACKAGES.get(name, name), devices=DEVICES)
    layers = _in_order((*_judge_servers(installations), *judge_layers(case)))
    layers = tuple(_with_architecture(finding, installations.lack) for finding in layers)
    return Examination(
        host=host.name,
        user=host.user,
        layers=layers,
        probes=(
            *guard("changes", "left changed by pgstrata", lambda: [_changes(site)]),
            *_measure(site, clock, abilities, installations, folder),
            *guard("limits", "limits of pgstrata itself", lambda: [_limits(host, places.data)]),
            *judge_state(abilities, facts, places.data, free),
        ),
        unfit=(*_user_reasons(site), *unfit_reasons(abilities, free)),
        elevated=list_elevated(site, abilities, layers),
    )


# ------------------------------------------------------------------------------------------------ servers


def find_installations(host: Host, cache: str, machine: str) -> Installations:
    """Servers in the cache and on the host; nothing is fetched or started."""
    fetcher = Fetcher(site=ServerSite(here=host, host=host, cache=cache, note=_ignore), machine=machine, python="")
    wheels: tuple[Wheel, ...] = (EMBEDDED, *reversed(CATALOGUE))
    try:
        fetched = {wheel.level: fetcher.prefix(wheel) for wheel in wheels if fetcher.fetched(wheel)}
    except HostNotFitError as error:
        return Installations(fetched={}, installed=installed_prefixes(host), lack=error.what)
    return Installations(fetched=fetched, installed=installed_prefixes(host))


def _ignore(_text: str) -> None:
    """Nothing takes a while where nothing is fetched."""


def _judge_servers(installations: Installations) -> Iterator[LayerFinding]:
    majors = sorted(level for level in installations.fetched if level != EMBEDDED.level)
    later = "fetched by pip when first named"
    yield _server(
        "server=embedded", installations.lack, "fetched" if EMBEDDED.level in installations.fetched else later
    )
    key = f"server={CATALOGUE[0].level} … {CATALOGUE[-1].level}"
    yield _server(key, installations.lack, f"fetched: {', '.join(majors)}" if majors else later)
    found = ", ".join(installations.installed)
    yield _server("server=prefix:", "" if found else "needs an installed PostgreSQL (package postgresql)", found)


def _server(key: str, lack: str, note: str) -> LayerFinding:
    possible = Possible.NOT_ON_HOST if lack else Possible.YES
    return LayerFinding(layer="server", key=key, possible=possible, note=lack or note)


def _with_architecture(finding: LayerFinding, lack: str) -> LayerFinding:
    """A second supplier has nothing for a machine that the first has nothing for."""
    if not lack or finding.key != "server=maven:" or finding.possible is not Possible.YES:
        return finding
    return replace(finding, possible=Possible.NOT_ON_HOST, note=lack)


def _in_order(findings: tuple[LayerFinding, ...]) -> tuple[LayerFinding, ...]:
    """Servers first, then what needs nothing but a server, then the host."""
    plain = {"settings": "settings.*", "initdb": "initdb.*", "checksums": "checksums", "connection": "connection"}
    own = tuple(LayerFinding(layer=layer, key=key, possible=Possible.YES) for layer, key in plain.items())
    servers = tuple(finding for finding in findings if finding.layer == "server")
    return (*servers, *own, *(finding for finding in findings if finding.layer != "server"))


def _user_reasons(site: Site) -> tuple[str, ...]:
    try:
        site.server_user()
    except HostNotFitError as error:
        return (f"{error.what}: {error.remedy}",)
    return ()


# ------------------------------------------------------------------------------------------------- probes


def _measure(
    site: Site, clock: Clock, abilities: Abilities, installations: Installations, folder: str
) -> Iterator[Probe]:
    """The quiet ones first: what measures makes noise of its own."""
    host, flush, look = site.transport, "cost of fsync (8 kB)", "cost of timing"
    yield from guard("foreign_cpu", "CPU used by others", lambda: _watch(host, clock, abilities.cpus))
    yield from guard("canary", "noise canary", lambda: [judge_canary(_canaries(host))])
    yield from guard("timing", look, lambda: [judge_timing(_ask(installations, TIMING, _time(site)))])
    yield from guard("fsync", flush, lambda: [judge_fsync(_ask(installations, FSYNC, _flush(site, folder)))])


def _changes(site: Site) -> Probe:
    found = host_state(site.transport, site.ledger)
    left = len(found.dirty) + len(found.unreadable)
    doubt = f"an earlier pgstrata left {left} changed here (`{restore_command(site.transport.name)}`)" if left else ""
    return Probe(
        name="changes", title="left changed by pgstrata", text=str(left) if left else "nothing", value=left, doubt=doubt
    )


def _limits(host: Host, data: str) -> Probe:
    return judge_limits(observe_conditions(host, data).facts.get("limits", ""))


def guard(name: str, title: str, probe: Callable[[], Iterable[Probe]]) -> Iterator[Probe]:
    """What a probe found, or one that says why it failed; a connection that broke is no finding."""
    try:
        yield from tuple(probe())
    except HostLostError:
        raise
    except PgstrataError as error:
        yield Probe(name=name, title=title, failure=f"{error.what} ({error.remedy})" if error.remedy else error.what)


def _watch(host: Host, clock: Clock, cpus: int) -> Iterator[Probe]:
    """A second in which nothing of ours runs; pgstrata stands where a server would, so that all else is foreign."""
    ticks = observe_ticks(host)
    before = capture_counters(host, ticks)
    clock.sleep(_WINDOW)
    after = capture_counters(host, ticks)
    first, *others = host.transport_pids
    window = Window(seconds=_WINDOW, transactions=0, client_cpu=0.0, postmaster_pid=first,
                    transport_pids=tuple(others), server_version=0)  # fmt: skip
    measured = {one.metric: one.value for one in parse_window(before, after, window)}
    return judge_window(measured, cpus)


def _canaries(host: Host) -> tuple[float, ...]:
    # the first one is slower: it reads the shell from the disk
    return tuple(time_loop(host) for _ in range(_CANARIES + 1))[1:]


def _time(site: Site) -> Callable[[str], float]:
    return lambda prefix: parse_timing(run_timing(_as_server_user(site), prefix))


def _flush(site: Site, folder: str) -> Callable[[str], Mapping[str, float]]:
    place, host = folder.rstrip("/"), site.transport

    def measure(prefix: str) -> Mapping[str, float]:
        keeper = as_keeper(host, folder, adding=True)
        worker = _as_server_user(site) if keeper is host else keeper
        _sweep(keeper, worker, place)
        if host.free_bytes(folder) < LEAST_DISK:
            raise HostNotFitError("there is too little room to try it")
        template = f"{place}/{_TRIAL}{host.transport_pids[0]}-{'X' * 10}"
        return parse_fsync(run_fsync(keeper, worker, prefix, template))

    return measure


def _as_server_user(site: Site) -> Host:
    """Installations may be anybody's: root runs their programs as the user that servers run as."""
    user = site.server_user()
    return site.transport.as_user(user) if user else site.transport


def _sweep(keeper: Host, worker: Host, place: str) -> None:
    """Remove what a doctor that was killed left here."""
    for name in keeper.list_folder(place or "/"):
        pid = name.removeprefix(_TRIAL).partition("-")[0]
        if name.startswith(_TRIAL) and pid.isdecimal() and not keeper.pid_alive(int(pid)):
            remove_trial(keeper, worker, f"{place}/{name}")


def _ask(installations: Installations, program: str, ask: Callable[[str], _Answer]) -> _Answer:
    """The answer of the first server whose program works; the error of the first, where none does."""
    failed: PgstrataError | None = None
    for prefix in installations.prefixes:
        try:
            return ask(prefix)
        except PgstrataError as error:
            failed = failed or error
    raise failed or PgstrataError(f"{program}: {installations.unsent or installations.lack or _NO_SERVER}")


def _nearest_folder(host: Host, path: str) -> str:
    while not host.exists(path) and "/" in path.strip("/"):
        path = path.rpartition("/")[0]
    return path if host.exists(path) else "/"


_LEDGER: Final = "every one"
_BEFORE: Final = "BEFORE"
_UNIFIED: Final = 2


def list_elevated(site: Site, abilities: Abilities, layers: Iterable[LayerFinding]) -> tuple[Elevated, ...]:
    """The commands with sudo for the factors that this host has; none where the user is root."""
    if not site.privilege:
        return ()
    keys = {one.key for one in layers if one.possible in {Possible.YES, Possible.NOT_FOR_USER}}
    ground = Ground(storage=site.places.storage, user=site.transport.user, cgroup=_version(abilities))
    wanted = [(key, change) for key, change in privileged_changes(ground) if key in keys]
    changes = (_changing(site, key, change) for key, change in wanted)
    return (*_keeping(site), *changes) if wanted else ()


def _version(abilities: Abilities) -> int:
    unified = (mount for mount in abilities.cgroups if mount.version == _UNIFIED and mount.writable)
    return _UNIFIED if any(mount.controllers & {"cpu", "memory", "io"} for mount in unified) else 1


def _keeping(site: Site) -> Iterator[Elevated]:
    for argv in own_commands(site.ledger):
        yield Elevated(
            key=_LEDGER,
            what=f"the ledger, {site.ledger}",
            programs=programs_in("\n".join(argv)),
            do=(*site.privilege, *argv),
        )


def _changing(site: Site, key: str, change: Change) -> Elevated:
    entry = f"{site.ledger}/00000000.json"
    return Elevated(
        key=key,
        what=", ".join((change.what, *files_of(change))),
        programs=programs_of(change),
        do=(*site.privilege, *holding(entry, change.do).argv),
        undo=(*site.privilege, *holding(entry, change.undo.with_argument(_BEFORE)).argv),
    )
