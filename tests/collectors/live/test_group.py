"""The control group of a watched server: found wherever its hierarchy is mounted, and read in both versions."""

import pytest

from pgstrata.collectors.live.group import ControlGroup, count_group, find_group, group_events, group_rates, limit_of
from pgstrata.collectors.live.host import HostReader
from pgstrata.model.archive import AROUND_RATES, EventKind

UNIFIED = (
    "22 28 0:20 / /sys rw,nosuid,nodev,noexec,relatime shared:7 - sysfs sysfs rw\n"
    "26 22 0:23 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
)
HYBRID = (
    "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:3 - cgroup cgroup rw,cpu,cpuacct\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:4 - cgroup cgroup rw,memory\n"
    "38 31 0:35 / /sys/fs/cgroup/blkio rw,relatime shared:5 - cgroup cgroup rw,blkio\n"
    "40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime shared:6 - cgroup cgroup rw,xattr,name=systemd\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:7 - cgroup2 cgroup2 rw\n"
)
SERVICE = "0::/system.slice/system-postgresql.slice/postgresql@16-main.service\n"
FOLDER = "/sys/fs/cgroup/system.slice/system-postgresql.slice/postgresql@16-main.service"
STAT = """\
usage_usec 183245691
user_usec 120033121
system_usec 63212570
core_sched.force_idle_usec 0
nr_periods {periods}
nr_throttled {held}
throttled_usec {withheld}
nr_bursts 0
burst_usec 0
"""
PRESSURE = """\
some avg10=1.20 avg60=0.80 avg300=0.40 total={total}
full avg10=0.90 avg60=0.60 avg300=0.20 total=7
"""
EVENTS = "low 0\nhigh {high}\nmax {most}\noom {kills}\noom_kill {kills}\noom_group_kill 0\n"
IO = """\
259:0 rbytes={read} wbytes={written} rios=192 wios=353 dbytes=0 dios=0
253:0 rbytes={read} wbytes={written} rios=192 wios=353 dbytes=0 dios=0
8:16 rbytes=4096 wbytes=0 rios=1 wios=0 dbytes=0 dios=0
"""
DISKS = b"""\
 259       0 nvme0n1 100 0 800 50 20 0 160 10 0 60 60 0 0 0 0
 259       1 nvme0n1p1 100 0 800 50 20 0 160 10 0 60 60 0 0 0 0
 253       0 dm-0 100 0 800 50 20 0 160 10 0 60 60 0 0 0 0
   8      16 sdb 1 0 8 1 0 0 0 0 0 1 1 0 0 0 0
"""
HOST = {
    "/proc/stat": b"cpu  1 1 1 1 1 1 1 1\nctxt 5\nprocs_running 1\n",
    "/proc/diskstats": DISKS,
}


def unified(folder, limit="200000 100000", **more):
    """The files of a group of version 2, as Linux 6.12 writes them."""
    names = ("periods", "held", "withheld", "total", "high", "most", "kills", "read", "written")
    said = dict.fromkeys(names, 0) | more
    texts = {"cpu.stat": STAT, "memory.events": EVENTS, "io.stat": IO}
    texts |= dict.fromkeys(("cpu.pressure", "io.pressure", "memory.pressure"), PRESSURE)
    found = {f"{folder}/{name}": text.format(**said).encode() for name, text in texts.items()}
    return {**found, f"{folder}/cpu.max": f"{limit}\n".encode()}


def test_the_group_of_a_service_is_found_with_all_above_it():
    group = find_group(SERVICE, UNIFIED)
    assert group == ControlGroup(
        unified=(FOLDER, "/sys/fs/cgroup/system.slice/system-postgresql.slice", "/sys/fs/cgroup/system.slice",
                 "/sys/fs/cgroup")
    )  # fmt: skip
    assert set(unified(FOLDER)) <= set(group.files)
    limits = [path for path in group.files if path.endswith("cpu.max")]
    assert limits == [f"{folder}/cpu.max" for folder in group.unified], "limits of all above hold, too"
    assert sum(path.endswith("memory.events") for path in group.files) == 1, "what others use does not count"


def test_in_a_container_the_own_group_is_where_the_hierarchy_is_mounted():
    mounts = "1203 1195 0:29 / /sys/fs/cgroup ro,nosuid,nodev,noexec,relatime - cgroup2 cgroup rw,nsdelegate\n"
    group = find_group("0::/\n", mounts)
    assert group == ControlGroup(unified=("/sys/fs/cgroup",))
    assert set(unified("/sys/fs/cgroup")) <= set(group.files)


