"""Studies that somebody else wrote or changed: a message that says where and what to do, and never a hang."""

import gzip
import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from pgstrata.errors import ParseError, StudyError
from pgstrata.model import sizes
from pgstrata.model.packed import unpack
from pgstrata.store.evidence import load_evidence, load_file
from pgstrata.store.load import load_study
from pgstrata.store.repository import StudyFolder
from pgstrata.store.study import StudyStore, load_plan_file, reparse_study

pytestmark = pytest.mark.timeout(60)
ENDLESS = "WITH RECURSIVE n(run) AS (SELECT 1 UNION ALL SELECT run FROM n) SELECT run, 'x' metric, 1.0 value FROM n"
LOOKS = ("head", "load", "fingerprints", "committed", "reparse")


@pytest.fixture
def study(tmp_path, bench):
    plan = bench.plan()
    with StudyStore.create(tmp_path / "s", plan, "0.1.0") as store:
        for run in plan.runs:
            bench.measure(store, run)
    return tmp_path / "s"


def look(bench, folder, name):
    study = StudyFolder(folder)
    return study.reparse(bench.derive) if name == "reparse" else getattr(study, name)()


def is_refused(bench, folder, name):
    try:
        look(bench, folder, name)
    except StudyError:
        return True
    return False


def pipe_or_device(path, kind):
    path.unlink(missing_ok=True)
    os.mkfifo(path) if kind == "pipe" else path.symlink_to("/dev/zero")


@pytest.mark.parametrize("kind", ["pipe", "device"])
@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("plan.json", "head"),
        ("fingerprints/host.json", "fingerprints"),
        ("evidence/{run}/run.json", "reparse"),
        ("evidence/{run}/pgbench.out", "reparse"),
        ("catalogue.sqlite", "load"),
        ("catalogue.sqlite", "reparse"),
        ("catalogue.sqlite-wal", "load"),
        ("study.lock", "reparse"),
    ],
)
def test_what_has_no_end_is_refused_wherever_it_stands(study, bench, kind, file, name):
    run = bench.plan().runs[0].identity
    pipe_or_device(study / file.format(run=run), kind)
    with pytest.raises(StudyError):
        look(bench, study, name)
    assert load_file(study, run, "missing") == b""


@pytest.mark.parametrize(
    "content",
    [
        b"[" * 100_000,
        b"{" + b'"a":[],' * 3_000_000,
        b"null",
        b"1",
        b'{"format": 2}',
        b'{"format": ' + b"9" * 5000 + b"}",
        b'"\xff"',
    ],
)
@pytest.mark.parametrize("file", ["plan.json", "fingerprints/host.json", "evidence/{run}/run.json"])
def test_json_that_is_nested_or_endless_or_of_something_else_is_damage(study, bench, content, file):
    path = study / file.format(run=bench.plan().runs[0].identity)
    path.unlink(missing_ok=True)
    path.write_bytes(content)
    failed = [name for name in LOOKS if is_refused(bench, study, name)]
    assert failed == sorted(
        {"plan": ["head", "load", "reparse"], "host": ["fingerprints", "reparse"]}.get(path.stem, ["reparse"])
    )


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        (("plan", "experiment", "threshold"), 0),
        (("plan", "experiment", "blocks"), -1),
        (("plan", "experiment", "cells", 0, "clients"), 10**30),
        (("plan", "experiment", "baseline"), "nobody"),
        (("plan", "experiment", "environments"), []),
        (("plan", "blocks", 0, "visits", 0, "stages", 0, "runs", 0, "environment"), "nobody"),
    ],
)
def test_a_plan_that_was_edited_is_refused(study, keys, value):
    path = study / "plan.json"
    data = json.loads(path.read_bytes())
    found = data
    for key in keys[:-1]:
        found = found[key]
    found[keys[-1]] = value
    path.write_text(json.dumps(data))
    with pytest.raises(StudyError, match=r"the plan of the study is damaged(?s:.*)restore it from a backup"):
        load_plan_file(study)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE series SET times = x'00000000'",
        "UPDATE series SET times = x'000000'",
        "UPDATE run SET reasons = '[[[1]]]'",
        "UPDATE run SET reasons = '" + "[" * 100_000 + "'",
        "UPDATE run SET dead_time = '7' WHERE id = 1",
        "UPDATE run SET status = 'so so' WHERE id = 1",
        "UPDATE run SET environment = 'nobody' WHERE id = 1",
        "UPDATE run SET identity = 'x/y' WHERE id = 1",
        "DROP TABLE measurement",
        f"DROP TABLE measurement; CREATE VIEW measurement AS {ENDLESS}",
    ],
)
def test_a_catalogue_that_was_edited_is_damaged_and_reparse_makes_it_anew(study, bench, statement):
    with closing(sqlite3.connect(study / "catalogue.sqlite")) as connection:
        connection.executescript(statement)
    with pytest.raises(StudyError, match=r"the catalogue is damaged(?s:.*)pgstrata reparse"):
        load_study(study, series=True)
    (study / "catalogue.sqlite").unlink()
    assert reparse_study(study, bench.derive) == 6


