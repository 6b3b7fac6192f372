"""The live screen on a terminal: it is left as it was however the recorder ends, and holds nobody up."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

import pytest

from archives import START, session
from pgstrata.app.watching.followers import Followers
from pgstrata.cli.live_screen import LiveScreen
from pgstrata.cli.live_state import LiveState
from pgstrata.model.archive import SessionsLook
from pgstrata.ports.recording import RecordedSecond
from pgstrata.system.terminal import Terminal

ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"
PATIENCE = 40
# the program as users start it, with a recorder that asks no server
PROGRAM = """
import fcntl, os, sys, termios, time
import pgstrata.app.watching.watch as watching
from pgstrata.cli.program import entry
from pgstrata.model.archive import SessionClass, SessionsLook
from pgstrata.ports.recording import RecordedSecond

def record(task, begun, tell, followers=()):
    begun(watching.Watching(version="18.1", limits=("no_host",)))
    look = SessionsLook(counts={SessionClass(kind="client backend", state="active", statement=str(n)): 1
                                for n in range(200)}, blocked={})
    seconds = 0
    try:
        while seconds < int(os.environ["SECONDS"]):
            seconds += 1
            for follower in followers:
                follower.follow(RecordedSecond(moment=seconds, look=look, server={"commits": float(seconds)}))
            if seconds == 3:
                tell("connection lost: test")
            if os.environ.get("FAILS") and seconds == 10:
                raise RuntimeError("a defect")
            time.sleep(float(os.environ["PAUSE"]))
    except KeyboardInterrupt:
        for follower in followers:
            follower.close()
        tell("stopped: the archive is complete up to now")
    finally:
        with open(os.environ["ENDED"], "w") as file:
            print(seconds, file=file)
    return seconds

