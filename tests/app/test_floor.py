"""A/A plans, and floors between the state folder, plans and studies."""

import math
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from floor_studies import FILE, WORKLOADS, finish, fresh
from pgstrata.app.floor import choose_study, plan_floor
from pgstrata.app.host_floors import (
    CONDITIONS,
    floor_keys,
    harvest_floors,
    has_control,
    keep_floors,
    observe_here,
    with_floors,
)
from pgstrata.app.question import load_plan
from pgstrata.errors import HostNotFitError, UsageError
from pgstrata.experiment.compose import Wishes
from pgstrata.model.answer import ALL_CELLS
from pgstrata.model.experiment import ControlKind, Interleave
from pgstrata.model.floor import FloorRecord
from pgstrata.model.reasons import Reason
from pgstrata.model.runs import Validity
from pgstrata.model.server import Fingerprint
from pgstrata.store.repository import StudyFolder, StudyFolders
from pgstrata.store.study import StudyStore

STUDIES = StudyFolders()
# floors are those of a host in one state, and tests beside these would change it
pytestmark = pytest.mark.company


@pytest.fixture
def place(tmp_path, monkeypatch):
    for name in ("CACHE", "STATE", "DATA"):
        monkeypatch.setenv(f"PGSTRATA_{name}", str(tmp_path / name.lower()))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def file(place):
    path = place / "asked.toml"
    path.write_text(FILE)
    return path


# --------------------------------------------------------------------------------------------------- plans


def test_the_baseline_of_a_file_stands_beside_itself_in_the_designs_of_the_experiment(file):
    asked, twice = load_plan(file), plan_floor(file, Wishes(), None)
    base, control = twice.experiment.environments
    assert base == asked.experiment.environment("pg18")
    assert control == replace(base, name="pg18-control", control=ControlKind.SAME)
    assert (twice.designs, twice.experiment.cells) == (asked.designs, asked.experiment.cells)
    assert {design.interleave for design in twice.designs} == {Interleave.SLICES, Interleave.RUNS}
    assert (len(twice.blocks), twice.experiment.budget) == (13, None)
    assert not twice.notes
    assert [key.digest for key in floor_keys(twice, WORKLOADS)] == [key.digest for key in floor_keys(asked, WORKLOADS)]


def test_environments_that_cannot_be_up_together_are_measured_run_by_run_in_the_floor_too(place):
    text = FILE.replace("[factors]", "interleave = 'runs'\n[factors]")
    (place / "runs.toml").write_text(text)
    twice = plan_floor(place / "runs.toml", Wishes(), None)
    assert {design.interleave for design in twice.designs} == {Interleave.RUNS}


def test_cells_that_are_named_make_the_same_floor_as_those_of_a_file(place):
    named = plan_floor(None, Wishes(workloads=("select-only",), scale=1, clients=2, run="1s"), None, "18")
    (place / "plain.toml").write_text(
        'blocks = 7\n[factors]\nserver = ["18", "16"]\n[[cells]]\nworkload = "select-only"\nscale = 1\nclients = 2\nrun = "1s"\n'
    )
    (key,) = floor_keys(named, WORKLOADS)
    assert key.digest == floor_keys(load_plan(place / "plain.toml"), WORKLOADS)[0].digest
    assert [one.control for one in named.experiment.environments] == [None, ControlKind.SAME]


def test_without_any_wish_reading_and_writing_are_measured(place):
    made = plan_floor(None, Wishes(), 12)
    assert [cell.workload for cell in made.experiment.cells] == ["select-only", "simple-update"]
    assert len(made.blocks) == 12


@pytest.mark.parametrize("blocks", [0, 11, 61])
def test_too_few_or_too_many_blocks_are_refused(place, blocks):
    with pytest.raises(UsageError, match="cannot be made") as caught:
        plan_floor(None, Wishes(), blocks)
    assert "12 to 60" in caught.value.remedy


def test_a_file_and_cells_together_are_refused(file):
    with pytest.raises(UsageError, match="says what is measured"):
        plan_floor(file, Wishes(scale=2), None)


def test_a_password_stays_out_of_the_file_and_in_the_plan(place):
    made = plan_floor(None, Wishes(workloads=("select-only",)), None, "dsn:host=h,g password=canary-81")
    assert "canary-81" not in made.experiment.text
    conninfo = made.experiment.environments[1].server.conninfo
    assert conninfo is not None
    assert "canary-81" in conninfo.reveal()


