"""Pure: chooses a kernel and the modules that it needs for its disks, and checks that a C library accepts it.

Sources: depmod(5) formats of `modules.dep` and `modules.builtin`; the note of the ABI in glibc's `libc.so.6`
(NT_GNU_ABI_TAG of the Linux Standard Base: four words, Linux = 0, then the oldest kernel); the Linux/x86 boot protocol.
"""

from __future__ import annotations

import posixpath
import re
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from pgstrata.errors import HostNotFitError
from pgstrata.model.boot import find_release, release_key

NEEDED: Final = ("virtio_pci", "virtio_blk", "virtio_net", "ext4")
"""Drivers of the bus, the disks, the network, and the file system of every virtual machine."""
_BEFORE: Final = ("crc32c_generic",)
"""Needed to mount ext4, but not named in `modules.dep`; loaded if it is a module."""
_PACKAGE: Final = re.compile(r"linux-image-(?P<release>[0-9][^ ]*-cloud-[a-z0-9]+)(?: .*)?")
_NOTE: Final = b"\x04\x00\x00\x00\x10\x00\x00\x00\x01\x00\x00\x00GNU\x00"
_WORDS: Final = struct.Struct("<4I")
_SUFFIX: Final = re.compile(r"\.ko(\.(xz|zst|gz))?$")
_MOST_NAMED: Final = 8
HEADER_BYTES: Final = 0x238
"""The length of the beginning of a kernel from which `require_x86_64` knows it."""
_MAGIC_AT, _MAGIC, _FLAGS_AT = 0x202, b"HdrS", 0x236
_FIRST_WITH_FLAGS: Final = 0x20C
_RUNS_IN_64_BITS: Final = 1


def require_x86_64(start: bytes, *, where: str) -> None:
    """HostNotFitError unless a file begins as a kernel for x86-64 does; `start` are its first bytes.

    From version 2.12 of the boot protocol on (Linux 3.8), the first bit of `xloadflags` is set in a 64-bit kernel.
    Older ones do not say it.
    """
    magic, version = struct.unpack_from("<4sH", start.ljust(HEADER_BYTES, b"\0"), _MAGIC_AT)
    (flags,) = struct.unpack_from("<H", start.ljust(HEADER_BYTES, b"\0"), _FLAGS_AT)
    if magic != _MAGIC or (version >= _FIRST_WITH_FLAGS and not flags & _RUNS_IN_64_BITS):
        raise HostNotFitError(
            "this is not a kernel for x86-64, which virtual machines run",
            where=where,
            remedy="take a kernel for amd64, or build the tree for x86-64 (arch/x86/boot/bzImage)",
        )


def choose_package(listing: str, asked: str) -> str:
    """The package of the newest kernel of a series, from the output of `apt-cache search linux-image`.

    All kernels are of the empty series.

    Raises:
        HostNotFitError: there is none.
    """
    matches = (_PACKAGE.fullmatch(line.strip()) for line in listing.splitlines())
    found = [each["release"] for each in matches if each and not each["release"].endswith(("-dbg", "-unsigned"))]
    if release := find_release(found, asked):
        return f"linux-image-{release}"
    raise HostNotFitError(
        f"this machine's package sources have no {f'kernel {asked}'.rstrip()} for virtual machines",
        where="apt-cache search linux-image",
        remedy=f"name one of these, or its series: {_listed(found)}; or a kernel of your own: path:FILE, build:TREE",
    )


def choose_kernel(releases: Sequence[str], asked: str, *, where: str) -> str:
    """The release that was asked for, or the newest of that series in an image; HostNotFitError if it has none."""
    if release := find_release(releases, asked):
        return release
    raise HostNotFitError(
        f"the image has no kernel {asked}",
        where=where,
        remedy=f"name one that it has: {_listed(releases)}; or build the image again and add `--kernel {asked}`",
    )


def _listed(releases: Iterable[str]) -> str:
    """The newest ones."""
    return ", ".join(sorted(releases, key=release_key, reverse=True)[:_MOST_NAMED]) or "none"


def module_name(path: str) -> str:
    """The name of a module by the path of its file: virtio_blk of drivers/block/virtio-blk.ko.xz."""
    return _SUFFIX.sub("", posixpath.basename(path)).replace("-", "_")


def modules_in_order(dependencies: str, builtin: str, wanted: Sequence[str] = NEEDED, *, where: str) -> tuple[str, ...]:
    """The files of modules in the order in which they must be loaded, without those that are part of the kernel.

    Args:
        dependencies: `modules.dep`.
        builtin: `modules.builtin`.
        wanted: names of modules.
        where: the kernel, for errors.

    Raises:
        HostNotFitError: a driver is neither a module nor part of the kernel, so the guest could not start.
    """
    needs: dict[str, tuple[str, ...]] = {}
    files: dict[str, str] = {}
    for line in dependencies.splitlines():
        path, _, rest = line.partition(":")
        files[module_name(path)] = path
        needs[path] = tuple(rest.split())
    inside = {module_name(line) for line in builtin.split()}
    lacking = [name for name in wanted if name not in files and name not in inside]
    if lacking:
        raise HostNotFitError(
            f"this kernel lacks drivers without which a virtual machine cannot start: {', '.join(lacking)}",
            where=where,
            remedy="build it with CONFIG_VIRTIO_PCI, CONFIG_VIRTIO_BLK, CONFIG_VIRTIO_NET and CONFIG_EXT4_FS, or "
            "choose another kernel",
        )
    order: dict[str, None] = {}
    for name in (*_BEFORE, *wanted):
        if name in files:
            _add(files[name], needs, order, ())
    return tuple(order)


def _add(path: str, needs: Mapping[str, Sequence[str]], order: dict[str, None], above: tuple[str, ...]) -> None:
    if path in order or path in above:
        return
    for other in needs.get(path, ()):
        _add(other, needs, order, (*above, path))
    order[path] = None


def oldest_kernel(library: bytes) -> tuple[int, int, int] | None:
    """The oldest kernel that a C library accepts, read from the content of its file; None if the file does not say."""
    at = library.find(_NOTE)
    words = library[at + len(_NOTE) : at + len(_NOTE) + _WORDS.size]
    if at < 0 or len(words) < _WORDS.size:
        return None
    system, major, minor, patch = _WORDS.unpack(words)
    return (major, minor, patch) if system == 0 else None


def require_new_enough(release: str, oldest: Sequence[int], *, where: str) -> None:
    """HostNotFitError if a kernel is older than the image's C library accepts; not checked if `oldest` is empty."""
    if oldest and tuple(map(int, re.findall(r"\d+", release)))[:3] < tuple(oldest):
        text = ".".join(map(str, oldest))
        raise HostNotFitError(
            f"the kernel {release} is older than {text}, the oldest that the image's C library accepts",
            where=where,
            remedy="build an image of an older suite (`--suite`), or choose a newer kernel",
        )