def test_a_shared_file_that_was_changed_is_refused_where_it_is_read_and_where_it_would_be_used_again(tmp_path, bench):
    plan = bench.plan()
    with StudyStore.create(tmp_path / "s", plan, "0.1.0") as store:
        bench.measure(store, plan.runs[0])
        (shared,) = (tmp_path / "s" / "shared").iterdir()
        content = shared.read_bytes()
        shared.chmod(0o644)
        shared.write_bytes(content + b"x")
        with pytest.raises(StudyError, match=shared.name):
            bench.measure(store, plan.runs[1])
    for load in (load_evidence, lambda *names: load_file(*names, "postgresql.conf")):
        with pytest.raises(StudyError, match=f"{shared.name}: this file was changed"):
            load(tmp_path / "s", plan.runs[0].identity)
    shared.write_bytes(content)
    assert load_evidence(tmp_path / "s", plan.runs[0].identity)


def test_evidence_with_second_names_elsewhere_is_no_shared_file(study, tmp_path, bench):
    run = bench.plan().runs[0].identity
    os.link(study / "evidence" / run / "pgbench.out", tmp_path / "backup")
    assert "pgbench.out" in load_evidence(study, run)


def test_a_damaged_header_says_of_which_run_and_what_to_do(study, bench):
    run = bench.plan().runs[2].identity
    (study / "evidence" / run / "run.json").write_text("{}")
    with pytest.raises(StudyError, match=f"evidence/{run}: run {run}: (?s:.*)restore this folder from a backup"):
        reparse_study(study, bench.derive)


def test_folders_below_folders_without_end_are_a_message(study, bench):
    deep = study / "evidence"
    for _ in range(1500):
        deep = deep / "a"
        deep.mkdir()
    try:
        # newer Pythons walk them without recursion
        assert is_refused(bench, study, "committed") == (sys.version_info < (3, 12))
    finally:
        subprocess.run(["rm", "-rf", study / "evidence"], check=True)


def test_drafts_that_a_kill_left_are_swept_and_old_names_of_them_are_no_obstacle(tmp_path, bench):
    folder = tmp_path / "s"
    folder.mkdir()
    (folder / ".plan.json.new").touch()
    with StudyStore.create(folder, bench.plan(), "0.1.0"):
        pass
    draft = folder / "fingerprints" / "environment" / f".pgstrata-{'0f' * 8}"
    draft.parent.mkdir(exist_ok=True)
    draft.touch()
    (folder / "shared").rmdir()
    with StudyStore.open(folder, derive=bench.derive):
        assert not draft.exists()


def test_a_study_is_the_same_by_every_way_to_its_folder(study, tmp_path):
    (tmp_path / "link").symlink_to(study)
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert StudyFolder(tmp_path / "link").identity == StudyFolder(study).identity
    assert StudyFolder(tmp_path / "loop").identity


def test_a_small_file_that_unpacks_to_a_large_one_is_damage(monkeypatch):
    monkeypatch.setattr(sizes, "UNPACKED", 1 << 20)
    assert len(unpack(gzip.compress(b"x" * (1 << 20)), "x.gz")) == 1 << 20
    with pytest.raises(ParseError, match=r"x\.gz: unpacked it is larger than 1 MiB"):
        unpack(gzip.compress(b"x" * (1 << 20) + b"x"), "x.gz")
    with pytest.raises(ParseError, match="cannot be unpacked"):
        unpack(b"\x1f\x8b\x08 nothing", "x.gz")
