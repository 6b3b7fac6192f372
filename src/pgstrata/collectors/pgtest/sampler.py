"""Runs pg_test_fsync and pg_test_timing for a moment; what they print is returned verbatim."""

from __future__ import annotations

from typing import Final

from pgstrata.collectors.pgtest.parse import FSYNC, TIMING
from pgstrata.errors import PgstrataError
from pgstrata.ports.host import Command, Completed, Host
from pgstrata.system.commands import empty_folder, give_folder, make_private_folder, remove_empty_folder

# A second each (it takes no less) for the four methods that Linux has; the tables behind the first are not waited for.
_FSYNC_SECONDS: Final = "5"
_TIMING_SECONDS: Final = "10"
_STOPPED: Final = 124
"""Exit code of timeout(1) where the time was over."""
_GRACE: Final = 15.0


def run_fsync(keeper: Host, worker: Host, prefix: str, template: str) -> str:
    """Output of pg_test_fsync of an installation, which writes 16 MB to a file in a folder that is made for it.

    Args:
        keeper: where it runs, as the user who alone can replace the folder in which that one is made.
        worker: the same as the user who runs the program: another one only where the keeper is root.
        prefix: of the installation.
        template: path of that folder, as mktemp takes it. Only the worker can enter it, because pg_test_fsync follows a
            link that has its file's name, and everybody sees that name.

    Raises:
        PgstrataError: it does not start or fails; the message has what it said.
    """
    folder = keeper.run(Command(argv=make_private_folder(template))).text.rstrip("\n")
    try:
        if worker is not keeper:
            keeper.run(Command(argv=give_folder(worker.user, folder)))
        done = _run(worker, _FSYNC_SECONDS, f"{prefix}/bin/{FSYNC}", "-s", "1", "-f", f"{folder}/trial")
    finally:
        remove_trial(keeper, worker, folder)
    if done.code not in {0, _STOPPED}:
        raise _failed(FSYNC, done)
    return done.text


def remove_trial(keeper: Host, worker: Host, folder: str) -> None:
    """Remove the folder of a trial: the worker what is in it, the keeper itself. What is left is no harm."""
    worker.run(Command(argv=empty_folder(folder)), check=False)
    keeper.run(Command(argv=remove_empty_folder(folder)), check=False)


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
