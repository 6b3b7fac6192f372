"""The archive of a bundle: a tar in xz with exactly the files of its manifest, in the same order.

The same files give the same bytes, and `tar -xJf` unpacks them. The archive is read once, from its start. Nothing else
that tar or xz would allow is accepted: every read is bounded, and no path of the archive is ever opened here.
"""

from __future__ import annotations

import io
import lzma
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Final, cast

from pgstrata.errors import BundleError
from pgstrata.model import sizes
from pgstrata.model.bundle import MANIFEST, SIGNATURE, BundledFile, Manifest
from pgstrata.store.bundles.manifest import ALTERED, parse_manifest
from pgstrata.store.evidence import SHARED

_PRESET: Final = 4
"""The preset of xz: with 6 bundles of kept studies were 2 % smaller and took one and a half times the CPU time."""
_PIECE: Final = 1 << 20
_MOST_HEADERS: Final = 4 * _PIECE
"""Maximum bytes of headers for one file; a header takes 512, and a long name some hundred more."""
_MOST_PADDING: Final = 1 << 16
_FOR_ALL: Final = 0o644


class ArchiveWriter:
    """Writes the archive of a bundle to a stream: manifest, signature, then files in the manifest's order."""

    def __init__(self, stream: IO[bytes], manifest: bytes, signature: bytes) -> None:
        self._packed = lzma.LZMAFile(stream, "wb", preset=_PRESET)  # noqa: SIM115 - closed by `close`
        self._tar = tarfile.TarFile(fileobj=self._packed, mode="w", format=tarfile.PAX_FORMAT)
        self.add(MANIFEST, manifest)
        if signature:
            self.add(SIGNATURE, signature)

    def add(self, path: str, content: bytes) -> None:
        """Add a file, without its owner and times."""
        member = _member(path)
        member.size = len(content)
        self._tar.addfile(member, io.BytesIO(content))
        _forget_members(self._tar)

    def add_shared(self, file: BundledFile) -> None:
        """Add a second name for the file in `SHARED` that has the same content and was added before."""
        member = _member(file.path)
        member.type, member.linkname = tarfile.LNKTYPE, f"{SHARED}/{file.sha256}"
        self._tar.addfile(member)
        _forget_members(self._tar)

    def close(self) -> None:
        """Write the end of the archive; the stream stays open."""
        self._tar.close()
        self._packed.close()


def _forget_members(tar: tarfile.TarFile) -> None:
    """Free the list of members, which tarfile keeps: a bundle may have hundreds of thousands."""
    vars(tar)["members"] = []


def _member(path: str) -> tarfile.TarInfo:
    member = tarfile.TarInfo(path)
    member.mode = _FOR_ALL
    return member


def begins_like_bundle(stream: IO[bytes]) -> bool:
    """Whether the first member is called like a manifest, as in no other archive; it need not be in order."""
    with lzma.LZMAFile(stream) as packed:
        try:
            return packed.read(tarfile.BLOCKSIZE).startswith(f"{MANIFEST}\0".encode())
        except (lzma.LZMAError, EOFError):
            return False


