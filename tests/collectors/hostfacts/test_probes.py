"""What of a host's state disturbs measuring."""

from dataclasses import replace

import pytest

from pgstrata.collectors.hostfacts.probes import (
    judge_canary,
    judge_fsync,
    judge_limits,
    judge_state,
    judge_timing,
    judge_window,
    unfit_reasons,
)
from pgstrata.model.abilities import Abilities

GB = 1024**3
MEMINFO = "MemTotal: 16777216 kB\nMemAvailable: 8388608 kB\nSwapTotal: 2097152 kB\nSwapFree: 2097152 kB"
FILES = {
    "/proc/meminfo": MEMINFO,
    "/proc/loadavg": "0.52 0.40 0.30 1/200 4242",
    "/proc/self/mountinfo": "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:9 / /dev/shm rw - tmpfs tmpfs rw",
    "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages": "12",
}
HOST = Abilities(files=FILES, existing=frozenset({"/run/systemd/system"}))
FACTS = {"host.clocksource": "tsc", "host.governor": "performance", "host.thp": "madvise"}


def state(host=HOST, facts=FACTS, folder="/var/lib/x"):
    return {probe.name: probe for probe in judge_state(host, facts, folder, 50 * GB)}


def test_a_quiet_host_raises_no_doubt():
    found = state()
    assert not [probe.doubt for probe in found.values() if probe.doubt]
    assert (found["memory"].text, found["memory"].value) == ("8 GB of 16 GB", 8 * GB)
    assert found["disk"].text == "50 GB on ext4 (/var/lib/x)"
    assert found["load"].value == 0.52
    assert found["huge_pages"].text == "12 of 2 MB"
    assert (found["systemd"].text, found["cgroups"].text) == ("yes", "no controllers")


@pytest.mark.parametrize(
    ("name", "found", "doubt"),
    [
        ("swap", state(replace(HOST, files=FILES | {"/proc/meminfo": MEMINFO.replace("SwapFree: 2", "SwapFree: 1")})), "swapped out"),
        ("disk", state(folder="/dev/shm/x"), "tmpfs"),
        ("machine", state(facts=FACTS | {"host.emulation": "QEMU without hardware virtualisation"}), "every run will be invalid"),
        ("clock_source", state(facts=FACTS | {"host.clocksource": "hpet"}), "hpet is slow"),
        ("governor", state(facts=FACTS | {"host.governor": "schedutil"}), "schedutil changes"),
    ],
)  # fmt: skip
def test_what_disturbs_is_said(name, found, doubt):
    assert doubt in found[name].doubt
    assert [probe.name for probe in found.values() if probe.doubt] == [name]


def test_a_host_that_tells_nothing_is_no_failure():
    found = state(Abilities(), {})
    assert (found["memory"].text, found["load"].text, found["clock_source"].text) == ("unknown",) * 3


@pytest.mark.parametrize(
    ("foreign", "steal", "cpus", "doubts"),
    [(0.2, 0.0, 4, []), (0.3, 0.0, 4, ["foreign_cpu"]), (0.3, 0.0, 64, []), (0.0, 0.05, 2, ["steal_cpu"])],
)
def test_work_of_others_is_judged_as_it_is_for_runs(foreign, steal, cpus, doubts):
    probes = judge_window({"foreign_cpu": foreign, "steal_cpu": steal}, cpus)
    assert [probe.name for probe in probes if probe.doubt] == doubts


def test_equal_loops_should_take_equally_long():
    assert not judge_canary((0.020, 0.021, 0.022)).doubt
    assert judge_canary((0.020, 0.021, 0.030)).doubt == "equal loops took 20 to 30 ms"


def test_a_slow_clock_is_a_doubt():
    assert not judge_timing(30e-9).doubt
    assert "900 ns" in judge_timing(900e-9).doubt


def test_the_best_method_of_flushing_is_named_beside_the_default():
    assert judge_fsync({"open_datasync": 200e-6, "fdatasync": 300e-6}).text == (
        "200 µs by open_datasync, 300 µs by fdatasync (the default)"
    )
    assert judge_fsync({"fdatasync": 300e-6, "fsync": 400e-6}).text == "300 µs by fdatasync"


def test_a_flush_that_reaches_no_device_is_a_doubt():
    assert "does not reach a device" in judge_fsync({"fdatasync": 2e-6}).doubt
    assert not judge_fsync({"fdatasync": 20e-6}).doubt


def test_limits_of_a_container_are_a_doubt():
    assert judge_limits("cpu.max = 50000 100000").doubt == "pgstrata itself is limited (cpu.max = 50000 100000)"
    assert (judge_limits("").text, judge_limits("").doubt) == ("none known", "")


def test_without_memory_or_disk_nothing_can_be_measured():
    assert unfit_reasons(HOST, 50 * GB) == ()
    poor = replace(HOST, files={"/proc/meminfo": "MemAvailable: 100000 kB"})
    assert len(unfit_reasons(poor, GB // 2)) == 2
    assert unfit_reasons(Abilities(), 50 * GB) == ()


@pytest.mark.parametrize(
    ("level", "programs", "said"),
    [
        ("1", {"perf": "/usr/bin/perf"}, "the kernel's too"),
        ("2", {"perf": "/usr/bin/perf"}, "without the kernel: kernel.perf_event_paranoid is 2"),
        ("3", {"perf": "/usr/bin/perf"}, "none: kernel.perf_event_paranoid is 3"),
        ("", {"perf": "/usr/bin/perf"}, "none: this kernel has no performance events"),
        ("2", {}, "none: install the package linux-perf"),
    ],
)
def test_what_perf_shows_depends_on_the_kernels_level(level, programs, said):
    files = {"/proc/sys/kernel/perf_event_paranoid": level} if level else {}
    found = {probe.name: probe for probe in judge_state(Abilities(files=files, programs=programs), {}, "/data", 10**12)}
    assert said in found["perf"].text
