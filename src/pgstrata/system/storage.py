"""Pure: the changes of a host's storage, each with its undoing: file systems, mounts, devices, queues.

All of a file system on an image lies in one folder, below one that root alone can write to: `image`, the mount point
`mount`, and in the mounted file system `data`, which belongs to the server's user. Every undoing looks first whether
the thing was there before (it then is not pgstrata's), and says so loudly where something still uses it, so that
nothing is taken away from under a mounted file system.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pgstrata.model.changes import Change, ShellScript
from pgstrata.system.commands import WRITE_VALUE, value_change

PLAIN: Final = "LC_ALL=C; export LC_ALL\n"
"""What programs say is read, so it must be in no language."""

# Bytes per second of a slow disk: each byte is read and written.
_SLOW: Final = 10 * 1024**2
# Loop devices of an image, by what the kernel says: an image that was removed meanwhile is found too.
_LOOPS: Final = (
    PLAIN + "loops() { for file in /sys/block/loop*/loop/backing_file; do\n"
    '[ -r "$file" ] && IFS= read -r image <"$file" || continue\n'
    'case $image in "$1" | "$1 (deleted)") device=${file#/sys/block/}; printf "%s\\n" "${device%%/*}" ;; esac\n'
    "done; }\n"
)
_READ_FOLDER: Final = '[ ! -e "$1" ] || echo there'
_MAKE_FOLDER: Final = 'umask 022; mkdir -p -- "${1%/*}" && mkdir -m 711 -- "$1" && mkdir -m 711 -- "$1/mount"'
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
_MAKE_LOOP: Final = PLAIN + 'losetup --direct-io=on --sector-size "$2" --find "$1"'
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
    'tries=$((tries + 1)); [ "$tries" -lt 300 ] || { echo "the loop device of $1 cannot be detached" >&2; exit 1; }\n'
    "sleep 0.1\n"
    "done"
)
_READ_MKFS: Final = PLAIN + 'blkid --probe --match-tag TYPE --output value "$1" 2>/dev/null; exit 0'
# The folder is pgstrata's own, so that an option that names a file there names none of the user's.
# Then every block is written as it is: the first write of one that is only reserved (by fallocate, or by mkfs that lets
# the kernel zero a log) costs the file system below a change of its own records, which would be measured.
_MAKE_FILE_SYSTEM: Final = PLAIN + (
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
_READ_MOUNT: Final = PLAIN + 'findmnt --noheadings --raw --output SOURCE,FSTYPE --mountpoint "$1"; exit 0'
# Only root can write to the mount point and to the new file system, until a folder in it is given away.
_MAKE_MOUNT: Final = PLAIN + (
    'mount -t "$3" ${4:+-o "$4"} "$2" "$1" && mkdir -m 700 -- "$1/data" && chown -- "$5:" "$1/data"'
)
_UNDO_MOUNT: Final = PLAIN + (
    '[ -z "$2" ] || exit 0\n'
    "tries=0\n"
    'while findmnt --mountpoint "$1" >/dev/null; do\n'
    'said=$(umount "$1" 2>&1) && continue\n'
    'tries=$((tries + 1)); [ "$tries" -lt 80 ] || { printf "%s\\n" "$said" >&2; exit 1; }\n'
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

# Who uses it: mounts by number (a source may have other names) and by source (btrfs has numbers of its own), swap, and
# what is built on it. mkfs itself opens the device for itself alone, which also sees mounts of other namespaces.
_USED: Final = (
    PLAIN
    + r"""
used() (
    name=${1##*/}
    folder=$(readlink -f "/sys/class/block/$name")
    IFS= read -r device <"$folder/dev" || exit 0
    while read -r _ _ number _ target _; do
        [ "$number" != "$device" ] || { echo "mounted on $target"; exit 0; }
    done </proc/self/mountinfo
    while read -r file _; do
        [ "$(readlink -f -- "$file")" != "$1" ] || { echo "used as swap"; exit 0; }
    done </proc/swaps
    for file in /sys/fs/btrfs/*/devices/"$name"; do
        [ ! -e "$file" ] || { echo "mounted as btrfs"; exit 0; }
    done
    for file in "$folder"/holders/* "$folder/$name"*; do
        [ ! -e "$file" ] || { echo "used by ${file##*/}"; exit 0; }
    done
    for file in /sys/block/loop*/loop/backing_file; do
        [ -r "$file" ] && IFS= read -r image <"$file" || continue
        [ "$image" != "$1" ] || { echo "used by a loop device"; exit 0; }
    done
)
label() { blkid --probe --match-tag LABEL --output value "$1" 2>/dev/null; }
"""
)
# blkid(8): 2 where nothing was found, 8 where what was found contradicts itself
_MAKE_ON_DEVICE: Final = (
    _USED
    + r"""
device=$1; cd "$2" && shift 2 || exit
refuse() { echo "$device is $1" >&2; exit 1; }
[ -b "$device" ] || refuse "not a block device"
used=$(used "$device"); [ -z "$used" ] || refuse "$used"
blkid --probe "$device" >/dev/null 2>&1
case $? in
    0)
        case $(label "$device") in
            pgstrata-*) ;;
            *) refuse "not pgstrata's: $(blkid --probe --output export "$device" | tr '\n' ' ')" ;;
        esac ;;
    2)
        rest=$(dd if="$device" bs=1M count=1 status=none | tr -d '\0' | wc -c) || refuse "unreadable"
        [ "$rest" -eq 0 ] || refuse "not empty: it holds something else than a file system" ;;
    *) refuse "ambiguous: see blkid --probe $device" ;;
