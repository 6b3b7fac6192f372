"""A folder of this machine, sent to another one: installed servers, datasets; and single files of the user's.

What is sent, and where it lies over there, belongs to whoever sends it.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
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
from pgstrata.ports.steps import Steps, finish

_LONG: Final = 7200.0
_LAST_WORDS: Final = 65536
_CONNECTION_FAILED: Final = 255
_PIPE: Final = 1 << 20

# What is not there has its name said; then the architecture.
_SURVEY: Final = """
for program in cksum find sed sha256sum sort tar xargs; do
    command -v "$program" >/dev/null 2>&1 || echo "missing $program"
done
echo "machine $(uname -m)"
"""

# The size in bytes with the path, then names in bin/, each ended by a NUL; then a line with the first bytes of each of
# these: three processes, not three for each. The size is found meanwhile.
_LOOK: Final = r"""
export LC_ALL=C
{
    cd -- "$1/bin" 2>/dev/null || exit 0
    set -- -L . -maxdepth 1 -type f -size +19c
    find "$@" -printf '%f\0' | sort -z
    find "$@" -printf '%f\0' | sort -z | xargs -0 -r head -q -c 20 -- | od -An -v -w20 -tx1
} | { du -sb0 -- "$1" && cat; }
"""

# A session begins slowly, so it is begun before the folder is there. The first line that it gets says that the folder
# is there and empty, and how it is read in the end. `read` takes no byte of what follows that line.
_UNPACK: Final = r"""
IFS= read -r reader && [ -n "$reader" ] || exit 1
cd -- "$1" || exit
tar -b 512 --no-same-owner -xpf - || exit
[ "$reader" != none ] || exit 0
set -- "$1" "$reader"
"""

# One sum for kinds, modes, sizes, links and names of all, and for sums of contents in the order of names; a file that
# cannot be read has none. openssl uses the instructions that CPUs have for SHA-256, which sha256sum often does not;
# both print a sum before the name of a file. The names are listed while contents are read.
_DIGEST: Final = r"""
export LC_ALL=C
cd -- "$1" || exit
sum=sha256sum
command -v openssl >/dev/null 2>&1 && sum='openssl dgst -sha256 -r'
if [ "$2" = sha256 ]; then
    find . -type f -print0 | sort -z | xargs -0 -r $sum 2>&1 | sed -n 's/^\\\{0,1\}\([0-9a-f]\{64\}\) .*/\1/p'
else
    find . -type f -print0 | sort -z | xargs -0 -r cksum 2>&1
fi | {
    find . -type f -printf '%y %m %s %p\0' -o -printf '%y %m %l %p\0' | sort -z
    cat
} | $sum
"""
_SHA256: Final = "sha256"
_CRC: Final = "crc"
_NOTHING: Final = "none"

# What is larger, which no installation is, has its contents checked by POSIX's CRC of each file: on CPUs without
# instructions for it, SHA-256 would take half as long again as sending. ssh itself lets nobody change the contents on
# their way; what is left are accidents.
_THOROUGH: Final = 256 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class SentTree:
    """A tree that is over there, `bytes` as du counts them; `sent` is False where it was there already.

    `digest` is the SHA-256 of all its names, kinds, modes and sizes, and of its contents or their checksums.
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
    if target.exists(target_path):
        return _compare(source, target, path, target_path)
    folder, _, name = target_path.rpartition("/")
    part = f"{folder}/.{name}.part"
    try:
        with _looking(source, path) as look, _receiving(target, part) as receiver:
            size = _require_fit(target, look)
            _require_room(target, target_path, size)
            target.remove_tree(part)
            target.make_folder(part)
            digest = _send(source, receiver, path, _reader_for(size))
        target.rename(part, target_path)
    except BaseException:
        with suppress(PgstrataError):
            target.remove_tree(part)
        raise
    return SentTree(digest=digest, bytes=size, sent=True)


def _require_room(target: Host, path: str, size: int) -> None:
    if target.free_bytes(path) < size:
        raise failures.disk_full(f"{target.name}:{path}", (f"{size} bytes are to be sent there",))


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
    _require_room(target, folder, size)
    parent, _, name = path.rpartition("/")
    options = ("-C", parent or "/", "-b", "512", "--mode=u+rwX", "-hcf", "-")
    packing = Command(argv=("tar", *options, "--", name))
    with _receiving(target, folder) as receiver, receiver.feeding(source, packing, _NOTHING) as packed:
        receiver.finish()
        packed.finish(packing, source)
    return f"{folder}/{name}"


def _survey(target: Host) -> str:
    """What `uname -m` says over there; HostNotFitError for programs that are missing."""
    lines = target.run(Command(argv=("sh", "-c", _SURVEY))).text.splitlines()
    for line in lines:
        if line.startswith("missing "):
            raise failures.program_missing(line.removeprefix("missing "), host=target.name)
    return lines[-1].removeprefix("machine ")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """A look at a folder here, begun while other things are done."""

    path: str
    steps: Steps[Completed]


@contextmanager
def _looking(source: Host, path: str) -> Iterator[_Look]:
    with closing(source.running(Command(argv=("sh", "-c", _LOOK, "sh", path)))) as steps:
        next(steps)
        yield _Look(path=path, steps=steps)


