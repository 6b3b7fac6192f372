"""A fake ledger for people who test a layer, and what holds for every ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from pgstrata.errors import LevelNotTakenError
from pgstrata.model.changes import Change
from pgstrata.ports.layer import Ledger


class FakeLedger:
    """Remembers changes (`ports.Ledger`) and runs nothing.

    Args:
        read: what is read after a change; its value, if nothing is given.
        refused: names of things (`Change.what`) that cannot be changed.

    `changes` are all that were made, in their order; `open` those of them that were not undone, `undone` the others in
    the order in which they were undone.
    """

    def __init__(self, read: Callable[[Change], str] | None = None, *, refused: Iterable[str] = ()) -> None:
        self._read = read or (lambda change: change.value)
        self._refused = frozenset(refused)
        self.changes: list[Change] = []
        self.open: list[Change] = []
        self.undone: list[Change] = []

    def change(self, change: Change) -> str:
        if change.what in self._refused:
            raise LevelNotTakenError(f"{change.what} cannot be set to {change.value}")
        self.changes.append(change)
        self.open.append(change)
        return self._read(change)

    def mark(self) -> int:
        return len(self.open)

    def undo_to(self, mark: int) -> None:
        while len(self.open) > mark:
            self.undone.append(self.open.pop())


class Things(Protocol):
    """Things that a conformance test changes: `make` a change of the thing called so, `state` is what it is now."""

    def make(self, what: str, value: str) -> Change:
        """A change that makes the thing equal to `value`; nobody can make it "refused"."""
        ...

    def state(self, what: str) -> str:
        """What the thing is now."""
        ...


class LedgerConformance:
    """What every ledger does that really changes things.

    Fixtures: `ledger` is a new ledger, `things` are what it changes; all of them are "first" in the beginning.
    """

    def test_a_change_returns_what_is_read_afterwards(self, ledger: Ledger, things: Things) -> None:
        assert ledger.change(things.make("one", "second")) == "second"
        assert things.state("one") == "second"

    def test_undoing_stops_at_the_mark(self, ledger: Ledger, things: Things) -> None:
        ledger.change(things.make("one", "second"))
        mark = ledger.mark()
        ledger.change(things.make("two", "second"))
        ledger.undo_to(mark)
        assert [things.state("one"), things.state("two")] == ["second", "first"]
        ledger.undo_to(mark)  # nothing happens
        ledger.change(things.make("two", "third"))
        ledger.undo_to(0)
        assert [things.state("one"), things.state("two")] == ["first", "first"]

    def test_a_thing_that_was_changed_twice_comes_back_step_by_step(self, ledger: Ledger, things: Things) -> None:
        ledger.change(things.make("one", "second"))
        mark = ledger.mark()
        ledger.change(things.make("one", "third"))
        ledger.undo_to(mark)
        assert things.state("one") == "second"
        ledger.undo_to(0)
        assert things.state("one") == "first"

    def test_a_change_that_is_refused_leaves_nothing(self, ledger: Ledger, things: Things) -> None:
        said = ""
        try:
            ledger.change(things.make("one", "refused"))
        except LevelNotTakenError as error:
            said = error.what
        assert "one" in said
        assert things.state("one") == "first"
        ledger.undo_to(0)
