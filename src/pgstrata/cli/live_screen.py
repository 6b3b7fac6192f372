"""The live screen of `watch`: a follower of the recorder that draws in a thread of its own."""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Final

from pgstrata.cli.live_cells import render_frame
from pgstrata.cli.live_state import LiveState
from pgstrata.cli.live_view import Choice, draw
from pgstrata.model.archive import ArchiveEvent
from pgstrata.model.incidents import Incident
from pgstrata.ports.recording import RecordedSecond
from pgstrata.report.live.words import local
from pgstrata.system.terminal import Terminal

_LOOK: Final = 0.25
"""Seconds between two looks at the size of the terminal."""
_MOST_TOLD: Final = 100
_PATIENCE: Final = 5.0
"""Seconds for the thread to restore the terminal."""
_FOR_OTHERS: Final = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTTOU})
"""Signals that the thread leaves to the recorder, or that would stop it."""


@dataclass(slots=True)
class LiveScreen:
    """Draws once a second what a recorder tells. Nothing that the recorder calls waits for the terminal.

    Args:
        terminal: where it draws.
        state: what it shows; known to the thread alone once it runs.
        say: prints a line where there is no screen.
        colour: whether colours are used.
        keeps: whether messages wait until the screen is closed, because lines would disturb it.
    """

    terminal: Terminal
    state: LiveState
    say: Callable[[str], None]
    colour: bool = True
    keeps: bool = True
    _news: SimpleQueue[Callable[[], None]] = field(default_factory=SimpleQueue)
    _told: deque[str] = field(default_factory=lambda: deque(maxlen=_MOST_TOLD))
    _thread: threading.Thread | None = None
    _ending: bool = False
    _failure: BaseException | None = None
    _choice: Choice = field(default_factory=Choice)
    _size: tuple[int, int] = (0, 0)
    _due: bool = True
    _wake: tuple[int, int] = field(default_factory=os.pipe)

    @property
    def name(self) -> str:
        """What it is, for messages."""
        return "the screen"

    # --------------------------------------------------------------------------------------- by the recorder

    def open(self) -> None:
        """Take the terminal."""
        self._thread = threading.Thread(target=self._work, name=self.name, daemon=True)
        self._thread.start()

    def begin(self, facts: Mapping[str, str], limits: Sequence[str]) -> None:
        """As `Follower.begin`."""
        self._put(lambda: self.state.begin(facts, limits))

    def follow(self, second: RecordedSecond) -> None:
        """As `Follower.follow`; raises what ended the thread."""
        if self._failure is not None:
            raise self._failure
        self._put(lambda: self._follow(second), wake=True)

    def learn(self, texts: Mapping[str, str]) -> None:
        """As `Follower.learn`."""
        self._put(lambda: self.state.learn(texts))

    def note(self, event: ArchiveEvent) -> None:
        """As `Follower.note`."""
        self._put(lambda: self.state.note(event))

    def alarm(self, incident: Incident | None) -> None:
        """As `Follower.alarm`."""
        self._put(lambda: self.state.alarm(incident))

    def saved(self, moment: int) -> None:
        """As `Follower.saved`."""

    def tell(self, text: str) -> None:
        """A message: on the screen, and as a line below it when it is closed."""
        now = time.time()
        if not (self._is_open and self.keeps):
            self.say(text)
        else:
            self._told.append(f"{local(now):%H:%M:%S} {text}")
        self._put(lambda: self.state.tell(now, text))

    def close(self) -> None:
        """Restore the terminal; what was told meanwhile is printed. Called twice, it does nothing more."""
        if self._thread is not None:
            self._ending = True
            self._awake()
            self._thread.join(_PATIENCE)
            self._thread = None
        self.terminal.leave()
        while self._told:
            self.say(self._told.popleft())

    @property
    def _is_open(self) -> bool:
        return self._thread is not None and self._failure is None

    def _put(self, news: Callable[[], None], *, wake: bool = False) -> None:
        if self._failure is None and not self._ending:
            self._news.put(news)
        if wake:
            self._awake()

    def _awake(self) -> None:
        with suppress(OSError):
            os.write(self._wake[1], b".")

    # ------------------------------------------------------------------------------------------ by the thread

    def _follow(self, second: RecordedSecond) -> None:
        self.state.follow(second)
        self._due = self._due or not self._choice.paused

    def _work(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, _FOR_OTHERS)
        try:
            self.terminal.enter()
            while not self._ending:
                self._turn()
        except BaseException as error:  # noqa: BLE001 - the recorder hears of it, and goes on
            self._failure = error
        finally:
            self.terminal.leave()

    def _turn(self) -> None:
        """Take in what is new, draw where that is due, and wait for more."""
        with suppress(Empty):
            while True:
                self._news.get_nowait()()
        size = self.terminal.size
        anew = size != self._size
        if self.terminal.is_behind:
            self.terminal.write()
        elif self._due or anew:
            self._due, self._size = False, size
            frame = render_frame(draw(self.state, self._choice, *size), size[0], colour=self.colour, anew=anew)
            self.terminal.write(frame.encode("utf-8", "replace"))
        self._wait()

    def _wait(self) -> None:
        keys, woken = self.terminal.descriptor, self._wake[0]
        slow = [keys] if self.terminal.is_behind else []
        found, _, _ = select.select([keys, woken], slow, [], _LOOK)
        if woken in found:
            os.read(woken, 1024)
        if keys in found:
            for key in self.terminal.read():
                self._press(key)

    def _press(self, key: str) -> None:
        match key.lower():
            case "q":
                # as Ctrl-C: the recorder ends in its own thread
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            case "p":
                self._choice, self._due = self._choice.turned, True
            case "z":
                self._choice, self._due = self._choice.zoomed, True
            case _:
                pass
