"""One connection to a server that stays open and is asked again and again, as a recorder needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from pgstrata.ports.host import Command


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """What a program said since it was spoken to; `ended`: it has ended, or was given up."""

    output: bytes
    complaints: bytes
    ended: bool


class Dialogue(Protocol):
    """A program that reads commands from its standard input while it runs."""

    @property
    def pid(self) -> int:
        """Its process id on this machine."""

    def exchange(self, words: bytes, mark: bytes, *, timeout: float) -> Exchange:
        """Write `words`, and read until the line `mark` stands on standard error, which is left out.

        A program that says nothing like it for `timeout` seconds is killed.
        """

    def close(self) -> None:
        """Close its input and wait a moment for its end; then kill it."""


class DialogueStarter(Protocol):
    """Starts a program for a dialogue; it does not outlive this process."""

    def __call__(self, command: Command) -> Dialogue:
        """The program at work."""


class ServerSession(Protocol):
    """A connection to a server that answers statements one by one."""

    @property
    def pid(self) -> int:
        """The process id of psql on this machine."""

    def rows(self, statement: str, *, timeout: float = 30.0) -> bytes:
        """Rows of a statement, unaligned, with a tab between columns; SqlError if it fails.

        SessionLostError: the connection is gone, and the session can only be closed.
        """

    def rows_of_text(self, statement: str, *, timeout: float = 30.0) -> bytes:
        """Rows of one statement that strangers wrote: nothing in it is taken as a command of psql."""

    def close(self) -> None:
        """End the connection."""