def test_a_container_that_sees_the_path_of_its_host_has_its_own_group_mounted():
    mounts = (
        "1210 1208 0:33 /docker/7f3c /sys/fs/cgroup/cpu,cpuacct ro,relatime master:15 - cgroup cgroup rw,cpu,cpuacct\n"
        "1211 1208 0:34 /docker/7f3c /sys/fs/cgroup/memory ro,relatime master:16 - cgroup cgroup rw,memory\n"
    )
    group = find_group("5:cpu,cpuacct:/docker/7f3c/inner\n4:memory:/docker/7f3c\n0::/docker/other\n", mounts)
    assert group == ControlGroup(
        cpu=("/sys/fs/cgroup/cpu,cpuacct/inner", "/sys/fs/cgroup/cpu,cpuacct"), memory=("/sys/fs/cgroup/memory",)
    )
    assert find_group("5:cpu,cpuacct:/docker/8\n", mounts) == ControlGroup(), "a group that is not mounted here"
    assert find_group("5:cpu,cpuacct:/docker/7f3cd\n", mounts) == ControlGroup(), "another name that begins so"


def test_hierarchies_of_both_versions_stand_side_by_side():
    said = "9:name=systemd:/init\n4:memory:/pg\n7:blkio:/pg\n2:cpu,cpuacct:/pg/main\n0::/system.slice/pg\n"
    assert find_group(said, HYBRID) == ControlGroup(
        unified=tuple(f"/sys/fs/cgroup/unified{path}" for path in ("/system.slice/pg", "/system.slice", "")),
        cpu=("/sys/fs/cgroup/cpu,cpuacct/pg/main", "/sys/fs/cgroup/cpu,cpuacct/pg", "/sys/fs/cgroup/cpu,cpuacct"),
        memory=("/sys/fs/cgroup/memory/pg", "/sys/fs/cgroup/memory"),
        blkio=("/sys/fs/cgroup/blkio/pg", "/sys/fs/cgroup/blkio"),
    )


def test_a_mount_point_may_have_spaces_and_backslashes():
    mounts = "26 22 0:23 /a\\134x2db /mnt/c\\040d rw - cgroup2 cgroup2 rw\n"
    assert find_group("0::/a\\x2db/pg\n", mounts).unified == ("/mnt/c d/pg", "/mnt/c d")


@pytest.mark.parametrize("text", ["", "x", "0::", "0::relative", "0::/../../etc", "0::/a/../b", "a:b:c:d"])
def test_strange_memberships_lead_nowhere(text):
    assert find_group(text, UNIFIED) == ControlGroup()


@pytest.mark.parametrize("text", ["", "\n", " - ", "1 2 - cgroup2", "1 2 3 4 5", "26 22 0:23 / - cgroup2 cgroup2 rw"])
def test_strange_mounts_lead_nowhere(text):
    assert find_group(SERVICE, text) == ControlGroup()


def test_what_a_group_of_version_2_used_withheld_and_waited_for_are_rates():
    above = {"/sys/fs/cgroup/system.slice/cpu.max": b"max 100000\n"}
    first, later = unified(FOLDER, periods=100, held=10, withheld=1_000_000, total=5_000_000), unified(
        FOLDER, periods=120, held=25, withheld=4_000_000, total=6_000_000, high=3, most=5, read=8192, written=40_960
    )  # fmt: skip
    reader = HostReader()
    assert reader.read({**HOST, **first, **above}, 10.0) is None
    found = reader.read({**HOST, **later, **above}, 12.0)
    assert found["cpu_throttled"] == pytest.approx(1.5)
    assert found["cpu_limit"] == 2.0
    assert found["cpu_limit_reached"] == pytest.approx(0.75)
    assert [found[f"group_{name}_stalled"] for name in ("cpu", "io", "memory")] == pytest.approx([0.5] * 3)
    assert found["memory_limit_reached"] == pytest.approx(4.0)
    assert (found["group_read"], found["group_written"]) == (4096.0, 20_480.0), "a layer passes on what its disk counts"
    assert found.keys() <= set(AROUND_RATES)
    assert reader.events == ()


