"""Floors in the state folder: kept whole, found by their key, and never a reason to fail because of a bad file."""

import json
import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from pgstrata.errors import HostNotFitError
from pgstrata.model.codec import decode, encode
from pgstrata.model.floor import Floor, FloorKey, FloorRecord
from pgstrata.model.server import Fingerprint
from pgstrata.store.floors import FloorStore, FoundFloors
from pgstrata.store.study import StudyStore

KEY = FloorKey(cell="c", metric="tps", design="runs of 10 s", conditions={"scale": "10"})
RECORD = FloorRecord(
    key=KEY,
    host=Fingerprint(facts={"kernel": "6.1"}),
    measured="2026-03-01T12:00:00+01:00",
    differences=(0.01, -0.02, 0.0),
    study="one",
    source="one",
    version="0",
)
LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


@pytest.fixture
def floors(tmp_path):
    return FloorStore(str(tmp_path))


@pytest.fixture
def kept(floors):
    return floors.keep(RECORD, oldest=LONG_AGO)


def test_what_was_kept_is_found(floors, kept):
    assert floors.load(KEY).records == (RECORD,)
    assert floors.load(KEY).notes == ()
    assert [path.name for path in floors.folder.iterdir()] == [kept.name]


def test_where_nothing_was_kept_nothing_is_found_and_nothing_made(floors):
    assert floors.load(KEY) == FoundFloors(records=(), notes=())
    assert not floors.folder.exists()


@pytest.mark.parametrize(
    "other",
    [replace(KEY, metric="latency_p99"), replace(KEY, design="runs of 5 s"), replace(KEY, conditions={"scale": "11"})],
)
def test_a_floor_of_another_key_is_not_found(floors, kept, other):
    assert floors.load(other).records == ()


def test_the_name_of_a_cell_in_its_plan_does_not_matter(floors, kept):
    (found,) = floors.load(replace(KEY, cell="c-60s")).records
    assert found.key.cell == "c-60s"


def test_a_study_that_goes_on_replaces_its_own_floor(floors, kept):
    longer = replace(RECORD, differences=(0.1, 0.2))
    floors.keep(longer, oldest=LONG_AGO)
    assert floors.load(KEY).records == (longer,)


def test_studies_and_hosts_are_kept_side_by_side(floors, kept):
    floors.keep(replace(RECORD, study="two"), oldest=LONG_AGO)
    floors.keep(replace(RECORD, host=Fingerprint(facts={"kernel": "6.2"})), oldest=LONG_AGO)
    assert len(floors.load(KEY).records) == 3


def test_what_has_expired_is_forgotten_when_a_newer_one_of_the_same_host_comes(floors, kept):
    elsewhere = replace(RECORD, host=Fingerprint(facts={"kernel": "6.2"}))
    floors.keep(elsewhere, oldest=LONG_AGO)
    newer = replace(RECORD, study="two", measured="2026-05-01T12:00:00+01:00")
    floors.keep(newer, oldest=datetime(2026, 4, 1, tzinfo=UTC))
    assert {record.study for record in floors.load(KEY).records if record.host == RECORD.host} == {"two"}
    assert elsewhere in floors.load(KEY).records


def changed(path, **fields):
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


