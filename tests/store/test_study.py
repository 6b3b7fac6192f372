from __future__ import annotations

import dataclasses
import os
import sqlite3
import subprocess
import sys
import textwrap
from contextlib import closing

import pytest

from pgstrata.errors import ExitCode, StudyError
from pgstrata.model.reasons import Reason
from pgstrata.model.runs import Validity
from pgstrata.model.server import Fingerprint
from pgstrata.plan.identity import identify
from pgstrata.ports.store import FinishedRun
from pgstrata.store import catalogue
from pgstrata.store.database import transaction
from pgstrata.store.load import load_study
from pgstrata.store.study import StudyStore, load_plan_file, reparse_study
from timing import least_seconds


def test_what_is_committed_can_be_loaded(tmp_path, bench):
    plan = bench.plan()
    with StudyStore.create(tmp_path / "s", plan, "0.1.0") as store:
        records = [bench.measure(store, run, 1000.0 + n) for n, run in enumerate(plan.runs)]
        store.keep_fingerprint("host", bench.host)
        store.keep_fingerprint("environment/pg16", Fingerprint(facts={"version": "16.4"}))
    study = load_study(tmp_path / "s", series=True)
    assert list(study.runs) == records
    assert study.host == bench.host
    assert study.environments == {"pg16": Fingerprint(facts={"version": "16.4"})}
    assert (study.name, study.version, study.plan.identity) == ("s", "0.1.0", plan.identity)


def test_reasons_in_a_catalogue_of_a_former_version_are_read_in_its_words(tmp_path, bench):
    plan = bench.plan()
    with StudyStore.create(tmp_path / "s", plan, "0.1.0") as store:
        bench.measure(store, plan.runs[0])
    with closing(sqlite3.connect(tmp_path / "s" / "catalogue.sqlite")) as connection, connection:
        connection.execute("UPDATE run SET reasons = ?", ('[["steal", "the hypervisor kept 0.20 of 2 CPUs"]]',))
    (run,) = load_study(tmp_path / "s").runs
    assert run.reasons == (Reason(code="steal", text="the hypervisor kept 0.20 of 2 CPUs"),)


def test_a_measurement_that_is_no_number_is_none(tmp_path, bench):
    plan = bench.plan()
    with StudyStore.create(tmp_path / "s", plan, "0.1.0") as store:
        bench.measure(store, plan.runs[0])
    with closing(sqlite3.connect(tmp_path / "s" / "catalogue.sqlite")) as connection, connection:
        connection.execute("UPDATE measurement SET value = NULL WHERE metric = 'tps'")
    (run,) = load_study(tmp_path / "s").runs
    assert run.value("tps") is None


def test_only_the_metrics_that_are_asked_for_are_loaded(tmp_path, bench):
    plan = bench.plan()
    with StudyStore.create(tmp_path / "s", plan, "0.1.0") as store:
        bench.measure(store, plan.runs[0])
    (run,) = load_study(tmp_path / "s", metrics=("tps",)).runs
    assert run.value("tps") == 1000.0
    assert run.value("server_cpu_per_tx") is None
    assert run.series == ()


def test_evidence_is_kept_verbatim_and_shared_files_are_stored_once(tmp_path, bench):
    plan = bench.plan()
    folder = tmp_path / "s"
    with StudyStore.create(folder, plan, "0.1.0") as store:
        for run in plan.runs[:2]:
            bench.measure(store, run, 7.5)
        files = store.load_evidence(plan.runs[0].identity)
    assert files["pgbench.out"] == b"7.5"
    assert files["postgresql.conf"] == b"fsync = on\n" * 100
    assert sorted(files) == ["pgbench.out", "postgresql.conf", "run.json"]
    assert len(list((folder / "shared").iterdir())) == 1
    assert len({(folder / "evidence" / run.identity / "postgresql.conf").stat().st_ino for run in plan.runs[:2]}) == 1


