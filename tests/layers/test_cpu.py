"""Affinity, quota, policy, governor and turbo: asked for, prepared, seen from inside."""

import os
import secrets
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest

from fake_ledger import FakeLedger
from pgstrata.app.machine import SystemClock
from pgstrata.errors import HostNotFitError, LevelNotTakenError, ParseError
from pgstrata.hosts.local import LocalHost
from pgstrata.layers.cpu import CpuLayer, parse_policy
from pgstrata.layers.frequency import Frequency
from pgstrata.layers.server import ClusterControl
from pgstrata.model.experiment import Environment, ServerKind, ServerSpec
from pgstrata.model.launch import Needs
from pgstrata.ports.host import Command, StopSignal
from pgstrata.servers.psql import PsqlSql
from seen_server import make_server
from timing import wait_for
from version2 import Version2

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make cgroups")
CPU = min(os.sched_getaffinity(0))


def environment(**levels):
    layers = {f"cpu.{name}": level for name, level in levels.items()}
    return Environment(name="it", levels=(), server=ServerSpec(kind=ServerKind.EMBEDDED), layers=layers)


@pytest.fixture
def host():
    host = LocalHost()
    yield host
    host.close()


@pytest.fixture
def layer(host):
    return CpuLayer(host, f"test{secrets.token_hex(3)}")


@pytest.fixture
def spawned(host):
    """Starts a process that waits, with words in front of it, and ends it."""
    processes = []

    def spawn(words, at=host):
        command = Command(argv=(*words, "sleep", "20"))
        process = at.spawn(command, stdout="/dev/null", stderr="/dev/null")
        processes.append(process)
        wait_for(lambda: b"sleep" in Path(f"/proc/{process.pid}/cmdline").read_bytes().split(b"\0")[0])
        return process.pid

    yield spawn
    for process in processes:
        process.signal(StopSignal.TERM)
        process.wait(5)


# ------------------------------------------------------------------------------------ readers


@pytest.mark.parametrize(
    ("numbers", "policy"), [("0 0", "other"), ("0 3", "batch"), ("0 5", "idle"), ("7 1", "fifo:7"), ("9 2", "rr:9")]
)
def test_a_policy_is_read_also_where_the_command_has_spaces_and_parentheses(numbers, policy):
    between = " ".join("0" for _ in range(3, 40))
    assert parse_policy(f"17 (a) b) {between} {numbers} 0 0\n") == policy


def test_a_line_of_another_shape_is_no_policy():
    with pytest.raises(ParseError):
        parse_policy("17 (postgres) S 1 2")


# ------------------------------------------------------------------------------------ affinity and policy


def test_an_environment_without_levels_of_cpu_is_none_of_its_business(layer):
    assert not layer.concerns(environment())
    assert layer.observe(make_server(environment(), 1), None) == {}


def test_server_and_client_get_their_cpus(layer, spawned):
    asked = environment(server=str(CPU), client=str(CPU))
    launch = layer.prepare(asked, Needs(), FakeLedger())
    assert launch.client == ("taskset", "--cpu-list", str(CPU))
    facts = layer.observe(make_server(asked, spawned(launch.server)), None)
    assert facts == {"cpu.server": str(CPU), "cpu.client": str(CPU)}


def test_cpus_that_are_not_online_are_named(layer):
    with pytest.raises(HostNotFitError, match="CPUs 900, 901 not online") as caught:
        layer.prepare(environment(client=f"{CPU},900-901"), Needs(), FakeLedger())
    assert str(CPU) in caught.value.remedy


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
def test_cpus_that_pgstrata_may_not_use_are_named(layer):
    before = os.sched_getaffinity(0)
    other = max(before)
    os.sched_setaffinity(0, {CPU})
    try:
        with pytest.raises(HostNotFitError, match=f"CPU {other} not allowed"):
            layer.prepare(environment(server=str(other)), Needs(), FakeLedger())
    finally:
        os.sched_setaffinity(0, before)


