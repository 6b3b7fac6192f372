"""Groups are made, joined by another user, and removed; real ones of this machine."""

import os
import secrets
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from fake_ledger import FakeLedger
from pgstrata.errors import HostNotFitError, LevelNotTakenError
from pgstrata.layers.cgroups import Controller, Groups, parse_hierarchies, set_value
from pgstrata.model.changes import ShellScript
from pgstrata.ports.host import Command
from timing import wait_for

pytestmark = [pytest.mark.root, pytest.mark.skipif(os.geteuid() != 0, reason="only root can make cgroups")]


@pytest.fixture
def key():
    return f"test{secrets.token_hex(3)}"


@pytest.fixture
def cpu(server_host, key):
    """A group of version 1 for CPU time, and its tree."""
    groups = Groups(server_host, key)
    group = groups.find(Controller.CPU, "half")
    if group.unified:
        pytest.skip("this machine has the CPU controller in cgroup v2")
    return groups, group


QUOTA = (("cpu.cfs_period_us", "100000"), ("cpu.cfs_quota_us", "50000"))


def test_a_group_is_made_with_its_values_and_goes_away(cpu, ledger):
    groups, group = cpu
    groups.make(group, QUOTA, ledger)
    assert Path(group.folder, "cpu.cfs_quota_us").read_text() == "50000\n"
    ledger.undo_to(0)
    assert not Path(group.folder).exists()


def test_the_servers_user_joins_and_keeps_his_process_id(cpu, ledger, server_host):
    groups, group = cpu
    groups.make(group, QUOTA, ledger)
    said = server_host.run(Command(argv=(*group.join, "sh", "-c", "echo $$ $PPID; cat /proc/$$/cgroup"))).text
    group.assert_member(said.partition("\n")[2], "here")
    assert int(said.split()[1]) == os.getpid(), "another process is between"
    with pytest.raises(LevelNotTakenError, match="not in /pgstrata-"):
        group.assert_member(Path("/proc/self/cgroup").read_text(), "here")


def test_a_value_that_the_kernel_refuses_leaves_no_group(cpu, ledger):
    groups, group = cpu
    with pytest.raises(LevelNotTakenError):
        groups.make(group, (("cpu.cfs_quota_us", "1"),), ledger)
    assert not Path(group.folder).exists()


def test_somebody_elses_group_of_that_name_is_left_alone(cpu, ledger):
    groups, group = cpu
    Path(group.folder).mkdir()
    try:
        with pytest.raises(HostNotFitError, match="already"):
            groups.make(group, QUOTA, ledger)
        ledger.undo_to(0)
        assert Path(group.folder, "cpu.cfs_quota_us").read_text() == "-1\n"
    finally:
        Path(group.folder).rmdir()


def test_a_group_serves_a_visit_that_asks_for_it_twice_and_is_made_anew_by_the_next(cpu, ledger):
    groups, group = cpu
    for _ in range(2):
        groups.make(group, QUOTA, ledger)
        mark = ledger.mark()
        groups.make(group, QUOTA, ledger)
        assert ledger.mark() == mark
        ledger.undo_to(0)
        assert not Path(group.folder).exists()


def test_undoing_waits_for_processes_that_are_still_leaving(cpu, ledger):
    groups, group = cpu
    groups.make(group, QUOTA, ledger)
    with subprocess.Popen([*group.join, "sleep", "0.5"]):
        wait_for(lambda: Path(group.folder, "cgroup.procs").read_text())
        ledger.undo_to(0)
    assert not Path(group.folder).exists()


def test_a_value_of_a_group_that_has_gone_is_undone_without_harm(cpu, ledger):
    groups, group = cpu
    groups.make(group, QUOTA, ledger)
    fake = FakeLedger()
    set_value(group, "cpu.cfs_quota_us", "20000", fake)
    ledger.undo_to(0)
    (change,) = fake.changes
    subprocess.run(change.undo.with_argument("50000").argv, check=True)
    assert not Path(group.folder).exists()


def test_one_value_of_a_group_comes_back(cpu, ledger):
    groups, group = cpu
    groups.make(group, QUOTA, ledger)
    mark = ledger.mark()
    set_value(group, "cpu.cfs_quota_us", "20000", ledger)
    assert Path(group.folder, "cpu.cfs_quota_us").read_text() == "20000\n"
    ledger.undo_to(mark)
    assert Path(group.folder, "cpu.cfs_quota_us").read_text() == "50000\n"


# ------------------------------------------------------------------------------------ version 2, as far as it is here


@pytest.fixture
def unified(server_host, key):
    """Groups of version 2 with the controllers that this machine has there, perhaps only one that nobody needs."""
    found = parse_hierarchies(Path("/proc/self/mountinfo").read_text(), Path("/proc/self/cgroup").read_text())
    hierarchy = next((one for one in found if one.version == 2 and not one.read_only), None)
    if hierarchy is None:
        pytest.skip("this machine has no cgroup v2 that can be written")
    controllers = Path(hierarchy.folder, "cgroup.controllers").read_text().split()
    return Unified(Groups(server_host, key, controllers), hierarchy, key, controllers)


class Unified:
    def __init__(self, groups, hierarchy, key, controllers):
        self.groups, self.hierarchy, self.controllers = groups, hierarchy, controllers
        self.base = Path(hierarchy.folder, f"pgstrata-{key}")

    def make(self, name, ledger):
        group = self.groups.place(self.hierarchy, name)
        self.groups.make(group, (("cgroup.max.depth", "3"),), ledger)
        return group


