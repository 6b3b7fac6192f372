"""Errors that a user can act on: what happened, where, what to do, and the exit code.

Expected failures are raised as one of these; a traceback is always a defect of pgstrata.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

DISK_FULL: Final = ("No space left on device", "Disk quota exceeded")
"""Texts of ENOSPC and EDQUOT in the C locale, in which every program is run."""

LARGER_FILE_SYSTEM: Final = (
    "give a larger storage.size (or storage.device), or a smaller scale: that is another experiment, so in a new study"
)
"""What to do where a file system is full that pgstrata made for the data alone: no other space counts there."""

SMALLER_WAL: Final = (
    "set a smaller max_wal_size, or give a larger device for storage.wal: that is another experiment, so in a new study"
)
"""What to do where a file system is full that pgstrata made for the WAL alone."""


class ExitCode(IntEnum):
    """Exit codes of the command line, fixed by the reference of the experiment file."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    UNDECIDED = 3
    HOST_NOT_FIT = 4
    INTERRUPTED = 130


class PgstrataError(Exception):
    """An expected failure.

    Args:
        what: one sentence that says what happened.
        where: file, line, key, host or path; empty if `what` already says it.
        remedy: what the user can do about it.
        details: further lines, such as the end of a server's log.
    """

    exit_code: ExitCode = ExitCode.FAILED

    def __init__(self, what: str, *, where: str = "", remedy: str = "", details: tuple[str, ...] = ()) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.remedy = remedy
        self.details = details

    def __str__(self) -> str:
        head = f"{self.where}: {self.what}" if self.where else self.what
        lines = [head, *(f"  | {line}" for line in self.details)]
        if self.remedy:
            lines.append(f"  -> {self.remedy}")
        return "\n".join(lines)


class UsageError(PgstrataError):
    """The question cannot be asked like this: a file, key, option or level is wrong."""

    exit_code = ExitCode.USAGE


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong with an experiment file; line is None where no line can be named."""

    line: int | None
    key: str
    what: str
    remedy: str


class ExperimentError(UsageError):
    """Everything that is wrong with an experiment file, at once; `more`: there may be further problems."""

    def __init__(self, source: str, problems: tuple[Problem, ...], *, more: bool = False) -> None:
        count = f"{len(problems)} {'problem' if len(problems) == 1 else 'problems'}"
        what = f"{count} in the experiment file{', and there may be more' if more else ''}"
        super().__init__(what, where=source)
        self.source = source
        self.problems = problems

    def __str__(self) -> str:
        lines = [f"{self.what}: {self.source}"]
        for problem in self.problems:
            place = f"{self.source}:{problem.line}" if problem.line else self.source
            lines.append(f"{place}: {problem.key}: {problem.what}" if problem.key else f"{place}: {problem.what}")
            if problem.remedy:
                lines.append(f"  -> {problem.remedy}")
        return "\n".join(lines)


class PlanRefusedError(UsageError):
    """The plan would produce a lie (guards) or cannot be carried out as asked."""


class HostNotFitError(PgstrataError):
    """The host cannot carry the plan now: disk, memory, a missing program, another pgstrata at work."""

    exit_code = ExitCode.HOST_NOT_FIT


class RebootError(PgstrataError):
    """This machine has to be rebooted before a study can go on, which ends pgstrata; the same command resumes it."""


class BootFailedError(HostNotFitError):
    """A host does not come up with the kernel that it was told to boot, or not at all.

    `asked` says which boot it is the fault of (`Boot.text`); empty where that is not known.
    """

    def __init__(
        self, what: str, *, where: str = "", remedy: str = "", details: tuple[str, ...] = (), asked: str = ""
    ) -> None:
        super().__init__(what, where=where, remedy=remedy, details=details)
        self.asked = asked


class DiskFullError(HostNotFitError):
    """A write failed because a file system is full."""


class DatabaseFullError(DiskFullError):
    """The server at `host` and `port` found no room on its disk for what a statement needs."""

    def __init__(self, what: str, *, host: str, port: int, where: str = "", remedy: str = "") -> None:
        super().__init__(what, where=where, remedy=remedy)
        self.host = host
        self.port = port


def find_disk_full(text: str) -> str:
    """The first line that says that a disk is full, or the empty text.

    A segment of shared memory that cannot be made says so too, but what has run out there is memory.
    """
    for line in text.splitlines():
        if any(words in line for words in DISK_FULL) and "shared memory" not in line:
            return line.strip()
    return ""


class ServerUnusableError(HostNotFitError):
    """An installed server cannot be used as it is: its programs do not start, or may not be started."""

    exit_code = ExitCode.FAILED


class CommandFailedError(PgstrataError):
    """A command on a host ended with an error."""


class HostFileError(PgstrataError):
    """A file on a host is missing or cannot be read or written."""


class HostLostError(PgstrataError):
    """The connection to a host broke."""


class ServerFailedError(PgstrataError):
    """A server did not start, died, or answered with an error; details carry the end of its log."""


class SqlError(ServerFailedError):
    """A statement failed; `sqlstate` is the five-character code or empty."""

    def __init__(self, what: str, *, sqlstate: str = "", where: str = "", remedy: str = "") -> None:
        super().__init__(what, where=where, remedy=remedy)
        self.sqlstate = sqlstate


class SessionLostError(ServerFailedError):
    """A connection that was open has broken, because the server ended it, or has ended itself, or does not answer."""


class LevelNotTakenError(PgstrataError):
    """A level was asked for and, seen from inside, is not there."""


class ParseError(PgstrataError):
    """Output of a tool has an unknown shape; the message quotes the line."""


class StudyError(PgstrataError):
    """A study is damaged, locked, read-only, or belongs to another plan."""


class ArchiveError(PgstrataError):
    """An archive of a live server is missing, damaged, in use, or of another format."""


class BundleError(StudyError):
    """A bundle is damaged, altered, of another format, or signed otherwise than was asked for."""

    exit_code = ExitCode.USAGE


class InterruptedByUserError(PgstrataError):
    """The user asked to stop; what was measured is kept."""

    exit_code = ExitCode.INTERRUPTED
