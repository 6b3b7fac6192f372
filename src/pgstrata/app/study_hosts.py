"""The machines of one study: opened, locked, found as they should be, tidied; opened again when one was lost.

This one is open already; others are reached by the user's own ssh.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import Final, Never

from pgstrata.app.host import Kept, at_work, keep_nothing
from pgstrata.app.machine import Machine
from pgstrata.app.places import observe_capacity, socket_root, study_key
from pgstrata.app.routes import observe_tcp_route
from pgstrata.app.site import OpenedHost, open_site, site_here
from pgstrata.datasets.marker import mark_scratch, sum_datasets, sweep_leftovers, sweep_scratch
from pgstrata.errors import HostLostError, HostNotFitError, PgstrataError
from pgstrata.ledger.lock import HostHeldError
from pgstrata.model.boot import Boot
from pgstrata.model.experiment import HostSpec
from pgstrata.model.plan import HostCapacity
from pgstrata.ports.host import Command, Host
from pgstrata.system import commands
from pgstrata.system.boots import NextBoot
from pgstrata.system.trust import ROOT, find_keeper, require_root_keeps
from pgstrata.vms.machine import VirtualMachine

_OTHERS: Final = (
    "let PGSTRATA_CACHE and PGSTRATA_STATE on that host name folders to which root alone can write, as to all above"
)


def local_host(machine: Machine) -> OpenedHost:
    """This machine."""
    return OpenedHost(spec=HostSpec(), site=site_here(machine.here), host=machine.host)


@contextmanager
def open_server_host(spec: HostSpec, vm: VirtualMachine | None = None) -> Iterator[OpenedHost]:
    """Connect to another machine and find out where things lie there; nothing is made or changed.

    A virtual machine has to be up.

    Raises:
        HostNotFitError: something has to be done about it first, such as its host key or a missing program.
        HostLostError: it cannot be reached now.
    """
    with ExitStack() as stack:
        try:
            reached = {"destination": spec.destination} if vm is None else _reach(vm)
            site = stack.enter_context(open_site(**reached))
            user = site.server_user()
        except PgstrataError as error:
            error.where = error.where if spec.destination in error.where else f"{spec.text}: {error.where}".rstrip(": ")
            raise
        host = site.transport.as_user(user) if user else site.transport
        yield OpenedHost(spec=spec, site=site, host=host, way=None if vm is None else vm.way)


def _reach(vm: VirtualMachine) -> dict[str, str]:
    return {"destination": vm.destination, "config": vm.ssh_config}


def make_places_there(opened: OpenedHost) -> None:
    """Make the folders on another machine, with their owners and modes, as `make_places` does on this one.

    Raises:
        HostNotFitError: one cannot be made, or belongs to somebody else; as root there, others could replace the cache
            or the state.
    """
    places, apart = opened.places, opened.host is not opened.transport
    _make(opened, places.cache, mode="755", owner=opened.transport.user)
    _make(opened, places.state, mode="755" if apart else "700", owner=opened.transport.user)
    if apart:
        for path in (places.cache, places.state):
            require_root_keeps(opened.transport, path, remedy=_OTHERS)
    for folder in dict.fromkeys((places.data, places.run, places.memory)):
        _make(opened, folder, mode="700", owner=opened.host.user)


def _make(opened: OpenedHost, folder: str, *, mode: str, owner: str) -> None:
    """Make a folder as the user who could replace it, each that is missing above it by itself: nobody's link counts."""
    there, *missing = _find_missing(opened.transport, folder)
    root = opened.transport.user == ROOT
    keeper = find_keeper(opened.transport, there, adding=True) if root else opened.transport.user
    if keeper not in {opened.transport.user, owner}:
        _refuse_foreign(opened, there, owner)
    maker = opened.transport if keeper == opened.transport.user else opened.host
    for path in missing[:-1]:
        _make_one(opened, maker, path, mode="755", owner=maker.user)
    _make_one(opened, maker, folder, mode=mode, owner=owner)


def _find_missing(host: Host, folder: str) -> list[str]:
    """The nearest folder that is there, and below it those that are missing, the last one being the folder itself."""
    way = [folder]
    while way[0] != "/" and not host.exists(way[0]):
        way.insert(0, posixpath.dirname(way[0]) or "/")
    return way


def _make_one(opened: OpenedHost, maker: Host, folder: str, *, mode: str, owner: str) -> None:
    done = maker.run(Command(argv=commands.make_place(folder, mode=mode, owner=owner).argv), check=False)
    if done.code == commands.FOREIGN_FOLDER:
        _refuse_foreign(opened, done.text.strip(), owner)
    if done.code:
        raise HostNotFitError(
            f"this folder of pgstrata cannot be made there: {folder}",
            where=opened.spec.text,
            details=done.last_words(),
            remedy="check who may write there",
        )


def _refuse_foreign(opened: OpenedHost, folder: str, owner: str) -> Never:
    raise HostNotFitError(
        f"the folder {folder} there does not belong to {owner}",
        where=opened.spec.text,
        remedy="remove it, or let PGSTRATA_DATA and the like name other folders on that host",
    )


def observe_room(opened: OpenedHost) -> HostCapacity:
    """What another machine has; room that datasets take already counts as free, because plans count all they need."""
    cpus = opened.transport.run(Command(argv=("nproc",))).text
    taken = sum_datasets(opened.host, opened.places.data)
    return observe_capacity(opened.host, opened.places.data, cpus=int(cpus), taken=taken)


