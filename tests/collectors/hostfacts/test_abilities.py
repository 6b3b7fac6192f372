"""What a host has, read from its own words."""

from pathlib import Path

import pytest

from pgstrata.collectors.hostfacts.abilities import (
    has_capability,
    observe_abilities,
    parse_cgroups,
    parse_programs,
)
from pgstrata.hosts.local import LocalHost
from pgstrata.model.abilities import Abilities
from pgstrata.model.mounts import find_mount

V2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate"
V1 = "11 32 0:29 / /sys/fs/cgroup/cpu,cpuacct ro,relatime - cgroup cgroup rw,cpu,cpuacct"


def test_control_groups_of_version_2_have_their_controllers_in_a_file():
    (mount,) = parse_cgroups(V2, {"/sys/fs/cgroup/cgroup.controllers": "cpuset cpu io memory hugetlb pids\n"})
    assert (mount.version, mount.writable) == (2, True)
    assert {"cpu", "io", "memory"} <= mount.controllers


def test_control_groups_of_version_1_have_them_in_their_options():
    (mount,) = parse_cgroups(V1, {})
    assert (mount.version, mount.writable) == (1, False)
    assert {"cpu", "cpuacct"} <= mount.controllers


def test_of_mounts_on_one_place_the_last_one_counts():
    text = "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:5 / /proc rw - proc proc rw\n3 2 0:5 /sys /proc/sys ro - proc proc rw"
    assert find_mount(text, "/proc/sys").read_only
    assert not find_mount(text, "/proc/system").read_only
    assert not find_mount(f"{text}\n4 3 0:5 /sys /proc/sys rw - proc proc rw", "/proc/sys").read_only
    assert find_mount("", "/proc") is None


@pytest.mark.parametrize(
    ("status", "bit", "has"),
    [
        ("CapEff:\t000001ffffffffff\n", 21, True),
        ("CapEff:\t00000000a80425fb\n", 21, False),  # root of a container as Docker starts it
        ("CapEff:\t0000000000000000\n", 21, False),
        ("Name:\tsh\n", 21, True),
    ],
)
def test_capabilities_are_read_from_the_status_of_the_process(status, bit, has):
    assert has_capability(status, bit) is has


@pytest.mark.parametrize(("text", "cpus"), [("0-3,8", 5), ("0", 1), ("0-1", 2), ("2,4,6", 3), ("", 1)])
def test_cpus_are_counted(text, cpus):
    status = f"Name:\tx\nCpus_allowed_list:\t{text}\n"
    assert Abilities(files={"/proc/self/status": status}).cpus == cpus


def test_programs_that_are_not_there_are_left_out():
    assert parse_programs("program sh /bin/sh\nprogram odd\nuid 0\n") == {"sh": "/bin/sh"}


def test_this_host_is_looked_at():
    host = LocalHost()
    found = observe_abilities(host)
    assert found.superuser is (host.user == "root")
    assert found.cpus >= 1
    assert "mount" in found.programs
    administers = has_capability(Path("/proc/self/status").read_text(), 21)
    assert found.root is (found.superuser and administers)