def test_a_server_on_other_cpus_is_found_out(layer):
    wrong = max(os.sched_getaffinity(0)) + 1
    with pytest.raises(LevelNotTakenError, match=f"cpu.server = {wrong} was asked for"):
        layer.observe(make_server(environment(server=str(wrong)), os.getpid()), None)


@pytest.mark.parametrize("policy", ["batch", "idle", "other"])
def test_ordinary_policies_need_no_privilege(layer, spawned, policy):
    asked = environment(policy=policy)
    launch = layer.prepare(asked, Needs(), FakeLedger())
    assert layer.observe(make_server(asked, spawned(launch.server)), None) == {"cpu.policy": policy}


@pytest.mark.root
@needs_root
def test_a_real_time_policy_is_refused_where_the_servers_user_may_not_have_it(server_host):
    layer = CpuLayer(server_host, "test")
    with pytest.raises(HostNotFitError, match="policy = fifo:5") as caught:
        layer.prepare(environment(policy="fifo:5"), Needs(), FakeLedger())
    assert "limits.conf" in caught.value.remedy


def test_a_quota_does_not_hold_for_real_time(layer):
    with pytest.raises(HostNotFitError, match="ordinary processes only"):
        layer.prepare(environment(policy="rr:1", quota="0.5"), Needs(), FakeLedger())


# ------------------------------------------------------------------------------------ quota


def test_a_quota_above_all_cpus_would_limit_nothing(layer):
    with pytest.raises(HostNotFitError, match="would limit nothing"):
        layer.prepare(environment(quota="5000"), Needs(), FakeLedger())


@pytest.mark.root
@needs_root
def test_two_environments_have_their_quotas_side_by_side(server_host, ledger, spawned):
    layer = CpuLayer(server_host, f"test{secrets.token_hex(3)}")
    for name, quota in (("a", "0.5"), ("b", "0.25")):
        asked = Environment(
            name=name, levels=(), server=ServerSpec(kind=ServerKind.EMBEDDED), layers={"cpu.quota": quota}
        )
        launch = layer.prepare(asked, Needs(), ledger)
        facts = layer.observe(make_server(asked, spawned(launch.server, at=server_host)), None)
        assert facts == {"cpu.quota": quota, "cpu.throttled": "0"}
        with pytest.raises(LevelNotTakenError, match="in the cgroup"):
            layer.observe(make_server(asked, os.getpid()), None)


@pytest.mark.root
@needs_root
def test_beside_a_quota_a_server_without_one_has_a_group_without_limit(server_host, ledger, spawned):
    limited, free = environment(quota="0.5"), replace(environment(), name="free")
    layer = CpuLayer(server_host, f"test{secrets.token_hex(3)}", environments=(limited, free))
    launch = layer.prepare(free, Needs(), ledger)
    facts = layer.observe(make_server(free, spawned(launch.server, at=server_host)), None)
    assert facts == {"cpu.quota": "max", "cpu.throttled": "0"}


@pytest.mark.root
@needs_root
def test_a_quota_that_somebody_changed_is_found_out(server_host, ledger, spawned):
    layer = CpuLayer(server_host, f"test{secrets.token_hex(3)}")
    asked = environment(quota="0.5")
    launch = layer.prepare(asked, Needs(), ledger)
    pid = spawned(launch.server, at=server_host)
    Path(launch.server[-1].replace("cgroup.procs", "cpu.cfs_quota_us")).write_text("70000")
    with pytest.raises(LevelNotTakenError, match=r"the kernel says 0\.7"):
        layer.observe(make_server(asked, pid), None)


@pytest.mark.root
@pytest.mark.server
@needs_root
def test_a_server_that_wants_more_than_its_quota_is_held_back(server_host, cluster, ledger):
    build, clone = cluster("embedded")
    layer = CpuLayer(server_host, f"test{secrets.token_hex(3)}")
    asked = environment(quota="0.1")  # so little that also a busy machine would give more
    launch = layer.prepare(asked, Needs(), ledger)
    control = ClusterControl(server_host, SystemClock(), clone.folder)
    server = control.start(asked, build, clone, launch)
    try:
        before = int(layer.observe(server, None)["cpu.throttled"])
        sql = PsqlSql(server_host, build)
        sql.query(server.address, "SELECT count(*) FROM generate_series(1, 2000000) AS n WHERE n % 7 = 1")
        assert int(layer.observe(server, None)["cpu.throttled"]) > before + 3
    finally:
        control.stop(server)