# ------------------------------------------------------------------------------------------------- studies


@pytest.fixture
def measured(file):
    """A function that makes a study of the A/A plan, run by run; D is ±1 % in turn."""

    def make(name="study", blocks=12, conditions=None, **more):
        file.write_text(FILE.replace("[factors]", "interleave = 'runs'\n[factors]"))
        plan = plan_floor(file, Wishes(), max(12, blocks))
        with StudyStore.create(file.parent / name, plan, "0") as store:
            store.keep_fingerprint(CONDITIONS, conditions or observe_here())
            for run in plan.runs:
                if run.block <= blocks:
                    tps = 100 * math.exp(0.01 * (-1) ** run.block) if "control" in run.environment else 100
                    store.commit(finish(store, run, tps, **more))
        return file.parent / name, plan

    return make


def test_a_finished_study_gives_the_floors_of_its_cells_and_of_all_together(measured):
    study, plan = measured()
    harvest = harvest_floors(StudyFolder(study), WORKLOADS)
    assert harvest.lack == ""
    assert {record.key.cell for record in harvest.records} == {"select-only-s1-c2", "simple-update-s1-c2", ALL_CELLS}
    assert all(record.differences == pytest.approx([-0.01, 0.01] * 6) for record in harvest.records)
    assert {record.measured for record in harvest.records} == {"2026-01-01T00:01:00+00:00"}
    assert {record.source for record in harvest.records} == {"study"}


def test_fewer_than_twelve_differences_are_no_floor(measured):
    study, _ = measured(blocks=11)
    harvest = harvest_floors(StudyFolder(study), WORKLOADS)
    assert harvest.records == ()
    assert "needs 12 differences, and there are 11 in select-only-s1-c2, 11 in simple-update-s1-c2" in harvest.lack


def test_a_host_that_changed_meanwhile_gives_no_floor(measured):
    study, _ = measured(conditions=Fingerprint(facts={"kernel": "another"}))
    assert "host changed" in harvest_floors(StudyFolder(study), WORKLOADS).lack
    study, _ = measured("two", reasons=(Reason(code="fingerprint_changed", names=("x",)),), validity=Validity.SUSPECT)
    assert "host changed" in harvest_floors(StudyFolder(study), WORKLOADS).lack


def test_only_long_studies_with_a_control_have_something_to_give(measured, file):
    _, plan = measured()
    assert has_control(plan)
    assert not has_control(replace(plan, blocks=plan.blocks[:11]))
    alone = replace(plan.experiment, environments=plan.experiment.environments[:1])
    assert not has_control(replace(plan, experiment=alone))


def test_what_was_kept_is_found_by_the_plan_of_the_file(measured, file):
    study, _ = measured()
    keep_floors(fresh(harvest_floors(StudyFolder(study), WORKLOADS).records))
    plan = load_plan(file)
    assert set(plan.floors) == {"select-only-s1-c2", "simple-update-s1-c2", ALL_CELLS}
    assert all(floor.valid for floor in plan.floors.values())
    assert plan.floors[ALL_CELLS].s0 == pytest.approx(0.014826)
    assert plan.identity == load_plan(file).identity


def test_an_old_floor_is_found_with_its_doubt(measured, file):
    study, _ = measured()
    keep_floors(harvest_floors(StudyFolder(study), WORKLOADS).records)
    floors = load_plan(file).floors
    assert len(floors) == 3
    assert all((floor.doubt.code, floor.doubt.said) == ("floor_old", "2026-01-01") for floor in floors.values())


def test_the_identity_of_a_plan_does_not_follow_its_floors(measured, file):
    study, _ = measured()
    before = load_plan(file)
    keep_floors(fresh(harvest_floors(StudyFolder(study), WORKLOADS).records))
    after = load_plan(file)
    assert before.floors == {}
    assert after.identity == before.identity
    assert replace(after, floors={}) == before


def test_another_metric_has_another_floor(measured, file):
    study, _ = measured()
    keep_floors(fresh(harvest_floors(StudyFolder(study), WORKLOADS).records))
    file.write_text(file.read_text().replace("blocks = 4", 'blocks = 4\nmetric = "latency_p99"'))
    assert load_plan(file).floors == {}


