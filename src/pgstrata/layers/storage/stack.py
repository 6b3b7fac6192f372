"""Where a folder lies: its mount and the devices below it, down to the disks. One script gathers, the rest is pure.

A device below a device (md, dm, the disk of a partition) is one step deeper. Below a loop device comes the mount on
which its image lies, and so on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from pgstrata.errors import ParseError
from pgstrata.model.changes import ShellScript
from pgstrata.model.storage import Role
from pgstrata.system.storage import PLAIN

# `read` is the shell's own: no process for each of some twenty files. Functions in parentheses are subshells, so that
# their variables are their own. The number of the device comes from stat, because a mount's source may be a name that
# leads nowhere (/dev/root); btrfs has a number of its own, there the source is right.
WALK: Final = r"""
place() (
    [ "$2" -lt 8 ] || exit 0
    mount=$(findmnt --noheadings --pairs --nofsroot --output TARGET,SOURCE,FSTYPE,OPTIONS --target "$1") || exit 0
    printf '== mount %s\n%s\n' "$2" "$mount"
    number=$(stat -c %d -- "$1") || exit 0
    number=$(( number >> 8 & 4095 )):$(( number & 255 | number >> 12 & 1048320 ))
    if [ -e "/sys/dev/block/$number" ]; then
        device=$(readlink -f "/sys/dev/block/$number")
    else
        source=$(findmnt --noheadings --raw --nofsroot --output SOURCE --target "$1")
        device=$(readlink -f -- "$source")
    fi
    device "${device##*/}" "$2" 0
)
device() (
    [ -n "$1" ] && [ -e "/sys/class/block/$1" ] && [ "$3" -lt 8 ] || exit 0
    folder=$(readlink -f "/sys/class/block/$1")
    printf '== device %s\nname=%s\ndepth=%s\n' "$2" "$1" "$3"
    if [ -e "$folder/partition" ]; then
        folder=${folder%/*}
        printf 'disk=%s\n' "${folder##*/}"
    fi
    for name in queue/scheduler queue/read_ahead_kb queue/write_cache queue/logical_block_size device/model dm/name \
        dm/uuid md/level loop/dio loop/backing_file
    do
        [ -r "$folder/$name" ] && IFS= read -r line <"$folder/$name" && printf '%s=%s\n' "$name" "$line"
    done
    for name in /sys/fs/btrfs/*/devices/"$1"; do
        file=${name%/devices/*}/bdi/read_ahead_kb
        [ -r "$file" ] && IFS= read -r line <"$file" && printf 'btrfs=%s\nbdi/read_ahead_kb=%s\n' "$file" "$line"
    done
    if [ -r "$folder/loop/backing_file" ]; then
        IFS= read -r line <"$folder/loop/backing_file" && place "$line" $(( $2 + 1 ))
    fi
    for name in "$folder"/slaves/*; do
        [ -e "$name" ] && device "${name##*/}" "$2" $(( $3 + 1 ))
    done
    exit 0
)
"""

_OBSERVE_DATA: Final = r"""
inside=$([ -z "$2" ] || readlink "/proc/$2/cwd")
real=$(readlink -f -- "$1") || real=$1
printf "== place\ninside=%s\nreal=%s\n" "$inside" "$real"
place "${inside:-$1}" 0
"""
# The parts of a server one after the other, each as if it were alone. What a process has mapped is named by the kernel
# with its real path, at the end of the line.
_OBSERVE_SERVER: Final = (
    "echo '== role data'\n"
    + _OBSERVE_DATA
    + r"""