def test_what_a_group_of_version_1_used_and_withheld_are_the_same_rates():
    def files(periods, held, withheld, failed, moved):
        cpu, block = "/sys/fs/cgroup/cpu,cpuacct/pg", "/sys/fs/cgroup/blkio/pg"
        bytes_ = f"259:0 Read {moved}\n259:0 Write {2 * moved}\n259:0 Sync 1\n259:0 Async 2\n259:0 Total {3 * moved}\n"
        return {
            f"{cpu}/cpu.stat": f"nr_periods {periods}\nnr_throttled {held}\nthrottled_time {withheld}\n".encode(),
            f"{cpu}/cpu.cfs_quota_us": b"150000\n",
            f"{cpu}/cpu.cfs_period_us": b"100000\n",
            "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": b"-1\n",
            "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": b"100000\n",
            "/sys/fs/cgroup/memory/pg/memory.failcnt": f"{failed}\n".encode(),
            "/sys/fs/cgroup/memory/pg/memory.oom_control": b"oom_kill_disable 0\nunder_oom 0\noom_kill 0\n",
            f"{block}/blkio.throttle.io_service_bytes": f"{bytes_}Total {3 * moved}\n".encode(),
        }

    reader = HostReader()
    reader.read({**HOST, **files(10, 1, 1_000_000_000, 0, 0)}, 1.0)
    found = reader.read({**HOST, **files(20, 6, 2_000_000_000, 8, 4096)}, 2.0)
    assert found["cpu_throttled"] == pytest.approx(1.0)
    assert (found["cpu_limit"], found["cpu_limit_reached"]) == (1.5, 0.5)
    assert found["memory_limit_reached"] == 8.0
    assert (found["group_read"], found["group_written"]) == (4096.0, 8192.0)
    assert not [name for name in found if name.startswith("group_") and name.endswith("_stalled")]


def test_the_lowest_limit_holds_and_none_is_no_limit():
    folders = {"/sys/fs/cgroup/a/b/cpu.max": b"400000 100000\n", "/sys/fs/cgroup/a/cpu.max": b"50000 100000\n"}
    assert limit_of(count_group(folders, ())) == 0.5
    assert limit_of(count_group({"/sys/fs/cgroup/cpu.max": b"max 100000\n"}, ())) is None
    assert limit_of({}) is None
    without = count_group(unified(FOLDER, limit="max 100000"), ())
    assert not {"cpu_limit", "cpu_limit_reached"} & group_rates(without, without, 1.0).keys()


def test_an_idle_group_did_not_reach_its_limit():
    counts = count_group(unified(FOLDER, periods=7, held=7), ())
    assert group_rates(counts, counts, 1.0)["cpu_limit_reached"] == 0.0


def test_counters_of_another_group_that_are_smaller_or_named_otherwise_give_no_rates():
    before, other = (count_group(unified(folder, withheld=9_000_000), ()) for folder in ("/a", "/b"))
    assert "cpu_throttled" not in group_rates(before, other, 1.0)
    smaller = count_group(unified("/a", withheld=0), ())
    assert "cpu_throttled" not in group_rates(before, smaller, 1.0)


@pytest.mark.parametrize(
    ("limits", "detail"),
    [
        (("400000 100000", "200000 100000"), "4 CPU to 2 CPU"),
        (("max 100000", "150000 100000"), "no limit to 1.5 CPU"),
        (("200000 100000", "max 100000"), "2 CPU to no limit"),
    ],
)
def test_a_limit_that_changes_is_an_event(limits, detail):
    before, now = (count_group(unified(FOLDER, limit=limit), ()) for limit in limits)
    (event,) = group_events(before, now)
    assert (event.kind, event.detail, event.times) == (EventKind.LIMIT, detail, 1)


def test_processes_that_are_killed_for_lack_of_memory_are_an_event():
    before, now = (count_group(unified(FOLDER, kills=kills), ()) for kills in (1, 3))
    (event,) = group_events(before, now)
    assert (event.kind, event.times) == (EventKind.OUT_OF_MEMORY, 2)
    assert not list(group_events({}, now)), "those that were killed before the recorder began"


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe", b"nr_periods\n", b"nr_throttled -1\n", b"a b c\n" * 9, b"quota x\n", b"9" * 5000]
)
def test_files_of_unknown_shapes_say_nothing(content):
    contents = dict.fromkeys(ControlGroup(unified=("/g",), cpu=("/c",), memory=("/m",), blkio=("/b",)).files, content)
    counts = count_group(contents, ())
    assert set(counts.values()) <= {0.0}
    assert limit_of(counts) is None