def test_shared_files_are_copied_where_links_are_impossible(tmp_path, bench, monkeypatch):
    def refuse(source, target):
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refuse)
    plan = bench.plan()
    with StudyStore.create(tmp_path / "s", plan, "0.1.0") as store:
        bench.measure(store, plan.runs[0])
        assert store.load_evidence(plan.runs[0].identity)["postgresql.conf"] == b"fsync = on\n" * 100


@pytest.mark.parametrize("name", ["", "/etc/passwd", "../x", "a/../../x", ".hidden", "a//b", "a\0b", "run.json"])
def test_names_that_leave_the_folder_are_refused(tmp_path, bench, name):
    plan = bench.plan()
    with StudyStore.create(tmp_path / "s", plan, "0.1.0") as store:
        evidence = store.begin(plan.runs[0].identity)
        with pytest.raises(ValueError):
            evidence.keep(name, b"")


def test_a_run_is_invisible_until_it_is_committed(tmp_path, bench):
    plan = bench.plan()
    folder = tmp_path / "s"
    with StudyStore.create(folder, plan, "0.1.0") as store:
        store.begin(plan.runs[0].identity).keep("pgbench.out", b"1")
        assert store.committed() == frozenset()
        assert load_study(folder).runs == ()
    with StudyStore.open(folder, plan) as store:
        assert store.committed() == frozenset()
    assert not (folder / "evidence" / ".partial").exists()


def test_beginning_again_forgets_an_interrupted_attempt(tmp_path, bench):
    plan = bench.plan()
    with StudyStore.create(tmp_path / "s", plan, "0.1.0") as store:
        store.begin(plan.runs[0].identity).keep("leftover", b"1")
        bench.measure(store, plan.runs[0])
        assert "leftover" not in store.load_evidence(plan.runs[0].identity)


def test_a_run_is_committed_only_once(tmp_path, bench):
    plan = bench.plan()
    with StudyStore.create(tmp_path / "s", plan, "0.1.0") as store:
        bench.measure(store, plan.runs[0])
        with pytest.raises(StudyError, match="already"):
            store.begin(plan.runs[0].identity)


def test_a_run_killed_between_evidence_and_catalogue_is_derived_at_the_next_open(tmp_path, bench):
    plan = bench.plan()
    folder = tmp_path / "s"
    with StudyStore.create(folder, plan, "0.1.0") as store:
        bench.measure(store, plan.runs[0], 11.0)
        evidence = store.begin(plan.runs[1].identity)
        evidence.keep("pgbench.out", b"12")
        evidence.publish(bench.header(plan.runs[1], plan))
    assert len(load_study(folder).runs) == 1
    with pytest.raises(StudyError, match="not in the catalogue"):
        StudyStore.open(folder, plan)
    with StudyStore.open(folder, plan, derive=bench.derive) as store:
        assert store.committed() == {plan.runs[0].identity, plan.runs[1].identity}
    assert [run.value("tps") for run in load_study(folder).runs] == [11.0, 12.0]


@pytest.mark.parametrize("stop", ["write_new", "sync_tree", "sync_file"])
def test_a_kill_at_any_step_of_a_commit_loses_at_most_that_run(tmp_path, bench, monkeypatch, stop):
    class KilledError(BaseException):
        pass

    def kill(*arguments, **options):
        raise KilledError

    plan = bench.plan()
    folder = tmp_path / "s"
    store = StudyStore.create(folder, plan, "0.1.0")
    bench.measure(store, plan.runs[0], 11.0)
    evidence = store.begin(plan.runs[1].identity)
    evidence.keep("pgbench.out", b"12")
    header = bench.header(plan.runs[1], plan)
    with monkeypatch.context() as patch:
        patch.setattr(f"pgstrata.system.files.{stop}", kill)
        with pytest.raises(KilledError):
            store.commit(FinishedRun(evidence=evidence, header=header, record=bench.record(header, 12.0)))
    store.close()
    with StudyStore.open(folder, plan, derive=bench.derive) as store:
        for run in plan.runs:
            if run.identity not in store.committed():
                bench.measure(store, run)
    assert len(load_study(folder).runs) == len(plan.runs)


