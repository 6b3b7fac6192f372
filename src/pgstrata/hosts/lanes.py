"""Lanes in threads (`ports.lanes`): a thread has its turn until it waits, and `waiting` gives the turn away.

The threads live as long as the process: what a thread has started with a signal for the death of its parent would get
it at the end of the thread (prctl(2), PR_SET_PDEATHSIG).
"""

from __future__ import annotations

import os
import queue
import select
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from pgstrata.ports.lanes import Work, in_turn
from pgstrata.system.users import is_acting

LONGEST_WAIT: Final = 0.5
"""Seconds after which a lane that waits notices that the user has interrupted."""
_LOOK: Final = 0.2
_this: Final = threading.local()


@dataclass(slots=True)
class _Turn:
    """The turn that threads give to each other; `interruptions` is how often the user has interrupted all of them."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    interruptions: int = 0


@dataclass(slots=True, kw_only=True)
class _Task:
    """A work for a thread, and how it ended."""

    work: Work
    turn: _Turn
    ended: threading.Event = field(default_factory=threading.Event)
    error: BaseException | None = None
    interrupted: int = 0

    def carry_out(self) -> None:
        self.turn.lock.acquire()
        _this.task = self
        try:
            self.work()
        except BaseException as error:  # noqa: BLE001 - it is raised again where the works were asked for
            self.error = error
        finally:
            del _this.task
            self.turn.lock.release()
            self.ended.set()

    def take_turn(self) -> None:
        """Have the turn again, and be interrupted if the user has interrupted since the last time."""
        self.turn.lock.acquire()
        if self.interrupted < self.turn.interruptions:
            self.interrupted = self.turn.interruptions
            raise KeyboardInterrupt


@dataclass(slots=True)
class Wait:
    """A wait that is over: `late` are the seconds for which the turn was waited for after it."""

    late: float = 0.0


@contextmanager
def waiting() -> Iterator[Wait]:
    """Around whatever waits: works in other lanes have their turn meanwhile; nothing outside of lanes.

    The turn is kept while the process acts as another user, whose rights are not those of the other works.

    Raises:
        KeyboardInterrupt: the user interrupted meanwhile.
    """
    task: _Task | None = getattr(_this, "task", None)
    wait = Wait()
    if task is None or is_acting():
        yield wait
        return
    task.turn.lock.release()
    try:
        yield wait
    except BaseException:
        task.turn.lock.acquire()
        raise
    over = time.monotonic()
    try:
        task.take_turn()
    finally:
        wait.late = time.monotonic() - over


def pause(seconds: float) -> None:
    """Sleep, and let others have their turn; an interruption is noticed soon."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        with waiting():
            time.sleep(min(left, LONGEST_WAIT))


def wait_for(child: subprocess.Popen[bytes], timeout: float | None = None) -> int:
    """Wait for the end of a child of this process as `pause` does; its code, or subprocess.TimeoutExpired.

    The kernel tells of the end at once; `Popen.wait` with a timeout looks every 50 ms.
    """
    end = None if timeout is None else time.monotonic() + timeout
    if (code := child.poll()) is not None:
        return code
    ended = os.pidfd_open(child.pid)
    try:
        poller = select.poll()
        poller.register(ended, select.POLLIN)
        while True:
            left = LONGEST_WAIT if end is None else min(LONGEST_WAIT, max(0.0, end - time.monotonic()))
            with waiting():
                poller.poll(left * 1000)
            if (code := child.poll()) is not None:
                return code
            if end is not None and time.monotonic() >= end:
                raise subprocess.TimeoutExpired(child.args, timeout or 0.0)
    finally:
        os.close(ended)


class ThreadLanes:
    """Implements `ports.lanes.Lanes`."""

    def __init__(self) -> None:
        self._threads: list[queue.SimpleQueue[_Task]] = []

    def __call__(self, works: Sequence[Work]) -> None:
        if len(works) < 2:  # noqa: PLR2004 - one work needs no lanes
            in_turn(works)
            return
        turn = _Turn()
        tasks = [_Task(work=work, turn=turn) for work in works]
        begun = 0
        interrupted = False
        while begun < len(tasks) or not all(task.ended.is_set() for task in tasks):
            # an interruption may come at any of these lines
            try:
                while begun < len(tasks):
                    queue_of = self._thread(begun)
                    begun += 1
                    queue_of.put(tasks[begun - 1])
                next((task for task in tasks if not task.ended.is_set()), tasks[0]).ended.wait(_LOOK)
            except KeyboardInterrupt:
                turn.interruptions += 1
                interrupted = True
        errors = [task.error for task in tasks if task.error is not None]
        if interrupted or any(isinstance(error, KeyboardInterrupt) for error in errors):
            raise KeyboardInterrupt
        if errors:
            raise errors[0]

    def _thread(self, number: int) -> queue.SimpleQueue[_Task]:
        if number == len(self._threads):
            tasks: queue.SimpleQueue[_Task] = queue.SimpleQueue()
            threading.Thread(target=_work_off, args=(tasks,), name=f"lane {number + 1}", daemon=True).start()
            self._threads.append(tasks)
        return self._threads[number]


def _work_off(tasks: queue.SimpleQueue[_Task]) -> None:
    while True:
        tasks.get().carry_out()
