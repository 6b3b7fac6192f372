"""Pure: what of a host's present state disturbs measuring, as probes of an examination.

The limits are those of the guards of runs where there is such a guard (docs/reference/guards.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from pgstrata.model.abilities import Abilities
from pgstrata.model.clocks import ClockOffset
from pgstrata.model.doctor import Probe
from pgstrata.model.guards import FAST_CLOCKS, is_much_foreign, is_much_stolen
from pgstrata.model.kernel_files import parse_meminfo
from pgstrata.model.mounts import find_mount
from pgstrata.model.packages import render_remedy
from pgstrata.units import Unit, render_bytes, render_value

LEAST_MEMORY: Final = 512 * 1024**2
"""Bytes: a server with its defaults, a client, and the page cache of the smallest dataset."""
LEAST_DISK: Final = 1024**3
"""Bytes: the smallest dataset, its clone and their WAL take less than half of it."""

_SLOW_CLOCK: Final = 1e-7
"""Seconds per look: pg_test_timing(1) calls less than 100 ns good."""
_CACHED_FLUSH: Final = 10e-6
"""Seconds: no device that keeps its data is faster."""
_SPREAD: Final = 1.25
_NO_KERNEL: Final = 2
_NOTHING_SEEN: Final = 3
_SWAPPED: Final = 64 * 1024**2
_STEADY: Final = frozenset({"performance", "userspace"})
_PLACELESS: Final = frozenset({"tmpfs", "ramfs", "nfs", "nfs4", "cifs", "9p"})


def judge_state(abilities: Abilities, facts: Mapping[str, str], folder: str, free: int) -> Iterator[Probe]:
    """Memory, disk, machine, clocks and control groups.

    Args:
        abilities: the host, with its files.
        facts: its fingerprint (`host.clocksource`, ...).
        folder: where datasets lie or will lie.
        free: bytes free there.
    """
    files = abilities.files
    yield _memory(files.get("/proc/meminfo", ""))
    yield _swap(files.get("/proc/meminfo", ""))
    yield _disk(files.get("/proc/self/mountinfo", ""), folder, free)
    load = files.get("/proc/loadavg", "").split()[:3]
    yield Probe(name="load", title="load average", text=", ".join(load) or "unknown", value=_number(load[:1]))
    yield from _machine(facts)
    yield Probe(name="thp", title="transparent huge pages", text=facts.get("host.thp", "not in this kernel"))
    yield Probe(name="huge_pages", title="huge pages reserved", text=_pools(files))
    versions = sorted({mount.version for mount in abilities.cgroups if mount.controllers & {"cpu", "memory"}})
    cgroups = " and ".join(f"version {version}" for version in versions) or "no controllers"
    yield Probe(name="cgroups", title="control groups", text=cgroups)
    systemd = "yes" if "/run/systemd/system" in abilities.existing else "no"
    yield Probe(name="systemd", title="systemd", text=systemd)
    yield Probe(name="perf", title="stacks of the server's processes", text=_perf(abilities))


def _perf(abilities: Abilities) -> str:
    """What perf shows to the user that servers run as, and what would make more of it possible; see perf_event_open(2).

    Levels of kernel.perf_event_paranoid: 1 shows the kernel too, 2 what runs outside of it, 3 (Debian) nothing.
    """
    if "perf" not in abilities.programs:
        return f"none: {render_remedy('perf')}"
    level = _number(abilities.files.get("/proc/sys/kernel/perf_event_paranoid", "").split())
    if level is None:
        return "none: this kernel has no performance events"
    if level >= _NOTHING_SEEN:
        return f"none: kernel.perf_event_paranoid is {level:.0f}, 2 would show servers, 1 the kernel too"
    if level >= _NO_KERNEL:
        return f"by perf, without the kernel: kernel.perf_event_paranoid is {level:.0f}, 1 would show it"
    return "by perf, the kernel's too"


def judge_limits(limits: str) -> Probe:
    """Limits of CPU time or memory that pgstrata itself is under, as a container's processes often are."""
    doubt = f"pgstrata itself is limited ({limits})" if limits else ""
    return Probe(name="limits", title="limits of pgstrata itself", text=limits or "none known", doubt=doubt)


