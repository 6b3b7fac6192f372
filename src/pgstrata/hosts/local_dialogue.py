"""A program of this machine that is spoken to while it runs: three pipes, one thread."""

from __future__ import annotations

import os
import select
import subprocess
import time
from contextlib import suppress
from typing import Final

from pgstrata.hosts.account import UserAccount
from pgstrata.hosts.local_process import MOST_OUTPUT, kill_group, start
from pgstrata.ports.host import Command, StopSignal
from pgstrata.ports.session import Exchange

_CHUNK: Final = 1 << 16
_GRACE: Final = 2.0


class LocalDialogue:
    """Implements `ports.Dialogue`; the program dies with this process, however that dies."""

    def __init__(self, command: Command) -> None:
        account = UserAccount.load(None)
        stdin, self._stdin = os.pipe()
        self._stdout, stdout = os.pipe()
        self._stderr, stderr = os.pipe()
        try:
            self._child = start(
                command, account, stdin=stdin, stdout=stdout, stderr=stderr, on_parent_death=StopSignal.KILL
            )
        except BaseException:
            for descriptor in (self._stdin, self._stdout, self._stderr):
                os.close(descriptor)
            raise
        finally:
            for descriptor in (stdin, stdout, stderr):
                os.close(descriptor)
        for descriptor in (self._stdin, self._stdout, self._stderr):
            os.set_blocking(descriptor, False)
        self._open = True

    @property
    def pid(self) -> int:
        return self._child.pid

    def exchange(self, words: bytes, mark: bytes, *, timeout: float) -> Exchange:
        ending = b"\n" + mark + b"\n"
        said: dict[int, bytearray] = {self._stdout: bytearray(), self._stderr: bytearray(b"\n")}
        deadline = time.monotonic() + timeout
        speaking = {self._stdout, self._stderr}
        while speaking and not said[self._stderr].endswith(ending):
            words = self._turn(words, speaking, said, deadline - time.monotonic())
            if time.monotonic() >= deadline or sum(map(len, said.values())) > MOST_OUTPUT:
                kill_group(self._child.pid)
                break
        marked = said[self._stderr].endswith(ending)
        if marked:
            # what stands before the mark was written before it
            self._gather(self._stdout, said[self._stdout])
        else:
            self._reap()
        complaints = bytes(said[self._stderr][1:])
        return Exchange(
            output=bytes(said[self._stdout]),
            complaints=complaints.removesuffix(mark + b"\n") if marked else complaints,
            ended=not marked,
        )

    def _turn(self, words: bytes, speaking: set[int], said: dict[int, bytearray], patience: float) -> bytes:
        """Write what the program takes, read what it says; what is left to be written."""
        writing = [self._stdin] if words else []
        readable, writable, _ = select.select(sorted(speaking), writing, [], max(0.0, patience))
        if writable:
            try:
                words = words[os.write(self._stdin, words[:_CHUNK]) :]
            except BrokenPipeError:
                words = b""  # its end is seen on what it says
        for descriptor in readable:
            if not self._gather(descriptor, said[descriptor]):
                speaking.discard(descriptor)
        return words

    @staticmethod
    def _gather(descriptor: int, heard: bytearray) -> bool:
        """Read what is there; whether more may come."""
        try:
            while chunk := os.read(descriptor, _CHUNK):
                heard += chunk
        except BlockingIOError:
            return True
        return False

    def close(self) -> None:
        if not self._open:
            return
        self._open = False
        os.close(self._stdin)
        self._reap()
        os.close(self._stdout)
        os.close(self._stderr)

    def _reap(self) -> None:
        try:
            self._child.wait(_GRACE)
        except subprocess.TimeoutExpired:
            kill_group(self._child.pid)
            with suppress(subprocess.TimeoutExpired):
                self._child.wait(_GRACE)
