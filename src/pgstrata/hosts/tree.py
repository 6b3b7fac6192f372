"""A folder of this machine, sent to another one: installed servers, datasets; and single files of the user's.

What is sent, and where it lies over there, belongs to whoever sends it. `contents` has what is compared.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO, Final

from pgstrata.errors import HostFileError, HostNotFitError, PgstrataError
from pgstrata.hosts import failures
from pgstrata.hosts.account import UserAccount
from pgstrata.hosts.contents import FIND, Contents, Listing, Reader, parse_contents, parse_listing, parse_read
from pgstrata.hosts.elf import HEADER, foreign_architecture
from pgstrata.hosts.local_process import holding
from pgstrata.hosts.pipes import Started, hear, started
from pgstrata.hosts.ssh import SshHost
from pgstrata.hosts.transport import quote
from pgstrata.ports.host import Command, Host
from pgstrata.system.reading import read_head

_FIRST_CONTACT: Final = 60.0
_CONNECTION_FAILED: Final = 255
_PIPE: Final = 1 << 20
_SHOWN: Final = 5

# openssl uses the instructions that CPUs have for SHA-256, which sha256sum often does not.
_CHOOSE: Final = """
sum=cksum
if [ "$reader" = sha256 ]; then
    sum=sha256sum
    if command -v openssl >/dev/null 2>&1; then sum='openssl dgst -sha256 -r'; fi
fi
"""

# Reads the files whose names it gets.
_SUM: Final = f"reader=$1{_CHOOSE}exec xargs -0 -r $sum"

# A session begins slowly, so it is begun before anything else is known. Its first line has the mark, by which it is
# told from what a login says, the architecture, and the names of missing programs. Then it waits for a line that says
# that the folder is there, what to do and how to read it. `read` takes no byte of what follows that line.
_RECEIVE: Final = f"""
export LC_ALL=C
missing=
for program in cksum find sha256sum tar xargs; do
    command -v "$program" >/dev/null 2>&1 || missing="$missing $program"
done
echo "$2 $(uname -m)$missing"
IFS=' ' read -r task reader && [ -n "$reader" ] || exit 1
cd -- "$1" || exit
if [ "$task" = unpack ]; then
    tar -b 512 --no-same-owner -xpf - || exit
fi
[ "$reader" != none ] || exit 0
find . {quote(*FIND)} || exit
{_CHOOSE}
find . -type f -print0 | xargs -0 -r $sum
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SentTree:
    """A tree that is over there, `bytes` those of its files; `sent` is False where it was there already.

    `digest` is the SHA-256 of all its names, kinds, modes and sizes, and of the checksums of its contents.
    """

    digest: str
    bytes: int
    sent: bool


def send_tree(source: Host, target: SshHost, path: str, target_path: str) -> SentTree:
    """Send a folder, so that it is there with all that is in it, or not at all; redone from the start if it was cut.

    It goes to a name beside `target_path` (a path in a folder of pgstrata's own), is read there and compared with what
    is here, and only then renamed. What lies at `target_path` already is compared, and never replaced. Nothing waits
    for the disk over there: what a crash of that machine damages is found by the next comparison.

    Args:
        source: a host that is this machine; its user must be able to read all of `path`.
        target: its user will own everything.
        path: the folder, absolute.
        target_path: the folder that is to be made of it, absolute.

    Raises:
        HostNotFitError: programs in a bin/ of it are for another architecture, a program is missing over there, or (as
            DiskFullError) there is no room.
        HostFileError: `target_path` is there and is something else, or what arrived is not what was sent.
        HostLostError, CommandFailedError: it was cut; tar failed.
    """
    if target.exists(target_path):
        return _compare(source, target, path, target_path)
    folder, _, name = target_path.rpartition("/")
    part = f"{folder}/.{name}.part"
    try:
        with _receiving(target, part) as receiver, _reading(source, path) as reading:
            _require_fit(receiver, reading)
            _require_room(target, target_path, reading.listing.size)
            target.remove_tree(part)
            target.make_folder(part)
            digest = _send(receiver, reading)
        target.rename(part, target_path)
    except BaseException:
        with suppress(PgstrataError):
            target.remove_tree(part)
        raise
    return SentTree(digest=digest, bytes=reading.listing.size, sent=True)


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
    with _receiving(target, folder) as receiver:
        size = int(source.run(Command(argv=("du", "-Lsb", "--", path))).text.split()[0])
        receiver.greet()
        _require_room(target, folder, size)
        parent, _, name = path.rpartition("/")
        options = ("-C", parent or "/", "-b", "512", "--mode=u+rwX", "-hcf", "-")
        packing = Command(argv=("tar", *options, "--", name))
        with receiver.feeding(packing, UserAccount.load(source.user), Reader.NOTHING) as packed:
            receiver.finish("tar")
            packed.finish("tar", source.name)
    return f"{folder}/{name}"


