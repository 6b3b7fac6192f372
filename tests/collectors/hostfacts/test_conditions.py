"""What of a host a noise floor hangs on."""

import pytest

from pgstrata.collectors.hostfacts.conditions import observe_conditions
from pgstrata.hosts.local import LocalHost

FILES = {
    "/proc/version": "Linux version 6.1.0-18-amd64 (gcc) #1 SMP",
    "/proc/cmdline": "BOOT_IMAGE=/vmlinuz root=/dev/sda1 quiet",
    "/proc/cpuinfo": "processor\t: 0\nmodel name\t: EPYC 9R14\nmicrocode\t: 0xa101144\ncpu MHz\t: 2600.1\n"
    "flags\t: fpu hypervisor sse\n\nprocessor\t: 1\nmodel name\t: EPYC 9R14\ncpu MHz\t: 3100.7\nflags\t: fpu\n",
    "/proc/meminfo": "MemTotal:       16384000 kB\nMemFree:        1234 kB\n",
    "/proc/self/status": "Name:\tcat\nCpus_allowed_list:\t0-1\nvoluntary_ctxt_switches:\t1\n",
    "/proc/self/cgroup": "0::/user.slice/session-12.scope\n",
    "/proc/self/mountinfo": "21 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw,errors=remount-ro\n"
    "22 21 8:16 / /var/lib/pg\\040data rw,noatime - xfs /dev/sdb rw\n"
    "23 21 0:40 / /dev/shm rw - tmpfs tmpfs rw,size=8g\n",
    "/etc/machine-id": "0123456789abcdef0123456789abcdef\n",
    "/etc/os-release": 'NAME="Debian"\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n',
    "/sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
    "/sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
    "/sys/devices/system/cpu/vulnerabilities/meltdown": "Not affected\n",
    "/sys/devices/system/cpu/vulnerabilities/spectre_v2": "Mitigation: Retpolines\n",
    "/sys/devices/system/cpu/online": "0-1\n",
    "/sys/dev/block/8:1/../queue/scheduler": "[mq-deadline] none\n",
    "/sys/dev/block/8:16/queue/scheduler": "mq-deadline [none]\n",
    "/proc/loadavg": "0.00 0.01 0.05 1/100 123",
}


class FakeHost:
    def __init__(self, files):
        self.files = files

    def read_files(self, paths):
        return {path: self.files[path].encode() for path in paths if path in self.files}

    def list_folder(self, path):
        return tuple(sorted(name.rpartition("/")[2] for name in self.files if name.startswith(f"{path}/")))


def observe(data="/srv/data", **changes):
    return observe_conditions(FakeHost({**FILES, **changes}), data).facts


def changed(path, old, new):
    assert old in FILES[path]
    return observe(**{path: FILES[path].replace(old, new)})


def test_a_host_is_described_by_names():
    facts = observe()
    assert facts["kernel"].startswith("Linux version 6.1.0")
    assert (facts["cpu"], facts["microcode"], facts["virtual"]) == ("EPYC 9R14", "0xa101144", "yes")
    assert (facts["memory"], facts["allowed_cpus"], facts["os"]) == (
        "15872 MB",
        "0-1",
        "Debian GNU/Linux 12 (bookworm)",
    )
    assert facts["mitigations"] == "meltdown: Not affected; spectre_v2: Mitigation: Retpolines"
    assert facts["storage"] == "/dev/sda1 ext4 rw,relatime rw,errors=remount-ro"
    assert facts["scheduler"] == "[mq-deadline] none"
    assert "limits" not in facts


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("/proc/version", "6.1.0-18", "6.1.0-19"),
        ("/proc/cmdline", "quiet", "mitigations=off"),
        ("/proc/cpuinfo", "EPYC 9R14", "EPYC 9R15"),
        ("/proc/cpuinfo", "0xa101144", "0xa101145"),
        ("/proc/cpuinfo", "hypervisor ", ""),
        ("/proc/meminfo", "16384000", "32768000"),
        ("/proc/self/status", "0-1", "0"),
        ("/etc/machine-id", "0123", "3210"),
        ("/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc", "hpet"),
        ("/sys/kernel/mm/transparent_hugepage/enabled", "[madvise]", "madvise"),
        ("/sys/devices/system/cpu/vulnerabilities/spectre_v2", "Mitigation: Retpolines", "Vulnerable"),
        ("/proc/self/mountinfo", "ext4", "btrfs"),
        ("/proc/self/mountinfo", "rw,relatime", "rw,noatime"),
        ("/sys/dev/block/8:1/../queue/scheduler", "[mq-deadline]", "mq-deadline"),
    ],
)
def test_any_change_of_the_host_is_seen(path, old, new):
    assert changed(path, old, new) != observe()


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("/proc/cpuinfo", "2600.1", "3000.0"),
        ("/proc/meminfo", "16384000", "16384444"),
        ("/proc/meminfo", "1234", "99999"),
        ("/proc/self/status", "voluntary_ctxt_switches:\t1", "voluntary_ctxt_switches:\t9"),
        ("/proc/self/cgroup", "session-12", "session-13"),
        ("/proc/loadavg", "0.00", "9.99"),
        ("/proc/self/mountinfo", "size=8g", "size=9g"),
    ],
)
def test_what_changes_by_itself_is_not(path, old, new):
    assert changed(path, old, new) == observe()


def test_limits_of_the_groups_around_pgstrata_count_and_their_names_do_not():
    group = "/sys/fs/cgroup/user.slice"
    limited = observe(**{f"{group}/cpu.max": "50000 100000\n", f"{group}/memory.max": "max\n"})
    assert limited["limits"] == "cpu.max = 50000 100000"
    assert observe(**{f"{group}/cpu.max": "max 100000\n"}) == observe()


def test_the_file_system_is_that_of_the_data():
    assert observe(data="/var/lib/pg data/x")["storage"] == "/dev/sdb xfs rw,noatime rw"
    assert observe(data="/var/lib/pg data/x")["scheduler"] == "mq-deadline [none]"
    assert observe(data="/var/lib/pg data2")["storage"].startswith("/dev/sda1")


def test_layers_of_a_container_do_not_count():
    line = "21 1 0:50 / / rw - overlay overlay rw,lowerdir=/a:/b,upperdir=/{0},workdir=/w{0}\n"
    one, two = (observe(**{"/proc/self/mountinfo": line.format(name)}) for name in ("x", "y"))
    assert one == two
    assert one["storage"] == "overlay overlay rw rw"


def test_the_id_of_the_machine_is_not_given_away():
    assert FILES["/etc/machine-id"].strip()[:12] not in str(observe())
    assert len(observe()["machine"]) == 12


def test_a_host_that_says_nothing_is_described_by_nothing():
    assert observe_conditions(FakeHost({}), "/data").facts == {}


def test_this_host_is_described_the_same_twice(tmp_path):
    host = LocalHost()
    facts = observe_conditions(host, str(tmp_path))
    assert facts == observe_conditions(host, str(tmp_path))
    assert {"kernel", "cpu", "memory", "allowed_cpus"} <= facts.facts.keys()
