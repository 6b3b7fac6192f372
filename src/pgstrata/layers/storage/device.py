"""Pure: block devices that a user gives to pgstrata, and the change that makes a file system on one.

A device is used if it stands in a file that the user wrote on that host, is in use by nobody, and is either empty or
carries a file system that pgstrata made. The last two are looked at by the same script that makes the file system, as
root, right before it does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pgstrata.errors import HostNotFitError
from pgstrata.layers.storage.stack import SBIN, WALK, Observed
from pgstrata.model.changes import Change, ShellScript

DEVICES: Final = "/etc/pgstrata/devices"
"""The list: one path a line, such as /dev/disk/by-id/…; lines that begin with # are comments."""

# Who uses it: mounts by number (a source may have other names) and by source (btrfs has numbers of its own), swap, and
# what is built on it. mkfs itself opens the device for itself alone, which also sees mounts of other namespaces.
_USED: Final = (
    SBIN
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
_MAKE: Final = (
    _USED
    + r"""
device=$1; cd "$2" && shift 2 || exit
refuse() { echo "$device is $1" >&2; exit 1; }
[ -b "$device" ] || refuse "no block device"
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
    *) refuse "not to be told apart: see blkid --probe $device" ;;
esac
exec "$@" "$device"
"""
)
_READ: Final = _USED + 'case $(label "$1") in "$2") echo made ;; esac'
# Empty again, as it was accepted: of what another wrote there meanwhile, and of what is in use, nothing is touched.
_UNDO: Final = _USED + (
    '[ -z "$3" ] && [ -b "$1" ] && [ "$(label "$1")" = "$2" ] && [ -z "$(used "$1")" ] || exit 0\n'
    'wipefs --quiet --all "$1" && dd if=/dev/zero of="$1" bs=1M count=1 conv=notrunc,nocreat,fsync status=none'
)


def device_script(asked: str, devices: str = DEVICES) -> ShellScript:
    """Prints what a device is, and the real paths of those that are on the list."""
    text = SBIN + WALK + (
        'real=$(readlink -f -- "$1")\n'
        'printf "== check\\ndevice=%s\\n" "$real"\n'
        '[ -b "$real" ] || echo kind=none\n'
        'file=/sys/class/block/${real##*/}/size; [ ! -r "$file" ] || printf "sectors=%s\\n" "$(cat "$file")"\n'
        'if [ -r "$2" ]; then\n'
        'while read -r path rest || [ -n "$path" ]; do\n'
        'case $path in /dev/*) printf "allowed=%s\\n" "$(readlink -f -- "$path")" ;; esac\n'
        'done <"$2"\n'
        "fi\n"
        'device "${real##*/}" 0 0\n'
    )  # fmt: skip
    return ShellScript(text=text, arguments=(asked, devices))


def accept_device(seen: Observed, asked: str, devices: str, *, where: str) -> str:
    """The real path of a device; HostNotFitError where it is none, or is not on the list."""
    real = seen.facts["device"]
    if "kind" in seen.facts:
        raise HostNotFitError(f"{asked} is no block device", where=where, remedy="see lsblk for those that there are")
    if real not in seen.allowed:
        raise HostNotFitError(
            f"{asked} is not on the list of devices that pgstrata may overwrite", where=where,
            remedy=f"if nothing on it is needed, write its path on a line of its own into {devices}",
        )  # fmt: skip
    return real


def device_change(base: str, device: str, label: str, words: Sequence[str]) -> Change:
    """A file system on a device; refused where the device is in use or holds anything that pgstrata did not make.

    It is lasting: what is still there after a reboot is removed then. `base` is a folder of pgstrata's own, so that an
    option that names a file there names none of the user's; `label` is new, so that what an earlier pgstrata left is
    not taken for the former state, to be kept.
    """
    return Change(
        what=f"file system of {device}", value="made", lasting=True,
        read=ShellScript(text=_READ, arguments=(device, label)),
        do=ShellScript(text=_MAKE, arguments=(device, base, *words)),
        undo=ShellScript(text=_UNDO, arguments=(device, label)),
    )  # fmt: skip
