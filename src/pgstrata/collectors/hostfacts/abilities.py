"""What of a host decides which of its layers can be changed there, and by whom. Nothing is changed.

Reads only; what follows from it stands in `possible`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pgstrata.errors import PgstrataError
from pgstrata.ports.host import Command, Host

PROGRAMS: Final = (
    "taskset", "chrt", "losetup", "mount", "mkfs.ext4", "mkfs.xfs", "mkfs.btrfs", "ssh", "sudo", "git",
    "perf", "cc", "gcc", "clang", "make", "bison", "flex", "perl", "meson", "ninja", "mvn",
)  # fmt: skip
_CPU: Final = "/sys/devices/system/cpu"
_PAGES: Final = "/sys/kernel/mm/hugepages"
_FILES: Final = (
    "/proc/filesystems", "/proc/self/mountinfo", "/proc/self/status", "/proc/loadavg", "/proc/meminfo", "/proc/swaps",
    "/proc/sys/vm/swappiness", "/proc/sys/kernel/perf_event_paranoid", f"{_CPU}/cpu0/cpufreq/scaling_governor",
    f"{_CPU}/cpu0/cpufreq/scaling_available_governors", f"{_CPU}/intel_pstate/no_turbo", f"{_CPU}/cpufreq/boost",
    f"{_PAGES}/hugepages-2048kB/nr_hugepages", f"{_PAGES}/hugepages-1048576kB/nr_hugepages",
    "/sys/kernel/mm/transparent_hugepage/enabled", "/sys/kernel/mm/transparent_hugepage/shmem_enabled",
)  # fmt: skip
# Folders of administration are not on every user's PATH, and what is run by sudo finds its programs there all the same.
_SCRIPT: Final = """
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
for name in "$@"; do
    where=$(command -v -- "$name") && echo "program $name $where"
done
for path in /dev/loop-control /run/systemd/system /dev/kvm; do
    [ -e "$path" ] && echo "exists $path"
done
modules=/lib/modules/$(uname -r)
grep -hoE '/(ext4|xfs|btrfs|loop)\\.ko' "$modules/modules.dep" "$modules/modules.builtin" 2>/dev/null |
    sed 's|^/|module |; s|\\.ko$||' | sort -u
