"""What pgstrata has changed on a host: shown, restored, and the reason to refuse a measurement."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pgstrata.app.machine import SystemClock
from pgstrata.app.site import Site, named_destination, open_site
from pgstrata.errors import HostNotFitError
from pgstrata.ledger.entries import host_state
from pgstrata.ledger.ledger import HostLedger, restore
from pgstrata.ledger.lock import find_lock_file, hold_host
from pgstrata.ledger.undo import At, go_on, read_state
from pgstrata.model.changes import Entry, HostState, Undone, restore_command
from pgstrata.ports.host import Clock
from pgstrata.report.commands.host import say_entry
from pgstrata.system.boots import BOOTED


def make_ledger(site: Site, clock: Clock, study: str, *, at: At = go_on) -> HostLedger:
    """The ledger of a machine, for a study at work; `at` is called at each of its steps."""
    return HostLedger(site.transport, site.privilege, site.ledger, clock, study, at=at)


Kept = Callable[[Entry], bool]
"""Whether an entry of the ledger stays open, because the study still needs the change."""


def keep_nothing(_: Entry) -> bool:
    """No entry of an earlier connection is needed any more."""
    return False


@contextmanager
def at_work(site: Site, clock: Clock, study: str, *, again: bool = False, keep: Kept = keep_nothing) -> Iterator[None]:
    """Lock a host, and refuse it if changes are left on it.

    Args:
        site: the host.
        clock: for the lock.
        study: the study that locks it.
        again: undo first what this study itself left there.
        keep: chooses entries of the ledger that stay open.

    Raises:
        HostNotFitError: another pgstrata is at work on it, or something that an earlier one changed is not undone.
    """
    with _holding(site, clock, study):
        _close_ended_boots(site, keep)
        if again and site.transport.exists(site.ledger):
            restore(site.transport, site.privilege, site.ledger, keep=keep)
        refuse_dirty(site, keep=keep)
        yield


def boot_entries(site: Site) -> tuple[Entry, ...]:
    """Entries of the ledger that say that a machine was booted into another kernel than its own, the latest last."""
    if not site.transport.exists(site.ledger):
        return ()
    return tuple(entry for entry in host_state(site.transport, site.ledger).entries if entry.what == BOOTED)


def _close_ended_boots(site: Site, keep: Kept) -> None:
    """Close entries of boots that a reboot has ended since: the machine is as it was, and nothing has to be undone."""
    host = site.transport
    boots = [entry for entry in boot_entries(site) if not keep(entry)]
    ended = {entry.number for entry in boots if read_state(host, entry.what, entry.read) == entry.before}
    if ended:
        restore(host, site.privilege, site.ledger, keep=lambda entry: entry.number not in ended)


def refuse_dirty(site: Site, *, keep: Kept = keep_nothing) -> None:
    """HostNotFitError where something is changed on a host that nobody will undo any more: it would be measured too."""
    state = host_state(site.transport, site.ledger)
    dirty = [entry for entry in state.dirty if not keep(entry)]
    if not dirty and not state.unreadable:
        return
    unreadable = (f"{path} is an entry that cannot be read" for path in state.unreadable)
    raise HostNotFitError(
        "an earlier pgstrata has left this host changed",
        where=state.host,
        details=(*(say_entry(entry) for entry in dirty), *unreadable),
        remedy=f"`{restore_command(state.host)}` undoes it, `{restore_command(state.host, 'status')}` shows all of it",
    )


def show_host(host: str | None = None) -> HostState:
    """What is changed on this host or on one that ssh reaches; nothing is touched."""
    with open_site(named_destination(host)) as site:
        return host_state(site.transport, site.ledger)


def restore_host(host: str | None = None, *, force: bool) -> Undone:
    """Undo on a host whatever no living pgstrata needs; HostNotFitError where something is left."""
    with open_site(named_destination(host)) as site:
        if not site.transport.exists(site.ledger):
            return Undone()
        with _holding(site, SystemClock(), "pgstrata host restore"):
            return restore(site.transport, site.privilege, site.ledger, force=force)


@contextmanager
def _holding(site: Site, clock: Clock, study: str) -> Iterator[None]:
    state = site.places.state
    path = site.lock or find_lock_file(site.transport, state)
    if path.startswith(f"{state}/"):  # on another host nothing of ours may be there yet
        site.transport.make_folder(state, mode=0o755 if site.uid == 0 else 0o700)
    lock = hold_host(site.transport, path, study, clock)
    try:
        yield
    finally:
        lock.release()
