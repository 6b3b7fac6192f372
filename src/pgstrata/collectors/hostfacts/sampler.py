"""Reads the facts of a host verbatim; nothing is interpreted here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pgstrata.errors import PgstrataError
from pgstrata.ports.host import BOOT_ID, Command, Host

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
# Evidence may be read by users who may not read the kernel's messages, nor keys among its parameters: what root alone
# may read is not kept.
_FOR_ALL: Final = ("-type", "f", "-perm", "-004")
_RESTRICTED: Final = "/proc/sys/kernel/dmesg_restrict"
_MESSAGES: Final = '[ "$(cat "$1")" != 0 ] || dmesg'
# Which boot of which kernel it is, and which table of processes: two hosts may share both.
_KERNEL: Final = f"cat {BOOT_ID}; readlink /proc/self/ns/pid"


def capture_host_facts(host: Host) -> Mapping[str, bytes]:
    """Files by evidence name; each section's content is `==> PATH` lines followed by the file as it is."""
    kept = {name: _section(host, patterns) for name, patterns in _SECTIONS.items()}
    kept["host.sysctl.txt"] = capture_parameters(host)
    kept["host.kernel.txt"] = _output(host, ("sh", "-c", _KERNEL))
    kept["host.dmesg.txt"] = capture_messages(host)
    kept["host.virtualisation.txt"] = _output(host, ("systemd-detect-virt", "--vm"))
    kept["host.kernel-config.txt"] = _kernel_config(host)
    return {name: content for name, content in kept.items() if content}


def capture_parameters(host: Host, folder: str = "/proc/sys") -> bytes:
    """Lines `PATH:VALUE` of the kernel's parameters that every user may read."""
    return _output(host, ("find", folder, *_FOR_ALL, "-exec", "grep", "-sH", "", "{}", "+"))


def capture_messages(host: Host, restricted: str = _RESTRICTED) -> bytes:
    """The kernel's messages, if the file `restricted` says that every user may read them."""
    return _output(host, ("sh", "-c", _MESSAGES, "sh", restricted))


def _section(host: Host, patterns: Sequence[str]) -> bytes:
    show = 'for f do printf "==> %s\\n" "$f" && cat "$f" && echo; done'
    # the patterns are ours and meant to be expanded, so they stand unquoted in the script itself
    words = f"find -L {' '.join(patterns)} -maxdepth 0 {' '.join(_FOR_ALL)} -exec sh -c '{show}' sh {{}} +"
    return _output(host, ("sh", "-c", words))


def _output(host: Host, argv: tuple[str, ...]) -> bytes:
    """Standard output, whatever the exit code; nothing where the program is missing or not allowed."""
    try:
        return host.run(Command(argv=argv, environment={"LC_ALL": "C"}), timeout=60, check=False).stdout
    except PgstrataError:
        return b""


def _kernel_config(host: Host) -> bytes:
    find = f'find -L "/boot/config-$(uname -r)" {" ".join(_FOR_ALL)} 2>/dev/null'
    line = f'file=$({find}); if [ -n "$file" ]; then cat "$file"; else zcat /proc/config.gz 2>/dev/null; fi'
    return _output(host, ("sh", "-c", line))
