"""Where things lie on this machine and how much it has: all that a plan needs to know of it."""

from __future__ import annotations

import hashlib
import os
import pwd
from pathlib import Path

from pgstrata.datasets.marker import sum_datasets
from pgstrata.errors import UsageError
from pgstrata.hosts.local import LocalHost
from pgstrata.model.kernel_files import parse_meminfo
from pgstrata.model.plan import HostCapacity
from pgstrata.ports.host import Host
from pgstrata.servers.places import Places, find_places, server_user


def expand_home(path: str) -> Path:
    """The path with the home folder in place of `~`; UsageError where there is none."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise UsageError(
            f"there is no home folder for {Path(path).parts[0]}", where=path, remedy="write the whole path"
        ) from None


def find_machine_places() -> Places:
    """The folders of this user on this machine; nothing is created."""
    memory_backed = os.access("/dev/shm", os.W_OK)  # noqa: S108
    return find_places(os.environ, uid=os.getuid(), home=str(expand_home("~")), memory_backed=memory_backed)


def find_server_user() -> str | None:
    """The user that servers run as on this machine, as `servers.places.server_user`."""
    return server_user(os.getuid(), os.environ, known=_known)


def _known(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


def capacity_here() -> HostCapacity:
    """What this machine has; room that datasets take already counts as free, because plans count all they need."""
    data, owner = find_machine_places().data, LocalHost(user=find_server_user())
    taken = sum_datasets(owner, data) if owner.exists(f"{data}/datasets") else 0
    return observe_capacity(LocalHost(), data, cpus=len(os.sched_getaffinity(0)), taken=taken)


def observe_capacity(host: Host, folder: str, *, cpus: int, taken: int) -> HostCapacity:
    """Memory, CPUs that may be used, free bytes where datasets lie and what they take already."""
    return HostCapacity(memory=observe_memory(host), cpus=cpus, free_disk=host.free_bytes(folder) + taken)


def observe_memory(host: Host) -> int:
    """Bytes of memory of a machine."""
    return parse_meminfo(host.read("/proc/meminfo").decode(), "MemTotal")


def socket_root(places: Places, study: str) -> str:
    """The folder below which the servers of a study have their sockets."""
    return f"{places.run}/{study_key(study)}"


def study_key(study: str) -> str:
    """A short name for a study's folders and markers on a host."""
    return hashlib.sha256(study.encode()).hexdigest()[:12]
