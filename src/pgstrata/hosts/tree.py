"""A folder of this machine, sent to another one: installed servers, datasets; and single files of the user's.

What is sent, and where it lies over there, belongs to whoever sends it.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO, Final

from pgstrata.errors import HostFileError, HostNotFitError, PgstrataError
from pgstrata.hosts import failures
from pgstrata.hosts.account import UserAccount
from pgstrata.hosts.elf import foreign_architecture
from pgstrata.hosts.lanes import wait_for
from pgstrata.hosts.local_process import kill_group, start
from pgstrata.hosts.ssh import SshHost
from pgstrata.ports.host import Command, Completed, Host, StopSignal

_LONG: Final = 7200.0
_LAST_WORDS: Final = 65536
_CONNECTION_FAILED: Final = 255
_PIPE: Final = 1 << 20

# What is not there has its name said; then the architecture.
_SURVEY: Final = """
for program in cksum cut find sha256sum sort tar xargs; do
    command -v "$program" >/dev/null 2>&1 || echo "missing $program"
done
echo "machine $(uname -m)"
"""

# One sum for kinds, modes, links, names and contents; a file that cannot be read makes another one.
_DIGEST: Final = r"""
export LC_ALL=C
cd -- "$1" || exit
{
    find . -printf '%y %m %l %p\0' | sort -z
    find . -type f -print0 | sort -z | xargs -0 -r "$2" 2>&1
} | sha256sum | cut -d ' ' -f 1
"""

# What is larger, which no installation is, has its contents checked by POSIX's CRC of each file: SHA-256 would take
# half as long again as sending. ssh itself lets nobody change them on their way; what is left are accidents.
_THOROUGH: Final = 256 << 20

# Names in bin/, each ended by a NUL, then a line with the first bytes of each: three processes, not three for each.
_HEADERS: Final = r"""
export LC_ALL=C
cd -- "$1/bin" 2>/dev/null || exit 0
set -- -L . -maxdepth 1 -type f -size +19c
find "$@" -printf '%f\0' | sort -z
find "$@" -printf '%f\0' | sort -z | xargs -0 -r head -q -c 20 -- | od -An -v -w20 -tx1
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SentTree:
    """A tree that is over there, `bytes` as du counts them; `sent` is False where it was there already.

    `digest` is the SHA-256 of all its names, kinds, modes and sums of contents.
    """

    digest: str
    bytes: int
    sent: bool


def send_tree(source: Host, target: SshHost, path: str, target_path: str) -> SentTree:
    """Send a folder, so that it is there with all that is in it, or not at all; redone from the start if it was cut.

    It goes to a name beside `target_path` (a path in a folder of pgstrata's own), is read there and compared with what
    is here, and only then renamed. What lies at `target_path` already is compared, and never replaced.

    Args:
        source: a host that is this machine; its user must be able to read all of `path`.
        target: its user will own everything.
        path: the folder, absolute.
        target_path: the folder that is to be made of it, absolute.

    Raises:
        HostNotFitError: programs in its bin/ are for another architecture, a program is missing over there, or (as
            DiskFullError) there is no room.
        HostFileError: `target_path` is there and is something else, or what arrived is not what was sent.
        HostLostError, CommandFailedError: it was cut; tar failed.
    """
    machine = _survey(target)
    _refuse_foreign(source, path, machine, target.name)
    size = int(source.run(Command(argv=("du", "-sb", "--", path))).text.split()[0])
    if target.exists(target_path):
        digest = _digest(source, _digest_command(path, size))
        if digest != _digest(target, _digest_command(target_path, size)):
            remedy = "remove it if pgstrata sent it there and something has changed it since"
            raise HostFileError("there is something else already", where=f"{target.name}:{target_path}", remedy=remedy)
        return SentTree(digest=digest, bytes=size, sent=False)
    if target.free_bytes(target_path) < size:
        raise failures.disk_full(f"{target.name}:{target_path}", (f"{size} bytes are to be sent there",))
    folder, _, name = target_path.rpartition("/")
    part = f"{folder}/.{name}.part"
    target.remove_tree(part)
    target.make_folder(part)
    try:
        digest = _send(source, target, path, part, size)
        target.rename(part, target_path)
    except BaseException:
        with suppress(PgstrataError):
            target.remove_tree(part)
        raise
    return SentTree(digest=digest, bytes=size, sent=True)


def send_file(source: Host, target: SshHost, path: str, folder: str) -> str:
    """Send a file, or a folder with all in it, into an empty folder over there; the path that it has there.

    Links are followed. Nothing is compared.

    Args:
        source: a host that is this machine; its user must be able to read what is sent.
        target: its user will own everything.
        path: absolute.
        folder: an empty one over there.

    Raises:
        HostNotFitError: a program is missing over there.
        DiskFullError: there is no room.
        HostLostError, CommandFailedError: it was cut; tar failed.
    """
    _survey(target)
    size = int(source.run(Command(argv=("du", "-Lsb", "--", path))).text.split()[0])
    if target.free_bytes(folder) < size:
        raise failures.disk_full(f"{target.name}:{folder}", (f"{size} bytes are to be sent there",))
    parent, _, name = path.rpartition("/")
    options = ("-C", parent or "/", "-b", "512", "--mode=u+rwX", "-hcf", "-")
    _stream(source, target, Command(argv=("tar", *options, "--", name)), folder)
    return f"{folder}/{name}"