# ------------------------------------------------------------------------------------ version 2, from captures


class Files(Version2):
    own = MappingProxyType(
        {
            "/proc/self/cgroup": "0::/user.slice/user-0.slice/session-3.scope\n",
            "/sys/fs/cgroup/cgroup.subtree_control": "cpuset cpu memory pids\n",
            "/sys/devices/system/cpu/online": "0-3\n",
            "/proc/self/status": "Cpus_allowed_list:\t0-3\n",
        }
    )

    def answer(self, argv):
        return "root\n" if argv[0] == "stat" else ""


def test_on_version_2_a_group_below_the_studys_has_the_quota():
    host, ledger = Files(), FakeLedger()
    layer = CpuLayer(host, "k1")
    launch = layer.prepare(environment(quota="1.5"), Needs(), ledger)
    base, group = ledger.changes
    assert base.do.arguments == ("/sys/fs/cgroup/pgstrata-k1", "/sys/fs/cgroup", "postgres", "cpu memory io", "77")
    assert base.undo.arguments[2:] == ("io", "/sys/fs/cgroup/user.slice/user-0.slice/session-3.scope")
    assert group.value == "cpu.max = 150000 100000"
    folder = "/sys/fs/cgroup/pgstrata-k1/pgstrata-k1-it"
    assert launch.server[-1] == f"{folder}/cgroup.procs"
    assert host.ran[-1] == (*launch.server, "true")
    host.files |= {
        "/proc/9/cgroup": "0::/pgstrata-k1/pgstrata-k1-it\n",
        f"{folder}/cpu.max": "150000 100000\n",
        f"{folder}/cpu.stat": "usage_usec 5\nnr_periods 4\nnr_throttled 3\n",
    }
    facts = layer.observe(make_server(environment(quota="1.5"), 9), None)
    assert facts == {"cpu.quota": "1.5", "cpu.throttled": "3"}


def test_on_version_2_the_group_of_the_limits_gets_the_quota_too():
    ledger = FakeLedger()
    asked = environment(quota="0.5")
    asked = Environment(
        name="it", levels=(), server=asked.server, layers={**asked.layers, "limits.memory": "1073741824"}
    )
    launch = CpuLayer(Files(), "k1").prepare(asked, Needs(), ledger)
    (change,) = ledger.changes
    assert change.what == "cgroup /sys/fs/cgroup/pgstrata-k1/pgstrata-k1-it cpu.max"
    assert launch.server == (), "the layer of the limits joins it"


def test_with_a_quota_in_the_experiment_every_server_has_a_group_and_no_needless_controller_is_on():
    host, ledger = Files(), FakeLedger()
    free = replace(environment(), name="free")
    theirs = replace(free, name="theirs", server=ServerSpec(kind=ServerKind.DSN))
    layer = CpuLayer(host, "k1", environments=(environment(quota="1.5"), free, theirs))
    assert layer.concerns(free)
    assert not layer.concerns(theirs)
    launch = layer.prepare(free, Needs(), ledger)
    base, group = ledger.changes
    assert base.do.arguments[3] == "cpu", "memory and io would change how groups compete as well"
    assert group.value == "cpu.max = max 100000"
    folder = "/sys/fs/cgroup/pgstrata-k1/pgstrata-k1-free"
    assert launch.server[-1] == f"{folder}/cgroup.procs"
    host.files |= {
        "/proc/9/cgroup": "0::/pgstrata-k1/pgstrata-k1-free\n",
        f"{folder}/cpu.max": "max 100000\n",
        f"{folder}/cpu.stat": "usage_usec 5\n",
    }
    facts = layer.observe(make_server(free, 9), None)
    assert facts == {"cpu.quota": "max", "cpu.throttled": ""}, "what the kernel does not count is not told as none"
    host.files[f"{folder}/cpu.max"] = "50000 100000\n"
    with pytest.raises(LevelNotTakenError, match=r"cpu.quota = max was asked for, and the kernel says 0\.5"):
        layer.observe(make_server(free, 9), None)