def client_folder(opened: OpenedHost, study: str) -> str:
    """The folder for files of a study's load generators on another machine.

    Machines may share memory-backed storage, for example as containers, so each has its own folder.
    """
    return f"{opened.places.memory}/{study_key(f'{study} {opened.spec.text}')}"


class StudyHosts:
    """The machines of a study, each opened once; this one is the first, because it coordinates everything.

    Args:
        machine: this one.
        study: its name, for locks and markers.
        tell: what there is to be said.
        from_here: machines whose servers are loaded by clients on this machine.
        vms: the virtual machines of the study, each with its first boot.
    """

    def __init__(
        self,
        machine: Machine,
        study: str,
        tell: Callable[[str], None],
        from_here: Collection[HostSpec] = (),
        vms: Mapping[HostSpec, VirtualMachine] | None = None,
    ) -> None:
        self.machine = machine
        self.study = study
        self._tell = tell
        self._from_here = frozenset(from_here)
        self._opened: dict[HostSpec, tuple[OpenedHost, ExitStack]] = {}
        self._vms = vms or {}
        self.next_boot: NextBoot | None = None
        """What this machine has to boot before the study can go on, when everything is closed."""
        self.goes_home = False
        """Whether the study is over and this machine still runs another kernel than its own."""

    def __getitem__(self, spec: HostSpec) -> OpenedHost:
        """An open machine; HostLostError if its connection was lost and has not been opened again."""
        if spec not in self._opened:
            what, remedy = "the connection to it is closed", "give the same command again when the machine is there"
            raise HostLostError(what, where=spec.text, remedy=remedy)
        return self._opened[spec][0]

    def open(self, spec: HostSpec, *, again: bool = False, keep: Kept = keep_nothing) -> OpenedHost:
        """Have a machine for oneself; nothing but pgstrata's folders is made there.

        Args:
            spec: which one.
            again: it was lost; what this study changed there before is undone first.
            keep: chooses changes that are not undone.

        Raises:
            HostNotFitError: another pgstrata is at work there, or has left it changed, or something else is in the way.
            HostLostError: it cannot be reached.
        """
        with ExitStack() as opening:
            if spec.remote and not again:
                # an attempt after a loss or a reboot is one of many, and whoever makes it has told of that
                self._tell(f"connecting to {spec.text}")
            opened = opening.enter_context(self._connect(spec))
            if spec.remote:
                if spec in self._from_here:
                    observe_tcp_route(opened)
                make_places_there(opened)
            opening.enter_context(at_work(opened.site, self.machine.clock, self.study, again=again, keep=keep))
            self._opened[spec] = opened, opening.pop_all()
        return opened

    def tidy(self, spec: HostSpec) -> None:
        """Remove files that killed studies left on a machine, and make folders for sockets and clients' files there."""
        opened, stack = self._opened[spec]
        self._sweep(opened)
        folders = [socket_root(opened.places, self.study)]
        if spec.remote:
            folders.append(client_folder(opened, self.study))
        for folder in folders:
            stack.enter_context(scratch(opened.host, folder, self.study))

    def reopen(self, spec: HostSpec, *, keep: Kept = keep_nothing) -> None:
        """Open a machine that was lost, and tidy it; `keep` as for `open`.

        HostLostError too where what was started there before is still there.
        """
        self._close(spec)
        try:
            self.open(spec, again=True, keep=keep)
            self.tidy(spec)
        except HostHeldError as error:
            what, remedy = (
                "processes of this study are still running there",
                "wait until they have ended, then start it again",
            )
            raise HostLostError(what, where=spec.text, remedy=remedy) from error

    def vm(self, spec: HostSpec) -> VirtualMachine:
        """A virtual machine of the study."""
        return self._vms[spec]

    def boot_vm(self, spec: HostSpec, boot: Boot) -> None:
        """Boot a virtual machine anew, then open and tidy it; BootFailedError if it does not come up."""
        self._close(spec)
        self._vms[spec].start(boot)
        self.open(spec, again=True)
        self.tidy(spec)

    @contextmanager
    def _connect(self, spec: HostSpec) -> Iterator[OpenedHost]:
        if not spec.remote:
            yield local_host(self.machine)
            return
        vm = self._vms.get(spec)
        if vm is not None and not vm.up:
            vm.start(vm.boot)
        elif vm is not None:
            vm.require_alive()
        with open_server_host(spec, vm) as opened:
            yield opened

    def _sweep(self, opened: OpenedHost) -> None:
        where = f"{opened.spec.text}: " if opened.spec.remote else ""
        for said in sweep_leftovers(opened.host, self.machine.clock, opened.places.data):
            self._tell(f"{where}{said}")
        for root in {opened.places.memory, opened.places.run}:
            sweep_scratch(opened.host, root)

    def close(self) -> None:
        """Leave all of them."""
        for spec in reversed(list(self._opened)):
            self._close(spec)

    def _close(self, spec: HostSpec) -> None:
        _, stack = self._opened.pop(spec, (None, ExitStack()))
        # who is gone cannot be tidied up; that is done when it is opened again
        with suppress(HostLostError):
            stack.close()


@contextmanager
def scratch(host: Host, folder: str, study: str) -> Iterator[None]:
    """A folder that goes away with this pgstrata."""
    try:
        host.remove_tree(folder)
        host.make_folder(folder)
        mark_scratch(host, folder, study)
        yield
    finally:
        host.remove_tree(folder)
