"""Pure: the changes that give a study a file system of its own, each with its undoing.

All lies in one folder: `image`, the mount point `mount`, and in the mounted file system `data`, which belongs to the
server's user. Every undoing looks first whether the thing was there before (it then is not pgstrata's), and says so
loudly where something still uses it, so that nothing is taken away from under a mounted file system.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pgstrata.layers.storage.options import FileSystem
from pgstrata.layers.storage.stack import SBIN
from pgstrata.model.changes import Change, ShellScript

# Bytes per second of a slow disk: each byte is read and written.
_SLOW: Final = 10 * 1024**2
# Loop devices of an image, by what the kernel says: an image that was removed meanwhile is found too.
_LOOPS: Final = (
    SBIN + "loops() { for file in /sys/block/loop*/loop/backing_file; do\n"
    '[ -r "$file" ] && IFS= read -r image <"$file" || continue\n'
    'case $image in "$1" | "$1 (deleted)") device=${file#/sys/block/}; printf "%s\\n" "${device%%/*}" ;; esac\n'
    "done; }\n"
)
_UNDO_FOLDER: Final = (
    '[ -z "$2" ] || exit 0\n[ ! -d "$1/mount" ] || rmdir -- "$1/mount" || exit\n[ ! -d "$1" ] || rmdir -- "$1"'
)
# sync, because the removal of an earlier image may still have blocks to discard. Where there is no fallocate, holes are
# filled when the file system was made.
_MAKE_IMAGE: Final = (
    'umask 077; set -C; : >"$1" || exit; chattr +C "$1" 2>/dev/null\n'
    'said=$(fallocate --length "$2" "$1" 2>&1) || case $said in\n'
    '*"not supported"*) truncate --size="$2" "$1" || exit ;;\n'
    '*) printf "%s\\n" "$said" >&2; exit 1 ;;\n'
    "esac\n"
    'sync -f -- "$1"'
)
_UNDO_IMAGE: Final = _LOOPS + (
    '[ -z "$2" ] || exit 0\n'
    'used=$(loops "$1"); [ -z "$used" ] || { echo "$1 is still used by $used" >&2; exit 1; }\n'
    'rm -f -- "$1"'
)
_READ_LOOP: Final = _LOOPS + (
    'for name in $(loops "$1"); do\nprintf "/dev/%s dio=%s\\n" "$name" "$(cat "/sys/block/$name/loop/dio")"\ndone'
)
_MAKE_LOOP: Final = SBIN + 'losetup --direct-io=on --sector-size "$2" --find "$1"'
_UNDO_LOOP: Final = _LOOPS + (
    '[ -z "$3" ] || exit 0\n'
    "tries=0\n"
    'while names=$(loops "$1") && [ -n "$names" ]; do\n'
    "for name in $names; do\n"
    'mounted=$(findmnt --noheadings --output TARGET --source "/dev/$name") && '
    '{ echo "/dev/$name is still mounted on $mounted" >&2; exit 1; }\n'
    'losetup --detach "/dev/$name"\n'
    "done\n"
    '[ -n "$(loops "$1")" ] || exit 0\n'
    'tries=$((tries + 1)); [ "$tries" -lt 40 ] || { echo "the loop device of $1 cannot be detached" >&2; exit 1; }\n'
    "sleep 0.1\n"
    "done"
)
_READ_MKFS: Final = SBIN + 'blkid --probe --match-tag TYPE --output value "$1" 2>/dev/null; exit 0'
# The folder is pgstrata's own, so that an option that names a file there names none of the user's.
# Then every block is written as it is: the first write of one that is only reserved (by fallocate, or by mkfs that lets
# the kernel zero a log) costs the file system below a change of its own records, which would be measured.
_MAKE_FILE_SYSTEM: Final = SBIN + (
    'device=$1; cd "$2" && shift 2 && "$@" "$device" &&\n'
    'dd if="$device" of="$device" bs=4M iflag=direct oflag=direct conv=notrunc,nocreat,fsync status=none'
)
_UNDO_MKFS: Final = _LOOPS + (
    '[ -z "$2" ] && [ -f "$1" ] || exit 0\n'
    'for name in $(loops "$1"); do\n'
    'mounted=$(findmnt --noheadings --output TARGET --source "/dev/$name") && '
    '{ echo "/dev/$name is still mounted on $mounted" >&2; exit 1; }\n'
    "done\n"
    'wipefs --quiet --all --force "$1"'
)
_READ_MOUNT: Final = SBIN + 'findmnt --noheadings --raw --output SOURCE,FSTYPE --mountpoint "$1"; exit 0'
_MAKE_MOUNT: Final = SBIN + 'mount -t "$3" ${4:+-o "$4"} "$2" "$1"'
_UNDO_MOUNT: Final = SBIN + (
    '[ -z "$2" ] || exit 0\n'
    "tries=0\n"
    'while findmnt --mountpoint "$1" >/dev/null; do\n'
    'said=$(umount "$1" 2>&1) && continue\n'
    'tries=$((tries + 1)); [ "$tries" -lt 20 ] || { printf "%s\\n" "$said" >&2; exit 1; }\n'
    "sleep 0.25\n"
    "done"
)
# A queue that gets another scheduler forgets what was set in it, also when it gets the former one back. Only what was
# really lost is written: a limit that is written counts as chosen by hand, although it is the kernel's own value.
# nr_requests comes first, because some of a scheduler's own values follow it.
_READ_SCHEDULER: Final = (
    '[ -r "$1" ] || exit 0\n'
    'cd "${1%/*}" && sed "s/.*\\[\\(.*\\)\\].*/\\1/" scheduler || exit\n'
    "for file in nr_requests iosched/* wbt_lat_usec; do\n"
    '[ -f "$file" ] && [ -n "$(find "$file" -perm -200)" ] && value=$(cat "$file" 2>/dev/null) || continue\n'
    'case $value in "" | *[!A-Za-z0-9_.-]*) ;; *) printf "%s=%s\\n" "$file" "$value" ;; esac\n'
    "done"
)
_UNDO_SCHEDULER: Final = (
    '[ -n "$3" ] && [ -w "$1" ] || exit 0\n'
    'cd "${1%/*}" || exit\n'
    "failed=0\n"
    "for word in $3; do\n"
    "case $word in\n"
    '*=*) file=${word%%=*} now=$(cat "${word%%=*}") ;;\n'
    '*) file=scheduler now=$(sed "s/.*\\[\\(.*\\)\\].*/\\1/" scheduler) ;;\n'
    "esac\n"
    '[ "$now" = "${word#*=}" ] || printf %s "${word#*=}" >"$file" || failed=1\n'
    "done\n"
    'exit "$failed"'
)
_UNDO_VALUE: Final = '[ -z "$3" ] || [ ! -w "$1" ] || printf %s "$3" >"$1"'


def making_seconds(size: int) -> float:
    """How long it may take to write so many bytes, also on a slow disk."""
    return 60.0 + size / _SLOW


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The folder of one file system, absolute and without symbolic links."""

    base: str

    @property
    def image(self) -> str:
        """The file that is the loop device's disk."""
        return f"{self.base}/image"

    @property
    def mount(self) -> str:
        """Where it is mounted."""
        return f"{self.base}/mount"

    @property
    def data(self) -> str:
        """The server's folder in it."""
        return f"{self.mount}/data"


