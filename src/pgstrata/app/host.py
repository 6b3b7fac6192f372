"""What pgstrata has changed on this host: shown, restored, and the reason to refuse a measurement."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from pgstrata.app.machine import Machine, SystemClock
from pgstrata.app.places import find_machine_places
from pgstrata.errors import HostNotFitError, UsageError
from pgstrata.hosts.local import LocalHost
from pgstrata.ledger.entries import host_state
from pgstrata.ledger.ledger import HostLedger, restore
from pgstrata.ledger.lock import LOCK_VARIABLE, find_lock_file, hold_host
from pgstrata.ledger.steps import At, go_on
from pgstrata.model.changes import HostState, Undone
from pgstrata.ports.host import Clock, Host
from pgstrata.report.host import say_entry
from pgstrata.servers.places import HOST_LEDGER


def ledger_folder(state: str) -> str:
    """Where the ledger of a host is: one for all users, or below the state folder of who has a lock of their own."""
    return f"{state}/ledger" if os.environ.get(LOCK_VARIABLE) else HOST_LEDGER


def privilege_of(uid: int) -> tuple[str, ...]:
    """The words in front of a script that changes a host."""
    return () if uid == 0 else ("sudo", "-n")


def make_ledger(machine: Machine, study: str, *, at: At = go_on) -> HostLedger:
    """The ledger of this machine, for a study at work; `at` is called at each of its steps."""
    folder = ledger_folder(machine.places.state)
    return HostLedger(machine.here, privilege_of(os.geteuid()), folder, machine.clock, study, at=at)


@contextmanager
def at_work(machine: Machine, study: str) -> Iterator[None]:
    """Have the host for oneself and find it as it should be.

    Raises:
        HostNotFitError: another pgstrata is at work on it, or something that an earlier one changed is not undone.
    """
    with _holding(machine.here, machine.places.state, study, machine.clock):
        refuse_dirty(machine.here, ledger_folder(machine.places.state))
        yield


def refuse_dirty(host: Host, folder: str) -> None:
    """HostNotFitError where something is changed on a host that nobody will undo any more: it would be measured too."""
    state = host_state(host, folder)
    if state.clean:
        return
    unreadable = (f"{path} is an entry that cannot be read" for path in state.unreadable)
    raise HostNotFitError(
        "an earlier pgstrata has left this host changed", where=state.host,
        details=(*(say_entry(entry) for entry in state.dirty), *unreadable),
        remedy="`pgstrata host restore` undoes it, `pgstrata host status` shows all of it",
    )  # fmt: skip


def show_host() -> HostState:
    """What is changed on this host; nothing is touched."""
    return host_state(LocalHost(), ledger_folder(find_machine_places().state))


def restore_host(*, force: bool) -> Undone:
    """Undo on this host whatever no living pgstrata needs; HostNotFitError where something is left."""
    state, host = find_machine_places().state, LocalHost()
    try:
        if not host.exists(ledger_folder(state)):
            return Undone()
        with _holding(host, state, "pgstrata host restore", SystemClock()):
            return restore(host, privilege_of(os.geteuid()), ledger_folder(state), force=force)
    finally:
        host.close()


@contextmanager
def _holding(host: Host, state: str, study: str, clock: Clock) -> Iterator[None]:
    path = os.environ.get(LOCK_VARIABLE) or find_lock_file(host, state)
    if not path.startswith("/"):
        raise UsageError(f"{path!r} is not an absolute path", where=LOCK_VARIABLE,
                         remedy=f"set {LOCK_VARIABLE} to an absolute path")  # fmt: skip
    lock = hold_host(host, path, study, clock)
    try:
        yield
    finally:
        lock.release()
