"""Runs pg_test_fsync and pg_test_timing for a moment; what they print is returned verbatim."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pgstrata.collectors.pgtest.parse import FSYNC, TIMING
from pgstrata.errors import PgstrataError
from pgstrata.ports.host import Command, Completed, Host
from pgstrata.system.commands import remove_files

# A second each (it takes no less) for the four methods that Linux has; the tables behind the first are not waited for.
_FSYNC_SECONDS: Final = "5"
_TIMING_SECONDS: Final = "10"
_STOPPED: Final = 124
"""Exit code of timeout(1) where the time was over."""
_GRACE: Final = 15.0


def run_fsync(host: Host, prefix: str, file: str, become: Sequence[str] = ()) -> str:
    """Output of pg_test_fsync of an installation, which writes 16 MB to `file` and removes it.

    Args:
        host: where it runs.
        prefix: of the installation.
        file: an unpredictable name, because pg_test_fsync follows a link of that name.
        become: words in front of the command that run it as another user.

    Raises:
        PgstrataError: it does not start or fails; the message has what it said.
    """
    try:
        done = _run(host, _FSYNC_SECONDS, *become, f"{prefix}/bin/{FSYNC}", "-s", "1", "-f", file)
    finally:
        # where it was killed it could not remove the file itself
        host.run(Command(argv=(*become, *remove_files(file))), check=False)
    if done.code not in {0, _STOPPED}:
        raise _failed(FSYNC, done)
    return done.text


def run_timing(host: Host, prefix: str) -> str:
    """Output of pg_test_timing of an installation.

    Raises:
        PgstrataError: it does not start or fails, or the clock went backwards; the message has what it said.
    """
    done = _run(host, _TIMING_SECONDS, f"{prefix}/bin/{TIMING}", "-d", "1")
    if done.code:
        raise _failed(TIMING, done)
    return done.text


def _run(host: Host, seconds: str, *argv: str) -> Completed:
    # SIGINT: the programs clean up after themselves
    stopped = ("timeout", "--signal=INT", "--kill-after=5", seconds, *argv)
    return host.run(Command(argv=stopped, folder="/"), timeout=float(seconds) + _GRACE, check=False)


def _failed(program: str, done: Completed) -> PgstrataError:
    said = done.complaints.strip() or done.text.strip()
    what = f"the time of {program} was over" if done.code == _STOPPED else f"{program} failed (code {done.code})"
    return PgstrataError(f"{what}: {said.splitlines()[-1][:200]}" if said else what)