def test_a_second_pgstrata_is_told_who_holds_the_study(tmp_path, bench):
    plan = bench.plan()
    folder = tmp_path / "s"
    with StudyStore.create(folder, plan, "0.1.0"):
        script = f"""
            from pathlib import Path
            from pgstrata.errors import PgstrataError
            from pgstrata.store.study import StudyStore
            try:
                StudyStore.open(Path({str(folder)!r}))
            except PgstrataError as error:
                print(int(error.exit_code), error)
        """
        found = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True
        )
    assert found.stdout.startswith(f"{int(ExitCode.HOST_NOT_FIT)} ")
    assert f"process {os.getpid()} on " in found.stdout
    StudyStore.open(folder).close()


def test_another_plan_is_refused_with_what_differs(tmp_path, bench):
    plan = bench.plan()
    StudyStore.create(tmp_path / "s", plan, "0.1.0").close()
    text = plan.experiment.text.replace("seed = 42", "seed = 43")
    other = dataclasses.replace(
        plan, identity="other", experiment=dataclasses.replace(plan.experiment, text=text, seed=43)
    )
    with pytest.raises(StudyError) as caught:
        StudyStore.open(tmp_path / "s", other)
    assert "-seed = 42" in caught.value.details
    assert "+seed = 43" in caught.value.details
    assert caught.value.remedy


def test_another_plan_of_the_same_text_is_refused_with_what_was_chosen_differently(tmp_path, bench):
    plan = bench.plan()
    StudyStore.create(tmp_path / "s", plan, "0.1.0").close()
    other = dataclasses.replace(plan, identity="other", experiment=dataclasses.replace(plan.experiment, seed=43))
    with pytest.raises(StudyError) as caught:
        StudyStore.open(tmp_path / "s", other)
    assert caught.value.details == ("seed: 42 in the study, 43 now",)


def test_a_study_is_continued_with_more_blocks_and_keeps_what_it_has(tmp_path, bench):
    short, longer = bench.plan(2), bench.plan(5)
    assert short.identity == longer.identity
    with StudyStore.create(tmp_path / "s", short, "0.1.0") as store:
        bench.measure(store, short.runs[0])
    with StudyStore.open(tmp_path / "s", longer) as store:
        assert store.committed() == {short.runs[0].identity}
        bench.measure(store, longer.runs[-1])
    assert [block.number for block in load_plan_file(tmp_path / "s").plan.blocks] == [1, 2, 3, 4, 5]
    # fewer blocks stop earlier and take nothing away
    with StudyStore.open(tmp_path / "s", short) as store:
        assert store.plan.blocks == short.blocks
        assert len(store.committed()) == 2
    assert len(load_plan_file(tmp_path / "s").plan.blocks) == 5


def test_a_study_of_a_version_with_another_horizon_is_shown_and_not_continued(tmp_path, bench):
    plan = bench.plan()
    former = dataclasses.replace(plan, horizon=24, identity=identify(plan.experiment, (), 24))
    assert former.identity != plan.identity
    StudyStore.create(tmp_path / "s", former, "0.1.0").close()
    assert load_plan_file(tmp_path / "s").plan.horizon == 24
    with pytest.raises(StudyError, match="comparisons end at 24 blocks"):
        StudyStore.open(tmp_path / "s", plan)


def test_an_opened_study_has_the_secrets_of_the_plan_given(tmp_path, bench):
    plan = bench.plan()
    StudyStore.create(tmp_path / "s", plan, "0.1.0").close()
    with StudyStore.open(tmp_path / "s", plan) as store:
        assert store.plan.experiment.environments[0].server.conninfo is not None
    with StudyStore.open(tmp_path / "s") as store:
        assert store.plan.experiment.environments[0].server.conninfo is None


