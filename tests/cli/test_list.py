"""`pgstrata list`: studies, bundles and archives below a folder, found again."""

import json
import os
import shutil

import pytest

from archives import Second, make_archive, session
from pgstrata.app import listing
from pgstrata.app.listing import list_below
from pgstrata.store.study import StudyStore
from program import pgstrata
from stored import ask_reads, noise_of, write_study

QUESTION = ask_reads("16", "17", blocks=10, question="Is 17 faster?")


def values_of(_plan, run):
    return {"tps": {"pg16": 1000.0, "pg17": 1100.0}[run.environment] * noise_of(run)}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A finished study, one with two blocks, a bundle, an archive, a damaged study."""
    place = tmp_path_factory.mktemp("list")
    for name, most in (("whole", 99), ("part", 2)):
        (place / name).mkdir()
        write_study(
            place / name, QUESTION, lambda plan, run, most=most: values_of(plan, run) if run.block <= most else None
        )
    (place / "bundles").mkdir()
    assert pgstrata(place, "bundle", "whole/study", "-o", "bundles/sent.tar.xz").returncode == 0
    make_archive(place / "prod", 120, lambda _: Second({session("77"): 1}))
    (place / "broken").mkdir()
    (place / "broken" / "plan.json").write_text("{")
    return place


@pytest.fixture
def place(made, tmp_path):
    shutil.copytree(made, tmp_path / "here")
    return tmp_path / "here"


def entries_of(place, **more):
    return {one.path: one for one in list_below(place, seconds=None, **more).entries}


def test_everything_below_a_folder_is_listed_with_its_state_and_answer(place):
    done = pgstrata(place, "list")
    assert (done.returncode, done.stderr) == (0, "")
    heads = {line.split("  ")[0]: line for line in done.stdout.splitlines() if line and not line.startswith(" ")}
    assert set(heads) == {"whole/study", "part/study", "bundles/sent.tar.xz", "prod", "broken"}
    assert "finished, 20 runs" in heads["whole/study"]
    assert "4 of up to 20 runs" in heads["part/study"]
    assert "bundle, 20 runs" in heads["bundles/sent.tar.xz"]
    assert "archive, 2 min of PostgreSQL 18.0" in heads["prod"]
    assert "damaged" in heads["broken"]
    said = " ".join(done.stdout.split())
    assert "Is 17 faster? 16 (baseline), 17 17: +10" in said
    assert "17: +10.0 % faster" in said
    assert "too early" in said
    assert "-> " in said
    assert max(map(len, done.stdout.splitlines())) <= 78


def test_the_newest_stands_first(place):
    entries = list_below(place, seconds=0).entries
    assert [one.created for one in entries] == sorted((one.created for one in entries), reverse=True)


def test_programs_get_the_same(place):
    document = json.loads(pgstrata(place, "list", "--json").stdout)
    assert (document["schema"], document["cut"], document["unread"]) == (1, False, [])
    found = {one["path"]: one for one in document["entries"]}
    whole = found["whole/study"]
    assert (whole["kind"], whole["state"], whole["runs"], whole["planned"]) == ("study", "finished", 20, 20)
    assert whole["environments"] == ["16", "17"]
    assert whole["headline"] == "17: +10.0 % faster"
    bundle = found["bundles/sent.tar.xz"]
    assert (bundle["name"], bundle["question"], bundle["environments"]) == ("study", "Is 17 faster?", ["16", "17"])
    assert bundle["created"] == whole["created"]
    assert found["prod"]["span"] == ["2026-11-26T16:20:00+00:00", "2026-11-26T16:22:00+00:00"]
    assert found["broken"]["problem"]
    assert found["broken"]["headline"] is None


def test_headlines_are_looked_for_only_as_long_as_there_is_time(place):
    moments = iter((0.0, 1.0, 1.0, 9.0, 9.0, 9.0))
    entries = list_below(place, seconds=5.0, clock=lambda: next(moments)).entries
    assert [one.decided for one in entries[2:]] == [False] * 3
    assert not any(one.decided for one in list_below(place, seconds=0).entries)
    (undecided,) = (line for line in pgstrata_lines(place) if "not decided yet" in line and "whole" in line)
    assert "pgstrata show whole/study" in undecided


def pgstrata_lines(place):
    original, listing.DECIDING_SECONDS = listing.DECIDING_SECONDS, 0.0
    try:
        return pgstrata(place, "list").stdout.splitlines()
    finally:
        listing.DECIDING_SECONDS = original


def test_a_study_that_is_written_names_the_process(place):
    with StudyStore.open(place / "part" / "study"):
        study = entries_of(place)[str(place / "part" / "study")]
        assert (study.state, study.process) == ("running", os.getpid())
        assert f"running by process {os.getpid()}, 4 of up to 20 runs" in pgstrata(place, "list").stdout
    assert entries_of(place)[str(place / "part" / "study")].state == "begun"


def test_what_a_killed_process_left_in_its_lock_is_not_taken_for_one_at_work(place):
    (place / "part" / "study" / "study.lock").write_text(json.dumps({"pid": os.getpid(), "host": "x", "since": "y"}))
    assert entries_of(place)[str(place / "part" / "study")].state == "begun"


def test_listing_takes_no_lock(place):
    with StudyStore.open(place / "whole" / "study"):
        entries_of(place)
    before = times_of(place)
    entries_of(place)
    assert times_of(place) == before


def times_of(place):
    """When files were changed, without those of SQLite's own that it makes for readers."""
    files = (path for path in place.rglob("*") if path.is_file() and not path.name.endswith(("-shm", "-wal")))
    return {path: path.stat().st_mtime_ns for path in files}