class ArchiveReader:
    """Reads an archive once, from its start.

    Attributes:
        manifest: the checked manifest; the files themselves are not checked yet.
        sealed: the bytes of the manifest, which are what is signed.
        signature: empty if there is none.
    """

    def __init__(self, stream: IO[bytes], where: str) -> None:
        self._where = where
        self._unpacked = _Unpacked(stream)
        with self._damage():
            self._tar = tarfile.TarFile(fileobj=cast("IO[bytes]", self._unpacked), mode="r")
            self._next = self._tar.next()
            self.sealed = self._read_named(MANIFEST, sizes.BUNDLE_MANIFEST)
            there = self._next is not None and self._next.name == SIGNATURE
            self.signature = self._read_named(SIGNATURE, sizes.BUNDLE_SIGNATURE) if there else b""
        self.manifest: Manifest = parse_manifest(self.sealed, where=where)

    def files(self) -> Iterator[tuple[BundledFile, bytes | None]]:
        """Each file of the manifest with its content, not checked yet; None for a second name of a shared file.

        Raises:
            BundleError: the archive has other files than the manifest.
        """
        with self._damage():
            for file in self.manifest.files:
                if self._next is not None and self._next.type == tarfile.LNKTYPE:
                    self._skip_link(file)
                    yield file, None
                else:
                    yield file, self._read_named(file.path, file.size, exactly=True)
            if self._next is not None:
                raise self._altered(f"it has {self._next.name!r:.200}, which its manifest does not name")
            self._unpacked.require_end()

    def _skip_link(self, file: BundledFile) -> None:
        member = self._next
        assert member is not None
        if member.name != file.path or member.linkname != f"{SHARED}/{file.sha256}":
            raise self._altered(f"{member.name!r:.200} is an unexpected link to {member.linkname!r:.200}")
        self._advance()

    def _read_named(self, path: str, most: int, *, exactly: bool = False) -> bytes:
        """The content of the next file, which has to be this one."""
        member = self._next
        if member is None:
            raise self._altered("it ends too early")
        if member.name != path:
            raise self._altered(f"it has {member.name!r:.200} in the place of {path!r:.200}")
        if member.type != tarfile.REGTYPE or member.issparse():
            raise self._altered(f"{path!r:.200} is not an ordinary file")
        if member.size > most or (exactly and member.size != most):
            raise self._altered(f"{path!r:.200} has {member.size:,} bytes and should have {most:,}")
        content = self._unpacked.read_whole(member.offset_data, member.size)
        self._advance()
        return content

    def _advance(self) -> None:
        _forget_members(self._tar)
        self._next = self._tar.next()

    def _altered(self, why: str) -> BundleError:
        return BundleError(f"the bundle is damaged or was altered: {why}", where=self._where, remedy=ALTERED)

    @contextmanager
    def _damage(self) -> Iterator[None]:
        """Turn errors of tar and xz into BundleError."""
        try:
            yield
        except (tarfile.TarError, lzma.LZMAError, EOFError, ValueError, OverflowError, RecursionError) as error:
            raise self._altered(_say(error)) from error


def _say(error: Exception) -> str:
    if isinstance(error, lzma.LZMAError) and "format not supported" in str(error):
        return "it is not a bundle (not an xz archive)"
    return str(error) or "it cannot be unpacked"


class _Unpacked(io.RawIOBase):
    """The content of an xz stream, forward only and in bounded pieces; EOFError if it ends too early.

    It is needed because tarfile reads headers of any size that an archive claims, and seeks to any place that it names.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        super().__init__()
        self._stream = stream
        self._xz = lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=sizes.BUNDLE_DICTIONARY)
        self._place = 0
        self._headers = 0
        self._packed = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        if whence != io.SEEK_SET or not self._place <= offset <= self._place + _PIECE:
            raise ValueError("one of its headers points to another place of the archive")
        while self._place < offset and self._take(offset - self._place):
            pass
        return self._place

    def read(self, size: int = -1, /) -> bytes:
        """As many bytes as asked for, fewer only at the end."""
        self._headers += size
        if size < 0 or self._headers > _MOST_HEADERS:
            raise ValueError("one of its headers is too large")
        return self._gather(size)

    def read_whole(self, place: int, size: int) -> bytes:
        """The content of a file: `size` bytes from `place` on, which is not before the current position."""
        self._headers = 0
        self.seek(place)
        content = self._gather(size)
        if len(content) < size:
            raise EOFError("it ends too early")
        return content

    def require_end(self) -> None:
        """ValueError unless only tar's padding follows, and nothing after the end of the xz stream."""
        if self._gather(_MOST_PADDING).strip(b"\0") or self._take(1) or self._xz.unused_data or self._stream.read(1):
            raise ValueError("there are data after its end")

    def _gather(self, size: int) -> bytes:
        pieces, left = [], size
        while left and (piece := self._take(min(left, _PIECE))):
            pieces.append(piece)
            left -= len(piece)
        return b"".join(pieces)

    def _take(self, most: int) -> bytes:
        while not self._xz.eof:
            packed = self._stream.read(_PIECE) if self._xz.needs_input else b""
            if self._xz.needs_input and not packed:
                raise EOFError("it ends too early")
            self._packed += len(packed)
            if self._packed > sizes.BUNDLE_PACKED:
                raise ValueError("it is too large")
            if piece := self._xz.decompress(packed, most):
                self._place += len(piece)
                return piece
        return b""