def folder_change(place: Place) -> Change:
    """The folder with its mount point; others may pass through it, as the server's user must."""
    return Change(
        what=f"folder {place.base}", value="there", lasting=True,
        read=ShellScript(text='[ ! -e "$1" ] || echo there', arguments=(place.base,)),
        do=ShellScript(text='mkdir -m 711 -- "$1" && mkdir -m 711 -- "$1/mount"', arguments=(place.base,)),
        undo=ShellScript(text=_UNDO_FOLDER, arguments=(place.base,)),
    )  # fmt: skip


def image_change(place: Place, size: int) -> Change:
    """The image, all its blocks reserved."""
    return Change(
        what=f"image {place.image}", value=str(size), lasting=True,
        read=ShellScript(text='[ ! -e "$1" ] || stat -c %s -- "$1"', arguments=(place.image,)),
        do=ShellScript(text=_MAKE_IMAGE, arguments=(place.image, str(size))),
        undo=ShellScript(text=_UNDO_IMAGE, arguments=(place.image,)),
        timeout=making_seconds(size),
    )  # fmt: skip


def loop_change(place: Place, block: int) -> Change:
    """A loop device on the image; read as `/dev/loop0 dio=1`.

    Its blocks are those of the device below: direct I/O is impossible with smaller ones (losetup(8)).
    """
    arguments = (place.image, str(block))
    return Change(
        what=f"loop device of {place.image}", value="dio=1",
        read=ShellScript(text=_READ_LOOP, arguments=arguments),
        do=ShellScript(text=_MAKE_LOOP, arguments=arguments),
        undo=ShellScript(text=_UNDO_LOOP, arguments=arguments),
    )  # fmt: skip


