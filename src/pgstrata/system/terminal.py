"""A terminal that is drawn on as a whole and left as it was, and that nobody has to wait for."""

from __future__ import annotations

import errno
import os
import select
import signal
import termios
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Final, TextIO

_ENTER: Final = b"\x1b[?1049h\x1b[?7l\x1b[?25l\x1b[2J"
"""The alternate screen, no wrapping, no cursor."""
_LEAVE: Final = b"\x1b[0m\x1b[?25h\x1b[?7h\x1b[?1049l"
_LOCAL, _CHARACTERS = 3, 6
"""Places of local modes and control characters in what tcgetattr returns."""
_NONE: Final = b"\x00"
_PATIENCE: Final = 1.0
"""Seconds that a terminal has to take the last sequence."""
_USUAL: Final = (80, 24)
_MOST_KEYS: Final = 1024


def can_be_drawn_on(out: TextIO, kind: str) -> bool:
    """Whether a stream writes to a terminal that can move its cursor and show bars; `kind` is the value of TERM."""
    return out.isatty() and kind not in {"", "dumb"} and _speaks_unicode(out)


def open_terminal(out: TextIO, kind: str) -> Terminal | None:
    """The terminal that a stream writes to, if this process may draw on it: it can, and is in the foreground.

    Args:
        out: the stream.
        kind: the value of TERM.
    """
    if not can_be_drawn_on(out, kind):
        return None
    # a description of its own: not waiting is a property of the description, and the stream's is the shell's, too;
    # after `su` the terminal belongs to another user, and can be opened by its second name only
    for path in (_name_of(out), "/dev/tty"):
        with suppress(OSError):
            descriptor = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
            terminal = Terminal(descriptor)
            if terminal.is_ours:
                return terminal
            os.close(descriptor)
    return None


def _name_of(out: TextIO) -> str:
    """The path of the terminal; in a container it may have none."""
    try:
        return os.ttyname(out.fileno())
    except OSError:
        return ""


def _speaks_unicode(out: TextIO) -> bool:
    return (out.encoding or "").lower().replace("-", "") == "utf8"


@dataclass(slots=True)
class Terminal:
    """An open terminal, by a descriptor that does not wait. Its methods raise OSError once it is gone."""

    descriptor: int
    _modes: list[Any] | None = None
    _pending: bytes = b""
    _lock: Lock = field(default_factory=Lock)

    @property
    def is_ours(self) -> bool:
        """Whether this process is in its foreground: others would be stopped when they change its modes."""
        try:
            return os.tcgetpgrp(self.descriptor) == os.getpgrp()
        except OSError:
            return False

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows; those of an old terminal where nobody tells."""
        found = os.get_terminal_size(self.descriptor)
        return (found.columns, found.lines) if found.columns and found.lines else _USUAL

    def enter(self) -> None:
        """Take the whole screen; keys come one by one, and of those that send signals only Ctrl-C does."""
        self._modes = termios.tcgetattr(self.descriptor)
        modes = termios.tcgetattr(self.descriptor)
        modes[_LOCAL] &= ~(termios.ICANON | termios.ECHO)
        for key in (termios.VSUSP, termios.VQUIT):
            modes[_CHARACTERS][key] = _NONE
        termios.tcsetattr(self.descriptor, termios.TCSANOW, modes)
        self.write(_ENTER)

    @property
    def is_behind(self) -> bool:
        """Whether it has not taken all yet; then nothing more should be written."""
        return bool(self._pending)

    def write(self, more: bytes = b"") -> None:
        """As much as it takes now; the rest is kept for the next call."""
        self._pending += more
        while self._pending:
            try:
                self._pending = self._pending[os.write(self.descriptor, self._pending) :]
            except BlockingIOError:
                return

    def read(self) -> str:
        """Keys that were pressed.

        Raises:
            OSError: the terminal is gone.
        """
        try:
            found = os.read(self.descriptor, _MOST_KEYS)
        except BlockingIOError:
            return ""
        if not found:
            raise OSError(errno.EIO, "the terminal is gone")
        return found.decode("ascii", "replace")

    def leave(self) -> None:
        """As it was before; what it has not taken is dropped. Called twice, it does nothing more."""
        with self._lock:
            modes, self._modes = self._modes, None
            if modes is None:
                return
            # who is no longer in the foreground would be stopped
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTOU})
            with suppress(OSError, termios.error):
                if self._pending:
                    termios.tcflush(self.descriptor, termios.TCOFLUSH)
                self._pending = b""
                self.write(_LEAVE)
                while self._pending and select.select([], [self.descriptor], [], _PATIENCE)[1]:
                    self.write()
            with suppress(OSError, termios.error):
                termios.tcflush(self.descriptor, termios.TCIFLUSH)
                termios.tcsetattr(self.descriptor, termios.TCSANOW, modes)
            os.close(self.descriptor)