def test_damage_in_the_state_folder_becomes_a_note_and_nothing_else(measured, file):
    study, _ = measured()
    folder = keep_floors(fresh(harvest_floors(StudyFolder(study), WORKLOADS).records))
    for path in folder.iterdir():
        path.write_text("{")
    plan = load_plan(file)
    assert plan.floors == {}
    assert sum("damaged" in note for note in plan.experiment.notes) == 3


def test_a_state_folder_that_cannot_be_written_is_an_error_with_its_place(measured, place):
    study, _ = measured()
    (place / "state").mkdir()
    (place / "state" / "floors").write_text("")
    with pytest.raises(HostNotFitError, match="cannot be written") as caught:
        keep_floors(harvest_floors(StudyFolder(study), WORKLOADS).records)
    assert "state/floors" in caught.value.where


def test_a_plan_of_a_host_without_floors_is_left_as_it_is(file):
    plan = load_plan(file)
    assert with_floors(plan, WORKLOADS) == plan


# ------------------------------------------------------------------------------------------------- refresh

LONG = FILE.replace('run = "1s"', 'run = "600s"').replace("blocks = 4", "blocks = 24").replace('budget = "30s"', "")
LONG = LONG.replace('controls = ["same"]', "")


@pytest.fixture
def question(place):
    """A long experiment without a control."""
    path = place / "asked.toml"
    path.write_text(LONG)
    return path


def floors_of(plan, days, count=12):
    """Floors of the plan's cells, as if measured so many days ago."""
    measured = (datetime.now(UTC) - timedelta(days=days)).isoformat()
    return tuple(
        FloorRecord(
            key=key,
            host=observe_here(),
            measured=measured,
            differences=(0.01, -0.02) * (count // 2),
            study="s",
            source="s",
            version="0",
        )
        for key in floor_keys(plan, WORKLOADS)
    )


# ------------------------------------------------------------------------------------------------- folders


def test_an_interrupted_measurement_goes_on_and_a_complete_one_is_followed_by_a_new(file):
    plan = plan_floor(file, Wishes(), None)
    first = choose_study(STUDIES, plan, file)
    assert str(first) == f"studies/floor-asked-{plan.identity[:8]}"
    with StudyStore.create(first.path, plan, "0") as store:
        assert choose_study(STUDIES, plan, file) == first
        store.commit(finish(store, plan.runs[0], 100))
        assert choose_study(STUDIES, plan, file) == first
        store.commit(*(finish(store, run, 100) for run in plan.runs[1:]))
    assert choose_study(STUDIES, plan, file).path.name == f"{first.path.name}-2"


def test_an_interrupted_measurement_of_last_week_is_not_taken_up(file):
    plan = plan_floor(file, Wishes(), None)
    first = choose_study(STUDIES, plan, file)
    StudyStore.create(first.path, plan, "0").close()
    path = first.path / "plan.json"
    created = datetime.now(UTC).astimezone().isoformat(timespec="seconds")[:4]
    path.write_text(path.read_text().replace(f'"created": "{created}', '"created": "2001'))
    assert choose_study(STUDIES, plan, file).path.name == f"{first.path.name}-2"


def test_a_damaged_study_in_the_way_is_left_alone(file):
    plan = plan_floor(file, Wishes(), None)
    first = choose_study(STUDIES, plan, file)
    first.path.mkdir(parents=True)
    (first.path / "plan.json").write_text("{")
    assert choose_study(STUDIES, plan, file).path.name == f"{first.path.name}-2"


def test_a_record_says_of_which_study_it_is(measured):
    study, _ = measured()
    one, *_ = harvest_floors(StudyFolder(study), WORKLOADS).records
    again = harvest_floors(StudyFolder(measured("other")[0]), WORKLOADS).records[0]
    assert isinstance(one, FloorRecord)
    assert one.study != again.study


def test_a_plan_of_a_host_without_floors_is_made_and_shown_without_numpy(file):
    code = (
        "import sys; from pathlib import Path; from pgstrata.app.question import load_plan; "
        "from pgstrata.report.planning.plan import plan_json, render_plan; "
        "plan = load_plan(Path('asked.toml')); render_plan(plan); plan_json(plan); "
        "sys.exit('numpy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