def test_no_secret_ever_reaches_the_folder_of_a_study(tmp_path, bench):
    plan = bench.plan()
    with StudyStore.create(tmp_path / "s", plan, "0.1.0") as store:
        bench.measure(store, plan.runs[0])
        store.keep_fingerprint("host", bench.host)
    files = [path for path in (tmp_path / "s").rglob("*") if path.is_file()]
    assert len(files) > 6
    assert not [path for path in files if bench.canary.encode() in path.read_bytes()]


def test_a_study_is_not_created_over_something_else(tmp_path, bench):
    (tmp_path / "holiday.jpg").write_bytes(b"")
    with pytest.raises(StudyError, match=r"holiday\.jpg"):
        StudyStore.create(tmp_path, bench.plan(), "0.1.0")


def test_a_study_is_not_created_over_a_study(tmp_path, bench):
    StudyStore.create(tmp_path / "s", bench.plan(), "0.1.0").close()
    with pytest.raises(StudyError, match="already"):
        StudyStore.create(tmp_path / "s", bench.plan(), "0.1.0")


def test_an_interrupted_creation_is_finished_by_the_next(tmp_path, bench):
    StudyStore.create(tmp_path / "s", bench.plan(), "0.1.0").close()
    (tmp_path / "s" / "plan.json").unlink()
    with StudyStore.open_or_create(tmp_path / "s", bench.plan(), "0.1.0") as store:
        assert store.committed() == frozenset()


def test_a_folder_without_a_study_says_so(tmp_path):
    with pytest.raises(StudyError, match="no study here"):
        StudyStore.open(tmp_path)
    with pytest.raises(StudyError, match="no study here"):
        load_study(tmp_path)


def test_reparse_makes_the_same_catalogue_from_evidence_alone(tmp_path, bench):
    plan = bench.plan()
    folder = tmp_path / "s"
    with StudyStore.create(folder, plan, "0.1.0") as store:
        for run in plan.runs:
            bench.measure(store, run)
        store.keep_fingerprint("host", bench.host)
    before = load_study(folder, series=True)
    for path in folder.glob("catalogue.sqlite*"):
        path.unlink()
    with pytest.raises(StudyError, match="reparse"):
        load_study(folder)
    assert reparse_study(folder, bench.derive) == len(plan.runs)
    after = load_study(folder, series=True)
    assert sorted(after.runs, key=lambda run: run.identity) == sorted(before.runs, key=lambda run: run.identity)
    assert after.host == before.host


def _judged(record):
    """As a run with a ceiling of 1000 is judged."""
    tps = record.value("tps")
    code, validity = ("above_ceiling", Validity.VALID) if tps > 1000 else ("near_ceiling", Validity.SUSPECT)
    return dataclasses.replace(record, reasons=(Reason(code=code, value=tps, of=1000.0),), validity=validity)


def test_a_ceiling_that_a_later_run_exceeds_marks_no_run_before_nor_after_a_reparse(tmp_path, bench):
    plan, folder = bench.plan(), tmp_path / "s"
    with StudyStore.create(folder, plan, "0.1.0") as store:
        for run, tps in zip(plan.runs, (900.0, 1570.0, 950.0), strict=False):
            header, evidence = bench.header(run, plan), store.begin(run.identity)
            evidence.keep("pgbench.out", str(tps).encode())
            record = _judged(bench.record(header, tps))
            store.commit(FinishedRun(evidence=evidence, header=header, record=record))
    before = load_study(folder).runs
    assert [(run.validity, len(run.reasons)) for run in before] == [(Validity.VALID, n) for n in (0, 1, 0)]
    reparse_study(folder, lambda files: _judged(bench.derive(files)))
    assert sorted(load_study(folder).runs, key=lambda run: run.block) == sorted(before, key=lambda run: run.block)


