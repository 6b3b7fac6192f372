"""What pg_test_fsync and pg_test_timing say of a host: the cost of a flush and of reading the clock."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from pgstrata.errors import ParseError, PgstrataError
from pgstrata.model import sizes
from pgstrata.ports.host import Command, Completed, Host
from pgstrata.system.commands import empty_folder, give_folder, make_private_folder, remove_empty_folder

FSYNC: Final = "pg_test_fsync"
TIMING: Final = "pg_test_timing"

_ONE_WRITE: Final = re.compile(
    r"^Compare file sync methods using one \S+ write:\n(?P<table>.*?)(?:\n\s*\n|\Z)", re.MULTILINE | re.DOTALL
)
_METHOD: Final = re.compile(
    r"^\s+(?P<method>[a-z_]+)\s+(?P<rate>\d+(?:\.\d+)?) ops/sec\s+\d+ usecs/op\s*$", re.MULTILINE
)
# "Per loop … ns" up to 18 ("nsec" up to 9.6), "Average loop … ns" from 19 on; there other clocks follow the system's.
_LOOP: Final = re.compile(
    r"^(?:Per|Average) loop time including overhead: (?P<time>\d+(?:\.\d+)?) ns(?:ec)?\s*$", re.MULTILINE
)


def parse_fsync(output: str) -> Mapping[str, float]:
    """Seconds per write and flush of 8 kB by method (fdatasync, open_datasync, ...), in the order of the output.

    The rate is read and not the time beside it, which is rounded to microseconds. Methods that the system lacks (n/a)
    or that were not reached are left out: the program may have been stopped after its first table.

    Raises:
        ParseError: there is no such table, or no method in it.
    """
    found = _ONE_WRITE.search(output)
    rates = {row["method"]: float(row["rate"]) for row in _METHOD.finditer(found["table"])} if found else {}
    costs = {method: 1 / rate for method, rate in rates.items() if rate > 0}
    if not costs:
        raise ParseError(f"no method with its rate: {_first_line(output)!r}", where=FSYNC)
    return costs


def parse_timing(output: str) -> float:
    """Seconds that a look at the system's clock takes, the loop around it included.

    Raises:
        ParseError: the line with the time is missing; the message has the first line instead.
    """
    found = _LOOP.search(output)
    if found is None:
        raise ParseError(f"no time per loop: {_first_line(output)!r}", where=TIMING)
    return float(found["time"]) * 1e-9


def _first_line(output: str) -> str:
    return output.strip().partition("\n")[0][:200]


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
    return host.run(
        Command(argv=stopped, folder="/", memory=sizes.PROGRAM), timeout=float(seconds) + _GRACE, check=False
    )


def _failed(program: str, done: Completed) -> PgstrataError:
    said = done.complaints.strip() or done.text.strip()
    what = f"{program} did not end in time" if done.code == _STOPPED else f"{program} failed (code {done.code})"
    return PgstrataError(f"{what}: {said.splitlines()[-1][:200]}" if said else what)