def _require_fit(receiver: _Receiver, reading: _Reading) -> None:
    """HostNotFitError if that host lacks programs, or cannot run those in a bin/."""
    machine = receiver.greet()
    for program in reading.listing.programs:
        if built_for := foreign_architecture(reading.head(program), machine):
            path = f"{reading.path}/{os.fsdecode(program)}"
            what = f"{path} is a program for {built_for}, and that host is {machine}"
            remedy = f"name a server that was built for {machine}, such as one that is installed there"
            raise HostNotFitError(what, where=receiver.target.name, remedy=remedy)


def _compare(source: Host, target: SshHost, path: str, target_path: str) -> SentTree:
    """What is there already, read on both sides at once; HostFileError if it is something else."""
    with _receiving(target, target_path) as receiver, _reading(source, path) as reading:
        _require_fit(receiver, reading)
        receiver.tell("read", reading.reader)
        receiver.finish("find", beside=(reading.summed,))
        digest, differences = _compare_contents(receiver, reading)
    if differences:
        where = f"{target.name}:{target_path}"
        remedy = "remove it if pgstrata sent it there and something has changed it since"
        raise HostFileError("there is something else already", where=where, remedy=remedy, details=differences)
    return SentTree(digest=digest, bytes=reading.listing.size, sent=False)


def _send(receiver: _Receiver, reading: _Reading) -> str:
    """Send and compare; the digest."""
    packing = Command(argv=("tar", "-C", reading.path, "-b", "512", "-cf", "-", "."))
    with receiver.feeding(packing, reading.user, reading.reader) as packed:
        receiver.finish("tar", beside=(reading.summed,))
        packed.finish("tar", reading.host)
    digest, differences = _compare_contents(receiver, reading)
    if differences:
        where = f"{receiver.target.name}:{receiver.folder}"
        remedy = "see that nothing changes it meanwhile, then give the same command again"
        raise HostFileError("what arrived is not what was sent", where=where, remedy=remedy, details=differences)
    return digest


def _compare_contents(receiver: _Receiver, reading: _Reading) -> tuple[str, tuple[str, ...]]:
    """The digest of what is here, and what differs over there: nothing if both are the same."""
    here = reading.contents()
    there = parse_read(bytes(receiver.session.said), reading.reader)
    if here is None or there is None:
        return "", ("a file was not read",)
    paths = here.differing(there)[:_SHOWN]
    return here.digest, tuple(f"{(os.fsdecode(path) or '.')!r} differs" for path in paths)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """A folder of this machine that was listed, and whose files are read by `summed`, in the order of the listing."""

    path: str
    host: str
    user: UserAccount
    listing: Listing
    reader: Reader
    summed: Started

    def head(self, name: bytes) -> bytes:
        """The first bytes of a file; nothing of what cannot be read, or is not one."""
        with self.user.acting(), suppress(OSError):
            return read_head(f"{self.path}/{os.fsdecode(name)}", HEADER)
        return b""

    def contents(self) -> Contents | None:
        """Wait until all files are read; None if one could not be."""
        hear((self.summed,), lambda: False)
        self.summed.finish("xargs", self.host)
        return parse_contents(self.listing, bytes(self.summed.said), self.reader)