def mkfs_change(place: Place, device: str, kind: FileSystem, words: Sequence[str], size: int) -> Change:
    """A file system on the device, its `size` bytes written; read, and wiped, through the image, surely pgstrata's."""
    return Change(
        what=f"file system of {place.image}", value=kind.value,
        read=ShellScript(text=_READ_MKFS, arguments=(place.image,)),
        do=ShellScript(text=_MAKE_FILE_SYSTEM, arguments=(device, place.base, *words)),
        undo=ShellScript(text=_UNDO_MKFS, arguments=(place.image,)),
        timeout=making_seconds(size),
    )  # fmt: skip


def mount_change(place: Place, device: str, kind: str, options: Sequence[str]) -> Change:
    """The mount; what still uses it when it is undone is waited for, five seconds."""
    arguments = (place.mount, device, str(kind), ",".join(options))
    return Change(
        what=f"mount {place.mount}", value=f"{device} {kind}",
        read=ShellScript(text=_READ_MOUNT, arguments=arguments[:1]),
        do=ShellScript(text=_MAKE_MOUNT, arguments=arguments),
        undo=ShellScript(text=_UNDO_MOUNT, arguments=arguments[:1]),
    )  # fmt: skip


def data_change(place: Place, user: str) -> Change:
    """The folder of the server's user in the mounted file system."""
    return Change(
        what=f"folder {place.data}", value=f"{user} 700",
        read=ShellScript(text='[ ! -e "$1" ] || stat -c "%U %a" -- "$1"', arguments=(place.data,)),
        do=ShellScript(
            text='mkdir -m 700 -- "$1" && chown -- "$2:" "$1"', arguments=(place.data, user),
        ),
        undo=ShellScript(
            text='[ -z "$3" ] || exit 0; rm -rf --one-file-system -- "$1"', arguments=(place.data, user),
        ),
    )  # fmt: skip


def scheduler_change(disk: str, file: str, scheduler: str) -> Change:
    """The scheduler of a device; read as the word in brackets, then what is set in the queue (`nr_requests=64`)."""
    return Change(
        what=f"scheduler of {disk}", value=scheduler,
        read=ShellScript(text=_READ_SCHEDULER, arguments=(file,)),
        do=ShellScript(text='printf %s "$2" >"$1"', arguments=(file, scheduler)),
        undo=ShellScript(text=_UNDO_SCHEDULER, arguments=(file, scheduler)),
    )  # fmt: skip


def read_ahead_change(disk: str, file: str, kilobytes: int) -> Change:
    """The read-ahead of a device, or of a file system that has its own; read in kB."""
    return Change(
        what=f"read-ahead of {disk}", value=str(kilobytes),
        read=ShellScript(text='[ ! -r "$1" ] || cat "$1"', arguments=(file,)),
        do=ShellScript(text='printf %s "$2" >"$1"', arguments=(file, str(kilobytes))),
        undo=ShellScript(text=_UNDO_VALUE, arguments=(file, str(kilobytes))),
    )  # fmt: skip