def unfit_reasons(abilities: Abilities, free: int) -> tuple[str, ...]:
    """Why nothing at all can be measured: memory, disk."""
    available = parse_meminfo(abilities.files.get("/proc/meminfo", ""), "MemAvailable")
    reasons = []
    if 0 < available < LEAST_MEMORY:
        reasons.append(f"{render_bytes(available)} of memory are available, and {render_bytes(LEAST_MEMORY)} needed")
    if free < LEAST_DISK:
        reasons.append(f"{render_bytes(free)} of disk are free for datasets, and {render_bytes(LEAST_DISK)} needed")
    return tuple(reasons)


def judge_window(measured: Mapping[str, float], cpus: int) -> Iterator[Probe]:
    """Foreign and stolen CPU of a second in which pgstrata itself did nothing."""
    foreign, stolen = measured.get("foreign_cpu"), measured.get("steal_cpu")
    if foreign is not None:
        much = is_much_foreign(foreign, cpus)
        doubt = f"other processes use {foreign:.2f} of {cpus} CPUs" if much else ""
        yield Probe(name="foreign_cpu", title="CPU used by others", text=f"{foreign:.2f} CPU", value=foreign,
                    unit=Unit.CPUS, doubt=doubt)  # fmt: skip
    if stolen is not None:
        much = is_much_stolen(stolen, cpus)
        doubt = f"the hypervisor gives {stolen:.2f} CPU to other machines" if much else ""
        yield Probe(name="steal_cpu", title="CPU stolen by the hypervisor", text=f"{stolen:.2f} CPU", value=stolen,
                    unit=Unit.CPUS, doubt=doubt)  # fmt: skip