esac
exec "$@" "$device"
"""
)
_READ_DEVICE: Final = _USED + 'case $(label "$1") in "$2") echo made ;; esac'
# Empty again, as it was accepted: of what another wrote there meanwhile, and of what is in use, nothing is touched.
_UNDO_DEVICE: Final = _USED + (
    '[ -z "$3" ] && [ -b "$1" ] && [ "$(label "$1")" = "$2" ] && [ -z "$(used "$1")" ] || exit 0\n'
    'wipefs --quiet --all "$1" && dd if=/dev/zero of="$1" bs=1M count=1 conv=notrunc,nocreat,fsync status=none'
)


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
    """The folder with its mount point; others may pass through it, as the server's user must. Those above it stay."""
    return Change(
        what=f"folder {place.base}",
        value="there",
        lasting=True,
        read=ShellScript(text=_READ_FOLDER, arguments=(place.base,)),
        do=ShellScript(text=_MAKE_FOLDER, arguments=(place.base,)),
        undo=ShellScript(text=_UNDO_FOLDER, arguments=(place.base,)),
    )


def image_change(place: Place, size: int) -> Change:
    """The image, all its blocks reserved."""
    return Change(
        what=f"image {place.image}",
        value=str(size),
        lasting=True,
        read=ShellScript(text='[ ! -e "$1" ] || stat -c %s -- "$1"', arguments=(place.image,)),
        do=ShellScript(text=_MAKE_IMAGE, arguments=(place.image, str(size))),
        undo=ShellScript(text=_UNDO_IMAGE, arguments=(place.image,)),
        timeout=making_seconds(size),
    )


def loop_change(place: Place, block: int) -> Change:
    """A loop device on the image; read as `/dev/loop0 dio=1`.

    Its blocks are those of the device below: direct I/O is impossible with smaller ones (losetup(8)).
    """
    arguments = (place.image, str(block))
    return Change(
        what=f"loop device of {place.image}",
        value="dio=1",
        read=ShellScript(text=_READ_LOOP, arguments=arguments),
        do=ShellScript(text=_MAKE_LOOP, arguments=arguments),
        undo=ShellScript(text=_UNDO_LOOP, arguments=arguments),
    )


def mkfs_change(place: Place, device: str, kind: str, words: Sequence[str], size: int) -> Change:
    """A file system on the device, its `size` bytes written; read, and wiped, through the image, surely pgstrata's."""
    return Change(
        what=f"file system of {place.image}",
        value=kind,
        read=ShellScript(text=_READ_MKFS, arguments=(place.image,)),
        do=ShellScript(text=_MAKE_FILE_SYSTEM, arguments=(device, place.base, *words)),
        undo=ShellScript(text=_UNDO_MKFS, arguments=(place.image,)),
        timeout=making_seconds(size),
    )


def device_change(base: str, device: str, label: str, words: Sequence[str]) -> Change:
    """A file system on a device; refused where the device is in use or holds anything that pgstrata did not make.

    It is lasting: what is still there after a reboot is removed then. `base` is a folder of pgstrata's own, so that an
    option that names a file there names none of the user's; `label` is new, so that what an earlier pgstrata left is
    not taken for the former state, to be kept.
    """
    return Change(
        what=f"file system of {device}",
        value="made",
        lasting=True,
        read=ShellScript(text=_READ_DEVICE, arguments=(device, label)),
        do=ShellScript(text=_MAKE_ON_DEVICE, arguments=(device, base, *words)),
        undo=ShellScript(text=_UNDO_DEVICE, arguments=(device, label)),
    )


def mount_change(place: Place, device: str, kind: str, options: Sequence[str], user: str) -> Change:
    """The mount with a folder of the user's in it; what still uses it when it is undone is waited for, five seconds."""
    arguments = (place.mount, device, kind, ",".join(options), user)
    return Change(
        what=f"mount {place.mount}",
        value=f"{device} {kind}",
        read=ShellScript(text=_READ_MOUNT, arguments=arguments[:1]),
        do=ShellScript(text=_MAKE_MOUNT, arguments=arguments),
        undo=ShellScript(text=_UNDO_MOUNT, arguments=arguments[:1]),
    )


def scheduler_change(disk: str, file: str, scheduler: str) -> Change:
    """The scheduler of a device; read as the word in brackets, then what is set in the queue (`nr_requests=64`)."""
    return Change(
        what=f"scheduler of {disk}",
        value=scheduler,
        read=ShellScript(text=_READ_SCHEDULER, arguments=(file,)),
        do=ShellScript(text=WRITE_VALUE, arguments=(file, scheduler)),
        undo=ShellScript(text=_UNDO_SCHEDULER, arguments=(file, scheduler)),
    )


def read_ahead_change(disk: str, file: str, kilobytes: int) -> Change:
    """The read-ahead of a device, or of a file system that has its own; read in kB."""
    return value_change(f"read-ahead of {disk}", file, str(kilobytes))
