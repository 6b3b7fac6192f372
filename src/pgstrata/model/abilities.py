"""What of a host decides which of its layers can be changed there, and by whom."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pgstrata.model.kernel_files import parse_allowed_cpus
from pgstrata.model.mounts import find_mount


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
        return len(parse_allowed_cpus(self.files.get("/proc/self/status", ""))) or 1

    def read_only(self, path: str) -> bool:
        """Whether `path`, such as /proc/sys, lies on a mount that cannot be written to, as in most containers."""
        mount = find_mount(self.files.get("/proc/self/mountinfo", ""), path)
        return mount is not None and mount.read_only


@dataclass(frozen=True, slots=True, kw_only=True)
class HostCase:
    """A host to be judged.

    `package` names the package of a program; `devices` is the file with the block devices that may be overwritten.
    """

    abilities: Abilities
    package: Callable[[str], str]
    devices: str