def judge_canary(seconds: tuple[float, ...]) -> Probe:
    """Times of equal loops: their median, and how far the slowest is from the fastest."""
    ordered = sorted(seconds)
    median, low, high = (1e3 * ordered[place] for place in (len(ordered) // 2, 0, -1))
    doubt = f"equal loops took {low:.0f} to {high:.0f} ms" if high > low * _SPREAD else ""
    text = f"{median:.1f} ms ({low:.1f} to {high:.1f})"
    return Probe(name="canary", title="noise canary", text=text, value=median / 1e3, unit=Unit.SECONDS, doubt=doubt)


def judge_timing(seconds: float) -> Probe:
    """The cost of reading the clock."""
    nanoseconds = f"{seconds * 1e9:.0f} ns"
    doubt = ""
    if seconds > _SLOW_CLOCK:
        doubt = f"reading the clock takes {nanoseconds}, which slows down EXPLAIN ANALYZE and track_io_timing"
    text = f"{nanoseconds} per look"
    return Probe(name="timing", title="cost of timing", text=text, value=seconds, unit=Unit.SECONDS, doubt=doubt)


def judge_connection(clock: ClockOffset) -> Iterator[Probe]:
    """How a machine's clock differs from this one's, and how far away it is."""
    offset = clock.offset_seconds
    doubt = ""
    if clock.apart:
        ahead = "ahead of" if offset > 0 else "behind"
        doubt = (
            f"its clock is {render_value(abs(offset), Unit.SECONDS)} {ahead} this machine's: let both follow the same "
            "time servers (timedatectl set-ntp true, or chronyc makestep)"
        )
    sign = "+" if offset > 0 else "-"
    text = f"{sign}{render_value(abs(offset), Unit.SECONDS)}, give or take {clock.uncertainty * 1e3:.1f} ms"
    yield Probe(name="clock_offset", title="clock, against this machine's", text=text, value=offset,
                unit=Unit.SECONDS, doubt=doubt)  # fmt: skip
    if clock.round_trip is not None:
        trip = f"{clock.round_trip * 1e3:.2f} ms"
        yield Probe(name="round_trip", title="round trip from this machine", text=trip, value=clock.round_trip,
                    unit=Unit.SECONDS)  # fmt: skip


def judge_fsync(costs: Mapping[str, float]) -> Probe:
    """The cost of a write and flush of 8 kB: the best method, and fdatasync, which is Linux's default."""
    best = min(costs, key=lambda method: costs[method])
    doubt = ""
    if costs[best] < _CACHED_FLUSH:
        doubt = f"a flush takes {_microseconds(costs[best])}: it does not reach a device, and commits look too cheap"
    text = f"{_microseconds(costs[best])} by {best}"
    if "fdatasync" in costs and best != "fdatasync":
        text += f", {_microseconds(costs['fdatasync'])} by fdatasync (the default)"
    return Probe(
        name="fsync", title="cost of fsync (8 kB)", text=text, value=costs[best], unit=Unit.SECONDS, doubt=doubt
    )


def _microseconds(seconds: float) -> str:
    return f"{seconds * 1e6:.0f} µs"


def _memory(meminfo: str) -> Probe:
    total, available = parse_meminfo(meminfo, "MemTotal"), parse_meminfo(meminfo, "MemAvailable")
    if not total or not available:
        return Probe(name="memory", title="memory available", text="unknown")
    text = f"{render_bytes(available)} of {render_bytes(total)}"
    return Probe(name="memory", title="memory available", text=text, value=available, unit=Unit.BYTES)


def _swap(meminfo: str) -> Probe:
    total, left = parse_meminfo(meminfo, "SwapTotal"), parse_meminfo(meminfo, "SwapFree")
    used = total - left
    doubt = f"{render_bytes(used)} are swapped out and may come back during a run" if used > _SWAPPED else ""
    text = f"{render_bytes(used)} of {render_bytes(total)} in use" if total else "none"
    return Probe(name="swap", title="swap", text=text, value=used, unit=Unit.BYTES, doubt=doubt)


def _disk(mountinfo: str, folder: str, free: int) -> Probe:
    mount = find_mount(mountinfo, folder)
    kind = mount.kind if mount else ""
    doubt = f"datasets lie on {kind}, whose cost is not that of a disk" if kind in _PLACELESS else ""
    text = f"{render_bytes(free)}{f' on {kind}' if kind else ''} ({folder})"
    return Probe(name="disk", title="disk free for datasets", text=text, value=free, unit=Unit.BYTES, doubt=doubt)


def _machine(facts: Mapping[str, str]) -> Iterator[Probe]:
    emulated = facts.get("host.emulation", "")
    doubt = f"the CPU is emulated ({emulated}): every run will be invalid" if emulated else ""
    virtual = f"virtual ({facts['host.virtual']})" if "host.virtual" in facts else "no sign of a hypervisor"
    yield Probe(name="machine", title="machine", text=virtual, doubt=doubt)
    clock = facts.get("host.clocksource", "")
    doubt = f"the clock source {clock} is slow" if clock and clock not in FAST_CLOCKS else ""
    yield Probe(name="clock_source", title="clock source", text=clock or "unknown", doubt=doubt)
    governor = facts.get("host.governor", "")
    doubt = f"the governor {governor} changes the CPU's speed with its load" if governor else ""
    yield Probe(
        name="governor", title="CPU governor", text=governor or "none here", doubt="" if governor in _STEADY else doubt
    )


def _pools(files: Mapping[str, str]) -> str:
    sizes = {"2048": "2 MB", "1048576": "1 GB"}
    counts = (
        (title, files.get(f"/sys/kernel/mm/hugepages/hugepages-{size}kB/nr_hugepages")) for size, title in sizes.items()
    )
    return ", ".join(f"{count} of {title}" for title, count in counts if count) or "not in this kernel"


def _number(words: list[str]) -> float | None:
    try:
        return float(words[0]) if words else None
    except ValueError:
        return None