echo '== role wal'
wal=${inside:-$1}/pg_wal
[ -e "$wal" ] || wal=${inside:-$1}/pg_xlog
wal=$(readlink -f -- "$wal")
printf '== place\ninside=%s\nreal=%s\n' "$wal" "$([ -z "$3" ] || readlink -f -- "$3")"
place "$wal" 0
echo '== role installation'
program=$(readlink "/proc/$2/exe")
printf '== place\ninside=%s\nreal=%s\n' "$program" "$(readlink -f -- "$4")"
if [ -n "$5" ] && former=$(readlink -f -- "$5"); then
    while read -r _ _ _ _ _ file; do
        case $file in "$former"/*) printf 'kept=%s\n' "$file"; break ;; esac
    done <"/proc/$2/maps"
fi
[ -z "$program" ] || place "$program" 0
exit 0
"""
)

_HEADING: Final = re.compile(r"^== (\w+)(?: (\d+))?\n", re.MULTILINE)
_PAIR: Final = re.compile(r'(?P<name>[A-Z:_]+)="(?P<value>[^"]*)"')
_ESCAPE: Final = re.compile(r"\\x([0-9a-f]{2})")
_OVERLAID: Final = re.compile(r"(?:lowerdir|upperdir|workdir|datadir)\+?=")
# What a device is called where its own name may be another one's after a reboot; the first that is known counts.
_KINDS: Final[Mapping[str, str]] = {"dm/name": "volume", "md/level": "array", "device/model": "disk"}
_FACT: Final = re.compile(r"^(?P<name>[A-Za-z/_]+)=(?P<value>.*)$")


def observe_script(place: str) -> ShellScript:
    """Prints the stack below a folder."""
    return ShellScript(text=PLAIN + WALK + _OBSERVE_DATA, arguments=(place, ""))


def observe_server_script(clone: str, wal: str, program: str, former: str, pid: int) -> ShellScript:
    """Prints for each part of a server where it is, where it should be, and the stack below, for `parse_roles`.

    Args:
        clone: the data directory.
        wal: the folder in which its WAL is, empty where it lies with the data.
        program: path of the postgres that was started.
        former: the prefix that its installation was copied from, if it was: what is still taken from it is named.
        pid: the postmaster.
    """
    return ShellScript(text=PLAIN + WALK + _OBSERVE_SERVER, arguments=(clone, str(pid), wal, program, former))


def check_script(folder: str, names: Iterable[str], programs: Iterable[str]) -> ShellScript:
    """Prints what must be known before anything is made in a folder: programs, space, what is there; and its stack.

    `names` are of folders to be made in it, without spaces.
    """
    text = (
        PLAIN
        + WALK
        + (
            'folder=$(readlink -f -- "$1") && [ -d "$folder" ] && [ -x "$folder" ] || exit 0\n'
            'printf "== check\\nfolder=%s\\n" "$folder"\n'
            "for name in $2; do\n"
            '! [ -e "$folder/$name" ] && ! [ -L "$folder/$name" ] || printf "taken=%s\\n" "$folder/$name"\n'
            "done\n"
            "[ -e /dev/loop-control ] || echo loops=none\n"
            "while read -r name size _; do\n"
            '[ "$name" != MemAvailable: ] || printf "memory=%s\\n" "$size"\n'
            "done </proc/meminfo\n"
            'set -- "$folder" $(stat -f -c "%a %S" -- "$folder") "$@"\n'
            'printf "free=%s\\n" $(( $2 * $3 ))\n'
            "shift 5\n"
            'for program in "$@"; do command -v "$program" >/dev/null || printf "missing=%s\\n" "$program"; done\n'
            'place "$folder" 0\n'
        )
    )
    return ShellScript(text=text, arguments=(folder, " ".join(names), *programs))


@dataclass(frozen=True, slots=True, kw_only=True)
class MountedFileSystem:
    """A mounted file system: where, from what, its type and options (of the mount and of the file system)."""

    target: str
    source: str
    type: str
    options: tuple[str, ...]

    @property
    def lasting_options(self) -> tuple[str, ...]:
        """Without the folders of which an overlay is put together: each container has others."""
        return tuple(option for option in self.options if not _OVERLAID.match(option))


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A block device. `disk` is the whole device of a partition, else itself; `facts` by their names in sysfs."""

    name: str
    disk: str
    depth: int
    facts: Mapping[str, str]

    @property
    def scheduler(self) -> str:
        """The scheduler in use; empty where there is none to be chosen."""
        return chosen(self.facts.get("queue/scheduler", ""))

    @property
    def schedulers(self) -> tuple[str, ...]:
        """All that can be chosen."""
        return tuple(self.facts.get("queue/scheduler", "").replace("[", "").replace("]", "").split())

    @property
    def read_ahead(self) -> int | None:
        """Bytes; that of the file system itself where it has its own, as btrfs does."""
        text = self.facts.get("bdi/read_ahead_kb", self.facts.get("queue/read_ahead_kb", ""))
        return int(text) * 1024 if text.isdigit() else None

    @property
    def scheduler_file(self) -> str:
        """Where its scheduler is chosen."""
        return f"/sys/block/{self.disk}/queue/scheduler"

    @property
    def read_ahead_file(self) -> str:
        """Where its read-ahead is chosen, in kB."""
        return self.facts.get("btrfs") or f"/sys/block/{self.disk}/queue/read_ahead_kb"

    def render(self, *, names: bool = True) -> str:
        """For people; loop devices are numbered anew each time, so without their number.

        `names` False: for fingerprints, without what a reboot may give to another device where there is more to tell.
        """
        loop = "loop/backing_file" in self.facts
        words = [
            "direct I/O" if self.facts.get("loop/dio") == "1" else "buffered" if loop else "",
            " ".join(self.facts.get("device/model", "").split()),
            f"md {self.facts['md/level']}" if self.facts.get("md/level") else "",
            f"dm {self.facts.get('dm/uuid', '').partition('-')[0]} {self.facts['dm/name']}".replace("  ", " ")
            if "dm/name" in self.facts
            else "",
            self.facts.get("queue/write_cache", ""),
        ]
        said = ", ".join(word for word in words if word)
        known = [kind for fact, kind in _KINDS.items() if self.facts.get(fact)]
        if loop:
            name = "loop"
        elif names or not known:
            name = self.name
        elif self.disk != self.name:
            name = f"partition {self.name.removeprefix(self.disk).removeprefix('p')}"
        else:
            name = known[0]
        return f"{name} ({said})" if said else name


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceStack:
    """A mount and the devices below it, depth first; `below` is the stack on which the image of a loop device lies."""

    mount: MountedFileSystem
    devices: tuple[Device, ...] = ()
    below: DeviceStack | None = None

    @property
    def scheduled(self) -> tuple[Device, ...]:
        """The uppermost devices that have a choice of schedulers: md and dm have none, then it is the disks below."""
        able = [device for device in self.devices if len(device.schedulers) > 1]
        top = min((device.depth for device in able), default=0)
        return tuple(device for device in able if device.depth == top)

    @property
    def logical_block(self) -> int:
        """The largest block that a device wants to be written as a whole, bytes."""
        sizes = (device.facts.get("queue/logical_block_size", "") for device in self.devices)
        return max((int(size) for size in sizes if size.isdigit()), default=512)

    def render(self, *, names: bool = True) -> str:
        """From the file system down to the disks; without `names` those of one depth in an order of their own."""
        devices = [device.render(names=names) for device in self.devices]
        if not names:
            pairs = zip(self.devices, devices, strict=True)
            devices = [text for _, text in sorted((device.depth, text) for device, text in pairs)]
        rest = [self.below.render(names=names)] if self.below else []
        return " on ".join([self.mount.type, *devices, *rest])


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What a script of this module printed: single facts, and the stack (None where no mount was found)."""

    facts: Mapping[str, str]
    missing: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    stack: DeviceStack | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Section:
    kind: str
    level: int
    lines: list[str]


def parse_observed(text: str) -> Observed:
    """What `observe_script` or `check_script` printed; ParseError where a line has an unknown shape."""
    sections = list(_sections(text))
    pairs = [pair for section in sections if section.kind in {"place", "check"} for pair in _facts(section)]
    return Observed(
        facts=dict(pairs),
        missing=tuple(value for name, value in pairs if name == "missing"),
        allowed=tuple(value for name, value in pairs if name == "allowed"),
        stack=_stack([section for section in sections if section.kind in {"mount", "device"}], 0),
    )


def parse_roles(text: str) -> Mapping[Role, Observed]:
    """What `observe_server_script` printed, for each part of the server; ParseError where a part is unknown."""
    head, *parts = re.split(r"^== role (\w+)\n", text, flags=re.MULTILINE)
    if head.strip() or set(parts[::2]) != set(Role):
        raise ParseError(f"the parts of a server were expected: {text[:80]!r}", where="storage")
    return {Role(name): parse_observed(part) for name, part in zip(parts[::2], parts[1::2], strict=True)}


def _sections(text: str) -> Iterator[_Section]:
    head, *parts = _HEADING.split(text)
    if head:
        raise ParseError(f"a section was expected: {head.splitlines()[0]!r}", where="storage")
    for kind, level, lines in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        yield _Section(kind=kind, level=int(level or 0), lines=lines.splitlines())


def _facts(section: _Section) -> list[tuple[str, str]]:
    pairs = []
    for line in section.lines:
        match = _FACT.match(line)
        if match is None:
            raise ParseError(f"name=value was expected: {line!r}", where="storage")
        pairs.append((match.group("name"), match.group("value")))
    return pairs


def _stack(sections: list[_Section], level: int) -> DeviceStack | None:
    mounts = [section for section in sections if section.kind == "mount" and section.level == level]
    if not mounts:
        return None
    devices = [section for section in sections if section.kind == "device" and section.level == level]
    return DeviceStack(
        mount=_mount(mounts[0]),
        devices=tuple(_device(dict(_facts(section))) for section in devices),
        below=_stack(sections, level + 1),
    )


def _mount(section: _Section) -> MountedFileSystem:
    # of two mounts on one place the later one is seen
    line = section.lines[-1] if section.lines else ""
    pairs = {match.group("name"): _unescape(match.group("value")) for match in _PAIR.finditer(line)}
    try:
        return MountedFileSystem(
            target=pairs["TARGET"],
            source=pairs["SOURCE"],
            type=pairs["FSTYPE"],
            options=tuple(pairs["OPTIONS"].split(",")),
        )
    except KeyError as error:
        raise ParseError(f"findmnt gave no {error.args[0]}: {line!r}", where="storage") from error


def _device(facts: dict[str, str]) -> Device:
    name, depth = facts.pop("name"), int(facts.pop("depth"))
    return Device(name=name, disk=facts.pop("disk", name), depth=depth, facts=facts)


def _unescape(text: str) -> str:
    return _ESCAPE.sub(lambda match: chr(int(match.group(1), 16)), text)


def chosen(text: str) -> str:
    """The word in brackets: none [mq-deadline] kyber -> mq-deadline."""
    match = re.search(r"\[([^\]]+)\]", text)
    return match.group(1) if match else text.strip()
