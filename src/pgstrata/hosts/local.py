"""This machine, by Python's own means; as the user of the coordinator, or as another one if that is root."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from pgstrata.errors import PgstrataError
from pgstrata.hosts import failures
from pgstrata.hosts.account import UserAccount
from pgstrata.hosts.local_process import (
    MOST_OUTPUT,
    Conversation,
    LocalProcess,
    holding,
    kill_group,
    signal_number,
    start,
)
from pgstrata.model import sizes
from pgstrata.ports.host import ClockReading, Command, Completed, Process, StopSignal
from pgstrata.ports.steps import Steps, finish
from pgstrata.system import files, reading

_GRACE: Final = 10.0
_REMOVAL_ATTEMPTS: Final = 5


class LocalHost:
    """The machine that the coordinator runs on (`ports.Host`).

    Processes die with the coordinator, however it dies: the kernel sees to it. That holds for the thread that starts
    them, which is why the coordinator has one only.

    Args:
        user: whom everything is done as; another one than the coordinator's needs root.
        hidden: variables of the coordinator's environment that programs do not get.
    """

    def __init__(self, *, user: str | None = None, hidden: frozenset[str] = frozenset()) -> None:
        self._account = UserAccount.load(user, hidden)
        self._spawned: list[LocalProcess] = []

    @property
    def name(self) -> str:
        return "local"

    @property
    def user(self) -> str:
        return self._account.name

    def as_user(self, user: str) -> LocalHost:
        return LocalHost(user=user)

    @property
    def transport_pids(self) -> tuple[int, ...]:
        return (os.getpid(),)

    # ------------------------------------------------------------------------------------ processes

    def run(self, command: Command, *, timeout: float = 600.0, check: bool = True) -> Completed:
        return finish(self.running(command, timeout=timeout, check=check))

    def running(self, command: Command, *, timeout: float = 600.0, check: bool = True) -> Steps[Completed]:
        with Conversation(self._account) as talk:
            with self._starting(command):
                child = talk.start(command)
            try:
                yield
                talk.hold(child, timeout)
            except TimeoutError:
                _end(child)
                raise failures.command_overdue(command, timeout, talk.stderr, host=self.name) from None
            except OverflowError:
                _end(child)
                raise failures.command_verbose(command, MOST_OUTPUT, host=self.name) from None
            except BaseException:
                _end(child)
                raise
        completed = Completed(code=child.returncode, stdout=talk.stdout, stderr=talk.stderr)
        if check and completed.code:
            raise failures.command_failed(command, completed, host=self.name)
        return completed

    def spawn(
        self, command: Command, *, stdout: str, stderr: str, on_parent_death: StopSignal = StopSignal.TERM
    ) -> Process:
        with (
            self._appending(stdout) as output,
            self._appending(stderr) as errors,
            holding(command.stdin) as source,
            self._starting(command),
        ):
            child = start(
                command, self._account, stdin=source, stdout=output, stderr=errors, on_parent_death=on_parent_death
            )
        process = LocalProcess(child, on_parent_death)
        self._spawned = [earlier for earlier in self._spawned if earlier.poll() is None]
        self._spawned.append(process)
        return process

    def pid_alive(self, pid: int) -> bool:
        # A process that has ended and was not waited for holds nothing; in containers it may stay so for ever.
        try:
            state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
        except (OSError, IndexError):
            return False
        return state not in (b"Z", b"X")

    def signal_pid(self, pid: int, signal: StopSignal) -> None:
        # The kernel would look at the real user id as well, which is that of the coordinator.
        foreign = self._account.other and _owner_of_process(pid) not in (None, self._account.ids.uid)
        try:
            os.kill(pid, 0 if foreign else signal_number(signal))
        except ProcessLookupError:
            return
        except PermissionError:
            foreign = True
        if foreign:
            what = f"the user {self.user} may not send {signal} to process {pid}"
            raise PgstrataError(what, where=self.name, remedy="stop that process yourself")

    def close(self) -> None:
        running = [process for process in self._spawned if process.poll() is None]
        self._spawned = []
        for process in running:
            process.signal(process.on_parent_death)
            process.signal(StopSignal.CONT)  # a stopped process would not notice
        deadline = time.monotonic() + _GRACE
        for process in running:
            try:
                process.wait(deadline - time.monotonic())
            except TimeoutError:
                process.signal(StopSignal.KILL, group=True)
                with suppress(TimeoutError):  # it waits in the kernel, for a disk or a tracer, and ends after that
                    process.wait(_GRACE)

    # ---------------------------------------------------------------------------------------- files

    def read(self, path: str, *, offset: int = 0) -> bytes:
        with self._filing("read it", path):
            return reading.read_as_is(path, most=sizes.HOST_ANSWER, offset=offset)

    def read_files(self, paths: Sequence[str]) -> Mapping[str, bytes]:
        with self._account.acting():
            return {path: content for path in paths if (content := _read_if_possible(path)) is not None}

    def read_matching(self, pattern: str) -> bytes:
        # before acting as another user, who may be unable to read this Python's library
        import glob  # noqa: PLC0415 - most commands read no patterns, and wait for every import

        with self._account.acting():
            return b"".join(_read_if_possible(path) or b"" for path in sorted(glob.glob(pattern)))  # noqa: PTH207 /proc again

    def write(self, path: str, content: bytes, *, mode: int = 0o600) -> None:
        with self._filing("write it", path):
            files.write_beside(Path(path), content, mode=mode)

    def exists(self, path: str) -> bool:
        with self._account.acting():
            return os.path.exists(path)  # noqa: PTH110 Path.exists raises where a folder may not be entered

    def list_folder(self, path: str) -> tuple[str, ...]:
        with self._filing("list it", path):
            try:
                return tuple(sorted(os.listdir(path)))  # noqa: PTH208 names, not paths
            except (FileNotFoundError, NotADirectoryError):
                return ()

    def make_folder(self, path: str, *, mode: int = 0o700) -> None:
        with self._filing("create the folder", path):
            files.make_folders(Path(path), mode=mode)

    def remove_tree(self, path: str) -> None:
        with self._filing("remove it", path):
            for attempt in range(1, _REMOVAL_ATTEMPTS + 1):
                try:
                    files.remove_tree(Path(path))
                except OSError as error:
                    # Another process is still removing or making files in there: a server that is about to end.
                    if error.errno not in (errno.ENOENT, errno.ENOTEMPTY) or attempt == _REMOVAL_ATTEMPTS:
                        raise
                else:
                    return

    def rename(self, source: str, target: str) -> None:
        with self._filing(f"rename {source} to it", target):
            files.rename(Path(source), Path(target))

    def free_bytes(self, path: str) -> int:
        with self._filing("see its free space", path):
            folder = next(folder for folder in (Path(path), *Path(path).parents) if folder.is_dir())
            figures = os.statvfs(folder)
        return figures.f_bavail * figures.f_frsize

    # ---------------------------------------------------------------------------------------- clock

    def clock(self) -> ClockReading:
        # CLOCK_BOOTTIME is what /proc/uptime shows: another transport to the same machine agrees.
        return ClockReading(wall=time.time(), monotonic=time.clock_gettime(time.CLOCK_BOOTTIME))

    # ------------------------------------------------------------------------------------- failures

    @contextmanager
    def _filing(self, doing: str, path: str) -> Iterator[None]:
        """Act as the user, and give what fails a name."""
        try:
            with self._account.acting():
                yield
        except OSError as error:
            raise failures.file_failed(doing, path, error.strerror or str(error), user=self.user) from error

    @contextmanager
    def _appending(self, path: str) -> Iterator[int]:
        with self._filing("write it", path):
            descriptor = files.open_appending(Path(path))
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    @contextmanager
    def _starting(self, command: Command) -> Iterator[None]:
        program, folder = command.argv[0], command.folder
        try:
            yield
        except OSError as error:
            reason = error.strerror or str(error)
            if folder is not None and error.filename == folder and folder != program:
                raise failures.file_failed("work in the folder", folder, reason, user=self.user) from error
            if isinstance(error, FileNotFoundError) or not self._found(command):
                raise failures.program_missing(program, host=self.name) from error
            raise failures.program_refused(program, reason, host=self.name, user=self.user) from error

    def _found(self, command: Command) -> bool:
        """Whether the program exists: a folder in PATH that may not be entered looks like one that may not be run."""
        if "/" in command.argv[0]:
            return True
        path = command.environment.get("PATH", self._account.environment().get("PATH"))
        with self._account.acting():
            return shutil.which(command.argv[0], path=path) is not None


def _owner_of_process(pid: int) -> int | None:
    try:
        return Path(f"/proc/{pid}").stat().st_uid
    except OSError:
        return None


def _end(child: subprocess.Popen[bytes]) -> None:
    killed = kill_group(child.pid)
    with suppress(subprocess.TimeoutExpired):
        child.wait(None if killed else _GRACE)


def _read_if_possible(path: str) -> bytes | None:
    try:
        return reading.read_as_is(path, most=sizes.HOST_ANSWER)
    except OSError:
        return None
