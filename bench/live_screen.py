"""CPU of the live screens of `run` and `watch`, without the work that they show, on a terminal of 80 by 24.

The screen of `run` shows a real experiment, once in slices and once run by run; only the handling of its events is
counted. The screen of `watch` shows a made-up server with a hundred classes of sessions. BLOCKS=2 shortens it.
"""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import tempfile
import termios
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from figures import Figure

from pgstrata.app.question import load_plan
from pgstrata.app.run import run_experiment
from pgstrata.cli.live_screen import LiveScreen
from pgstrata.cli.live_state import LiveState
from pgstrata.cli.plain import make_plain
from pgstrata.cli.progress import TerminalSink
from pgstrata.model.archive import SessionClass, SessionsLook
from pgstrata.ports.events import Event, Events
from pgstrata.ports.recording import RecordedSecond
from pgstrata.store.repository import StudyFolder
from pgstrata.system.terminal import Terminal

GOAL = 0.005
BLOCKS = int(os.environ.get("BLOCKS") or 7)
WATCHED = 60
EXPERIMENT = """
question = "What does the screen cost?"
baseline = "18"
controls = ["same"]
interleave = "{interleave}"
blocks = {blocks}

[[environments]]
name = "18"
server = "18"

[[environments]]
name = "18 more work"
server = "18"
options.extra_work = 1000

[[cells]]
workload = "select-only"
scale = 1
clients = 2
run = "5s"
"""


@dataclass(slots=True, kw_only=True)
class Counted(Events):
    """Passes events to a screen: CPU seconds of handling them, their number, and the time of the first."""

    screen: Events
    cpu: float = 0.0
    events: int = 0
    begun: float = 0.0

    def emit(self, event: Event) -> None:
        self.begun = self.begun or time.monotonic()
        before = time.thread_time()
        self.screen.emit(event)
        self.cpu += time.thread_time() - before
        self.events += 1


@contextmanager
def on_terminal() -> Iterator[int]:
    """The descriptor of a terminal of 80 by 24 whose output goes nowhere."""
    reader, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    threading.Thread(target=_drain, args=(reader,), daemon=True).start()
    try:
        yield terminal
    finally:
        os.close(terminal)


def _drain(reader: int) -> None:
    try:
        while os.read(reader, 65536):
            pass
    except OSError:  # the terminal is closed
        os.close(reader)


def measure_live_screen() -> Iterable[Figure]:
    """Share of a CPU: the screen of `run`, in slices and run by run, and that of `watch`."""
    for interleave, title in (("slices", "in slices"), ("runs", "run by run")):
        yield _of_run(interleave, f"live screen of run, {title}")
    yield _of_watch()


def _of_run(interleave: str, name: str) -> Figure:
    with tempfile.TemporaryDirectory() as folder, on_terminal() as terminal, os.fdopen(os.dup(terminal), "w") as out:
        file = Path(folder) / "experiment.toml"
        file.write_text(EXPERIMENT.format(interleave=interleave, blocks=BLOCKS))
        plan = load_plan(file)
        counted = Counted(screen=TerminalSink(make_plain(out), plan.experiment))
        run_experiment(plan, StudyFolder(Path(folder) / "study"), counted, stop_early=False)
        seconds = time.monotonic() - counted.begun
    note = f"{counted.events} events in {seconds:.0f} s, {1e3 * counted.cpu / counted.events:.2f} ms each"
    return Figure(name=name, value=counted.cpu / seconds, goal=GOAL, unit="CPU", notes=(note,))


def _of_watch() -> Figure:
    """The CPU of the process without its main thread, which only makes data and sleeps; the rest draws the screen."""
    with on_terminal() as terminal:
        screen = LiveScreen(Terminal(os.dup(terminal)), LiveState(archive="shop-archive"), print)
        screen.open()
        screen.begin({"server_version": "18.1"}, ())
        before = time.process_time() - time.thread_time()
        for moment in range(WATCHED):
            screen.follow(_second(moment))
            time.sleep(1)
        used = time.process_time() - time.thread_time() - before
        screen.close()
    return Figure(name="live screen of watch", value=used / WATCHED, goal=GOAL, unit="CPU", notes=(f"{WATCHED} s",))


def _second(moment: int) -> RecordedSecond:
    classes = [
        SessionClass(kind="client backend", state="active", wait_type="IO" if number % 2 else "", statement=str(number))
        for number in range(100)
    ]
    look = SessionsLook(counts=dict.fromkeys(classes, 1 + moment % 3), blocked={})
    return RecordedSecond(moment=1_795_651_200 + moment, look=look, server={"commits": 1000.0}, server_seconds=1.0)
