"""Which layers of a host can be factors: each no has what would make it possible."""

from dataclasses import replace
from fnmatch import fnmatch

import pytest

from pgstrata.collectors.hostfacts.abilities import PROGRAMS, judge_layers
from pgstrata.experiment.layers import layer_keys
from pgstrata.model.abilities import Abilities, CgroupMount, HostCase
from pgstrata.model.doctor import Possible

CPUFREQ = "/sys/devices/system/cpu/cpu0/cpufreq"
PAGES = "/sys/kernel/mm/hugepages"
UNIFIED = CgroupMount(path="/sys/fs/cgroup", version=2, controllers=frozenset({"cpu", "io", "memory"}), writable=True)
FILES = {
    "/proc/filesystems": "nodev\tsysfs\n\text4\n\txfs\n\tbtrfs",
    "/proc/self/mountinfo": "21 1 8:1 / / rw - ext4 /dev/sda1 rw\n22 21 0:5 / /proc rw - proc proc rw\n"
    "23 21 0:6 / /sys rw - sysfs sysfs rw",
    "/proc/self/status": "Cpus_allowed_list:\t0-7",
    f"{PAGES}/hugepages-2048kB/nr_hugepages": "0",
    f"{PAGES}/hugepages-1048576kB/nr_hugepages": "0",
    "/sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
    f"{CPUFREQ}/scaling_governor": "powersave",
    f"{CPUFREQ}/scaling_available_governors": "performance powersave",
    "/sys/devices/system/cpu/intel_pstate/no_turbo": "0",
    "/etc/pgstrata/devices": "# for tests\n/dev/nvme1n1\n/dev/sdb",
}
COMPLETE = Abilities(
    superuser=True,
    root=True,
    programs={name: f"/usr/bin/{name}" for name in PROGRAMS},
    existing=frozenset({"/dev/loop-control", "/run/systemd/system"}),
    files=FILES,
    schedulers=("[none] mq-deadline",),
    cgroups=(UNIFIED,),
)
PACKAGES = {"mkfs.xfs": "xfsprogs", "mvn": "maven", "ssh": "openssh-client", "taskset": "util-linux"}
NEED_NOTHING = {
    "vm.memory, vm.cpus, vm.cache",
    "server=build:",
    "server=maven:",
    "cpu.server, cpu.client",
    "cpu.policy",
    "host",
}


def judge(abilities):
    case = HostCase(abilities=abilities, package=lambda name: PACKAGES.get(name, name), devices="/etc/pgstrata/devices")
    return {finding.key: finding for finding in judge_layers(case)}


def without_files(*names):
    return replace(COMPLETE, files={path: text for path, text in FILES.items() if path not in names})


def without_programs(*names):
    return replace(COMPLETE, programs={name: path for name, path in COMPLETE.programs.items() if name not in names})


def test_root_of_a_complete_host_can_vary_everything():
    found = judge(COMPLETE)
    assert {finding.possible for finding in found.values()} == {Possible.YES}
    assert found["cpu.governor"].note == "performance, powersave"
    assert found["cpu.server, cpu.client"].note == "8 CPUs"
    assert found["storage.device"].note == "/dev/nvme1n1, /dev/sdb"


def test_every_key_of_a_layer_has_its_line():
    lines = [pattern for key in judge(COMPLETE) for pattern in key.partition("=")[0].split(", ")]
    within_others = {"storage.mkfs", "storage.mount", "storage.size", "build.compiler", "build.flags", "build.system"}
    assert {key for key in layer_keys() if not any(fnmatch(key, line) for line in lines)} == within_others


def test_an_ordinary_user_can_vary_what_needs_no_root():
    found = judge(replace(COMPLETE, superuser=False, root=False))
    assert {key for key, finding in found.items() if finding.possible is Possible.YES} == NEED_NOTHING
    others = {finding.note for key, finding in found.items() if key not in NEED_NOTHING}
    assert others == {"needs root, or sudo without a password"}


def test_sudo_without_a_password_is_as_good_as_root():
    found = judge(replace(COMPLETE, superuser=False, root=False, sudo=True))
    assert {finding.possible for finding in found.values()} == {Possible.YES}
    assert found["thp"].note == "by sudo"
    assert found["cpu.quota"].note == "cgroup version 2, by sudo"


def test_root_of_a_container_is_told_what_it_lacks():
    found = judge(replace(COMPLETE, root=False))
    assert found["sysctl.*"].possible is Possible.NOT_FOR_USER
    assert found["sysctl.*"].note == "needs a container with CAP_SYS_ADMIN"


def mounted_read_only(path):
    return {"/proc/self/mountinfo": FILES["/proc/self/mountinfo"] + f"\n24 22 0:7 / {path} ro - proc proc rw"}


GRUB = ("grub-reboot", "grub2-reboot")


