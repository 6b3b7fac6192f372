"""Where controllers are, on hosts of all kinds: captures of mountinfo and of /proc/PID/cgroup."""

import pytest

from pgstrata.errors import ParseError
from pgstrata.layers.cgroups import (
    Controller,
    Hierarchy,
    find_hierarchy,
    parse_hierarchies,
    parse_memberships,
)

# Fedora 39, a session over ssh: version 2 alone.
UNIFIED = """\
22 61 0:20 / /proc rw,nosuid,nodev,noexec,relatime shared:5 - proc proc rw
27 23 0:24 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 rw,seclabel,nsdelegate
61 1 0:31 /root / rw,relatime shared:1 - btrfs /dev/vda3 rw,seclabel,compress=zstd:1,subvolid=256,subvol=/root
"""
UNIFIED_OWN = "0::/user.slice/user-1000.slice/session-3.scope\n"

# Ubuntu 20.04: version 1, two controllers in one tree, and an empty version 2 beside it.
HYBRID = """\
34 25 0:29 / /sys/fs/cgroup ro,nosuid,nodev,noexec shared:9 - tmpfs tmpfs ro,mode=755
35 34 0:30 / /sys/fs/cgroup/unified rw,nosuid,nodev,noexec,relatime shared:10 - cgroup2 cgroup2 rw,nsdelegate
36 34 0:31 / /sys/fs/cgroup/systemd rw,nosuid,nodev,noexec,relatime shared:11 - cgroup cgroup rw,xattr,name=systemd
39 34 0:34 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid,nodev,noexec,relatime shared:15 - cgroup cgroup rw,cpu,cpuacct
41 34 0:36 / /sys/fs/cgroup/memory rw,nosuid,nodev,noexec,relatime shared:17 - cgroup cgroup rw,memory
44 34 0:39 / /sys/fs/cgroup/cpuset rw,nosuid,nodev,noexec,relatime shared:20 - cgroup cgroup rw,cpuset
"""
HYBRID_OWN = """\
6:memory:/user.slice/user-1000.slice/session-1.scope
5:cpuset:/
4:cpu,cpuacct:/user.slice
1:name=systemd:/user.slice/user-1000.slice/session-1.scope
0::/user.slice/user-1000.slice/session-1.scope
"""

# A container of docker on version 1 without a namespace of cgroups.
CONTAINER = """\
1520 1519 0:31 /docker/4f2a /sys/fs/cgroup/memory ro,nosuid,nodev,noexec,relatime master:15 - cgroup cgroup rw,memory
1521 1519 0:34 /docker/4f2a /sys/fs/cgroup/cpu ro,nosuid,nodev,noexec,relatime master:18 - cgroup cgroup rw,cpu
"""
CONTAINER_OWN = "3:cpu:/docker/4f2a\n2:memory:/docker/4f2a\n"


def test_version_2_has_every_controller_that_it_names():
    (found,) = hierarchies = parse_hierarchies(UNIFIED, UNIFIED_OWN)
    assert found == Hierarchy(version=2, folder="/sys/fs/cgroup", root="/")
    assert find_hierarchy(hierarchies, Controller.IO, ["cpu", "io", "memory"]) is found
    assert find_hierarchy(hierarchies, Controller.IO, ["cpu", "memory"]) is None


def test_a_hybrid_host_has_each_controller_in_one_tree():
    hierarchies = parse_hierarchies(HYBRID, HYBRID_OWN)
    cpu = find_hierarchy(hierarchies, Controller.CPU, [])
    assert (cpu.version, cpu.folder) == (1, "/sys/fs/cgroup/cpu,cpuacct")
    memory = find_hierarchy(hierarchies, Controller.MEMORY, [])
    assert (memory.version, memory.folder) == (1, "/sys/fs/cgroup/memory")
    assert find_hierarchy(hierarchies, Controller.IO, ["io"]).folder == "/sys/fs/cgroup/unified"
    assert find_hierarchy(hierarchies, Controller.IO, []) is None


def test_a_container_sees_its_own_part_of_a_tree():
    cpu = find_hierarchy(parse_hierarchies(CONTAINER, CONTAINER_OWN), Controller.CPU, [])
    assert cpu.read_only
    assert cpu.locate("/docker/4f2a/inner") == "/sys/fs/cgroup/cpu/inner"
    assert cpu.name("/sys/fs/cgroup/cpu/pgstrata-1") == "/docker/4f2a/pgstrata-1"


def test_groups_at_the_top_have_names_and_folders_too():
    hierarchy = Hierarchy(version=2, folder="/sys/fs/cgroup", root="/")
    assert hierarchy.locate("/") == "/sys/fs/cgroup"
    assert hierarchy.locate("/a/b") == "/sys/fs/cgroup/a/b"
    assert hierarchy.name("/sys/fs/cgroup") == "/"
    assert hierarchy.name("/sys/fs/cgroup/a/b") == "/a/b"


def test_a_tree_that_lies_outside_of_the_namespace_is_none():
    outside = UNIFIED.replace("0:24 / ", "0:24 /../.. ")
    assert parse_hierarchies(outside, "0::/\n") == ()


def test_a_mount_that_can_be_written_goes_before_one_that_cannot():
    line = UNIFIED.splitlines()[1]
    twice = (line.replace("rw,nosuid", "ro,nosuid"), line.replace("/sys/fs/cgroup", "/mnt/my\\040groups"))
    (found,) = parse_hierarchies("\n".join(twice), UNIFIED_OWN)
    assert (found.folder, found.read_only) == ("/mnt/my groups", False)


def test_a_group_name_may_hold_colons():
    assert parse_memberships("0::/a:b/c:d\n") == {frozenset(): "/a:b/c:d"}


@pytest.mark.parametrize("line", ["memory:/x", "3:memory", "3:memory:relative", "x:cpu:/"])
def test_a_membership_of_another_shape_is_named(line):
    with pytest.raises(ParseError, match="not a line of /proc/PID/cgroup"):
        parse_memberships(line)


def test_a_mount_of_another_shape_is_named():
    with pytest.raises(ParseError, match="mountinfo"):
        parse_hierarchies("27 23 0:24 / /sys rw\n", UNIFIED_OWN)