DAMAGE = {
    "empty": lambda path: path.write_bytes(b""),
    "half": lambda path: path.write_bytes(path.read_bytes()[:100]),
    "no text": lambda path: path.write_bytes(b"\xff\xfe\x00"),
    "no object": lambda path: path.write_text("[1]"),
    "deep": lambda path: path.write_text("[" * 100_000),
    "another format": lambda path: changed(path, format=1),
    "no number": lambda path: changed(path, differences=[0.1, "0.2"]),
    "not a number": lambda path: path.write_text(path.read_text().replace("0.01", "NaN")),
    "beyond all numbers": lambda path: path.write_text(path.read_text().replace("0.01", "1" + "0" * 400)),
    "no differences": lambda path: changed(path, differences=[]),
    "a truth": lambda path: changed(path, differences=[True]),
    "no time": lambda path: changed(path, measured="yesterday"),
    "no offset": lambda path: changed(path, measured="2026-03-01T12:00:00"),
    "no host": lambda path: changed(path, host={"kernel": 6}),
    "keys missing": lambda path: path.write_text('{"format": 2}'),
    "too large": lambda path: path.write_bytes(b" " * (1024 * 1024 + 1)),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_is_left_out_with_a_note(floors, kept, damage):
    floors.keep(replace(RECORD, study="two"), oldest=LONG_AGO)
    DAMAGE[damage](kept)
    found = floors.load(KEY)
    assert [record.study for record in found.records] == ["two"]
    (note,) = found.notes
    assert "damaged" in note
    assert str(kept) in note
    assert "\n" not in note


@pytest.mark.timeout(10)
def test_a_pipe_in_the_place_of_a_floor_keeps_nobody_waiting(floors, kept):
    kept.unlink()
    os.mkfifo(kept)
    assert "not an ordinary file" in floors.load(KEY).notes[0]


def test_a_link_that_leads_nowhere_is_left_out_with_a_note(floors, kept):
    kept.unlink()
    kept.symlink_to("nowhere")
    assert "cannot be read" in floors.load(KEY).notes[0]


def test_damage_is_no_reason_not_to_keep_another_one(floors, kept):
    kept.write_bytes(b"{")
    floors.keep(replace(RECORD, study="two"), oldest=datetime.now(UTC))
    assert len(floors.load(KEY).records) == 1


def test_files_of_others_and_half_written_ones_are_not_looked_at(floors, kept):
    (floors.folder / "README").write_text("x")
    (floors.folder / f".{kept.name}.new").write_text("{")
    assert floors.load(KEY).notes == ()


def test_a_file_in_the_place_of_the_folder_is_a_note_when_reading_and_an_error_when_writing(floors):
    floors.folder.write_text("x")
    assert "cannot be read" in floors.load(KEY).notes[0]
    with pytest.raises(HostNotFitError, match="cannot be written") as caught:
        floors.keep(RECORD, oldest=LONG_AGO)
    assert "PGSTRATA_STATE" in caught.value.remedy


def test_the_floors_that_a_study_was_made_with_stay(tmp_path, bench):
    plan = bench.plan()
    floor = Floor(
        s0=0.01,
        differences=13,
        cell=plan.experiment.cells[0].identity,
        metric="tps",
        design="runs of 60 s",
        host="h",
        measured=(datetime.now(UTC) - timedelta(days=1)).isoformat(),
        source="study x",
    )
    floors = {floor.cell: floor}
    StudyStore.create(tmp_path / "known", replace(plan, floors=floors), "0").close()
    with StudyStore.open(tmp_path / "known", plan) as store:
        assert store.plan.floors == floors
    StudyStore.create(tmp_path / "unknown", plan, "0").close()
    with StudyStore.open(tmp_path / "unknown", replace(plan, floors=floors)) as store:
        assert store.plan.floors == {}


def test_a_file_with_the_components_that_former_versions_kept_is_read(floors, kept):
    content = {**json.loads(kept.read_text()), "slices": None, "runs": {"overhead": 9.5}}
    kept.write_text(json.dumps(content))
    assert floors.load(KEY) == FoundFloors(records=(RECORD,), notes=())


def test_a_floor_in_a_plan_of_a_former_version_is_read_without_its_components():
    floor = Floor(s0=0.01, differences=12, cell="c", metric="tps", design="", host="", measured="")
    assert decode(Floor, {**encode(floor), "slices": {"dead_seconds": 4.4}, "runs": None}) == floor


def test_drafts_that_a_kill_left_are_swept_and_fresh_ones_are_left_to_their_writers(floors, kept):
    old, fresh = (floors.folder / f".pgstrata-{digit * 16}" for digit in "01")
    for path in (old, fresh):
        path.touch()
    os.utime(old, (0, 0))
    floors.keep(RECORD, oldest=LONG_AGO)
    assert (old.exists(), fresh.exists()) == (False, True)


@pytest.mark.parametrize("content", [b"[" * 100_000, b'{"format": ' + b"[]," * 3_000_000])
def test_a_nested_or_endless_file_is_left_out_with_a_note(floors, kept, content):
    kept.write_bytes(content[: 1 << 20])
    assert floors.load(KEY).records == ()
    assert "left out" in floors.load(KEY).notes[0]