@contextmanager
def _reading(source: Host, path: str) -> Iterator[_Reading]:
    """List a folder, and begin to read its files where the CPU has time for it."""
    user = UserAccount.load(source.user)
    with started(Command(argv=("find", "-H", path, *FIND)), user) as found:
        hear((found,), lambda: False)
        found.finish("find", source.name)
    listing = parse_listing(bytes(found.said))
    # Programs will be run. Of data, ssh itself lets nobody change the contents on their way, and a CRC finds accidents;
    # SHA-256 would take a fifth of the CPU time of sending.
    reader = Reader.SHA256 if listing.programs else Reader.CRC
    summing = Command(argv=("nice", "-n", "19", "sh", "-c", _SUM, "sh", reader), folder=path)
    names = b"".join(b"./%b\0" % name for name in listing.files)
    with holding(names) as stdin, started(summing, user, stdin=stdin) as summed:
        yield _Reading(path=path, host=source.name, user=user, listing=listing, reader=reader, summed=summed)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Receiver:
    """A session over there that unpacks into `folder` what comes through `pipe`, and reads it."""

    target: SshHost
    folder: str
    session: Started
    pipe: IO[bytes]
    greeting: re.Pattern[bytes]

    def greet(self) -> str:
        """What `uname -m` says over there. HostNotFitError for programs that are missing, HostLostError."""
        said, name = self.session.said, self.target.name
        try:
            hear((self.session,), lambda: self.greeting.search(said) is not None, timeout=_FIRST_CONTACT)
        except TimeoutError:
            raise failures.command_overdue(Command(argv=("sh",)), _FIRST_CONTACT, b"", host=name) from None
        greeted = self.greeting.search(bytes(said))
        if greeted is None:
            self.finish("sh")
            raise self.session.failed("sh", name)
        del said[: greeted.end()]
        machine, *missing = greeted[1].decode("utf-8", "replace").split()
        if missing:
            raise failures.program_missing(missing[0], host=name)
        return machine

    def tell(self, task: str, reader: Reader) -> None:
        """Say that the folder is there, whether to unpack, and how to read it."""
        with suppress(BrokenPipeError):  # the session has ended, which says why
            self.pipe.write(f"{task} {reader}\n".encode())

    @contextmanager
    def feeding(self, packing: Command, user: UserAccount, reader: Reader) -> Iterator[Started]:
        """Start a tar here whose output goes there. The folder is there and empty; `reader` reads it in the end."""
        self.tell("unpack", reader)
        with started(packing, user, stdout=self.pipe.fileno()) as packed:
            self.pipe.close()  # or tar over there would never hear that nothing more comes
            yield packed

    def finish(self, program: str, *, beside: Sequence[Started] = ()) -> None:
        """Wait until the session has ended, and hear others meanwhile; `program` is what may have failed in it."""
        hear((self.session, *beside), lambda: not self.session.speaking)
        if self.session.wait() == _CONNECTION_FAILED:
            self.target.clock()  # raises what has happened, if the connection is gone
        self.session.finish(program, self.target.name)


@contextmanager
def _receiving(target: SshHost, folder: str) -> Iterator[_Receiver]:
    """A session over there that waits to be told what to do with a folder; it ends when nothing comes."""
    ends = os.pipe()
    with os.fdopen(ends[0], "rb", 0) as outlet, os.fdopen(ends[1], "wb", 0) as pipe:
        with suppress(PermissionError):  # the user's share of large pipes is used up
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE)
        mark = secrets.token_hex(8)
        greeting = re.compile(rb"%b ([^\n]+)\n" % mark.encode())
        words = target.session(("sh", "-c", _RECEIVE, "sh", folder, mark))
        with started(Command(argv=words), UserAccount.load(None), stdin=outlet.fileno()) as session:
            outlet.close()  # or tar here would never hear that nobody reads any more
            yield _Receiver(target=target, folder=folder, session=session, pipe=pipe, greeting=greeting)
