"""Undoing what entries say: only what pgstrata itself left there, the latest first, each checked by reading."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from pgstrata.errors import HostNotFitError, PgstrataError
from pgstrata.ledger.entries import remove, remove_note, save_note, sync_folder
from pgstrata.ledger.steps import At, Step, go_on
from pgstrata.model.changes import Closed, Entry, Script, Undone
from pgstrata.ports.host import Command, Completed, Host
from pgstrata.report.host import shown

_LINES_SHOWN: Final = 3


class NotUndoneError(PgstrataError):
    """One change could not be undone; `after` is the state in which that left it, None where it is not known."""

    def __init__(self, what: str, *, after: str | None) -> None:
        super().__init__(what)
        self.after = after


@dataclass(frozen=True, slots=True, kw_only=True)
class Undoer:
    """Undoes entries of one ledger. `privilege` are words in front of a script that changes something."""

    host: Host
    privilege: tuple[str, ...]
    folder: str
    at: At = go_on

    def undo(self, entries: Sequence[Entry], *, boot_id: str, force: bool = False) -> Undone:
        """Undo entries, the latest first; all are tried, and those that fail are kept with the reason.

        Args:
            entries: what is to be undone, in any order.
            boot_id: the boot that the host runs now.
            force: undo also what somebody else changed meanwhile.
        """
        closed: list[Closed] = []
        kept: list[Entry] = []
        for entry in sorted(entries, key=lambda entry: -entry.number):
            try:
                if any(later.what == entry.what for later in kept):
                    raise NotUndoneError("a later change of it is not undone", after=entry.after)
                closed.append(Closed(entry=entry, note=self._close(entry, boot_id, force=force)))
            except PgstrataError as error:
                kept.append(self._keep(entry, error))
        if closed:
            sync_folder(self.host, self.folder)
        return Undone(closed=tuple(closed), kept=tuple(kept))

    def _close(self, entry: Entry, boot_id: str, *, force: bool) -> str:
        """Undo and remove an entry; a note. NotUndoneError, or whatever the host says."""
        self.at(Step.BEFORE_UNDO)
        earlier = entry.owner.boot_id != boot_id
        if earlier and not entry.lasting:
            note = self._observe(entry, force=force)
        else:
            note = self._bring_back(entry, force=force)
        remove(self.host, self.folder, entry)
        self.at(Step.CLOSED)
        return note

    def _observe(self, entry: Entry, *, force: bool) -> str:
        """A reboot has reset the thing: what it is now is nobody's doing."""
        try:
            now = read_state(self.host, entry.what, entry.read)
        except PgstrataError:
            if not force:
                raise
            return "changed before the last boot; it cannot be read any more"
        return f"changed before the last boot, which reset it: it was {shown(entry.before)} and is {shown(now)}"

    def _bring_back(self, entry: Entry, *, force: bool) -> str:
        now = read_state(self.host, entry.what, entry.read)
        # where it is not known how far a change or an undo got, nobody else can be told from ourselves
        foreign = entry.after is not None and now not in (entry.before, entry.after, entry.value)
        if foreign and not force:
            raise NotUndoneError(
                f"somebody else changed it meanwhile: it was {shown(entry.before)}, pgstrata made it "
                f"{shown(entry.after or '')}, it is {shown(now)}",
                after=entry.after,
            )
        remove_note(self.host, self.folder, entry)
        self.at(Step.UNDO_BEGUN)
        done = self.host.run(Command(argv=(*self.privilege, *entry.undo.argv)), check=False)
        self.at(Step.UNDONE)
        self._check(entry, done)
        return f"somebody else had made it {shown(now)}" if foreign else ""

    def _check(self, entry: Entry, done: Completed) -> None:
        """NotUndoneError unless the undoing went well and the thing is as it was."""
        try:
            seen = read_state(self.host, entry.what, entry.read)
        except PgstrataError as error:
            raise NotUndoneError("; ".join((error.what, *error.details)), after=None) from error
        if done.code:
            lines = done.stderr.decode("utf-8", "replace").split("\n")
            said = "; ".join(line for line in lines[-_LINES_SHOWN - 1 :] if line.strip())
            what = f"undoing it ended with exit code {done.code}: {said or 'no reason given'}"
            raise NotUndoneError(what, after=seen)
        if seen != entry.before:
            raise NotUndoneError(f"undoing it left {shown(seen)}, it was {shown(entry.before)}", after=seen)

    def _keep(self, entry: Entry, error: PgstrataError) -> Entry:
        after = error.after if isinstance(error, NotUndoneError) else entry.after
        why = "; ".join((error.what, *error.details))
        failed = replace(entry, after=after, failure=why)
        save_note(self.host, self.folder, failed)
        return failed


def read_state(host: Host, what: str, script: Script) -> str:
    """The present state of a thing, stripped. HostNotFitError where it cannot be read."""
    done = host.run(Command(argv=script.argv), check=False)
    if done.code:
        said = done.stderr.decode("utf-8", "replace").splitlines()[-_LINES_SHOWN:]
        raise HostNotFitError(f"{what} cannot be read (exit code {done.code})", where=host.name, details=tuple(said),
                              remedy=f"find out why this fails: {script.render()}")  # fmt: skip
    return done.stdout.decode("utf-8", "surrogateescape").strip()


def raise_if_kept(host: Host, folder: str, undone: Undone, unreadable: Sequence[str] = ()) -> None:
    """HostNotFitError that names what is still changed, and why."""
    if not undone.kept and not unreadable:
        return
    count = len(undone.kept) + len(unreadable)
    details = [f"{entry.what}: {entry.failure}" for entry in undone.kept]
    details += [f"{path} is no entry that can be read: nobody knows what it stood for" for path in unreadable]
    remedies = []
    if undone.kept:
        remedies.append(
            "put right what is said above, then `pgstrata host restore`; with --force it also undoes what somebody "
            f"else changed. How to undo by hand stands in {folder}"
        )
    if unreadable:
        remedies.append("look at the unreadable files, put right what they stood for, and remove them yourself")
    what = f"{count} {'change' if count == 1 else 'changes'} of this host could not be undone"
    raise HostNotFitError(what, where=host.name, details=tuple(details), remedy="; ".join(remedies))
