"""The wire of a shell host: requests to one `sh` behind a pipe, and the frames that it answers with.

What the functions in transport.sh do, and for whom, belongs to `shell`.
"""

from __future__ import annotations

import os
import secrets
import select
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pgstrata.errors import HostLostError
from pgstrata.hosts import failures
from pgstrata.hosts.account import own_environment
from pgstrata.hosts.lanes import LONGEST_WAIT, waiting
from pgstrata.model import sizes

_FAR_SIDE: Final = Path(__file__).with_name("transport.sh")
_CHUNK: Final = 1 << 18
_FIRST_CONTACT: Final = 60.0
_GOODBYE: Final = 10.0
_FRAME: Final = 1 << 20
"""More than what frames and what stands before the first one take; a login may be talkative."""
_LAST_WORDS: Final = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer; `code` is the exit code, or the word with which a program was refused."""

    code: str
    stdout: bytes
    stderr: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """What the far side said of itself; `folder` is for this connection alone, and goes with it."""

    pid: int
    user: str
    folder: str
    missing: tuple[str, ...]


def quote(*words: str) -> str:
    """Words of a shell line."""
    if any("\0" in word for word in words):
        raise ValueError("a command cannot carry a NUL")
    return shlex.join(words)


class Transport:
    """One shell and the pipes to it. HostLostError from whatever finds it gone.

    Args:
        argv: what starts the shell, which reads its commands from standard input.
        name: the host's name, for messages.
        most: bytes of a file, and of what a command says on each of its two ways; whoever sends more is given up.
    """

    def __init__(self, argv: Sequence[str], name: str, *, most: int = sizes.HOST_ANSWER) -> None:
        self._name = name
        self.most = most
        self._end_of_request = f"go {secrets.token_hex(16)}"
        self._unsent = bytearray()
        self._received = bytearray()
        self._lost = ""
        # Both belong to the shell's whole life; `close` ends them.
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115
        self._child = self._start(argv)
        self.hello = self._greet()

    def _start(self, argv: Sequence[str]) -> subprocess.Popen[bytes]:
        pipe = subprocess.PIPE
        try:
            # Its own session: what the user types at a terminal is for the coordinator alone.
            child = subprocess.Popen(
                argv,
                stdin=pipe,
                stdout=pipe,
                stderr=self._complaints,
                env=own_environment(),
                bufsize=0,
                start_new_session=True,
            )
        except OSError as error:
            self._complaints.close()
            # A folder in PATH that may not be entered looks like a program that may not be run.
            if ("/" not in argv[0] and shutil.which(argv[0]) is None) or isinstance(error, FileNotFoundError):
                raise failures.program_missing(argv[0], host=self._name) from error
            reason = error.strerror or str(error)
            raise failures.host_lost(f"the shell cannot be started: {reason}", host=self._name) from error
        assert child.stdin is not None
        assert child.stdout is not None
        self._to, self._from = child.stdin.fileno(), child.stdout.fileno()
        os.set_blocking(self._to, False)
        os.set_blocking(self._from, False)
        return child

    def _greet(self) -> Hello:
        nonce = secrets.token_hex(16)
        self._unsent += _FAR_SIDE.read_bytes()
        settings = f"transport_nonce={nonce}\ntransport_most={self.most}"
        self._unsent += f"\n{settings}\ntransport_loop {quote(self._end_of_request)}\n".encode()
        try:
            # Nothing more may be sent before the answer: until then the shell reads ahead.
            said = self.receive(nonce, _FIRST_CONTACT).stdout.decode("utf-8", "replace").splitlines()
        except TimeoutError:
            raise self.lose(f"the shell did not answer within {_FIRST_CONTACT:g} s") from None
        pid, user, folder, missing = said
        return Hello(pid=int(pid), user=user, folder=folder, missing=tuple(missing.split()))

    def exchange(self, script: str, *, content: bytes = b"", timeout: float) -> Reply:
        """One request and its frame; `content` is what the script takes from the transport with `transport_feed`."""
        try:
            return self.receive(self.send(script, content=content), timeout)
        except TimeoutError:
            raise self.lose(f"the shell did not answer within {timeout:g} s") from None

    def send(self, script: str, *, content: bytes = b"") -> str:
        """Queue a request; its nonce, by which `receive` knows the frame."""
        nonce = secrets.token_hex(16)
        request = f"transport_nonce={nonce}\n{script}\n{self._end_of_request}\n"
        # What an interrupted exchange has left unsent goes first, or the shell would take this for the rest of that.
        self._unsent += request.encode("utf-8", "surrogateescape") + content
        return nonce

    def tell(self, script: str) -> None:
        """Queue a request that has no frame."""
        self._unsent += f"{script}\n{self._end_of_request}\n".encode("utf-8", "surrogateescape")

    def receive(self, nonce: str, timeout: float) -> Reply:
        """Send what is queued and wait for a frame; TimeoutError. What is left of other frames is thrown away."""
        if self._lost:
            raise failures.host_lost(self._lost, host=self._name)
        begin, middle, end = (nonce.encode() + mark for mark in (b">", b"=", b"<\n"))
        deadline = time.monotonic() + timeout
        searched = 0
        while (found := self._received.find(end, searched)) < 0:
            searched = max(0, len(self._received) - len(end))
            # what others did meanwhile is no silence of the shell
            deadline += self._move(deadline)
        frame = bytes(self._received[:found])
        del self._received[: found + len(end)]
        body = frame[frame.index(begin) + len(begin) :]
        stdout, _, rest = body.rpartition(middle)
        code, _, stderr = rest.partition(b"\n")
        return Reply(code=code.decode(), stdout=stdout, stderr=stderr)

    def _move(self, deadline: float) -> float:
        """Move bytes in either direction, waiting for the shell until `deadline`; seconds that others took."""
        poller = select.poll()
        poller.register(self._from, select.POLLIN)
        if self._unsent:
            poller.register(self._to, select.POLLOUT)
        left = deadline - time.monotonic()
        with waiting() as wait:
            ready = poller.poll(min(max(0.0, left), LONGEST_WAIT) * 1000)
        if not ready and left <= 0:
            raise TimeoutError
        for descriptor, _ in ready:
            try:
                if descriptor == self._to:
                    del self._unsent[: os.write(self._to, self._unsent[:_CHUNK])]
                    continue
                chunk = os.read(self._from, _CHUNK)
            except BlockingIOError:
                continue
            except OSError:
                chunk = b""
            if not chunk:
                raise self.lose("the shell has ended")
            self._received += chunk
            if len(self._received) > 2 * self.most + _FRAME:
                raise self.lose(f"the shell said more than {2 * self.most >> 20} MiB at once")
        return wait.late

    def lose(self, what: str) -> HostLostError:
        """Give the transport up; the error to raise, with the shell's last words."""
        self._complaints.seek(max(0, self._complaints.seek(0, os.SEEK_END) - _LAST_WORDS))
        words = self._complaints.read().decode("utf-8", "replace").splitlines()[-5:]
        self._lost = what
        self.close()
        return failures.host_lost(what, host=self._name, details=words)

    def close(self) -> None:
        """Let the shell end what it has started, and leave; nothing happens a second time."""
        if self._child.poll() is None:
            assert self._child.stdin is not None
            self._child.stdin.close()
            try:
                self._child.wait(_GOODBYE if not self._lost else 0.5)
            except subprocess.TimeoutExpired:
                self._child.kill()
                self._child.wait()
        for stream in (self._child.stdin, self._child.stdout, self._complaints):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
        self._lost = self._lost or "the transport is closed"