def test_without_a_quota_in_the_experiment_nobody_has_a_group():
    layer = CpuLayer(Files(), "k1", environments=(environment(policy="batch"), replace(environment(), name="free")))
    assert not layer.concerns(environment())


def test_a_host_without_the_controller_says_what_to_do():
    host = Files(**{"/sys/fs/cgroup/cgroup.controllers": "memory pids\n"})
    with pytest.raises(HostNotFitError, match="no cgroup controller for cpu"):
        CpuLayer(host, "k1").prepare(environment(quota="0.5"), Needs(), FakeLedger())


# ------------------------------------------------------------------------------------ governor and turbo, on a copied tree


@pytest.fixture
def tree(tmp_path):
    for number, governor in enumerate(("powersave", "schedutil")):
        folder = tmp_path / f"cpu{number}" / "cpufreq"
        folder.mkdir(parents=True)
        (folder / "scaling_governor").write_text(f"{governor}\n")
        (folder / "scaling_available_governors").write_text("performance powersave schedutil\n")
    (tmp_path / "cpufreq").mkdir()
    (tmp_path / "cpufreq" / "boost").write_text("1\n")
    return tmp_path


def governors(tree):
    return [(tree / f"cpu{number}" / "cpufreq" / "scaling_governor").read_text().strip() for number in range(2)]


def test_all_cpus_get_the_governor_and_each_gets_its_own_back(host, tree, ledger):
    layer = CpuLayer(host, "k1", frequency=Frequency(host, str(tree)))
    asked = environment(governor="performance", turbo="off")
    layer.prepare(asked, Needs(), ledger)
    assert governors(tree) == ["performance", "performance"]
    facts = layer.observe(make_server(asked, None), None)
    assert facts == {"cpu.governor": "performance", "cpu.turbo": "off"}
    ledger.undo_to(0)
    assert governors(tree) == ["powersave", "schedutil"]
    assert Frequency(host, str(tree)).turbo() == "on"


def test_a_governor_that_changed_is_found_out(host, tree, ledger):
    layer = CpuLayer(host, "k1", frequency=Frequency(host, str(tree)))
    asked = environment(governor="performance")
    layer.prepare(asked, Needs(), ledger)
    (tree / "cpu1" / "cpufreq" / "scaling_governor").write_text("powersave\n")
    with pytest.raises(LevelNotTakenError, match="performance powersave"):
        layer.observe(make_server(asked, None), None)
    (tree / "cpu1" / "cpufreq" / "scaling_governor").write_text("performance\n")


def test_the_switch_of_intel_means_the_opposite(host, tmp_path, ledger):
    (tmp_path / "intel_pstate").mkdir()
    switch = tmp_path / "intel_pstate" / "no_turbo"
    switch.write_text("0\n")
    frequency = Frequency(host, str(tmp_path))
    assert frequency.turbo() == "on"
    frequency.set_turbo("off", ledger)
    assert switch.read_text() == "1\n"
    ledger.undo_to(0)
    assert switch.read_text() == "0\n"


def test_a_host_without_frequencies_says_so(host, tmp_path, tree):
    with pytest.raises(HostNotFitError, match="no cpufreq"):
        Frequency(host, str(tmp_path / "none")).set_governor("performance", FakeLedger())
    with pytest.raises(HostNotFitError, match="no intel_pstate/no_turbo or cpufreq/boost"):
        Frequency(host, str(tmp_path / "none")).set_turbo("on", FakeLedger())
    with pytest.raises(HostNotFitError, match="no governor 'fast'"):
        Frequency(host, str(tree)).set_governor("fast", FakeLedger())
