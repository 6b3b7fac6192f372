"""Failures of files and commands as errors that a user can act on, worded alike by every host."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterable
from typing import Final

from pgstrata.errors import (
    DISK_FULL,
    CommandFailedError,
    DiskFullError,
    HostFileError,
    HostLostError,
    HostNotFitError,
    PgstrataError,
)
from pgstrata.model.packages import render_remedy
from pgstrata.model.secret import Secret
from pgstrata.ports.host import Command, Completed

_LINES_SHOWN: Final = 12
# Quotation marks are straight or, as coreutils likes them, curly.
_QUOTED_PATH: Final = re.compile("['\"\u2018\u201c]([^'\"\u2018\u2019\u201c\u201d]+)['\"\u2019\u201d][^'\"]*$")
_BARE_PATH: Final = re.compile(r"(/[^\s:]+)[^/]*$")


def file_failed(doing: str, path: str, reason: str, *, user: str) -> PgstrataError:
    """The error for a file operation that failed for `reason`, a text of the operating system."""
    if any(text in reason for text in DISK_FULL):
        return disk_full(path)
    remedy = f"check the path and that the user {user} may use it"
    return HostFileError(f"cannot {doing}: {reason}", where=path, remedy=remedy)


def disk_full(path: str, details: Iterable[str] = ()) -> DiskFullError:
    """The error for a write that found its file system full."""
    remedy = "free space on that file system, or choose a folder on another one; see `df -h`"
    return DiskFullError("the file system is full", where=path, remedy=remedy, details=tuple(details))


def program_missing(program: str, *, host: str) -> HostNotFitError:
    """The error for a program that is not there."""
    return HostNotFitError(f"the program {program} is missing", where=host, remedy=render_remedy(program))


def program_refused(program: str, reason: str, *, host: str, user: str) -> HostNotFitError:
    """The error for a program that is there and cannot be started."""
    remedy = f"check that it is a program for this machine and that the user {user} may execute it"
    return HostNotFitError(f"the program {program} cannot be started: {reason}", where=host, remedy=remedy)


def command_failed(command: Command, completed: Completed, *, host: str) -> PgstrataError:
    """The error for a command that ended with an error; a full disk is recognised by what the command said."""
    lines = _last_lines(completed.stderr or completed.stdout, command)
    for line in lines:
        if any(text in line for text in DISK_FULL):
            return disk_full(_path_in(line) or f"{host}: {command.argv[0]}", lines)
    remedy = "the lines above are its last output" if lines else "it gave no reason"
    return CommandFailedError(
        f"{command.argv[0]} {render_end(completed.code)}", where=host, remedy=remedy, details=lines
    )


def command_overdue(command: Command, timeout: float, stderr: bytes, *, host: str) -> CommandFailedError:
    """The error for a command that was killed because it did not end in time."""
    what = f"{command.argv[0]} did not end within {timeout:g} s and was killed"
    remedy = "the host may be overloaded or its storage stuck; try again when it is idle"
    return CommandFailedError(what, where=host, remedy=remedy, details=_last_lines(stderr, command))


def command_verbose(command: Command, most: int, *, host: str) -> CommandFailedError:
    """The error for a command that said more than can be kept; if it still ran, it was killed."""
    what = f"{command.argv[0]} printed more than {most >> 20} MiB"
    return CommandFailedError(what, where=host, remedy="see what it prints, and why")


def host_lost(what: str, *, host: str, details: Iterable[str] = ()) -> HostLostError:
    """The error for a transport that broke."""
    remedy = "check that the host is up and reachable, then start again: what was measured is kept"
    return HostLostError(what, where=host, remedy=remedy, details=tuple(details))


def render_end(code: int) -> str:
    """How a process ended, for people: exit status, or minus the number of a signal."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"


def _last_lines(output: bytes, command: Command) -> tuple[str, ...]:
    text = output.decode("utf-8", "replace")
    # A program may repeat what it was given, such as a connection string.
    if command.password:
        text = text.replace(command.password.reveal(), Secret.MASK)
    return tuple(line for line in text.splitlines() if line.strip())[-_LINES_SHOWN:]


def _path_in(line: str) -> str:
    before = line[: min(at for text in DISK_FULL if (at := line.find(text)) >= 0)]
    found = _QUOTED_PATH.search(before) or _BARE_PATH.search(before)
    return found.group(1) if found else ""