def _require_fit(target: Host, look: _Look) -> int:
    """Bytes of a folder as du counts them; HostNotFitError if that host lacks programs, or cannot run those in bin/."""
    machine = _survey(target)
    size, *names, headers = finish(look.steps).text.split("\0")
    for program, header in zip(names, headers.splitlines(), strict=False):  # one may have gone meanwhile
        if built_for := foreign_architecture(bytes.fromhex(header), machine):
            what = f"{look.path}/bin/{program} is a program for {built_for}, and that host is {machine}"
            remedy = f"name a server that was built for {machine}, such as one that is installed there"
            raise HostNotFitError(what, where=target.name, remedy=remedy)
    return int(size.split()[0])


def _reader_for(size: int) -> str:
    return _SHA256 if size < _THOROUGH else _CRC


def _digest_command(path: str, reader: str) -> Command:
    return Command(argv=("sh", "-c", _DIGEST, "sh", path, reader))


def _digest_in(said: str) -> str:
    """openssl and sha256sum print the digest first, then a name for what they have read."""
    return said.partition(" ")[0].strip()


def _compare(source: Host, target: Host, path: str, target_path: str) -> SentTree:
    """What is there already, read on both sides at once; HostFileError if it is something else."""
    with _looking(source, path) as look:
        size = _require_fit(target, look)
    reader = _reader_for(size)
    with closing(source.running(_digest_command(path, reader), timeout=_LONG)) as summing:
        next(summing)
        there = _digest_in(target.run(_digest_command(target_path, reader), timeout=_LONG).text)
        here = _digest_in(finish(summing).text)
    if here != there:
        remedy = "remove it if pgstrata sent it there and something has changed it since"
        raise HostFileError("there is something else already", where=f"{target.name}:{target_path}", remedy=remedy)
    return SentTree(digest=here, bytes=size, sent=False)


def _send(source: Host, receiver: _Receiver, path: str, reader: str) -> str:
    """Send and compare; the digest."""
    packing = Command(argv=("tar", "-C", path, "-b", "512", "-cf", "-", "."))
    # Here the sum is made meanwhile, where sending leaves the CPU time for it.
    summing = Command(argv=("nice", "-n", "19", *_digest_command(path, reader).argv))
    with (
        receiver.feeding(source, packing, reader) as packed,
        _started(summing, UserAccount.load(source.user)) as summed,
    ):
        there = _digest_in(receiver.finish())
        packed.finish(packing, source)
        here = _digest_in(summed.finish(summing, source))
    if here != there:
        remedy = "see that nothing changes it meanwhile, then give the same command again"
        where = f"{receiver.target.name}:{receiver.folder}"
        raise HostFileError("what arrived is not what was sent", where=where, remedy=remedy)
    return here


@dataclass(frozen=True, slots=True, kw_only=True)
class _Started:
    """A process of this machine; what it complains about goes into a file, so that it never waits for a reader."""

    child: subprocess.Popen[bytes]
    errors: IO[bytes]

    def finish(self, command: Command, host: Host) -> str:
        """Wait for its end; what it said, which a pipe holds. CommandFailedError, DiskFullError if it failed."""
        try:
            code = wait_for(self.child, _LONG)
        except subprocess.TimeoutExpired:
            raise failures.command_overdue(command, _LONG, b"", host=host.name) from None
        if code:
            self.errors.seek(max(0, self.errors.seek(0, os.SEEK_END) - _LAST_WORDS))
            completed = Completed(code=code, stdout=b"", stderr=self.errors.read())
            raise failures.command_failed(command, completed, host=host.name)
        return "" if self.child.stdout is None else self.child.stdout.read().decode("utf-8", "replace")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Receiver:
    """A session over there that unpacks into `folder` what comes through `pipe`, and then reads it."""

    target: SshHost
    folder: str
    session: _Started
    pipe: IO[bytes]

    @contextmanager
    def feeding(self, source: Host, packing: Command, reader: str) -> Iterator[_Started]:
        """Start a tar here whose output goes there. The folder is there and empty; `reader` reads it in the end."""
        with suppress(BrokenPipeError):  # the session has ended, which says why
            self.pipe.write(f"{reader}\n".encode())
        with _started(packing, UserAccount.load(source.user), stdout=self.pipe.fileno()) as packed:
            self.pipe.close()  # or tar over there would never hear that nothing more comes
            yield packed

    def finish(self) -> str:
        """Wait until all is unpacked and read there; what the session said of it."""
        if wait_for(self.session.child) == _CONNECTION_FAILED:
            self.target.clock()  # raises what has happened, if the connection is gone
        return self.session.finish(Command(argv=("tar",)), self.target)


@contextmanager
def _receiving(target: SshHost, folder: str) -> Iterator[_Receiver]:
    """A session over there that waits to unpack something; it ends when nothing comes."""
    ends = os.pipe()
    with os.fdopen(ends[0], "rb", 0) as outlet, os.fdopen(ends[1], "wb", 0) as pipe:
        with suppress(PermissionError):  # the user's share of large pipes is used up
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE)
        words = target.session(("sh", "-c", _UNPACK + _DIGEST, "sh", folder))
        with _started(Command(argv=words), UserAccount.load(None), stdin=outlet.fileno()) as session:
            outlet.close()  # or tar here would never hear that nobody reads any more
            yield _Receiver(target=target, folder=folder, session=session, pipe=pipe)


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
