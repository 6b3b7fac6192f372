"""What of a host a noise floor hangs on: read from a few files, so that every plan can afford it.

Left out is what changes by itself: load, temperatures, current frequencies, free memory, uptime. What is here changes
only when somebody changes the machine, its firmware, its kernel, or what pgstrata is allowed to use of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Final

from pgstrata.collectors.hostfacts.parse import quoted_field
from pgstrata.model.kernel_files import parse_field, parse_meminfo
from pgstrata.model.mounts import Mount, find_mount
from pgstrata.model.server import Fingerprint
from pgstrata.ports.host import Host

_CPU: Final = "/sys/devices/system/cpu"
_VULNERABILITIES: Final = f"{_CPU}/vulnerabilities"
_PLAIN: Final[Mapping[str, str]] = {
    "kernel": "/proc/version",
    "cmdline": "/proc/cmdline",
    "model": "/sys/class/dmi/id/product_name",
    "vendor": "/sys/class/dmi/id/sys_vendor",
    "bios": "/sys/class/dmi/id/bios_version",
    "hypervisor": "/sys/hypervisor/type",
    "cpus": f"{_CPU}/online",
    "smt": f"{_CPU}/smt/active",
    "no_turbo": f"{_CPU}/intel_pstate/no_turbo",
    "boost": f"{_CPU}/cpufreq/boost",
    "governor": f"{_CPU}/cpu0/cpufreq/scaling_governor",
    "clocksource": "/sys/devices/system/clocksource/clocksource0/current_clocksource",
    "thp": "/sys/kernel/mm/transparent_hugepage/enabled",
    "numa_balancing": "/proc/sys/kernel/numa_balancing",
    "autogroup": "/proc/sys/kernel/sched_autogroup_enabled",
    "dirty_ratio": "/proc/sys/vm/dirty_ratio",
    "dirty_bytes": "/proc/sys/vm/dirty_bytes",
    "dirty_background_ratio": "/proc/sys/vm/dirty_background_ratio",
    "dirty_background_bytes": "/proc/sys/vm/dirty_background_bytes",
    "nr_hugepages": "/proc/sys/vm/nr_hugepages",
    "swappiness": "/proc/sys/vm/swappiness",
}
_OTHERS: Final = (
    "/etc/machine-id", "/etc/os-release", "/proc/cpuinfo", "/proc/meminfo", "/proc/self/cgroup", "/proc/self/mountinfo",
    "/proc/self/status",
)  # fmt: skip
# A kernel that reserves a little more or less of it at boot does not make another machine.
_MEMORY_STEP: Final = 256 << 20
_CGROUP: Final = "/sys/fs/cgroup"
# Names of layers of a container's root, long and different for each of them.
_LAYERS: Final = ("lowerdir=", "upperdir=", "workdir=")


def observe_conditions(host: Host, data: str) -> Fingerprint:
    """The facts, those that are unknown left out; `data` is the folder where datasets lie."""
    mitigations = {name: f"{_VULNERABILITIES}/{name}" for name in host.list_folder(_VULNERABILITIES)}
    found = host.read_files((*_PLAIN.values(), *_OTHERS, *mitigations.values()))
    files = {path: content.decode("utf-8", "replace").strip() for path, content in found.items()}
    mount = find_mount(files.get("/proc/self/mountinfo", ""), data)
    groups = _groups(files.get("/proc/self/cgroup", ""))
    block = f"/sys/dev/block/{mount.device if mount else ''}"
    schedulers = (f"{block}/queue/scheduler", f"{block}/../queue/scheduler")
    late = host.read_files((*groups, *schedulers))
    facts = {
        **{name: files.get(path, "") for name, path in _PLAIN.items()},
        **_cpu_facts(files),
        "machine": _hide(files.get("/etc/machine-id", "")),
        "os": quoted_field(files.get("/etc/os-release", ""), "PRETTY_NAME"),
        "memory": _coarse(parse_meminfo(files.get("/proc/meminfo", ""), "MemTotal")),
        "allowed_cpus": parse_field(files.get("/proc/self/status", ""), "Cpus_allowed_list"),
        "limits": _limits({path: late[path].decode().strip() for path in groups if path in late}),
        "mitigations": "; ".join(f"{name}: {files[path]}" for name, path in mitigations.items() if path in files),
        "storage": _describe(mount) if mount else "",
        "scheduler": next((late[path].decode().strip() for path in schedulers if path in late), ""),
    }
    return Fingerprint(facts={name: value for name, value in sorted(facts.items()) if value})


def _cpu_facts(files: Mapping[str, str]) -> dict[str, str]:
    # all processors look alike here: the first one speaks for them
    first, _, _ = files.get("/proc/cpuinfo", "").partition("\n\n")
    return {
        "cpu": parse_field(first, "model name") or parse_field(first, "CPU part"),
        "microcode": parse_field(first, "microcode"),
        "virtual": "yes" if "hypervisor" in parse_field(first, "flags").split() else "",
    }


def _hide(machine: str) -> str:
    """machine-id(5): the id is confidential, so that programs keep a hash of it that is their own."""
    return hashlib.sha256(f"pgstrata {machine}".encode()).hexdigest()[:12] if machine else ""


def _coarse(memory: int) -> str:
    return f"{memory // _MEMORY_STEP * (_MEMORY_STEP >> 20)} MB" if memory else ""


def _groups(text: str) -> tuple[str, ...]:
    """Files with the limits of the process's own group and of those around it (version 2 of control groups)."""
    own = next((line.removeprefix("0::") for line in text.splitlines() if line.startswith("0::/")), "/")
    path = PurePosixPath(own)
    folders = [str(one).strip("/") for one in (path, *path.parents) if str(one) != "/"]
    return tuple(f"{_CGROUP}/{folder}/{name}" for folder in folders for name in ("cpu.max", "memory.max"))


def _limits(found: Mapping[str, str]) -> str:
    """What is limited, innermost first; the names of groups are left out, because sessions number theirs."""
    limited = (f"{path.rpartition('/')[2]} = {text}" for path, text in found.items() if not text.startswith("max"))
    return ", ".join(limited)


def _describe(mount: Mount) -> str:
    options = ",".join(option for option in mount.super_options if not option.startswith(_LAYERS))
    return f"{mount.source} {mount.kind} {','.join(mount.options)} {options}".strip()
