"""The initramfs of a guest: busybox, the modules for its disks and network, and a script that mounts the root.

The archive is a cpio in the "newc" format (Documentation/driver-api/early-userspace/buffer-format.rst of Linux).
"""

from __future__ import annotations

import gzip
import io
import lzma
import zlib
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import IO, Final, cast

from pgstrata.errors import HostNotFitError
from pgstrata.hosts.elf import needs_libraries
from pgstrata.model import sizes
from pgstrata.ports.host import Command, Host
from pgstrata.system.reading import read_bounded
from pgstrata.vms.qemu import PROOF, PROVED

BUSYBOX: Final = "/bin/busybox"
_FOLDER, _PROGRAM, _FILE = 0o040755, 0o100755, 0o100644
_INIT: Final = f"""#!/bin/busybox sh
b=/bin/busybox
$b mkdir -p /proc /sys /dev /root
$b mount -t proc proc /proc
$b mount -t sysfs sys /sys
$b mount -t devtmpfs dev /dev
exec </dev/console >/dev/console 2>&1
case " $($b cat /proc/cmdline) " in
    *" {PROOF} "*) echo "{PROVED}"; echo o >/proc/sysrq-trigger; $b sleep 60 ;;
esac
while read -r module; do $b insmod "/modules/$module" || echo "pgstrata: $module is not loaded"; done </modules/order
tries=0
until [ -b /dev/vda ] && [ -b /dev/vdb ]; do
    tries=$((tries + 1))
    [ $tries -lt 300 ] || {{ echo "pgstrata: cannot start: there is no disk"; $b sleep 600; }}
    $b sleep 0.1
done
$b mount -t ext4 -o rw,noatime /dev/vda /root || {{ echo "pgstrata: cannot start: no root"; $b sleep 600; }}
for each in proc sys dev; do $b mount --move /$each /root/$each; done
exec $b switch_root /root /sbin/pgstrata-init
"""


def require_static(busybox: bytes, where: str) -> None:
    """HostNotFitError for a busybox that needs libraries: there are none where it runs, and the guest would panic."""
    if needs_libraries(busybox):
        raise HostNotFitError(
            "this busybox needs shared libraries, which are missing when a virtual machine starts",
            where=where,
            remedy="apt-get install busybox-static, which replaces it (Debian, Ubuntu)",
        )


def unpacked(host: Host, path: str) -> bytes:
    """The content of a module's file, whatever it is compressed with; HostNotFitError: it is damaged or too large."""
    if path.endswith(".zst"):
        return host.run(Command(argv=("zstd", "-dcq", "--", path))).stdout
    stream = io.BytesIO(host.read(path))
    try:
        if path.endswith(".xz"):
            return read_bounded(lzma.LZMAFile(stream), path, most=sizes.KERNEL_MODULE)
        if path.endswith(".gz"):
            return read_bounded(cast("IO[bytes]", gzip.GzipFile(fileobj=stream)), path, most=sizes.KERNEL_MODULE)
        return read_bounded(stream, path, most=sizes.KERNEL_MODULE)
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        remedy = "take another kernel, or build this one anew"
        raise HostNotFitError(
            f"a module of the kernel cannot be unpacked: {reason}", where=path, remedy=remedy
        ) from None


def make_initramfs(busybox: bytes, modules: Sequence[tuple[str, bytes]]) -> bytes:
    """The archive; not compressed, because an emulated guest would need longer to unpack it than QEMU to load it.

    Args:
        busybox: a program that needs no library.
        modules: names of files and contents, in the order in which they are loaded.
    """
    order = "".join(f"{name}\n" for name, _ in modules).encode()
    entries: dict[str, tuple[int, bytes]] = {
        "bin": (_FOLDER, b""),
        "dev": (_FOLDER, b""),
        "bin/busybox": (_PROGRAM, busybox),
        "init": (_PROGRAM, _INIT.encode()),
        "modules": (_FOLDER, b""),
        "modules/order": (_FILE, order),
        **{f"modules/{name}": (_FILE, content) for name, content in modules},
    }
    return cpio(entries)


def file_name(path: str) -> str:
    """The name of an unpacked module."""
    return f"{PurePosixPath(path).name.partition('.ko')[0]}.ko"


def cpio(entries: Mapping[str, tuple[int, bytes]]) -> bytes:
    """A cpio archive (newc) of paths, each with its mode and content; everything belongs to root.

    /dev/console is among them, because the kernel opens it before anything is mounted.
    """
    parts = []
    for number, (name, (mode, content)) in enumerate(entries.items(), start=1):
        parts.append(_entry(number, name, mode, content))
    parts.append(_entry(len(entries) + 1, "dev/console", 0o020600, b"", device=(5, 1)))
    parts.append(_entry(0, "TRAILER!!!", 0, b""))
    return b"".join(parts)


def _entry(number: int, name: str, mode: int, content: bytes, *, device: tuple[int, int] = (0, 0)) -> bytes:
    fields = (number, mode, 0, 0, 1, 0, len(content), 0, 0, *device, len(name) + 1, 0)
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + b"\0"
    return _padded(head) + _padded(content)


def _padded(content: bytes) -> bytes:
    return content + b"\0" * (-len(content) % 4)