def _survey(target: Host) -> str:
    """What `uname -m` says over there; HostNotFitError for programs that are missing."""
    lines = target.run(Command(argv=("sh", "-c", _SURVEY))).text.splitlines()
    for line in lines:
        if line.startswith("missing "):
            raise failures.program_missing(line.removeprefix("missing "), host=target.name)
    return lines[-1].removeprefix("machine ")


def _refuse_foreign(source: Host, path: str, machine: str, target: str) -> None:
    *names, headers = source.run(Command(argv=("sh", "-c", _HEADERS, "sh", path))).text.split("\0")
    for program, header in zip(names, headers.splitlines(), strict=False):  # one may have gone meanwhile
        if built_for := foreign_architecture(bytes.fromhex(header), machine):
            what = f"{path}/bin/{program} is a program for {built_for}, and that host is {machine}"
            remedy = f"name a server that was built for {machine}, such as one that is installed there"
            raise HostNotFitError(what, where=target, remedy=remedy)


def _digest(host: Host, command: Command) -> str:
    return host.run(command, timeout=_LONG).text.strip()


def _digest_command(path: str, size: int) -> Command:
    return Command(argv=("sh", "-c", _DIGEST, "sh", path, "sha256sum" if size < _THOROUGH else "cksum"))


def _send(source: Host, target: SshHost, path: str, part: str, size: int) -> str:
    """Send and compare; the digest."""
    # Here the sum is made meanwhile, where sending leaves the CPU time for it.
    summing = Command(argv=("nice", "-n", "19", *_digest_command(path, size).argv))
    packing = Command(argv=("tar", "-C", path, "-b", "512", "-cf", "-", "."))
    with _started(summing, UserAccount.load(source.user)) as summed:
        _stream(source, target, packing, part)
        there = _digest(target, _digest_command(part, size))
        # one line, which the pipe holds
        summed.check(summing, source)
        here = summed.output.read().decode().strip()
    if here != there:
        remedy = "see that nothing changes it meanwhile, then give the same command again"
        raise HostFileError("what arrived is not what was sent", where=f"{target.name}:{part}", remedy=remedy)
    return here


def _stream(source: Host, target: SshHost, packing: Command, folder: str) -> None:
    """What a tar here writes, unpacked in a folder over there."""
    unpacking = Command(argv=("tar", "-C", folder, "-b", "512", "--no-same-owner", "-xpf", "-"))
    session = Command(argv=target.session(unpacking.argv))
    with _started(packing, UserAccount.load(source.user)) as packed:
        pipe = packed.output
        with suppress(PermissionError):  # the user's share of large pipes is used up
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE)
        with _started(session, UserAccount.load(None), stdin=pipe.fileno(), stdout=subprocess.DEVNULL) as unpacked:
            pipe.close()  # or tar would never hear that nobody reads any more
            if wait_for(unpacked.child) == _CONNECTION_FAILED:
                target.clock()  # raises what has happened, if the connection is gone
            unpacked.check(unpacking, target)
        packed.check(packing, source)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Started:
    """A process of this machine; what it complains about goes into a file, so that it never waits for a reader."""

    child: subprocess.Popen[bytes]
    errors: IO[bytes]

    @property
    def output(self) -> IO[bytes]:
        assert self.child.stdout is not None
        return self.child.stdout

    def check(self, command: Command, host: Host) -> None:
        """Wait for its end; CommandFailedError, DiskFullError if it failed."""
        try:
            code = wait_for(self.child, _LONG)
        except subprocess.TimeoutExpired:
            raise failures.command_overdue(command, _LONG, b"", host=host.name) from None
        if code:
            self.errors.seek(max(0, self.errors.seek(0, os.SEEK_END) - _LAST_WORDS))
            completed = Completed(code=code, stdout=b"", stderr=self.errors.read())
            raise failures.command_failed(command, completed, host=host.name)


@contextmanager
def _started(
    command: Command, user: UserAccount, *, stdin: int = subprocess.DEVNULL, stdout: int = subprocess.PIPE
) -> Iterator[_Started]:
    """Start a program as a user of this machine; what still runs in the end is killed."""
    with tempfile.TemporaryFile() as errors:
        try:
            child = start(
                command,
                user,
                stdin=stdin,
                stdout=stdout,
                stderr=errors.fileno(),
                on_parent_death=StopSignal.KILL,
            )
        except FileNotFoundError as error:
            raise failures.program_missing(command.argv[0], host="local") from error
        except OSError as error:
            reason = error.strerror or str(error)
            raise failures.program_refused(command.argv[0], reason, host="local", user=user.name) from error
        with child:
            try:
                yield _Started(child=child, errors=errors)
            finally:
                if child.poll() is None:  # only what has failed still runs
                    kill_group(child.pid)
