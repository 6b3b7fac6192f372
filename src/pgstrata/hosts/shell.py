"""A machine, or another user of this one, through one `sh` behind a pipe.

Nothing needs to be installed there beyond coreutils and util-linux. The far side is transport.sh, the wire
is `transport`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Final, NoReturn

from pgstrata.errors import DISK_FULL, HostLostError, HostNotFitError, PgstrataError
from pgstrata.hosts import failures
from pgstrata.hosts.shell_process import (
    PATIENCE,
    ShellProcess,
    parse_code,
    render_input,
    render_setup,
    render_words,
)
from pgstrata.hosts.transport import Reply, Transport, quote
from pgstrata.model.packages import render_remedy
from pgstrata.ports.host import ClockReading, Command, Completed, Process, StopSignal
from pgstrata.ports.steps import Steps

_GRACE: Final = 10.0
# Removing or copying much may keep a shell busy; a machine that needs longer than this has a problem of its own.
_LONG_PATIENCE: Final = 1800.0
_BYTES_PER_SECOND: Final = 1 << 20
_PROGRAM_NOT_STARTED: Final = (126, 127)


class ShellHost:
    """One shell, through which everything goes (`ports.Host`).

    When the coordinator dies, the shell reads the end of its input, ends what runs, and leaves nothing behind. An
    exit code between 129 and 192 is taken for the death by a signal, as shells cannot tell these apart.

    Args:
        argv: what starts the shell; it must not need a terminal. To be another user: ("setpriv", "--reuid=postgres",
            "--regid=postgres", "--init-groups", "--reset-env", "sh"). Another machine: ("ssh", "HOST", "sh").
        name: for messages and records.
    """

    def __init__(self, argv: Sequence[str] = ("sh",), *, name: str) -> None:
        self._name = name
        self._transport = Transport(argv, name)
        self._identities = 0
        self._spawned: list[ShellProcess] = []
        if missing := self._transport.hello.missing:
            self._transport.close()
            raise _programs_missing(missing, name)

    @property
    def name(self) -> str:
        return self._name

    @property
    def user(self) -> str:
        return self._transport.hello.user

    def as_user(self, user: str) -> ShellHost:
        raise HostNotFitError(f"only root can work as the user {user}", where=self.name, remedy=f"start it as {user}")

    @property
    def transport_pids(self) -> tuple[int, ...]:
        return (self._transport.hello.pid,)

    # ------------------------------------------------------------------------------------ processes

    def run(self, command: Command, *, timeout: float = 600.0, check: bool = True) -> Completed:
        identity = self._next_identity()
        script = "\n".join(
            (
                render_input(identity, command.stdin),
                render_setup(command),
                f"transport_run {identity} {render_words(command)}",
            )
        )
        nonce = self._transport.send(script, content=command.stdin)
        try:
            frame = self._transport.receive(nonce, timeout)
        except TimeoutError:
            said = self._stop_run(identity, nonce).stderr
            raise failures.command_overdue(command, timeout, said, host=self.name) from None
        except HostLostError:
            raise
        except BaseException:
            self._stop_run(identity, nonce)
            raise
        self._raise_if_refused(command, frame)
        if max(len(frame.stdout), len(frame.stderr)) > self._transport.most:
            raise failures.command_verbose(command, self._transport.most, host=self.name)
        completed = Completed(code=parse_code(frame.code), stdout=frame.stdout, stderr=frame.stderr)
        if check and completed.code:
            raise failures.command_failed(command, completed, host=self.name)
        return completed

    def running(self, command: Command, *, timeout: float = 600.0, check: bool = True) -> Steps[Completed]:
        # The shell answers one request after the other: what the command says goes into files meanwhile.
        base = f"{self._transport.hello.folder}/running.{self._next_identity()}"
        output, errors = f"{base}.out", f"{base}.err"
        process = self.spawn(command, stdout=output, stderr=errors, on_parent_death=StopSignal.KILL)
        try:
            yield
            code = process.wait(timeout).code
        except TimeoutError:
            process.signal(StopSignal.KILL, group=True)
            last = self._take(output, errors).get(errors, b"")
            raise failures.command_overdue(command, timeout, last, host=self.name) from None
        except HostLostError:
            raise
        except BaseException:
            process.signal(StopSignal.KILL, group=True)
            raise
        said = self._take(output, errors)
        if len(said) < len((output, errors)):
            raise failures.command_verbose(command, self._transport.most, host=self.name)
        completed = Completed(code=code, stdout=said[output], stderr=said[errors])
        self._raise_if_not_started(command.argv[0], str(code), completed.stderr)
        if check and code:
            raise failures.command_failed(command, completed, host=self.name)
        return completed

    def _take(self, *paths: str) -> Mapping[str, bytes]:
        found = self.read_files(paths)
        self._ask(quote("rm", "-f", "--", *paths))
        return found

    def _stop_run(self, identity: int, nonce: str) -> Reply:
        self._transport.tell(f"transport_stop_run {identity}")
        try:
            return self._transport.receive(nonce, PATIENCE)
        except TimeoutError:
            raise self._transport.lose("the shell cannot end a command that takes too long") from None

    def spawn(
        self, command: Command, *, stdout: str, stderr: str, on_parent_death: StopSignal = StopSignal.TERM
    ) -> Process:
        identity = self._next_identity()
        script = "\n".join(
            (
                render_input(identity, command.stdin),
                render_setup(command),
                f"transport_out={quote(stdout)} transport_err={quote(stderr)}",
                f"transport_spawn {identity} {on_parent_death} {render_words(command)}",
            )
        )
        frame = self._transport.exchange(script, content=command.stdin, timeout=PATIENCE + len(command.stdin))
        if frame.code == "output":
            self._raise_file("write it", f"{stdout}, {stderr}", frame)
        self._raise_if_refused(command, frame)
        process = ShellProcess(self._transport, identity, int(frame.stdout), on_parent_death)
        self._spawned.append(process)
        return process

    def pid_alive(self, pid: int) -> bool:
        return self._ask(f"transport_alive {pid}").code == "0"

    def signal_pid(self, pid: int, signal: StopSignal) -> None:
        frame = self._ask(f"kill -s {signal} {pid}")
        if frame.code != "0" and b"not permitted" in frame.stderr:
            what = f"the user {self.user} may not send {signal} to process {pid}"
            raise PgstrataError(what, where=self.name, remedy="stop that process yourself")

    def close(self) -> None:
        deadline = time.monotonic() + _GRACE
        try:
            for process in self._spawned:
                process.end(deadline)
        except HostLostError:
            pass  # then its end has ended them
        finally:
            self._spawned = []
            self._transport.close()

    # ---------------------------------------------------------------------------------------- files

    def read(self, path: str, *, offset: int = 0) -> bytes:
        frame = self._ask(f"transport_read {quote(path)} {offset}", patience=_LONG_PATIENCE)
        content = self._checked("read it", path, frame)
        if len(content) > self._transport.most:
            reason = f"larger than {self._transport.most >> 20} MiB"
            raise failures.file_failed("read it", path, reason, user=self.user)
        return content

    def read_files(self, paths: Sequence[str]) -> Mapping[str, bytes]:
        # One that is named twice would come twice.
        wanted = tuple(dict.fromkeys(paths))
        nonce = self._transport.send(f"transport_do transport_files {quote(*wanted)}")
        frame = self._receive(nonce, _LONG_PATIENCE)
        numbers, *contents = frame.stdout.split(nonce.encode())
        found = zip(numbers.split(), contents, strict=True)
        # What vanished, or was refused only when it was opened, looks empty; head says that there was something.
        return {
            wanted[int(number)]: content
            for number, content in found
            if (content or frame.code == "0") and len(content) <= self._transport.most
        }

    def read_matching(self, pattern: str) -> bytes:
        return self._ask(f"transport_matching {quote(pattern)}").stdout

    def write(self, path: str, content: bytes, *, mode: int = 0o600) -> None:
        folder, _, _ = path.rpartition("/")
        beside = f"{folder}/.pgstrata-{self._next_identity()}-{self._transport.hello.pid}"
        script = f"transport_do transport_write {len(content)} {quote(beside, path)} {mode:o}"
        patience = PATIENCE + len(content) / _BYTES_PER_SECOND
        self._checked("write it", path, self._transport.exchange(script, content=content, timeout=patience))

    def exists(self, path: str) -> bool:
        return self._ask(f"[ -e {quote(path)} ]").code == "0"

    def list_folder(self, path: str) -> tuple[str, ...]:
        names = self._checked("list it", path, self._ask(f"transport_list {quote(path)}"))
        return tuple(sorted(name.decode("utf-8", "surrogateescape") for name in names.split(b"\0")[:-1]))

    def make_folder(self, path: str, *, mode: int = 0o700) -> None:
        special = f"{mode:o}" if mode & 0o7000 else ""
        frame = self._ask(f"transport_make {quote(path, f'{0o777 & ~mode:o}', special)}")
        self._checked("create the folder", path, frame)

    def remove_tree(self, path: str) -> None:
        # A second attempt: another process, such as a server that is about to end, may still have made files in there.
        words = quote("rm", "-rf", "--", path)
        if self._ask(words, patience=_LONG_PATIENCE).code != "0":
            self._checked("remove it", path, self._ask(words, patience=_LONG_PATIENCE))

    def rename(self, source: str, target: str) -> None:
        self._checked(f"rename {source} to it", target, self._ask(f"transport_rename {quote(source, target)}"))

    def free_bytes(self, path: str) -> int:
        return int(self._checked("see its free space", path, self._ask(f"transport_free {quote(path)}")).split()[-1])

    # ---------------------------------------------------------------------------------------- clock

    def clock(self) -> ClockReading:
        wall, monotonic = self._ask("transport_clock").stdout.split()
        return ClockReading(wall=float(wall), monotonic=float(monotonic))

    # ---------------------------------------------------------------------------------- asking, failures

    def _next_identity(self) -> int:
        self._identities += 1
        return self._identities

    def _ask(self, words: str, *, patience: float = PATIENCE) -> Reply:
        return self._transport.exchange(f"transport_do {words}", timeout=patience)

    def _receive(self, nonce: str, patience: float) -> Reply:
        try:
            return self._transport.receive(nonce, patience)
        except TimeoutError:
            raise self._transport.lose(f"the shell did not answer within {patience:g} s") from None

    def _checked(self, doing: str, path: str, frame: Reply) -> bytes:
        if frame.code != "0":
            self._raise_file(doing, path, frame)
        return frame.stdout

    def _raise_file(self, doing: str, path: str, frame: Reply) -> NoReturn:
        raise failures.file_failed(doing, path, _reason(frame.stderr), user=self.user)

    def _raise_if_refused(self, command: Command, frame: Reply) -> None:
        program = command.argv[0]
        match frame.code:
            case "folder":
                self._raise_file("work in the folder", command.folder or "/", frame)
            case "missing":
                raise failures.program_missing(program, host=self.name)
            case "refused":
                raise failures.program_refused(program, "Permission denied", host=self.name, user=self.user)
            case "output":
                self._raise_file("keep what the command says", "the shell's temporary folder", frame)
            case code:
                self._raise_if_not_started(program, code, frame.stderr)

    def _raise_if_not_started(self, program: str, code: str, stderr: bytes) -> None:
        if int(code) in _PROGRAM_NOT_STARTED and stderr.startswith(b"env: "):
            raise failures.program_refused(program, _reason(stderr), host=self.name, user=self.user)


def _reason(stderr: bytes) -> str:
    """Why something failed, without the name of the program that says so."""
    text = stderr.decode("utf-8", "replace")
    for full in DISK_FULL:
        if full in text:
            return full
    return text.strip().rpartition("\n")[2].rpartition(": ")[2] or "no reason given"


def _programs_missing(programs: tuple[str, ...], host: str) -> HostNotFitError:
    if len(programs) == 1 and "--" not in programs[0]:
        return failures.program_missing(programs[0], host=host)
    if "env--default-signal" in programs:
        remedy = "install coreutils 8.31 or later"
        return HostNotFitError("the program env has no option --default-signal", where=host, remedy=remedy)
    details = tuple(f"{program}: {render_remedy(program)}" for program in programs)
    return HostNotFitError(f"{len(programs)} programs are missing", where=host, remedy="install them", details=details)