def on_lvm():
    """GRUB alone, and /boot on a logical volume."""
    mounts = FILES["/proc/self/mountinfo"].replace("/dev/sda1", "/dev/mapper/vg-root")
    return replace(without_programs("bootctl", "kexec"), files=FILES | {"/proc/self/mountinfo": mounts})


V1 = CgroupMount(path="/sys/fs/cgroup/blkio", version=1, controllers=frozenset({"rw", "blkio"}), writable=True)


@pytest.mark.parametrize(
    ("host", "key", "remedy"),
    [
        (without_programs("gcc", "cc", "clang"), "server=build:", "needs the package gcc"),
        (without_programs("make"), "server=build:", "needs the package make"),
        (without_programs("mvn"), "server=maven:", "needs the package maven"),
        (without_files(f"{PAGES}/hugepages-2048kB/nr_hugepages"), "pages=2MB", "CONFIG_HUGETLBFS"),
        (without_files(f"{PAGES}/hugepages-1048576kB/nr_hugepages"), "pages=1GB", "pdpe1gb"),
        (without_files("/sys/kernel/mm/transparent_hugepage/enabled"), "thp", "CONFIG_TRANSPARENT_HUGEPAGE"),
        (replace(COMPLETE, files=FILES | mounted_read_only("/sys")), "thp", "outside the container"),
        (replace(COMPLETE, files=FILES | mounted_read_only("/proc/sys")), "sysctl.*", "outside the container"),
        (replace(COMPLETE, files=FILES | {"/proc/self/status": "Cpus_allowed_list:\t3"}), "cpu.server, cpu.client", "one"),
        (without_programs("taskset"), "cpu.server, cpu.client", "needs the package util-linux"),
        (without_programs("chrt"), "cpu.policy", "needs the package chrt"),
        (replace(COMPLETE, cgroups=()), "cpu.quota", "controller cpu (CONFIG_CFS_BANDWIDTH"),
        (replace(COMPLETE, cgroups=()), "limits.memory", "controller memory (CONFIG_MEMCG"),
        (replace(COMPLETE, cgroups=(replace(UNIFIED, writable=False),)), "limits.memory", "outside the container"),
        (replace(COMPLETE, cgroups=(V1,)), "limits.write_*", "needs cgroup version 2"),
        (replace(COMPLETE, cgroups=()), "limits.write_*", "controller io"),
        (without_files(f"{CPUFREQ}/scaling_governor"), "cpu.governor", "cpufreq driver"),
        (without_files("/sys/devices/system/cpu/intel_pstate/no_turbo"), "cpu.turbo", "cpufreq driver"),
        (without_files("/proc/filesystems"), "filesystem=btrfs", "CONFIG_BTRFS_FS"),
        (without_programs("mkfs.xfs"), "filesystem=xfs", "needs the package xfsprogs"),
        (replace(COMPLETE, existing=frozenset()), "filesystem=ext4", "modprobe loop"),
        (without_files("/etc/pgstrata/devices"), "storage.device", "block devices that may be overwritten"),
        (replace(COMPLETE, schedulers=("none",)), "storage.scheduler", "CONFIG_MQ_IOSCHED_DEADLINE"),
        (without_programs("ssh"), "host", "needs the package openssh-client"),
        (without_programs(*GRUB, "bootctl", "kexec"), "kernel", "needs a boot loader that can boot an entry once"),
        (on_lvm(), "kernel", "needs the package kexec: GRUB cannot reset its choice on ext4"),
        (without_programs("kexec"), "boot.options", "needs the package kexec"),
    ],
)  # fmt: skip
def test_what_a_host_lacks_is_named_with_what_would_bring_it(host, key, remedy):
    finding = judge(host)[key]
    assert finding.possible is Possible.NOT_ON_HOST
    assert remedy in finding.note


def test_grub_is_enough_where_it_can_take_its_choice_back():
    assert judge(without_programs("bootctl", "kexec"))["kernel"].possible is Possible.YES
    assert judge(replace(on_lvm(), programs=COMPLETE.programs))["kernel"].possible is Possible.YES


def test_reads_can_be_limited_by_version_1():
    assert judge(replace(COMPLETE, cgroups=(V1,)))["limits.read_*"].possible is Possible.YES


def test_modules_that_are_not_loaded_yet_count():
    host = replace(without_files("/proc/filesystems"), existing=frozenset(), modules=frozenset({"xfs", "loop"}))
    assert judge(host)["filesystem=xfs"].possible is Possible.YES


def test_without_bison_and_flex_what_brings_their_output_can_be_built():
    finding = judge(without_programs("bison", "flex"))["server=build:"]
    assert finding.possible is Possible.YES
    assert finding.note == "archives up to 16; for git and from 17 on it needs the packages bison, flex"


def test_what_builds_is_named():
    assert judge(COMPLETE)["server=build:"].note == "gcc, meson or configure"
    assert judge(without_programs("ninja"))["server=build:"].note == "gcc, configure"
