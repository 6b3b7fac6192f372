"""Where things lie on this machine and how much it has: all that a plan needs to know of it."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from pgstrata.datasets.marker import sum_datasets
from pgstrata.hosts.local import LocalHost
from pgstrata.model.plan import HostCapacity
from pgstrata.ports.host import Host
from pgstrata.servers.places import Places, find_places


def find_machine_places() -> Places:
    """The folders of this user on this machine; nothing is created."""
    return find_places(os.environ, uid=os.getuid(), home=str(Path.home()), memory_backed=os.access("/dev/shm", os.W_OK))  # noqa: S108


def capacity_here() -> HostCapacity:
    """What this machine has; room that datasets take already counts as free, because plans count all they need."""
    host, data = LocalHost(), find_machine_places().data
    return observe_capacity(host, data, cpus=len(os.sched_getaffinity(0)), taken=sum_datasets(host, data))


def observe_capacity(host: Host, folder: str, *, cpus: int, taken: int) -> HostCapacity:
    """Memory, CPUs that may be used, free bytes where datasets lie and what they take already."""
    return HostCapacity(memory=observe_memory(host), cpus=cpus, free_disk=host.free_bytes(folder) + taken)


def observe_memory(host: Host) -> int:
    """Bytes of memory of a machine."""
    meminfo = host.read("/proc/meminfo").decode()
    total = next(line for line in meminfo.splitlines() if line.startswith("MemTotal:"))
    return int(total.split()[1]) * 1024


def socket_root(places: Places, study: str) -> str:
    """The folder below which the servers of a study have their sockets."""
    return f"{places.run}/{study_key(study)}"


def study_key(study: str) -> str:
    """A short name for a study's folders and markers on a host."""
    return hashlib.sha256(study.encode()).hexdigest()[:12]
