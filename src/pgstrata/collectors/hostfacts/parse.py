"""Pure: the facts of a host that make its fingerprint, from what the sampler kept."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from pgstrata.model.server import Fingerprint


def parse_host_facts(kept: Mapping[str, bytes]) -> Fingerprint:
    """Named facts (host.kernel, host.os, host.cpu, host.cpus, host.memory, ...); what is unknown is left out."""
    files = dict(_files(b"".join(kept[name] for name in sorted(kept) if name.endswith((".system.txt", ".cpu.txt")))))
    storage = dict(_files(kept.get("host.storage.txt", b"")))
    cpuinfo = files.get("/proc/cpuinfo", "")
    facts = {
        "host.kernel": files.get("/proc/sys/kernel/osrelease", "").strip(),
        "host.os": _quoted(files.get("/etc/os-release", ""), "PRETTY_NAME"),
        "host.cpu": _field(cpuinfo, "model name") or _field(cpuinfo, "CPU part"),
        "host.cpus": str(len(re.findall(r"^processor\s*:", cpuinfo, re.MULTILINE)) or ""),
        "host.microcode": _field(cpuinfo, "microcode"),
        "host.memory": _field(files.get("/proc/meminfo", ""), "MemTotal"),
        "host.model": files.get("/sys/class/dmi/id/product_name", "").strip(),
        "host.cmdline": files.get("/proc/cmdline", "").strip(),
        "host.clocksource": files.get("/sys/devices/system/clocksource/clocksource0/current_clocksource", "").strip(),
        "host.thp": _chosen(files.get("/sys/kernel/mm/transparent_hugepage/enabled", "")),
        "host.governor": files.get("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "").strip(),
        "host.schedulers": _schedulers(storage),
    }  # fmt: skip
    return Fingerprint(facts={name: value for name, value in facts.items() if value})


def _files(content: bytes) -> Iterator[tuple[str, str]]:
    for part in re.split(r"^==> ", content.decode("utf-8", "replace"), flags=re.MULTILINE)[1:]:
        path, _, text = part.partition("\n")
        yield path, text


def _field(text: str, name: str) -> str:
    match = re.search(rf"^{re.escape(name)}\s*:\s*(.*)$", text, re.MULTILINE)
    return match.group(1).strip() if match else ""


def _quoted(text: str, name: str) -> str:
    match = re.search(rf'^{name}="?([^"\n]*)"?$', text, re.MULTILINE)
    return match.group(1) if match else ""


def _chosen(text: str) -> str:
    """The word in brackets: always [madvise] never -> madvise."""
    match = re.search(r"\[([^\]]+)\]", text)
    return match.group(1) if match else text.strip()


def _schedulers(storage: Mapping[str, str]) -> str:
    found = {
        path.split("/")[3]: _chosen(text)
        for path, text in storage.items()
        if path.endswith("/queue/scheduler") and not path.startswith(("/sys/block/loop", "/sys/block/ram"))
    }
    return ", ".join(f"{device} {chosen}" for device, chosen in sorted(found.items()))
