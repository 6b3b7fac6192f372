from __future__ import annotations

import errno
import os
import subprocess
from contextlib import contextmanager, suppress

import pytest

from pgstrata.errors import DiskFullError, StudyError
from pgstrata.store.load import load_study
from pgstrata.store.study import StudyStore


@contextmanager
def mounted(folder, kilobytes):
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("needs the right to mount a file system")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def measure_all(bench, store, runs):
    for run in runs:
        if run.identity not in store.committed():
            bench.measure(store, run)


def remount_read_only(folder):
    subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)


@pytest.mark.root
@pytest.mark.company
def test_a_disk_that_fills_up_loses_nothing_that_was_committed(tmp_path, bench):
    plan = bench.plan(40)
    with mounted(tmp_path / "small", 1024) as place:
        store = StudyStore.create(place / "s", plan, "0.1.0")
        with pytest.raises(DiskFullError, match="full"):
            measure_all(bench, store, plan.runs)
        done = len(store.committed())
        store.close()
        assert 0 < done < len(plan.runs)
        assert done - len(load_study(place / "s").runs) in {0, 1}


@pytest.mark.root
@pytest.mark.company
@pytest.mark.parametrize("free", [0, 4, 8, 16, 24, 32, 48])
def test_a_full_disk_at_any_moment_is_survived_and_the_study_goes_on(tmp_path, bench, free):
    plan = bench.plan()
    with mounted(tmp_path / "small", 2048) as place:
        store = StudyStore.create(place / "s", plan, "0.1.0")
        bench.measure(store, plan.runs[0])
        fill(place, free)
        with pytest.raises(DiskFullError):
            measure_all(bench, store, plan.runs[1:])
        store.close()
        (place / "filling").unlink()
        with StudyStore.open(place / "s", plan, derive=bench.derive) as again:
            measure_all(bench, again, plan.runs)
        assert len(load_study(place / "s").runs) == len(plan.runs)


def fill(place, free_kilobytes):
    target = os.open(place / "filling", os.O_WRONLY | os.O_CREAT)
    with suppress(OSError):
        while True:
            os.write(target, b"x" * 1024)
    os.ftruncate(target, max(0, os.fstat(target).st_size - free_kilobytes * 1024))
    os.close(target)


@pytest.mark.root
@pytest.mark.company
def test_creating_a_study_on_a_full_disk_is_a_disk_full_error(tmp_path, bench):
    with mounted(tmp_path / "small", 64) as place:
        fill(place, 0)
        with pytest.raises(DiskFullError):
            StudyStore.create(place / "s", bench.plan(), "0.1.0")


@pytest.mark.root
@pytest.mark.company
def test_a_read_only_study_can_be_shown_but_not_continued(tmp_path, bench):
    plan = bench.plan()
    with mounted(tmp_path / "place", 4096) as place:
        with StudyStore.create(place / "s", plan, "0.1.0") as store:
            bench.measure(store, plan.runs[0])
        remount_read_only(place)
        assert len(load_study(place / "s").runs) == 1
        with pytest.raises(StudyError, match="cannot be written"):
            StudyStore.open(place / "s", plan)
        with pytest.raises(StudyError, match="cannot be written"):
            StudyStore.create(place / "new", plan, "0.1.0")


@pytest.mark.root
@pytest.mark.company
def test_a_study_whose_writer_was_killed_can_be_shown_where_nothing_can_be_written(tmp_path, bench):
    plan = bench.plan()
    with mounted(tmp_path / "place", 4096) as place:
        with StudyStore.create(tmp_path / "s", plan, "0.1.0") as store:
            bench.measure(store, plan.runs[0])
            subprocess.run(["cp", "-r", str(tmp_path / "s"), str(place / "s")], check=True)
        (place / "s" / "catalogue.sqlite-shm").unlink()
        assert (place / "s" / "catalogue.sqlite-wal").stat().st_size > 0
        remount_read_only(place)
        assert len(load_study(place / "s").runs) == 1


@pytest.mark.root
@pytest.mark.company
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_root_shows_somebody_elses_study_whose_writer_was_killed_and_that_nobody_can_write(
    tmp_path, open_folder, bench
):
    """It is read as its owner, who cannot write to where root replays the log."""
    plan, folder = bench.plan(), open_folder / "s"
    with StudyStore.create(tmp_path / "s", plan, "0.1.0") as store:
        bench.measure(store, plan.runs[0])
        subprocess.run(["cp", "-r", str(tmp_path / "s"), str(folder)], check=True)
    (folder / "catalogue.sqlite-shm").unlink()
    assert (folder / "catalogue.sqlite-wal").stat().st_size > 0
    subprocess.run(["chown", "-R", "nobody", str(folder)], check=True)
    subprocess.run(["chmod", "-R", "a-w", str(folder)], check=True)
    assert len(load_study(folder).runs) == 1


def test_a_study_is_shown_while_it_is_being_measured(tmp_path, bench):
    plan = bench.plan()
    with StudyStore.create(tmp_path / "s", plan, "0.1.0") as store:
        for number, run in enumerate(plan.runs, start=1):
            bench.measure(store, run)
            assert len(load_study(tmp_path / "s").runs) == number


def test_a_disk_that_has_failed_does_not_keep_the_lock(tmp_path, bench, monkeypatch):
    def fail(_descriptor, _length):
        raise OSError(errno.EROFS, "Read-only file system")

    plan = bench.plan()
    store = StudyStore.create(tmp_path / "s", plan, "0.1.0")
    with monkeypatch.context() as broken:
        broken.setattr("os.ftruncate", fail)
        store.close()
    StudyStore.open(tmp_path / "s", plan).close()


def test_a_broken_disk_is_an_error_with_a_remedy(tmp_path, bench, monkeypatch):
    def fail(_descriptor):
        raise OSError(errno.EIO, "Input/output error")

    plan = bench.plan()
    with StudyStore.create(tmp_path / "s", plan, "0.1.0") as store, monkeypatch.context() as broken:
        broken.setattr("os.fsync", fail)
        with pytest.raises(StudyError, match="Input/output error") as caught:
            bench.measure(store, plan.runs[0])
        assert "check the disk" in caught.value.remedy


def test_drafts_of_a_killed_creation_are_removed(tmp_path, bench):
    draft = tmp_path / "s" / f".pgstrata-{'0' * 16}"
    draft.parent.mkdir()
    draft.touch()
    StudyStore.create(tmp_path / "s", bench.plan(), "0.1.0").close()
    assert not draft.exists()
