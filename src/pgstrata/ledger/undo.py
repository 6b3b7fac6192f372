"""Undoing what entries say: only what pgstrata itself left there, the latest first, each checked by reading.

A ledger can be stopped between its steps: a test that kills pgstrata does so exactly there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from pgstrata.errors import HostNotFitError, PgstrataError
from pgstrata.ledger.entries import EntryFiles
from pgstrata.model.changes import Closed, Entry, ShellScript, Undone, render_state, restore_command
from pgstrata.ports.host import Command, Completed, Host
from pgstrata.system import commands


class LedgerStep(StrEnum):
    """Moments of a change and of its undoing, in their order."""

    BEFORE_ENTRY = "before-entry"
    BEFORE_CHANGE = "before-change"
    CHANGED = "changed"
    COMPLETED = "completed"
    BEFORE_UNDO = "before-undo"
    UNDO_BEGUN = "undo-begun"
    UNDONE = "undone"
    CLOSED = "closed"


At = Callable[[LedgerStep], None]
"""What a ledger calls at each step."""


def go_on(_step: LedgerStep) -> None:
    """Nothing happens at a step: what a ledger does unless it is tested."""


_LINES_SHOWN: Final = 3
_PATIENCE: Final = 30


class NotUndoneError(PgstrataError):
    """One change could not be undone; `after` is the state in which that left it, None where it is not known."""

    def __init__(self, what: str, *, after: str | None) -> None:
        super().__init__(what)
        self.after = after


@dataclass(frozen=True, slots=True, kw_only=True)
class Undoer:
    """Undoes entries of one ledger.

    `undone` are numbers of entries whose things are as before: who is interrupted while closing them and undoes again
    does not look at these things again, which may have changed since. `patience` is how long scripts of a pgstrata
    that was interrupted or killed may still be at work, in seconds. `at_work`: it is the pgstrata that made the
    entries, and knows that where a change failed this very moment nobody else came in between.
    """

    files: EntryFiles
    at: At = go_on
    undone: dict[int, str] = field(default_factory=dict)
    patience: int = _PATIENCE
    at_work: bool = False

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
            self.files.sync()
        return Undone(closed=tuple(closed), kept=tuple(kept))

    def _close(self, entry: Entry, boot_id: str, *, force: bool) -> str:
        """Undo and remove an entry; a note. NotUndoneError, or whatever the host says."""
        if entry.number not in self.undone:
            self.at(LedgerStep.BEFORE_UNDO)
            reset = entry.owner.boot_id != boot_id and not entry.lasting
            note = self._observe(entry, force=force) if reset else self._bring_back(entry, force=force)
            self.undone[entry.number] = note
        self.files.remove(entry)
        self.at(LedgerStep.CLOSED)
        return self.undone[entry.number]

    def run_held(self, entry: Entry, script: ShellScript, *, timeout: float = 600.0) -> Completed:
        """Run a script that changes the thing of an entry; as long as anything of it runs, `undo` waits."""
        held = commands.holding(self.files.path(entry), script)
        return self.files.run(held, check=False, timeout=timeout)

    def _observe(self, entry: Entry, *, force: bool) -> str:
        """A reboot has reset the thing: what it is now is nobody's doing."""
        try:
            now = read_state(self.files.host, entry.what, entry.read)
        except PgstrataError:
            if not force:
                raise
            return "changed before the last boot; it cannot be read any more"
        states = f"it was {render_state(entry.before)} and is {render_state(now)}"
        return f"changed before the last boot, which reset it: {states}"

    def _bring_back(self, entry: Entry, *, force: bool) -> str:
        self._await_rest(entry)
        now = read_state(self.files.host, entry.what, entry.read)
        if _gone(entry, now):
            return f"it was {render_state(entry.before)} and no longer exists, so there is nothing to undo"
        foreign = _foreign(entry, now) and not (self.at_work and entry.after is None)
        if foreign and not force:
            made = "was about to make it" if entry.after is None else "made it"
            raise NotUndoneError(
                f"somebody else changed it meanwhile: it was {render_state(entry.before)}, pgstrata {made} "
                f"{render_state(entry.value if entry.after is None else entry.after)}, it is {render_state(now)}",
                after=entry.after,
            )
        self.files.remove_note(entry)
        self.at(LedgerStep.UNDO_BEGUN)
        done = self.run_held(entry, entry.undo)
        self.at(LedgerStep.UNDONE)
        self._check(entry, done)
        return f"somebody else had made it {render_state(now)}" if foreign else ""

    def _await_rest(self, entry: Entry) -> None:
        path = self.files.path(entry)
        waiting = commands.await_rest(path, self.patience)
        # with privilege: nobody else can open the lock
        if self.files.run(waiting, check=False).code == commands.STILL_AT_WORK:
            raise NotUndoneError(
                "a script of pgstrata that was interrupted or killed is still at work on it: wait for it or end it "
                f"(`fuser {commands.lock_of(path)}` names it)",
                after=entry.after,
            )

    def _check(self, entry: Entry, done: Completed) -> None:
        """NotUndoneError unless the undoing went well and the thing is as it was."""
        try:
            seen = read_state(self.files.host, entry.what, entry.read)
        except PgstrataError as error:
            raise NotUndoneError("; ".join((error.what, *error.details)), after=None) from error
        if done.code:
            lines = done.complaints.split("\n")
            said = "; ".join(line for line in lines[-_LINES_SHOWN - 1 :] if line.strip())
            what = f"undoing it ended with exit code {done.code}: {said or 'no reason given'}"
            raise NotUndoneError(what, after=seen)
        if seen != entry.before:
            raise NotUndoneError(
                f"undoing it left {render_state(seen)}, it was {render_state(entry.before)}", after=seen
            )

    def _keep(self, entry: Entry, error: PgstrataError) -> Entry:
        after = error.after if isinstance(error, NotUndoneError) else entry.after
        why = "; ".join((error.what, *error.details))
        failed = replace(entry, after=after, failure=why)
        self.files.save_note(failed)
        return failed


