"""Noise floors of servers on another machine; the far side is a second transport to this one."""

import math
from contextlib import contextmanager
from dataclasses import replace

import pytest

from floor_studies import FILE, WORKLOADS, finish, fresh
from pgstrata.app import site
from pgstrata.app.floor import plan_floor
from pgstrata.app.host_floors import CONDITIONS, harvest_floors, has_control, keep_floors, observe_rig
from pgstrata.app.question import load_plan
from pgstrata.errors import HostLostError, PlanRefusedError
from pgstrata.experiment.compose import Wishes
from pgstrata.hosts.local import LocalHost
from pgstrata.model.server import Fingerprint
from pgstrata.report.planning.plan import render_plan
from pgstrata.store.repository import StudyFolder
from pgstrata.store.study import StudyStore

# what floors hang on is that of this machine, which tests of layers change
pytestmark = pytest.mark.company

ELSEWHERE = FILE.replace("[common.settings]", '[common]\nhost = "ssh:db1"\n[common.settings]')
SEVERAL = FILE.replace('server = ["16", "18"]', 'host = ["local", "ssh:db1"]').replace(
    "[common.settings]", '[common]\nserver = "18"\n[common.settings]'
)
SEVERAL = SEVERAL.replace('baseline = { server = "18" }', 'baseline = { host = "local" }')


class Network:
    """What `open_site` finds; `cut` takes it away."""

    def __init__(self):
        self.asked = []
        self.is_cut = False

    @contextmanager
    def open_site(self, destination):
        self.asked.append(destination)
        if self.is_cut:
            raise HostLostError("nobody answers", where=destination)
        yield site.site_here(LocalHost())


@pytest.fixture
def network(tmp_path, monkeypatch):
    for name in ("CACHE", "STATE", "DATA"):
        monkeypatch.setenv(f"PGSTRATA_{name}", str(tmp_path / name.lower()))
    monkeypatch.chdir(tmp_path)
    network = Network()
    monkeypatch.setattr(site, "open_site", network.open_site)
    return network


@pytest.fixture
def file(tmp_path, network):
    path = tmp_path / "asked.toml"
    path.write_text(ELSEWHERE)
    return path


@pytest.fixture
def study(file):
    """A finished A/A study of the file; D is ±1 % in turn."""
    plan = plan_floor(file, Wishes(), None)
    with StudyStore.create(file.parent / "study", plan, "0") as store:
        store.keep_fingerprint(CONDITIONS, observe_rig(plan.experiment))
        for run in plan.runs:
            differs = 0.01 * (-1) ** run.block if "control" in run.environment else 0
            store.commit(finish(store, run, 100 * math.exp(differs)))
    return file.parent / "study"


def said(plan):
    return " ".join(render_plan(plan, "asked.toml").split())


def test_are_measured_there_with_the_baseline_twice_in_the_designs_of_the_experiment(file):
    asked, twice = load_plan(file), plan_floor(file, Wishes(), None)
    assert {each.host.text for each in twice.experiment.environments} == {"ssh:db1"}
    assert twice.designs == asked.designs
    assert [design.sliced for design in twice.designs] == [True, False]
    assert has_control(twice)
    assert "on ssh:db1: `pgstrata floor asked.toml` measures it in about" in said(asked)


def test_hang_on_both_machines(file, network):
    facts = observe_rig(load_plan(file).experiment).facts
    assert facts["client.kernel"] == facts["kernel"]
    assert "storage" in facts
    assert "client.storage" not in facts


def test_are_kept_and_found_by_the_plan_of_the_file(file, study):
    harvest = harvest_floors(StudyFolder(study), WORKLOADS)
    assert harvest.lack == ""
    keep_floors(fresh(harvest.records))
    plan = load_plan(file)
    assert "select-only-s1-c2" in plan.floors
    assert all(floor.valid for floor in plan.floors.values())
    # of the same cells on this machine nothing is known
    file.write_text(FILE)
    assert not load_plan(file).floors


def test_are_left_out_where_nobody_answers(file, study, network):
    keep_floors(fresh(harvest_floors(StudyFolder(study), WORKLOADS).records))
    network.is_cut = True
    plan = load_plan(file, sure=False)
    assert not plan.floors
    assert "ssh:db1 cannot be asked (nobody answers): its noise floors are left out" in said(plan)


def test_are_doubted_where_the_client_has_moved(file, study):
    plan = load_plan(file)
    facts = dict(observe_rig(plan.experiment).facts)
    harvest = harvest_floors(StudyFolder(study), WORKLOADS)
    moved = Fingerprint(facts={**facts, "client.machine": "another"})
    keep_floors(fresh(replace(record, host=moved) for record in harvest.records))
    assert all(floor.doubt.how == "client" for floor in load_plan(file).floors.values())


def test_are_not_of_servers_on_several_machines(file):
    file.write_text(SEVERAL)
    plan = load_plan(file)
    assert "floors are of servers on one machine" in said(plan)
    assert not has_control(plan)
    with pytest.raises(PlanRefusedError, match="servers on one machine, and these are on local and ssh:db1"):
        plan_floor(file, Wishes(), None)
