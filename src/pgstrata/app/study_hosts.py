"""The machines of one study: opened, locked, found as they should be, tidied; opened again when one was lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

from pgstrata.app.host import at_work
from pgstrata.app.machine import Machine
from pgstrata.app.opened_host import OpenedHost
from pgstrata.app.places import socket_root
from pgstrata.app.server_hosts import local_host, make_places_there, observe_tcp_route, open_server_host
from pgstrata.datasets.sweep import mark_scratch, sweep_leftovers, sweep_scratch
from pgstrata.errors import HostLostError
from pgstrata.ledger.lock import HostHeldError
from pgstrata.model.experiment import HostSpec
from pgstrata.ports.host import Host


class StudyHosts:
    """Each machine of a study, opened once; this one is the first of them, because the client is here.

    Args:
        machine: this one.
        study: its name, for locks and markers.
        tell: what there is to be said.
    """

    def __init__(self, machine: Machine, study: str, tell: Callable[[str], None]) -> None:
        self.machine = machine
        self.study = study
        self._tell = tell
        self._opened: dict[HostSpec, tuple[OpenedHost, ExitStack]] = {}

    def __getitem__(self, spec: HostSpec) -> OpenedHost:
        """A machine that was opened."""
        return self._opened[spec][0]

    def open(self, spec: HostSpec, *, again: bool = False) -> OpenedHost:
        """Have a machine for oneself; nothing but pgstrata's folders is made there.

        Args:
            spec: which one.
            again: it was lost; what this study changed there before is undone first.

        Raises:
            HostNotFitError: another pgstrata is at work there, or has left it changed, or something else is in the way.
            HostLostError: it cannot be reached.
        """
        with ExitStack() as opening:
            opened = opening.enter_context(self._connect(spec))
            if spec.remote:
                observe_tcp_route(opened)
                make_places_there(opened)
            opening.enter_context(at_work(opened.site, self.machine.clock, self.study, again=again))
            self._opened[spec] = opened, opening.pop_all()
        return opened

    def tidy(self, spec: HostSpec) -> None:
        """Remove what killed ones left on a machine, and make a folder for sockets there."""
        opened, stack = self._opened[spec]
        self._sweep(opened)
        stack.enter_context(scratch(opened.host, socket_root(opened.places, self.study), self.study))

    def reopen(self, spec: HostSpec) -> None:
        """Open a machine that was lost, and tidy it.

        HostLostError too where what was started there before is still there.
        """
        self._close(spec)
        try:
            self.open(spec, again=True)
            self.tidy(spec)
        except HostHeldError as error:
            what, remedy = (
                "processes of this study are still running there",
                "wait until they have ended, then start it again",
            )
            raise HostLostError(what, where=spec.text, remedy=remedy) from error

    @contextmanager
    def _connect(self, spec: HostSpec) -> Iterator[OpenedHost]:
        if not spec.remote:
            yield local_host(self.machine)
            return
        self._tell(f"connecting to {spec.text}")
        with open_server_host(spec) as opened:
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
