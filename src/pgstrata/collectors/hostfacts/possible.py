"""Pure: which layers of a host can be factors for a user, and what would make the others possible, in a phrase each.

Hosts with controllers of cgroup version 2, with cpufreq, or where sudo is needed were never looked at: what is said of
them follows their documentation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from pgstrata.collectors.hostfacts.abilities import Abilities
from pgstrata.model.doctor import LayerFinding, Possible

_CPUFREQ: Final = "/sys/devices/system/cpu/cpu0/cpufreq"
_THP: Final = "/sys/kernel/mm/transparent_hugepage/enabled"
_COMPILERS: Final = ("gcc", "cc", "clang")
_SUDO: Final = "by sudo"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostCase:
    """A host to be judged.

    `package` names the package of a program; `devices` is the file with the block devices that may be overwritten.
    """

    abilities: Abilities
    package: Callable[[str], str]
    devices: str


def judge_layers(case: HostCase) -> tuple[LayerFinding, ...]:
    """Every factor of a host below the server."""
    ssh = _finding("host", "host", _missing(case, ("ssh",)), "machines that ssh reaches")
    return (*_builds(case), *_memory(case), *_sysctl(case), *_cpu(case), *_limits(case), *_storage(case), ssh)


def _finding(layer: str, key: str, lack: str = "", note: str = "") -> LayerFinding:
    """Possible, or not on this host because of what it lacks."""
    possible = Possible.NOT_ON_HOST if lack else Possible.YES
    return LayerFinding(layer=layer, key=key, possible=possible, note=lack or note)


def _privileged(case: HostCase, layer: str, key: str, lack: str = "", note: str = "") -> LayerFinding:
    """A factor that needs root, beyond what the host may lack."""
    abilities = case.abilities
    if lack or abilities.root:
        return _finding(layer, key, lack, note)
    if abilities.sudo:
        return _finding(layer, key, note=f"{note}, {_SUDO}" if note else _SUDO)
    # root of a container, whom the kernel does not take for one
    needed = "a container with CAP_SYS_ADMIN" if abilities.superuser else "root, or sudo without a password"
    return LayerFinding(layer=layer, key=key, possible=Possible.NOT_FOR_USER, note=f"needs {needed}")


def _missing(case: HostCase, programs: Iterable[str]) -> str:
    """The packages of programs that are not there; empty if all are."""
    lacking = [case.package(name) for name in programs if name not in case.abilities.programs]
    packages = ", ".join(dict.fromkeys(lacking))
    return f"needs the package{'s' if len(lacking) > 1 else ''} {packages}" if lacking else ""


# ---------------------------------------------------------------------------------------------- layers


def _builds(case: HostCase) -> Iterator[LayerFinding]:
    programs = case.abilities.programs
    compiler = next((name for name in _COMPILERS if name in programs), _COMPILERS[0])
    grammars = _missing(case, ("bison", "flex", "perl"))
    systems = "meson or configure" if {"meson", "ninja"} <= programs.keys() else "configure"
    # archives up to 16 bring what these make
    note = f"archives up to 16; for git and from 17 on it {grammars}" if grammars else f"{compiler}, {systems}"
    yield _finding("server", "server=build:", _missing(case, (compiler, "make")), note)
    yield _finding("server", "server=maven:", _missing(case, ("mvn",)))


def _memory(case: HostCase) -> Iterator[LayerFinding]:
    files = case.abilities.files
    for size, kilobytes, lack in (
        ("2MB", 2048, "needs a kernel with CONFIG_HUGETLBFS"),
        ("1GB", 1048576, "needs a CPU with pages of 1 GB (flag pdpe1gb) and a kernel with CONFIG_HUGETLBFS"),
    ):
        there = f"/sys/kernel/mm/hugepages/hugepages-{kilobytes}kB/nr_hugepages" in files
        yield _privileged(case, "memory", f"pages={size}", "" if there else lack)
    lack = "" if _THP in files else "needs a kernel with CONFIG_TRANSPARENT_HUGEPAGE"
    yield _privileged(case, "memory", "thp", lack or _closed_mount(case, "/sys"))


def _sysctl(case: HostCase) -> Iterator[LayerFinding]:
    yield _privileged(case, "sysctl", "sysctl.*", _closed_mount(case, "/proc/sys"))


def _closed_mount(case: HostCase, path: str) -> str:
    return f"{path} is read-only here: start pgstrata outside the container" if case.abilities.read_only(path) else ""


def _cpu(case: HostCase) -> Iterator[LayerFinding]:
    files = case.abilities.files
    cpus = case.abilities.cpus
    lack = "" if cpus > 1 else "there is one CPU only"
    yield _finding("cpu", "cpu.server, cpu.client", lack or _missing(case, ("taskset",)), f"{cpus} CPUs")
    yield _group(case, "cpu", "cpu.quota", "cpu", "CONFIG_CFS_BANDWIDTH")
    policies = "other, batch, idle; fifo and rr need the limit rtprio for the server's user"
    yield _finding("cpu", "cpu.policy", _missing(case, ("chrt",)), policies)
    absent = "no frequency scaling here: a virtual machine, or no cpufreq driver"
    governors = files.get(f"{_CPUFREQ}/scaling_available_governors", "")
    there = f"{_CPUFREQ}/scaling_governor" in files
    yield _privileged(case, "cpu", "cpu.governor", "" if there else absent, ", ".join(governors.split()))
    turbo = {"/sys/devices/system/cpu/intel_pstate/no_turbo", "/sys/devices/system/cpu/cpufreq/boost"} & set(files)
    yield _privileged(case, "cpu", "cpu.turbo", "" if turbo else absent)


def _limits(case: HostCase) -> Iterator[LayerFinding]:
    yield _group(case, "limits", "limits.memory", "memory", "CONFIG_MEMCG")
    reads = _group(case, "limits", "limits.read_*", "io", "CONFIG_BLK_DEV_THROTTLING", "blkio")
    yield reads
    writes = replace(reads, key="limits.write_*")
    found = _controller(case, "io", "blkio")
    if found is not None and found[1] == 1:
        lack = "needs cgroup version 2: buffered writes escape the limits of version 1"
        writes = replace(writes, possible=Possible.NOT_ON_HOST, note=lack)
    yield writes


def _controller(case: HostCase, second: str, first: str) -> tuple[str, int] | None:
    """Path and version of the mount that has a controller, by its name in version 2 and in version 1."""
    for mount in case.abilities.cgroups:
        if (second if mount.version == 2 else first) in mount.controllers and mount.writable:  # noqa: PLR2004
            return mount.path, mount.version
    return None


def _group(case: HostCase, layer: str, key: str, controller: str, option: str, first: str = "") -> LayerFinding:
    found = _controller(case, controller, first or controller)
    if found is not None:
        return _privileged(case, layer, key, note=f"cgroup version {found[1]}")
    if any(not mount.writable for mount in case.abilities.cgroups):
        return _finding(layer, key, "control groups are read-only here: start pgstrata outside the container")
    return _finding(layer, key, f"needs the cgroup controller {controller} ({option}, mounted below /sys/fs/cgroup)")


def _storage(case: HostCase) -> Iterator[LayerFinding]:
    abilities = case.abilities
    loop = "" if "/dev/loop-control" in abilities.existing or "loop" in abilities.modules else (
        "needs loop devices: modprobe loop (CONFIG_BLK_DEV_LOOP), or a container that may use them"
    )  # fmt: skip
    known = {line.split()[-1] for line in abilities.files.get("/proc/filesystems", "").splitlines() if line.split()}
    for kind in ("ext4", "xfs", "btrfs"):
        kernel = "" if kind in known | abilities.modules else f"needs a kernel with {kind} (CONFIG_{kind.upper()}_FS)"
        lack = loop or kernel or _missing(case, (f"mkfs.{kind}", "losetup", "mount"))
        yield _privileged(case, "storage", f"filesystem={kind}", lack, "on a loop device")
    listed = [line.strip() for line in abilities.files.get(case.devices, "").splitlines() if line.startswith("/dev/")]
    lack = "" if listed else f"needs a list of block devices that may be overwritten, {case.devices}"
    yield _privileged(case, "storage", "storage.device", lack, ", ".join(listed))
    names = sorted({word.strip("[]") for line in abilities.schedulers for word in line.split()})
    lack = "" if len(names) > 1 else "needs a kernel with more schedulers than one (CONFIG_MQ_IOSCHED_DEADLINE, ...)"
    yield _privileged(case, "storage", "storage.scheduler", lack, ", ".join(names))
    yield _privileged(case, "storage", "storage.read_ahead")
    lack = _missing(case, ("mount",))
    yield _privileged(case, "storage", "storage.wal, storage.installation", lack, "in memory, or on what is said above")
