"""The program as it is started: its streams, its signals, its exit code."""

import errno
import os
import resource
import signal
import sys
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import NoReturn

import typer

from pgstrata.cli.completion import join_words
from pgstrata.cli.main import app
from pgstrata.cli.plain import make_plain
from pgstrata.errors import ExitCode, PgstrataError


def entry() -> NoReturn:
    """Expected failures become a message and an exit code, never a traceback. No text can control the terminal.

    The streams stay replaced until the process ends, so that a traceback, which is a defect, is printed as plainly.
    """
    _open_missing_streams()
    # A core has every password of the process in it; what pgstrata starts inherits the limit.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.stdout, sys.stderr = make_plain(sys.stdout), make_plain(sys.stderr)
    catch_signals()
    join_words()
    try:
        # commands return nothing: a number is the exit code that typer makes of an interrupt or of typer.Exit
        code = app(standalone_mode=False) or ExitCode.DONE
        sys.stdout.flush()
    except PgstrataError as error:
        _leave(_masked(f"pgstrata: {error}"), error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        _leave("pgstrata: interrupted", ExitCode.INTERRUPTED)
    except OSError as error:
        _leave_unheard(error)
    except typer.Exit as done:
        _end(done.exit_code)
    except SystemExit as done:
        # typer makes an exit of its own of a broken pipe
        _end(ExitCode.DONE if isinstance(done.__context__, BrokenPipeError) else done.code)
    except _usage_errors() as error:
        error.message = _masked(error.message)  # type: ignore[attr-defined]
        error.show()  # type: ignore[attr-defined]
        _end(ExitCode.USAGE)
    if code == ExitCode.INTERRUPTED:
        _leave("pgstrata: interrupted", code)
    _end(code)


def _open_missing_streams() -> None:
    """A program may be started with closed streams; then there is nobody to tell, which is no reason to fail."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - until the program ends


def _masked(text: str) -> str:
    """A message without passwords: it may quote an argument that is a connection string in the wrong place."""
    from pgstrata.experiment.servers import mask_conninfo

    return mask_conninfo(text)


def _usage_errors() -> type[Exception]:
    """Typer's own base of errors in the words of a command, wherever this version of typer keeps it."""
    return next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")


def catch_signals() -> None:
    """Signals begin a clean end. One that `nohup` has the program ignore stays ignored."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    """The first signal begins the clean end; later ones must not break it off half-way."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _already_ending)
    raise KeyboardInterrupt


def _already_ending(_signal: int, _frame: FrameType | None) -> None:
    # not by print: the signal may have come in the middle of one, and the terminal may be gone
    with suppress(OSError):
        os.write(2, b"\npgstrata: still cleaning up, a moment\n")


def _leave_unheard(error: OSError) -> NoReturn:
    """Standard output takes no more: whoever read it has seen enough, or its disk is full. Others are defects."""
    if isinstance(error, BrokenPipeError):
        _end(ExitCode.DONE)
    if error.errno != errno.ENOSPC or error.filename is not None:
        raise error
    _leave(
        "pgstrata: standard output: the disk is full\n  -> free space, or send the output elsewhere",
        ExitCode.HOST_NOT_FIT,
    )


def _leave(text: str, code: ExitCode) -> NoReturn:
    with suppress(OSError):
        print(text, file=sys.stderr)
    _end(code)


def _end(code: int | str | None) -> NoReturn:
    """Leave; what nobody takes any more is dropped without a word, and no signal changes the exit code now."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    sys.exit(code)
