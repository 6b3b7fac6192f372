"""Pure: the facts of a host that make its fingerprint, from what the sampler kept."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from pgstrata.model.kernel_files import parse_field
from pgstrata.model.server import Fingerprint
from pgstrata.model.shared import SharedResources

_CLOCKS: Final = "/sys/devices/system/clocksource/clocksource0"
_PARAVIRTUAL: Final = frozenset({"kvm-clock", "xen", "hyperv_clocksource_tsc_page", "hyperv_clocksource_msr"})
"""Clock sources that only a hypervisor offers which runs its guests on hardware."""


def parse_host_facts(kept: Mapping[str, bytes]) -> Fingerprint:
    """Named facts (host.kernel, host.os, host.cpu, host.cpus, host.memory, ...); what is unknown is left out."""
    files = dict(_files(b"".join(kept[name] for name in sorted(kept) if name.endswith((".system.txt", ".cpu.txt")))))
    storage = dict(_files(kept.get("host.storage.txt", b"")))
    cpuinfo = files.get("/proc/cpuinfo", "")
    facts = {
        "host.kernel": files.get("/proc/sys/kernel/osrelease", "").strip(),
        "host.os": quoted_field(files.get("/etc/os-release", ""), "PRETTY_NAME"),
        "host.cpu": parse_field(cpuinfo, "model name") or parse_field(cpuinfo, "CPU part"),
        "host.cpus": str(len(re.findall(r"^processor\s*:", cpuinfo, re.MULTILINE)) or ""),
        "host.microcode": parse_field(cpuinfo, "microcode"),
        "host.memory": parse_field(files.get("/proc/meminfo", ""), "MemTotal"),
        "host.model": files.get("/sys/class/dmi/id/product_name", "").strip(),
        "host.virtual": _virtual(kept, cpuinfo),
        "host.emulation": _emulation(kept, cpuinfo, files),
        "host.cmdline": files.get("/proc/cmdline", "").strip(),
        "host.clocksource": files.get(f"{_CLOCKS}/current_clocksource", "").strip(),
        "host.thp": _chosen(files.get("/sys/kernel/mm/transparent_hugepage/enabled", "")),
        "host.governor": files.get("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "").strip(),
        "host.schedulers": _schedulers(storage),
    }
    return Fingerprint(facts={name: value for name, value in facts.items() if value})


def find_shared(one: Mapping[str, bytes], other: Mapping[str, bytes]) -> SharedResources:
    """What two hosts have in common, by their boot id and their namespace of processes; nothing where that is unknown.

    The boot id is random and belongs to a boot of a kernel (random(4)). Virtual machines that were restored from one
    snapshot may have it in common without sharing anything; what others use on the client's is then not seen.
    """
    found = [kept.get("host.kernel.txt", b"").split() for kept in (one, other)]
    if not all(found) or found[0][0] != found[1][0]:
        return SharedResources.NOTHING
    return SharedResources.PROCESSES if found[0][1:] and found[0][1:] == found[1][1:] else SharedResources.KERNEL


def _virtual(kept: Mapping[str, bytes], cpuinfo: str) -> str:
    """The kind of virtual machine, as far as it says so; empty on a machine of its own."""
    said = _said(kept)
    if said:
        return "" if said == "none" else said
    return "hypervisor" if "hypervisor" in _flags(cpuinfo) else ""


def _emulation(kept: Mapping[str, bytes], cpuinfo: str, files: Mapping[str, str]) -> str:
    """What emulates this machine's CPU in software; empty where it runs on hardware.

    QEMU's own CPU models say so: `QEMU TCG CPU` is emulated always, and so is part 0x051 of implementer 0 on arm64
    (target/arm/tcg/cpu64.c). `QEMU Virtual CPU` may run on hardware too, but then a hypervisor offers its clock. Other
    models are told by systemd-detect-virt (QEMU, and none of the hypervisors that accelerate it) together with the
    timer that QEMU's own interrupt controller lacks.
    """
    model, said = parse_field(cpuinfo, "model name"), _said(kept)
    offered = set(files.get(f"{_CLOCKS}/available_clocksource", "").split())
    arm = (parse_field(cpuinfo, "CPU implementer"), parse_field(cpuinfo, "CPU part")) == ("0x00", "0x051")
    if model.startswith("QEMU TCG CPU") or arm:
        return "QEMU without hardware virtualisation"
    if model.startswith("QEMU Virtual CPU") and not offered & _PARAVIRTUAL:
        return "QEMU without hardware virtualisation"
    if said == "qemu" and not offered & _PARAVIRTUAL and "tsc_deadline_timer" not in _flags(cpuinfo):
        return "QEMU without hardware virtualisation"
    return "Bochs" if said == "bochs" else ""


def _said(kept: Mapping[str, bytes]) -> str:
    """What systemd-detect-virt said; empty where there is no such program."""
    return kept.get("host.virtualisation.txt", b"").decode("utf-8", "replace").strip()


def _flags(cpuinfo: str) -> frozenset[str]:
    return frozenset(parse_field(cpuinfo, "flags").split())


def _files(content: bytes) -> Iterator[tuple[str, str]]:
    for part in re.split(r"^==> ", content.decode("utf-8", "replace"), flags=re.MULTILINE)[1:]:
        path, _, text = part.partition("\n")
        yield path, text


def quoted_field(text: str, name: str) -> str:
    """The value of a line `NAME=value` or `NAME="value"` (os-release(5)); empty where there is none."""
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