def test_reparse_replaces_a_damaged_catalogue(tmp_path, bench):
    plan = bench.plan()
    folder = tmp_path / "s"
    with StudyStore.create(folder, plan, "0.1.0") as store:
        bench.measure(store, plan.runs[0])
    (folder / "catalogue.sqlite").write_bytes(b"not a database at all" * 500)
    with pytest.raises(StudyError, match="reparse"):
        load_study(folder)
    with pytest.raises(StudyError, match="reparse"):
        StudyStore.open(folder)
    assert reparse_study(folder, bench.derive) == 1
    assert len(load_study(folder).runs) == 1


def test_reparse_that_fails_leaves_the_old_catalogue(tmp_path, bench):
    plan = bench.plan()
    folder = tmp_path / "s"
    with StudyStore.create(folder, plan, "0.1.0") as store:
        bench.measure(store, plan.runs[0])

    def fail(files):
        raise StudyError("cannot parse this")

    with pytest.raises(StudyError, match="cannot parse"):
        reparse_study(folder, fail)
    assert len(load_study(folder).runs) == 1
    assert sorted(path.name for path in folder.glob("catalogue*.new*")) == []


def test_evidence_that_vanished_is_told_and_reparse_accepts_it(tmp_path, bench):
    plan = bench.plan()
    folder = tmp_path / "s"
    with StudyStore.create(folder, plan, "0.1.0") as store:
        bench.measure(store, plan.runs[0])
    (folder / "evidence" / plan.runs[0].identity / "run.json").unlink()
    with pytest.raises(StudyError, match="missing"):
        StudyStore.open(folder, derive=bench.derive)
    assert reparse_study(folder, bench.derive) == 0


def test_evidence_of_another_run_in_its_place_is_told(tmp_path, bench):
    plan = bench.plan()
    folder = tmp_path / "s"
    with StudyStore.create(folder, plan, "0.1.0") as store:
        bench.measure(store, plan.runs[0])
    root = folder / "evidence"
    target = root / plan.runs[1].identity
    target.parent.mkdir(exist_ok=True)
    (root / plan.runs[0].identity).rename(target)
    with pytest.raises(StudyError, match=plan.runs[0].identity):
        reparse_study(folder, bench.derive)


def test_a_run_survives_a_catalogue_that_somebody_else_has_locked(tmp_path, bench, monkeypatch):
    monkeypatch.setattr("pgstrata.store.database._BUSY_SECONDS", 0.1)
    plan = bench.plan()
    folder = tmp_path / "s"
    store = StudyStore.create(folder, plan, "0.1.0")
    browser = sqlite3.connect(folder / "catalogue.sqlite", isolation_level=None)
    browser.execute("BEGIN IMMEDIATE")
    with pytest.raises(StudyError, match="locked") as caught:
        bench.measure(store, plan.runs[0])
    browser.execute("ROLLBACK")
    browser.close()
    store.close()
    assert "evidence" in caught.value.remedy
    with StudyStore.open(folder, plan, derive=bench.derive) as again:
        assert again.committed() == {plan.runs[0].identity}
    assert len(load_study(folder).runs) == 1


def test_fingerprints_outlive_the_catalogue(tmp_path, bench):
    folder = tmp_path / "s"
    with StudyStore.create(folder, bench.plan(), "0.1.0") as store:
        store.keep_fingerprint("environment/pg18", bench.host)
    with sqlite3.connect(folder / "catalogue.sqlite") as connection:
        connection.execute("DELETE FROM fingerprint")
    connection.close()
    StudyStore.open(folder).close()
    assert load_study(folder).environments == {"pg18": bench.host}


@pytest.mark.alone
def test_5000_runs_are_loaded_in_less_than_a_second_of_cpu(tmp_path, bench):
    plan = bench.plan(2500)
    folder = tmp_path / "s"
    with StudyStore.create(folder, plan, "0.1.0") as store, transaction(store._connection):
        for run in plan.runs:
            catalogue.save_run(store._connection, bench.record(bench.header(run, plan), 1000.0))
    assert len(load_study(folder, metrics=("tps",)).runs) == 5000
    assert least_seconds(lambda: load_study(folder, metrics=("tps",)), 1.0) < 1.0
