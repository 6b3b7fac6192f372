"""Reads the facts of a host verbatim; nothing is interpreted here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pgstrata.errors import PgstrataError
from pgstrata.ports.host import Command, Host
from pgstrata.ports.processes import BOOT_ID

_SYS_CPU: Final = "/sys/devices/system/cpu"
# Evidence name -> the files that go into it, as glob patterns.
_SECTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "host.system.txt": ("/proc/version", "/proc/cmdline", "/etc/os-release", "/proc/meminfo", "/proc/swaps",
                        "/proc/sys/kernel/osrelease", "/sys/class/dmi/id/product_name", "/sys/class/dmi/id/sys_vendor",
                        "/sys/devices/system/clocksource/clocksource0/*_clocksource",
                        "/sys/kernel/mm/transparent_hugepage/*", "/proc/self/cgroup"),
    "host.cpu.txt": ("/proc/cpuinfo", f"{_SYS_CPU}/online", f"{_SYS_CPU}/smt/active", f"{_SYS_CPU}/vulnerabilities/*",
                     f"{_SYS_CPU}/cpu0/cpufreq/scaling_governor", f"{_SYS_CPU}/cpu0/cache/index*/size",
                     f"{_SYS_CPU}/intel_pstate/no_turbo", f"{_SYS_CPU}/cpufreq/boost"),
    "host.storage.txt": ("/proc/mounts", "/proc/partitions", "/sys/block/*/queue/scheduler",
                         "/sys/block/*/queue/rotational", "/sys/block/*/queue/read_ahead_kb",
                         "/sys/block/*/queue/write_cache", "/sys/block/*/queue/nr_requests",
                         "/sys/block/*/device/model"),
}  # fmt: skip
# Evidence may be read by users who may not read the kernel's messages: these are kept only where everybody may.
_MESSAGES: Final = '[ "$(cat /proc/sys/kernel/dmesg_restrict)" != 0 ] || dmesg'
# Which boot of which kernel it is, and which table of processes: two hosts may share both.
_KERNEL: Final = f"cat {BOOT_ID}; readlink /proc/self/ns/pid"


def capture_host_facts(host: Host) -> Mapping[str, bytes]:
    """Files by evidence name; each section's content is `==> PATH` lines followed by the file as it is."""
    kept = {name: _section(host, patterns) for name, patterns in _SECTIONS.items()}
    kept["host.sysctl.txt"] = _output(host, ("grep", "-rsH", "", "/proc/sys"))
    kept["host.kernel.txt"] = _output(host, ("sh", "-c", _KERNEL))
    kept["host.dmesg.txt"] = _output(host, ("sh", "-c", _MESSAGES))
    kept["host.virtualisation.txt"] = _output(host, ("systemd-detect-virt", "--vm"))
    kept["host.kernel-config.txt"] = _kernel_config(host)
    return {name: content for name, content in kept.items() if content}


def _section(host: Host, patterns: Sequence[str]) -> bytes:
    script = 'for f in "$@"; do [ -r "$f" ] && [ -f "$f" ] && printf "==> %s\\n" "$f" && cat "$f" && echo; done; true'
    # the patterns are ours and meant to be expanded, so they stand unquoted in the script itself
    line = f"set -- {' '.join(patterns)}; {script}"
    return _output(host, ("sh", "-c", line))


def _output(host: Host, argv: tuple[str, ...]) -> bytes:
    """Standard output, whatever the exit code; nothing where the program is missing or not allowed."""
    try:
        return host.run(Command(argv=argv, environment={"LC_ALL": "C"}), timeout=60, check=False).stdout
    except PgstrataError:
        return b""


def _kernel_config(host: Host) -> bytes:
    line = 'cat "/boot/config-$(uname -r)" 2>/dev/null || zcat /proc/config.gz 2>/dev/null'
    return _output(host, ("sh", "-c", line))
