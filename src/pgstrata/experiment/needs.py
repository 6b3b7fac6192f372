"""Requirements of layers on a host, and how `doctor` says that one is missing.

Hosts with controllers of cgroup version 2, with cpufreq, or where sudo is needed were never looked at: what is said of
them follows their documentation.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pgstrata.model.abilities import HostCase


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """Something that a host must have: `lack` says what is missing, and is empty where nothing is.

    `files` and `programs` are what is looked at for that.
    """

    lack: Callable[[HostCase], str]
    files: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLine:
    """A line of `doctor`: the levels that are possible or not, as an experiment writes them, and what that takes.

    Without `root` an ordinary user can change them; `note` says what there is.
    """

    key: str
    needs: tuple[Need, ...] = ()
    note: Callable[[HostCase], str] = lambda _: ""
    root: bool = True


def needed(there: Callable[[HostCase], bool], lack: str, *files: str) -> Need:
    """What is there or not; `lack` says that it is missing, `files` are looked at for it."""
    return Need(lack=lambda case: "" if there(case) else lack, files=files)


def file_needed(*paths: str, lack: str, shown: tuple[str, ...] = ()) -> Need:
    """One of these files; `shown` are others that the note is made of."""
    return needed(lambda case: bool(set(paths) & case.abilities.files.keys()), lack, *paths, *shown)


def writable(path: str) -> Need:
    """A mount that is not read-only, as that of most containers is."""
    lack = f"{path} is read-only here: start pgstrata outside the container"
    return needed(lambda case: not case.abilities.read_only(path), lack)


def programs_needed(*programs: str) -> Need:
    """All of these programs; their packages are named."""

    def lack(case: HostCase) -> str:
        lacking = [case.package(name) for name in programs if name not in case.abilities.programs]
        packages = ", ".join(dict.fromkeys(lacking))
        return f"needs the package{'s' if len(lacking) > 1 else ''} {packages}" if lacking else ""

    return Need(lack=lack, programs=programs)


def group_line(key: str, controller: str, option: str, *, old: str = "", since: int = 1) -> HostLine:
    """What a controller of control groups does, `old` by its name in version 1; from which version of them on."""

    def version(case: HostCase) -> int:
        """Version of the mount that has the controller and can be written to; 0 without one."""
        for mount in case.abilities.cgroups:
            name = controller if mount.version == 2 else old or controller  # noqa: PLR2004 - the version
            if name in mount.controllers and mount.writable:
                return mount.version
        return 0

    def lack(case: HostCase) -> str:
        if version(case) >= since:
            return ""
        if version(case):
            return f"needs cgroup version {since}: buffered writes escape the limits of version 1"
        if any(not mount.writable for mount in case.abilities.cgroups):
            return "control groups are read-only here: start pgstrata outside the container"
        return f"needs the cgroup controller {controller} ({option}, mounted below /sys/fs/cgroup)"

    return HostLine(key=key, needs=(Need(lack=lack),), note=lambda case: f"cgroup version {version(case)}")


LOOP_NEEDED: Final = needed(
    lambda case: "/dev/loop-control" in case.abilities.existing or "loop" in case.abilities.modules,
    "needs loop devices: modprobe loop (CONFIG_BLK_DEV_LOOP), or a container that may use them",
)


def file_system_line(kind: str) -> HostLine:
    """A file system on a loop device: of the kernel, and the programs that make and mount it."""

    def known(case: HostCase) -> bool:
        lines = case.abilities.files.get("/proc/filesystems", "").splitlines()
        return kind in {line.split()[-1] for line in lines if line.split()} | case.abilities.modules

    kernel = needed(known, f"needs a kernel with {kind} (CONFIG_{kind.upper()}_FS)", "/proc/filesystems")
    makers = programs_needed(f"mkfs.{kind}", "losetup", "mount")
    return HostLine(key=f"filesystem={kind}", needs=(LOOP_NEEDED, kernel, makers), note=lambda _: "on a loop device")


def listed_devices(case: HostCase) -> str:
    """The block devices that may be overwritten."""
    lines = case.abilities.files.get(case.devices, "").splitlines()
    return ", ".join(line.strip() for line in lines if line.startswith("/dev/"))


DEVICE_LISTED: Final = Need(
    lack=lambda case: (
        "" if listed_devices(case) else f"needs a list of block devices that may be overwritten, {case.devices}"
    )
)


def schedulers(case: HostCase) -> tuple[str, ...]:
    """The I/O schedulers that devices offer."""
    return tuple(sorted({word.strip("[]") for line in case.abilities.schedulers for word in line.split()}))


SCHEDULERS_NEEDED: Final = needed(
    lambda case: len(schedulers(case)) > 1,
    "needs a kernel with more schedulers than one (CONFIG_MQ_IOSCHED_DEADLINE, ...)",
)

SEVERAL_CPUS: Final = needed(lambda case: case.abilities.cpus > 1, "there is one CPU only", "/proc/self/status")