for file in /sys/block/*/queue/scheduler; do
    [ -r "$file" ] && echo "scheduler $(cat "$file")"
done
echo "uid $(id -u)"
"""
_ESCAPE: Final = re.compile(r"\\([0-7]{3})")
_SUDO_SECONDS: Final = 5.0
_CAP_SYS_ADMIN: Final = 21
"""Bit of a capability set, from linux/capability.h; root of most containers lacks it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CgroupMount:
    """A place where control groups are mounted: version 1 or 2, its controllers, and whether it can be written to."""

    path: str
    version: int
    controllers: frozenset[str]
    writable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Abilities:
    """What a host has, for one user.

    `root` is whether the user may administer the kernel (root in a container often may not), `superuser` whether it is
    user 0, `sudo` whether `sudo` works without a password. `files` holds the contents, stripped, of those that exist;
    `schedulers` the lines of the block devices, such as "[none] mq-deadline".
    """

    superuser: bool = False
    root: bool = False
    sudo: bool = False
    programs: Mapping[str, str] = field(default_factory=dict)
    existing: frozenset[str] = frozenset()
    modules: frozenset[str] = frozenset()
    files: Mapping[str, str] = field(default_factory=dict)
    schedulers: tuple[str, ...] = ()
    cgroups: tuple[CgroupMount, ...] = ()

    @property
    def cpus(self) -> int:
        """CPUs that the user may use; 1 where it is not known."""
        return count_cpus(self.files.get("/proc/self/status", ""))

    def read_only(self, path: str) -> bool:
        """Whether `path`, such as /proc/sys, lies on a mount that cannot be written to, as in most containers."""
        mount = find_mount(self.files.get("/proc/self/mountinfo", ""), path)
        return mount is not None and mount.read_only


@dataclass(frozen=True, slots=True, kw_only=True)
class MountEntry:
    """A line of mountinfo; `device` such as 8:1, `kind` of the file system, options of the mount and of the latter."""

    path: str
    device: str
    kind: str
    source: str
    options: tuple[str, ...]
    super_options: tuple[str, ...]

    @property
    def read_only(self) -> bool:
        """Whether the mount or its file system is read-only."""
        return "ro" in self.options + self.super_options


def observe_abilities(host: Host, *more: str) -> Abilities:
    """Look at a host, in a few exchanges, and read `more` files too; what cannot be read counts as not there."""
    found = host.read_files((*_FILES, *more))
    files = {path: content.decode("utf-8", "replace").strip() for path, content in found.items()}
    said = host.run(Command(argv=("sh", "-c", _SCRIPT, "sh", *PROGRAMS), folder="/"), timeout=30, check=False).text
    superuser = "uid 0" in said.splitlines()
    programs = parse_programs(said)
    groups = [mount for mount in parse_mounts(files.get("/proc/self/mountinfo", "")) if mount.kind == "cgroup2"]
    controllers = host.read_files([f"{mount.path}/cgroup.controllers" for mount in groups])
    return Abilities(
        superuser=superuser,
        root=superuser and has_capability(files.get("/proc/self/status", ""), _CAP_SYS_ADMIN),
        sudo=not superuser and "sudo" in programs and _sudo_works(host),
        programs=programs,
        existing=frozenset(_words(said, "exists")),
        modules=frozenset(_words(said, "module")),
        files=files,
        schedulers=_words(said, "scheduler"),
        cgroups=parse_cgroups(
            files.get("/proc/self/mountinfo", ""),
            {path: content.decode("utf-8", "replace") for path, content in controllers.items()},
        ),
    )


def parse_programs(said: str) -> Mapping[str, str]:
    """Paths of programs by name, from lines `program NAME PATH`."""
    pairs = (line.partition(" ") for line in _words(said, "program"))
    return {name: path for name, _, path in pairs if path}


def _words(said: str, kind: str) -> tuple[str, ...]:
    return tuple(line.removeprefix(f"{kind} ") for line in said.splitlines() if line.startswith(f"{kind} "))


def _sudo_works(host: Host) -> bool:
    try:
        return host.run(Command(argv=("sudo", "-n", "true"), folder="/"), timeout=_SUDO_SECONDS, check=False).code == 0
    except PgstrataError:
        return False


def has_capability(status: str, bit: int) -> bool:
    """Whether a capability is effective, from /proc/self/status; true where nothing is said of capabilities."""
    found = re.search(r"^CapEff:\s*([0-9a-f]+)$", status, re.MULTILINE)
    return found is None or bool(int(found[1], 16) >> bit & 1)


def count_cpus(status: str) -> int:
    """How many CPUs a process may use, from /proc/self/status (0-3,8 are five); 1 where it does not say."""
    found = re.search(r"^Cpus_allowed_list:\s*([\d,-]+)$", status, re.MULTILINE)
    ranges = (part.partition("-") for part in found[1].split(",")) if found else ()
    return sum(int(last or first) - int(first) + 1 for first, _, last in ranges) or 1


def parse_mounts(text: str) -> tuple[MountEntry, ...]:
    """proc_pid_mountinfo(5): id, parent, device, root, mount point, options, more fields, -, type, source, options."""
    mounts = []
    for line in text.splitlines():
        head, dash, tail = line.partition(" - ")
        fields, kind = head.split(" "), tail.split(" ")
        if dash and len(fields) > 5 and len(kind) > 2:  # noqa: PLR2004 - fields are counted in the manual
            mount = MountEntry(
                path=_ESCAPE.sub(lambda match: chr(int(match.group(1), 8)), fields[4]),
                device=fields[2],
                kind=kind[0],
                source=kind[1],
                options=tuple(fields[5].split(",")),
                super_options=tuple(kind[2].split(",")),
            )
            mounts.append(mount)
    return tuple(mounts)


def find_mount(mountinfo: str, path: str) -> MountEntry | None:
    """The mount that a path lies on: the deepest, and of several on one place the last, which hides the others."""
    best: MountEntry | None = None
    for mount in parse_mounts(mountinfo):
        inside = mount.path == "/" or f"{path}/".startswith(f"{mount.path}/")
        if inside and (best is None or len(mount.path) >= len(best.path)):
            best = mount
    return best


def parse_cgroups(mountinfo: str, controllers: Mapping[str, str]) -> tuple[CgroupMount, ...]:
    """Mounts of control groups; those of version 2 name their controllers in a file, those of version 1 as options."""
    found = []
    for mount in parse_mounts(mountinfo):
        if mount.kind == "cgroup2":
            names = frozenset(controllers.get(f"{mount.path}/cgroup.controllers", "").split())
        elif mount.kind == "cgroup":
            names = frozenset(mount.super_options)
        else:
            continue
        version = 2 if mount.kind == "cgroup2" else 1
        found.append(CgroupMount(path=mount.path, version=version, controllers=names, writable="rw" in mount.options))
    return tuple(found)