def own():
    return Path("/proc/self/cgroup").read_text().rpartition("0::")[2].strip()


def subtree(folder):
    return Path(folder, "cgroup.subtree_control").read_text().split()


def test_on_version_2_the_coordinator_moves_aside_and_the_servers_user_joins(unified, ledger, server_host):
    home, enabled = own(), subtree(unified.hierarchy.folder)
    first, second = (unified.make(name, ledger) for name in ("a", "b"))
    assert own() == f"/{unified.base.name}/coordinator"
    assert subtree(unified.base) == unified.controllers
    for group in (first, second):
        said = server_host.run(Command(argv=(*group.join, "cat", "/proc/self/cgroup"))).text
        group.assert_member(said, "here")
    ledger.undo_to(0)
    assert (own(), subtree(unified.hierarchy.folder)) == (home, enabled)
    assert not unified.base.exists()


def test_on_version_2_nobody_else_can_join(unified, ledger):
    group = unified.make("a", ledger)
    refused = subprocess.run([*group.join, "true"], check=False, capture_output=True, user=65533, text=True)
    assert refused.returncode, "an unknown user joined"


def test_on_version_2_somebody_elses_group_is_left_alone(unified, ledger):
    unified.base.mkdir()
    try:
        with pytest.raises(HostNotFitError, match="already"):
            unified.make("a", ledger)
        assert [path for path in unified.base.iterdir() if path.is_dir()] == []
    finally:
        unified.base.rmdir()
    assert ledger.mark() == 0


def test_on_version_2_a_coordinator_that_was_killed_leaves_what_can_be_undone(unified, ledger, key):
    """Its group is empty then, and somebody else undoes."""
    unified.make("a", ledger)
    home = Path(unified.hierarchy.folder, "cgroup.procs")
    home.write_text(str(os.getpid()))
    ledger.undo_to(0)
    assert not unified.base.exists()


@pytest.fixture
def container(unified, key):
    """The tree as a container sees it: its top is no real root, and there are a first process and the coordinator."""
    top, home = Path(unified.hierarchy.folder, f"container-{key}"), Path(unified.hierarchy.locate(own()))
    top.mkdir()
    enabled = subtree(unified.hierarchy.folder)
    for name in unified.controllers:
        Path(unified.hierarchy.folder, "cgroup.subtree_control").write_text(f"+{name}")
    with subprocess.Popen(["sleep", "60"]) as first:
        for pid in (first.pid, os.getpid()):
            (top / "cgroup.procs").write_text(str(pid))
        yield replace(unified.hierarchy, folder=str(top), root=f"/{top.name}"), first.pid
        (home / "cgroup.procs").write_text(str(os.getpid()))
        first.kill()
    top.rmdir()
    for name in set(unified.controllers) - set(enabled):
        Path(unified.hierarchy.folder, "cgroup.subtree_control").write_text(f"-{name}")


def test_in_a_container_all_that_is_at_its_top_moves_aside_and_comes_back(unified, container, ledger, server_host):
    hierarchy, first = container
    group = unified.groups.place(hierarchy, "a")
    unified.groups.make(group, (("cgroup.max.depth", "3"),), ledger)
    top = Path(hierarchy.folder)
    assert group.folder == f"{top}/{unified.base.name}/{unified.base.name}-a"
    assert subtree(top) == unified.controllers
    assert Path(f"/proc/{first}/cgroup").read_text().endswith(f"/{unified.base.name}/coordinator\n")
    group.assert_member(server_host.run(Command(argv=(*group.join, "cat", "/proc/self/cgroup"))).text, "here")
    ledger.undo_to(0)
    assert {str(first), str(os.getpid())} <= set((top / "cgroup.procs").read_text().split())
    assert subtree(top) == []


def test_processes_that_keep_a_top_from_having_groups_are_named(unified, container):
    hierarchy, _ = container
    line = f"processes in {hierarchy.folder}: 17"

    class Refusing:
        def change(self, change):
            raise LevelNotTakenError("no", details=("sh: Device or resource busy", line))

    with pytest.raises(HostNotFitError, match="no cgroups can be made below") as caught:
        unified.groups.make(unified.groups.place(hierarchy, "a"), (), Refusing())
    assert caught.value.details[-1] == line
    assert "outside the container" in caught.value.remedy


@pytest.mark.parametrize(("weight", "left"), [("100", "-io"), ("300", "+io")])
def test_a_controller_that_somebody_uses_by_now_stays_on(unified, tmp_path, weight, left):
    """On plain files: what matters is which words the script writes."""
    fake = FakeLedger()
    unified.groups.make(unified.groups.place(unified.hierarchy, "a"), (), fake)
    base, other = tmp_path / "pgstrata-k1", tmp_path / "other.slice"
    for folder, value in ((base, "100"), (other, weight)):
        folder.mkdir()
        (folder / "io.weight").write_text(f"default {value}\n")
    (base / "cgroup.subtree_control").write_text("io\n")
    (tmp_path / "cgroup.subtree_control").write_text("+io\n")
    undo = ShellScript(text=fake.changes[0].undo.text, arguments=(str(base), str(tmp_path), "io", str(tmp_path), ""))
    subprocess.run(undo.argv, check=False, capture_output=True)
    assert (tmp_path / "cgroup.subtree_control").read_text().strip() == left
