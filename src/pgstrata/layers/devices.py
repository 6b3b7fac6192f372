"""What a folder is on, as far as its traffic and its page cache can be limited."""

from __future__ import annotations

import os
from typing import Final

from pgstrata.errors import HostNotFitError
from pgstrata.model.changes import ShellScript
from pgstrata.ports.host import Command, Host

# Argument: a folder that may not be there yet. Device of the nearest one that is there, kind of its file system, and
# the device of the whole disk if the former is a partition (only partitions have the file).
_FIND: Final = """
folder=$1
while [ ! -e "$folder" ]; do folder=${folder%/*}; folder=${folder:-/}; done
stat -L -c %d "$folder" && stat -f -L -c %T "$folder"
"""
_FIND_DISK: Final = 'cd -P "/sys/dev/block/$1" || exit 1; [ ! -e partition ] || cd ..; cat dev'

# File systems of Linux whose delayed writes are charged to the group that wrote (they set SB_I_CGROUPWB), by the names
# of stat(1), which calls all of ext2, ext3 and ext4 the same; btrfs too, but it has no single device.
_CHARGED: Final = frozenset({"ext2/ext3", "xfs", "f2fs"})

# File systems whose data are in memory, but not in the page cache of whoever reads them.
_UNCOUNTED: Final = frozenset({"tmpfs", "ramfs", "hugetlbfs", "zfs"})


def assert_cache_counted(host: Host, folder: str) -> None:
    """HostNotFitError where what is read from a folder, which need not exist yet, is charged to nobody."""
    _, kind = _find(host, folder)
    if kind in _UNCOUNTED:
        raise HostNotFitError(
            f"limits.memory would not count the data: {kind} keeps them in memory that is not the reader's",
            where=folder,
            remedy='put the data on a disk: PGSTRATA_DATA names the folder, or take filesystem = "ext4"',
        )


def _find(host: Host, folder: str) -> tuple[int, str]:
    """Number of the device and kind of the file system."""
    answer = host.run(Command(argv=ShellScript(text=_FIND, arguments=(folder,)).argv)).text.split("\n")
    return int(answer[0]), answer[1].strip()


def find_device(host: Host, folder: str, *, delayed_writes: bool = False) -> str:
    """MAJOR:MINOR of the disk that a folder is on, or will be.

    Args:
        host: where the folder is.
        folder: its path; it need not exist yet.
        delayed_writes: whether writes that the kernel delays are to be limited too.

    Raises:
        HostNotFitError: the file system is on no single device, or does not say who wrote.
    """
    number, kind = _find(host, folder)
    device = f"{os.major(number)}:{os.minor(number)}"
    disk = host.run(Command(argv=ShellScript(text=_FIND_DISK, arguments=(device,)).argv), check=False)
    if os.major(number) == 0 or disk.code:
        raise HostNotFitError(
            f"its traffic cannot be limited: the file system ({kind}) is on no single block device",
            where=folder,
            remedy="limits.read_* and limits.write_* need data on ext4 or xfs on a disk or a loop device, for instance "
            'by filesystem = "ext4"; tmpfs, overlay, btrfs, zfs and NFS have no such device',
        )
    if delayed_writes and kind not in _CHARGED:
        raise HostNotFitError(
            f"writes cannot be limited: a file system ({kind}) that does not say whose delayed writes they are",
            where=folder,
            remedy="put the data on ext4 or xfs",
        )
    return disk.text.strip()
