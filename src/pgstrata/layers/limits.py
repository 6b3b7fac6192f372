"""The layer `limits`: memory around the server with its page cache counted, and traffic of its disk.

Memory is charged to the group that first touches a page of a file. A fresh clone is in the page cache already,
charged to whoever copied it, and would stay there at no cost for the server: so the words in front of the server write
the clone back and drop its larger files from the page cache (POSIX_FADV_DONTNEED by dd) before they join the group.
What the server reads of them afterwards is charged to it. Huge pages are not charged (Documentation/admin-guide/
cgroup-v1/hugetlb.rst), so an environment cannot have both.

Version 1 of cgroups charges delayed writes to nobody: limits of writes are refused there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from pgstrata.errors import HostNotFitError, LevelNotTakenError
from pgstrata.layers.cgroups import Controller, Group, Groups, assert_level, needed_controllers
from pgstrata.model.changes import ShellScript
from pgstrata.model.experiment import Environment
from pgstrata.model.kernel_files import parse_field, parse_meminfo
from pgstrata.model.launch import Launch, Needs
from pgstrata.model.storage import Medium, Role, medium_of
from pgstrata.ports.host import Command, Host
from pgstrata.ports.layer import Ledger
from pgstrata.ports.server import RunningServer, Sql
from pgstrata.units import Unit, render_bytes, render_value

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
            f"limits.memory would not count the data: {kind} charges its cache to no group",
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
            'by filesystem = "ext4". There is no such device below tmpfs, overlay, btrfs, zfs and NFS',
        )
    if delayed_writes and kind not in _CHARGED:
        raise HostNotFitError(
            f"writes cannot be limited: a file system ({kind}) that does not say whose delayed writes they are",
            where=folder,
            remedy="put the data on ext4 or xfs",
        )
    return disk.text.strip()


MEMORY: Final = "limits.memory"

# The largest page of any architecture of Linux: the kernel rounds limits down to pages.
_PAGE: Final = 65536
_V1_FILES: Final[Mapping[str, str]] = {
    "limits.read_bytes": "blkio.throttle.read_bps_device",
    "limits.read_operations": "blkio.throttle.read_iops_device",
}
# Words of io.max in the order in which the kernel prints them (cgroup-v2.rst).
_V2_WORDS: Final[Mapping[str, str]] = {
    "limits.read_bytes": "rbps",
    "limits.write_bytes": "wbps",
    "limits.read_operations": "riops",
    "limits.write_operations": "wiops",
}
_KEYS: Final = frozenset({MEMORY, *_V2_WORDS})
_MEMINFO: Final = "/proc/meminfo"
# Pages of each size that are reserved, and that may be made when they are asked for (admin-guide/mm/hugetlbpage.rst).
_POOLS: Final = "/sys/kernel/mm/hugepages/*/nr*_hugepages"
_OFF: Final = ("off", "false", "no", "0")
_MEMSW: Final = "memory.memsw.limit_in_bytes"

# Words in front of the server, whose folder is its data directory; links lead to tablespaces and to WAL elsewhere.
# Only clean pages can be dropped. Files up to 32 kB stay, because a process for each of them would take seconds: in a
# new cluster 700 of 800 files, together 9 MB, most of them of databases that nobody uses.
_EVICT: Final = (
    '[ -f PG_VERSION ] || { echo "not in a data directory: $PWD" >&2; exit 126; }; '
    "for folder in . pg_wal pg_xlog; do [ ! -d $folder ] || sync -f $folder || exit 126; done; "
    "find -L . -type f -size +32k -exec sh -c "
    "'for file do dd if=\"$file\" iflag=nocache count=0 status=none || exit 1; done' sh {} + || exit 126; "
    'exec "$@"'
)


class LimitsLayer:
    """Limits of memory and of traffic.

    Args:
        host: where the servers run, as their user.
        key: names the study's groups.
        data_folder: where the clone of an environment will lie, for the device that is limited; called after the layers
            beneath are prepared.
        environments: all of the experiment: what they need, groups of version 2 get; everything, if none are given.
    """

    name = "limits"

    def __init__(
        self, host: Host, key: str, data_folder: Callable[[Environment], str], environments: Iterable[Environment] = ()
    ) -> None:
        self._host = host
        self._groups = Groups(host, key, needed_controllers(environments) or tuple(Controller))
        self._data_folder = data_folder
        self._made: dict[str, dict[Controller, Group]] = {}
        self._kills: dict[str, int] = {}

    def concerns(self, environment: Environment) -> bool:
        return bool(_KEYS & environment.layers.keys())

    def prepare(self, environment: Environment, needs: Needs, ledger: Ledger) -> Launch:  # noqa: ARG002 - the Protocol's
        """Make the groups with their limits; words that start the server inside."""
        levels = environment.layers
        wanted: dict[str, tuple[Group, list[tuple[str, str]]]] = {}
        made: dict[Controller, Group] = {}
        for controller, values_of in ((Controller.MEMORY, self._memory_values), (Controller.IO, self._traffic_values)):
            if not (levels.keys() & (_V2_WORDS.keys() if controller is Controller.IO else {MEMORY})):
                continue
            made[controller] = group = self._groups.find(controller, environment.name)
            # In version 2 both are the same group.
            wanted.setdefault(group.folder, (group, []))[1].extend(values_of(environment, group))
        self._made[environment.name] = made
        self._kills[environment.name] = 0
        words: tuple[str, ...] = ("sh", "-c", _EVICT, "sh") if MEMORY in levels else ()
        for group, values in wanted.values():
            self._groups.make(group, values, ledger)
            words += group.join
        return Launch(server=words)

    def _memory_values(self, environment: Environment, group: Group) -> list[tuple[str, str]]:
        """Files of the group and what goes into them: no swap beyond the limit either."""
        self._refuse_huge_pages(environment)
        if medium_of(environment, Role.WAL) is Medium.MEMORY:
            raise HostNotFitError(
                "limits.memory would count the WAL that storage.wal keeps in memory, and could not drop it",
                where=f"environment {environment.name}",
                remedy="leave out limits.memory, or put the WAL on a disk",
            )
        size = str(self._size(environment))
        assert_cache_counted(self._host, self._data_folder(environment))
        if group.unified:
            limit, swap = ("memory.max", size), ("memory.swap.max", "0")
            # the group at the top has no such file, so one of the others tells
            counted = bool(self._host.read_matching(f"{group.hierarchy.folder}/*/memory.swap.max"))
        else:
            limit, swap = ("memory.limit_in_bytes", size), (_MEMSW, size)
            counted = self._host.exists(f"{group.hierarchy.folder}/{_MEMSW}")
        if counted:
            return [limit, swap]
        if len(self._host.read("/proc/swaps").splitlines()) > 1:
            raise HostNotFitError(
                "limits.memory would only move the server's memory to swap: this kernel does not count swap by group",
                where=self._host.name,
                remedy="switch swap off (swapoff -a), or boot with swapaccount=1",
            )
        return [limit]

    def _size(self, environment: Environment) -> int:
        """Bytes of the limit in whole pages; HostNotFitError where the host has no more than that anyway."""
        size = int(environment.layers[MEMORY])
        total = parse_meminfo(self._host.read(_MEMINFO).decode(), "MemTotal")
        if size >= total:
            raise HostNotFitError(
                f"limits.memory = {render_bytes(size)} would limit nothing: this host has {render_bytes(total)}",
                where=self._host.name,
                remedy=f"take less than {render_bytes(total)}",
            )
        return size // _PAGE * _PAGE

    def _refuse_huge_pages(self, environment: Environment) -> None:
        """HostNotFitError where shared_buffers may lie in huge pages: asked for, or found by "try", the default."""
        pages = environment.layers.get("pages", "")
        asked = environment.settings.get("huge_pages", "try").lower()
        if pages not in ("", "4kB"):
            why, remedy = (
                f"with pages = {pages} the server would have that much more",
                "leave out pages or limits.memory",
            )
        elif pages or asked in _OFF:
            return  # pages = 4kB has the server start with huge_pages = off
        elif asked != "try":
            why = f"with huge_pages = {asked} the server would have that much more"
            remedy = 'set huge_pages = "off", or leave out limits.memory'
        elif any(count.strip("0") for count in self._host.read_matching(_POOLS).decode().split()):
            why = "this host has some, and with huge_pages = try the server takes them"
            remedy = (
                'set huge_pages = "off" for all environments, or empty the pool (sysctl vm.nr_hugepages=0 '
                "vm.nr_overcommit_hugepages=0)"
            )
        else:
            return
        what = f"limits.memory does not count huge pages: {why}"
        raise HostNotFitError(what, where=f"environment {environment.name}", remedy=remedy)

    def _traffic_values(self, environment: Environment, group: Group) -> list[tuple[str, str]]:
        levels = {key: value for key, value in environment.layers.items() if key in _V2_WORDS}
        writes = sorted(key for key in levels if key.startswith("limits.write"))
        if writes and not group.unified:
            raise HostNotFitError(
                f"{' and '.join(writes)} would hardly limit anything: cgroup v1 does not charge delayed writes, which "
                "are most of what a server writes",
                where=self._host.name,
                remedy="boot with systemd.unified_cgroup_hierarchy=1 (cgroup v2), or limit reads only",
            )
        device = find_device(self._host, self._data_folder(environment), delayed_writes=bool(writes))
        if not group.unified:
            return [(file, f"{device} {levels[key]}") for key, file in _V1_FILES.items() if key in levels]
        words = " ".join(f"{word}={levels.get(key, 'max')}" for key, word in _V2_WORDS.items())
        return [("io.max", f"{device} {words}")]

    def observe(self, server: RunningServer, sql: Sql) -> Mapping[str, str]:  # noqa: ARG002 - the Protocol's
        """What the groups say; LevelNotTakenError where the server is not in them or they have other limits."""
        environment = server.environment
        if not self.concerns(environment):
            return {}
        made = self._made.get(environment.name, {})
        if server.postmaster_pid is None or not made:
            raise LevelNotTakenError(
                "limits were asked for, and the server is not one that pgstrata started",
                where=f"environment {environment.name}",
                remedy="leave out limits.* for servers that somebody else runs",
            )
        file = f"/proc/{server.postmaster_pid}/cgroup"
        membership = self._host.read_files((file,)).get(file, b"").decode("utf-8", "surrogateescape")
        contents: dict[str, str] = {}
        for group in made.values():
            group.assert_member(membership, f"environment {environment.name}")
            contents |= group.read(self._host, *_READ_BACK, *_V1_FILES.values())
        facts = {key: value for key, value in _read_facts(contents).items() if key in environment.layers}
        for key in _KEYS & environment.layers.keys():
            asked, found = environment.layers[key], facts.get(key, "")
            wanted = int(asked) // _PAGE * _PAGE if key == MEMORY else int(asked)
            assert_level(key, asked, found, server, same=found == str(wanted))
        if MEMORY in facts:
            facts["limits.memory_used"] = contents.get("memory.current") or contents.get("memory.usage_in_bytes", "")
            self._kills[environment.name] = _count_kills(contents)
            facts["limits.memory_kills"] = str(self._kills[environment.name])
        return facts

    def explain_death(self, environment: Environment) -> str:
        """Why a server of this environment died since it was observed, if its limit of memory was the reason."""
        group = self._made.get(environment.name, {}).get(Controller.MEMORY)
        if group is None:
            return ""
        contents = group.read(self._host, "memory.events", "memory.oom_control")
        kills = _count_kills(contents) - self._kills[environment.name]
        if kills <= 0:
            return ""
        size = render_value(float(environment.layers[MEMORY]), Unit.BYTES)
        return (
            f"the kernel killed {kills} of the server's processes, because limits.memory = {size} was used up: "
            "give it more, or less shared_buffers, work_mem or clients"
        )


_READ_BACK: Final = (
    "memory.max", "memory.limit_in_bytes", "memory.current", "memory.usage_in_bytes", "memory.events",
    "memory.oom_control", "io.max",
)  # fmt: skip


def _count_kills(contents: Mapping[str, str]) -> int:
    """Processes that the kernel killed for want of memory (`oom_kill`, in version 1 from Linux 4.13)."""
    texts = (contents.get(name, "") for name in ("memory.events", "memory.oom_control"))
    return next((int(count) for text in texts if (count := parse_field(text, "oom_kill"))), 0)


def _read_facts(contents: Mapping[str, str]) -> dict[str, str]:
    """Limits by key, in bytes and operations per second."""
    facts = {MEMORY: contents.get("memory.max") or contents.get("memory.limit_in_bytes", "")}
    for key, file in _V1_FILES.items():
        facts[key] = contents.get(file, "").rpartition(" ")[2]
    words = dict(word.split("=", 1) for word in contents.get("io.max", "").split() if "=" in word)
    return facts | {key: words[word] for key, word in _V2_WORDS.items() if word in words}
