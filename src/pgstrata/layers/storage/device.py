"""Pure: block devices that a user gives to pgstrata.

A device is used if it stands in a file that the user wrote on that host, is in use by nobody, and is either empty or
carries a file system that pgstrata made. The last two are looked at by the same script that makes the file system, as
root, right before it does (`system.storage.device_change`).
"""

from __future__ import annotations

from typing import Final

from pgstrata.errors import HostNotFitError
from pgstrata.layers.storage.stack import WALK, Observed
from pgstrata.model.changes import ShellScript
from pgstrata.system.storage import PLAIN

DEVICES: Final = "/etc/pgstrata/devices"
"""The list: one path a line, such as /dev/disk/by-id/…; lines that begin with # are comments."""


def device_script(asked: str, devices: str = DEVICES) -> ShellScript:
    """Prints what a device is, and the real paths of those that are on the list."""
    text = (
        PLAIN
        + WALK
        + (
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
        )
    )
    return ShellScript(text=text, arguments=(asked, devices))


def accept_device(seen: Observed, asked: str, devices: str, *, where: str) -> str:
    """The real path of a device; HostNotFitError where it is none, or is not on the list."""
    real = seen.facts["device"]
    if "kind" in seen.facts:
        raise HostNotFitError(
            f"{asked} is not a block device", where=where, remedy="see lsblk for those that there are"
        )
    if real not in seen.allowed:
        raise HostNotFitError(
            f"{asked} is not on the list of devices that pgstrata may overwrite",
            where=where,
            remedy=f"if nothing on it is needed, write its path on a line of its own into {devices}",
        )
    return real