def test_links_are_not_followed_and_hidden_folders_are_left_out(place):
    (place / "link").symlink_to(place / "whole")
    shutil.copytree(place / "whole", place / ".hidden")
    assert len(entries_of(place)) == 5


def test_it_looks_no_deeper_than_it_says(place):
    deep = place / "a" / "b" / "c" / "d"
    deep.parent.mkdir(parents=True)
    shutil.copytree(place / "whole" / "study", deep)
    assert str(deep) in entries_of(place)
    deep.rename(place / "moved")
    (deep / "e").mkdir(parents=True)
    (place / "moved").rename(deep / "e" / "study")
    assert not any("/e/" in path for path in entries_of(place))


def test_too_many_are_cut_and_it_says_so(place, monkeypatch):
    monkeypatch.setattr(listing, "MOST_ENTRIES", 2)
    found = list_below(place, seconds=0)
    assert (len(found.entries), found.cut) == (2, True)
    assert "not all were looked at" in pgstrata(place, "list").stdout


def test_another_archive_of_files_is_no_bundle_and_a_damaged_bundle_says_so(place):
    (place / "other.tar.xz").write_bytes(b"\xfd7zXZ\0 but no more")
    bundle = place / "bundles" / "sent.tar.xz"
    assert pgstrata(place, "list").stdout.count(".tar.xz") == 1
    content = bytearray(bundle.read_bytes())
    bundle.write_bytes(content[: len(content) // 2])
    found = {path.removeprefix(f"{place}/"): one.state for path, one in entries_of(place).items()}
    assert "other.tar.xz" not in found


def test_a_merged_study_is_listed_by_its_parts_and_a_damaged_one_says_so(place):
    merged = place / "all"
    shutil.copytree(place / "whole" / "study", merged / "parts" / "a")
    (merged / "merged.json").write_text('{"format": 1, "factor": "day", "parts": ["a", "b"]}')
    lines = pgstrata(place, "list").stdout.splitlines()
    (head,) = (number for number, line in enumerate(lines) if line.startswith("all"))
    assert lines[head].startswith("all  merged study, 2 parts")
    assert lines[head + 1] == "  of a, b"
    assert not any(line.startswith("all/") for line in lines)
    (merged / "merged.json").write_text("[]")
    assert entries_of(place)[str(merged)].state == "damaged"


def test_a_study_without_its_catalogue_says_how_to_make_it(place):
    (place / "part" / "study" / "catalogue.sqlite").unlink()
    study = entries_of(place)[str(place / "part" / "study")]
    assert study.state == "damaged"
    assert "reparse" in study.remedy


def test_an_empty_folder_and_a_missing_one_say_so(tmp_path):
    done = pgstrata(tmp_path, "list")
    assert done.returncode == 0
    assert done.stdout.startswith("No study, bundle or archive in .")
    done = pgstrata(tmp_path, "list", "nowhere")
    assert done.returncode == 2
    assert "there is no such folder" in done.stderr


def test_a_question_cannot_control_the_terminal(place):
    study = place / "evil"
    study.mkdir()
    write_study(study, QUESTION.replace("Is 17 faster?", "a\\u001b[31mb\\nc"), lambda *_: None)
    said = pgstrata(place, "list").stdout
    assert "\x1b" not in said
    assert "  a?[31mb c" in said
