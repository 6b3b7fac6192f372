"""The ledger of a host, for one pgstrata at work on it; and the restoring of what earlier ones left."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pgstrata.errors import LevelNotTakenError, PgstrataError
from pgstrata.ledger.entries import EntryFiles, host_state, moment, observe_owner
from pgstrata.ledger.undo import At, LedgerStep, Undoer, go_on, raise_if_kept, read_state
from pgstrata.model.changes import Change, ChangeOwner, Entry, Undone
from pgstrata.ports.host import Clock, Completed, Host, observe_boot
from pgstrata.system.privilege import require_privilege


class HostLedger:
    """Makes changes of a host and undoes them (`ports.Ledger`); entries are files in a folder of that host.

    Args:
        host: a transport as the user of pgstrata.
        privilege: words in front of a script that changes something: none as root, ("sudo", "-n") otherwise.
        folder: where the entries are; made when it is needed.
        clock: the time for `made`.
        study: who asks for the changes.
        at: called at each step, for tests that stop there.
    """

    def __init__(
        self, host: Host, privilege: tuple[str, ...], folder: str, clock: Clock, study: str, *, at: At = go_on
    ) -> None:
        self._host = host
        self._files = EntryFiles(host=host, privilege=privilege, folder=folder)
        self._clock = clock
        self._study = study
        self._at = at
        self._undoer = Undoer(files=self._files, at=at, at_work=True)
        self._owner: ChangeOwner | None = None
        self._latest = 0
        self._open: list[Entry] = []

    def change(self, change: Change) -> str:
        owner = self._owner or self._begin()
        before = read_state(self._host, change.what, change.read)
        entry = self._write_ahead(change, before, owner)
        self._at(LedgerStep.BEFORE_CHANGE)
        try:
            done = self._undoer.run_held(entry, change.do, timeout=change.timeout)
        except PgstrataError as error:
            self._undo([entry])
            raise LevelNotTakenError(
                f"{change.what} cannot be set to {change.value}: {error.what}",
                where=error.where,
                remedy=error.remedy,
                details=error.details,
            ) from error
        self._at(LedgerStep.CHANGED)
        if done.code:
            self._undo([entry])
            raise self._refused(change, done)
        after = read_state(self._host, change.what, change.read)
        completed = replace(entry, after=after)
        self._files.save_note(completed)
        self._open[-1] = completed
        self._at(LedgerStep.COMPLETED)
        return after

    def mark(self) -> int:
        return self._latest

    def undo_to(self, mark: int) -> None:
        self._undo([entry for entry in self._open if entry.number > mark])

    def _begin(self) -> ChangeOwner:
        """Before the first change: who we are, whether we may, and where entries go."""
        require_privilege(self._host, self._files.privilege)
        self._files.make_folder()
        self._owner = observe_owner(self._host, self._study)
        return self._owner

    def _write_ahead(self, change: Change, before: str, owner: ChangeOwner) -> Entry:
        self._at(LedgerStep.BEFORE_ENTRY)
        number = max(self._latest, self._files.latest_number())
        while True:
            number += 1
            entry = Entry(
                number=number, what=change.what, value=change.value, before=before, after=None, read=change.read,
                undo=change.undo.with_argument(before), lasting=change.lasting, owner=owner,
                made=moment(self._clock.wall()),
            )  # fmt: skip
            # known here before it is written: an interruption in between must not leave it behind
            self._open.append(entry)
            self._latest = number
            try:
                if self._files.write_ahead(entry):
                    return entry
            except PgstrataError:
                # what could not be taken away again is undone in its turn
                if not self._host.exists(self._files.path(entry)):
                    self._open.pop()
                raise
            self._open.pop()

    def _refused(self, change: Change, done: Completed) -> LevelNotTakenError:
        return LevelNotTakenError(
            f"{change.what} cannot be set to {change.value} (exit code {done.code})",
            where=self._host.name,
            details=done.last_words(5),
            remedy="choose a level that this host accepts",
        )

    def _undo(self, entries: list[Entry]) -> None:
        if not entries:
            return
        undone = self._undoer.undo(entries, boot_id=observe_boot(self._host))
        numbers = {closed.entry.number for closed in undone.closed}
        kept = {entry.number: entry for entry in undone.kept}
        self._open = [kept.get(entry.number, entry) for entry in self._open if entry.number not in numbers]
        raise_if_kept(self._files, undone)


def restore(
    host: Host,
    privilege: tuple[str, ...],
    folder: str,
    *,
    force: bool = False,
    keep: Callable[[Entry], bool] = lambda _: False,
    at: At = go_on,
) -> Undone:
    """Undo everything that no living pgstrata needs; entries of an earlier boot are closed by observation.

    Args:
        host: a transport as the user of pgstrata.
        privilege: as of `HostLedger`.
        folder: that of the ledger.
        force: also what somebody else changed meanwhile.
        keep: tells entries that are left as they are.
        at: called at each step.

    Raises:
        HostNotFitError: something could not be undone, or a file of the ledger cannot be read; all others are undone.
    """
    state = host_state(host, folder)
    files = EntryFiles(host=host, privilege=privilege, folder=folder)
    files.sweep_aside()
    dirty = [entry for entry in state.dirty if not keep(entry)]
    undone = Undoer(files=files, at=at).undo(dirty, boot_id=state.boot_id, force=force)
    raise_if_kept(files, undone, state.unreadable)
    return undone