def _gone(entry: Entry, now: str) -> bool:
    """Whether a thing that was there, and was not to be taken away, is there no longer: a device, a mount, a group.

    What lasts is looked for once more by its undo, which may make it anew.
    """
    return not now and bool(entry.before and entry.value) and entry.after != "" and not entry.lasting


def _foreign(entry: Entry, now: str) -> bool:
    """Whether somebody else must have set a thing to what it is.

    After a kill in mid-change or mid-undo it is not known what pgstrata left (`after` is None). Then numbers between
    the two known states are ours, because the kernel may give fewer huge pages than it was asked for; so are states
    that are not written as they are asked for. Numbers beyond, and another word where both are words, are somebody
    else's. A thing that was not there before is ours, as far as it got.
    """
    if now in (entry.before, entry.value, entry.after):
        return False
    if entry.after is not None or not entry.before:
        return entry.after is not None
    columns = [text.split() for text in (now, entry.before, entry.value)]
    if len({len(column) for column in columns}) != 1:
        return False
    if all(word.isdecimal() for column in columns for word in column):
        rows = zip(*([int(word) for word in column] for column in columns), strict=True)
        return not all(min(before, value) <= seen <= max(before, value) for seen, before, value in rows)
    return all(_is_word(text) for text in (now, entry.before, entry.value))


def _is_word(text: str) -> bool:
    return text.replace("_", "").replace("-", "").isalpha()


def read_state(host: Host, what: str, script: ShellScript) -> str:
    """The present state of a thing, stripped. HostNotFitError where it cannot be read."""
    done = host.run(Command(argv=script.argv), check=False)
    if done.code:
        raise HostNotFitError(
            f"{what} cannot be read (exit code {done.code})",
            where=host.name,
            details=done.last_words(),
            remedy=f"find out why this fails: {script.render()}",
        )
    return done.stdout.decode("utf-8", "surrogateescape").strip()


def raise_if_kept(files: EntryFiles, undone: Undone, unreadable: Sequence[str] = ()) -> None:
    """HostNotFitError that names what is still changed, and why."""
    if not undone.kept and not unreadable:
        return
    count = len(undone.kept) + len(unreadable)
    details = [f"{entry.what}: {entry.failure}" for entry in undone.kept]
    details += [f"{path} cannot be read, so the change that it records is unknown" for path in unreadable]
    remedies = []
    if undone.kept:
        remedies.append(
            f"fix what is said above, then `{restore_command(files.host.name)}`; with --force it also undoes "
            f"what somebody else changed. How to undo it by hand is described in {files.folder}"
        )
    if unreadable:
        remedies.append("look at the unreadable files, undo by hand what they record, then remove them")
    what = f"{count} {'change' if count == 1 else 'changes'} of this host could not be undone"
    raise HostNotFitError(what, where=files.host.name, details=tuple(details), remedy="; ".join(remedies))