fcntl.ioctl(0, termios.TIOCSCTTY, 0)
watching.watch = record
entry()
"""


class Terminals:
    """A terminal with a program in its foreground; what it writes is read, or not."""

    def __init__(self, folder, *words, seconds=100_000, pause=0.02, stderr=None, **environ):
        self.master, self.slave = pty.openpty()
        self.ended = folder / "ended"
        self.resize(80, 24)
        self.modes = termios.tcgetattr(self.slave)
        self.seen = b""
        self.child = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, "watch", "host=nowhere", "--archive", "shop-archive", *words],
            stdin=self.slave, stdout=self.slave, stderr=stderr or self.slave, start_new_session=True,
            env={
                **os.environ, "TERM": "xterm", "SECONDS": str(seconds), "PAUSE": str(pause), "ENDED": str(self.ended),
                "PYTHONIOENCODING": "utf-8", **environ,
            },
        )  # fmt: skip

    def resize(self, columns, rows):
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, seconds=0.1):
        if select.select([self.master], [], [], seconds)[0]:
            self.seen += os.read(self.master, 65536)

    def wait_for(self, pattern):
        deadline = time.monotonic() + PATIENCE
        while not re.search(pattern, self.seen, re.DOTALL):
            assert time.monotonic() < deadline, self.seen[-2000:]
            self.read()

    def press(self, key):
        os.write(self.master, key)

    def end(self):
        """Its exit code; everything that it wrote has been read."""
        deadline = time.monotonic() + PATIENCE
        while self.child.poll() is None:
            assert time.monotonic() < deadline, self.seen[-2000:]
            self.read()
        while select.select([self.master], [], [], 0.2)[0]:
            self.seen += os.read(self.master, 65536)
        return self.child.returncode

    def is_restored(self):
        """Modes, screen, cursor and wrapping are those of the beginning, and nothing is drawn afterwards."""
        after = self.seen.rpartition(LEAVE)[2]
        return (
            termios.tcgetattr(self.slave) == self.modes
            and self.seen.count(ENTER) == self.seen.count(LEAVE) == 1
            and self.seen.rindex(b"\x1b[?25h") > self.seen.rindex(b"\x1b[?25l")
            and self.seen.rindex(b"\x1b[?7h") > self.seen.rindex(b"\x1b[?7l")
            and b"\x1b" not in after
        )

    def close(self):
        if self.child.poll() is None:
            self.child.kill()
            self.child.wait()
        for descriptor in (self.master, self.slave):
            if descriptor is not None:
                os.close(descriptor)


@pytest.fixture
def terminal(tmp_path):
    made = []

    def make(*words, **environ):
        made.append(Terminals(tmp_path, *words, **environ))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.mark.parametrize("way", ["q", "Ctrl-C", "SIGTERM", "SIGHUP"])
def test_the_terminal_is_restored_when_the_recorder_is_ended(terminal, way):
    at = terminal()
    at.wait_for(rb"throughput.*nobody is blocked.*connection lost: test")
    assert not termios.tcgetattr(at.slave)[3] & (termios.ICANON | termios.ECHO)
    if way.startswith("SIG"):
        at.child.send_signal(getattr(signal, way))
    else:
        at.press(b"q" if way == "q" else b"\x03")
    assert at.end() == 0
    assert at.is_restored()
    before, _, after = at.seen.decode().replace("\r\n", "\n").partition("\x1b[?1049h")
    assert "recording PostgreSQL 18.1 into shop-archive; Ctrl-C ends it\nnote: the server is on another" in before
    told = after.rpartition("\x1b[?1049l")[2]
    assert re.search(
        r"^\d\d:\d\d:\d\d connection lost: test\nstopped: the archive is complete up to now\n\d+ seconds recorded in",
        told, re.MULTILINE,
    )  # fmt: skip


def test_the_terminal_is_restored_when_its_time_is_over(terminal):
    at = terminal(seconds=20)
    assert at.end() == 0
    assert at.is_restored()
    assert b"20 seconds recorded" in at.seen


def test_the_terminal_is_restored_after_a_defect(terminal):
    at = terminal(FAILS="1")
    assert at.end() == 1
    assert at.is_restored()
    assert b"RuntimeError: a defect" in at.seen.rpartition(LEAVE)[2]


def test_a_terminal_that_is_closed_ends_the_recorder_without_a_defect(terminal, tmp_path):
    errors = tmp_path / "errors"
    with errors.open("wb") as file:
        at = terminal(stderr=file)
    at.wait_for(rb"nobody is blocked.*connection lost: test")
    os.close(at.slave)
    os.close(at.master)
    at.slave = at.master = None
    assert at.child.wait(PATIENCE) == 0
    assert "stopped: the archive is complete up to now" in errors.read_text()
    assert "Traceback" not in errors.read_text()


def test_ctrl_z_and_ctrl_backslash_do_not_leave_the_screen_behind(terminal):
    at = terminal()
    at.wait_for(rb"throughput")
    at.press(b"\x1a\x1cz")
    at.wait_for(rb"\(5 s\)")
    at.press(b"q")
    assert at.end() == 0


def test_a_new_size_is_taken_at_once(terminal):
    at = terminal(pause=1000)
    at.wait_for(rb"nobody is blocked")
    at.resize(30, 5)
    at.wait_for(rb"\x1b\[2J\x1b\[H[^\n]*load[^\n]*$")
    at.press(b"q")
    assert at.end() == 0
    assert at.is_restored()


def test_a_terminal_that_takes_nothing_does_not_hold_up_the_recorder(terminal):
    at = terminal(seconds=1000, pause=0.001)
    at.resize(200, 60)
    deadline = time.monotonic() + PATIENCE
    while not at.ended.exists() or not at.ended.read_text():
        assert time.monotonic() < deadline, "the recorder waits"
        time.sleep(0.05)
    assert at.ended.read_text() == "1000\n"
    assert at.end() == 0
    assert termios.tcgetattr(at.slave) == at.modes
    assert LEAVE in at.seen


@pytest.mark.parametrize(("words", "environ"), [(("--plain",), {}), ((), {"TERM": "dumb"})])
def test_lines_are_printed_where_there_is_no_screen(terminal, words, environ):
    at = terminal(*words, seconds=5, **environ)
    assert at.end() == 0
    lines = at.seen.decode().replace("\r\n", "\n")
    assert lines.startswith("recording PostgreSQL 18.1 into shop-archive; Ctrl-C ends it\nnote: ")
    assert lines.endswith("connection lost: test\n5 seconds recorded in shop-archive\n")
    assert "\x1b" not in lines


def test_no_color_is_obeyed(terminal):
    for environ, coloured in (({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True)):
        at = terminal(seconds=20, **environ)
        assert at.end() == 0
        assert (b"\x1b[30;42m" in at.seen) is coloured


# ------------------------------------------------------------------------------------------- in this process


def follow(screen, number):
    look = SessionsLook(counts={session(): 1}, blocked={})
    screen.follow(RecordedSecond(moment=START + number, look=look))


@pytest.fixture
def screen():
    master, slave = pty.openpty()
    os.set_blocking(slave, False)
    said = []
    made = LiveScreen(Terminal(slave), LiveState(archive="a"), said.append)
    made.open()
    yield made, master, said
    made.close()


def until_it_failed(screen, master):
    deadline = time.monotonic() + PATIENCE
    told = []
    followers = Followers([screen], told.append)
    while not told:
        assert time.monotonic() < deadline
        followers.follow(RecordedSecond(moment=START))
        time.sleep(0.02)
    return told[0]


def test_a_terminal_that_is_gone_ends_the_screen_and_not_the_recorder(screen):
    made, master, said = screen
    os.close(master)
    assert until_it_failed(made, master).startswith("the screen failed and was stopped; recording goes on (")
    made.tell("connected again")
    assert said == ["connected again"]


def test_a_defect_of_the_screen_restores_the_terminal(screen, monkeypatch):
    made, master, _ = screen
    monkeypatch.setattr(LiveState, "follow", None)
    assert "TypeError" in until_it_failed(made, master)
    seen = b""
    while LEAVE not in seen:
        seen += os.read(master, 65536)
    os.close(master)


def test_messages_are_printed_at_once_where_lines_do_not_disturb(screen):
    made, master, said = screen
    made.tell("later")
    assert said == []
    made.keeps = False
    made.tell("now")
    assert said == ["now"]
    made.close()
    assert [text.partition(" ")[2] or text for text in said] == ["now", "later"]
    os.close(master)
