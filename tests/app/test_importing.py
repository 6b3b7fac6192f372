"""What is read of folders of other tools' results, and how much: nothing that a stranger puts there takes all memory."""

import os
import resource
from dataclasses import replace

import pytest

from pgstrata.app import importing
from pgstrata.app.export import export_results
from pgstrata.app.importing import ImportTask, import_results
from pgstrata.errors import PgstrataError, UsageError
from pgstrata.importers.assemble import ImportQuestion
from pgstrata.importers.pattern import parse_pattern
from pgstrata.importers.results import ReadingTerms
from pgstrata.model import sizes

RESULT = """\
transaction type: <builtin: simple update>
scaling factor: 1
number of transactions actually processed: 60000
tps = {tps} (without initial connection time)
"""
LOG = "1777000000 2000 2000000 2400000 500 3000\n1777000002 2000 2000000 2400000 500 3000\n"


def write_results(folder):
    for system in ("a", "b"):
        (folder / system).mkdir(parents=True)
        for number in range(2):
            (folder / system / f"run{number}.txt").write_text(RESULT.format(tps=1000.5 + number))


@pytest.fixture
def task(tmp_path):
    write_results(tmp_path / "results")
    return ImportTask(
        format="pgbench", paths=(tmp_path / "results",), pattern=parse_pattern("{system}/{run}.txt"),
        terms=ReadingTerms(), question=ImportQuestion(), output=tmp_path / "out.csv",
    )  # fmt: skip


def test_files_and_folders_are_counted_before_they_are_read(task, monkeypatch):
    monkeypatch.setattr(importing, "_MOST_FILES", 6)
    assert import_results(task).files == 4
    task.output.unlink()
    (task.paths[0] / "b" / "empty").mkdir()
    with pytest.raises(UsageError, match="more than 6 files and folders"):
        import_results(task)


def test_links_to_folders_are_not_followed_and_order_is_that_of_names(task, tmp_path):
    (task.paths[0] / "again").symlink_to(task.paths[0] / "a")
    (task.paths[0] / "z.txt").write_text("")
    (task.paths[0] / "a" / "deeper").mkdir()
    (task.paths[0] / "a" / "deeper" / "x.txt").write_text("")
    (task.paths[0] / "circle").symlink_to("circle")
    (task.paths[0] / "b" / "crashed").mkdir()
    files, passed = importing._list_below(task.paths[0])
    found = [path.relative_to(task.paths[0]).as_posix() for path in files]
    assert found == ["circle", "z.txt", "a/run0.txt", "a/run1.txt", "a/deeper/x.txt", "b/run0.txt", "b/run1.txt"]
    assert [path.name for path, _ in passed] == ["again", "crashed"]


def test_folders_that_were_passed_over_are_named_with_the_reason(task):
    (task.paths[0] / "again").symlink_to(task.paths[0] / "a")
    (task.paths[0] / "c").mkdir()
    left_out = import_results(task).left_out
    assert [(each.where, each.what) for each in left_out] == [
        ("again", "a link to a folder is not followed"),
        ("c", "the folder is empty"),
    ]


def test_logs_count_among_the_bytes_that_are_read(task, monkeypatch):
    place = task.paths[0] / "a"
    for thread in range(10):
        (place / (f"run0.77.{thread}" if thread else "run0.77")).write_text(LOG)
    read = sum(path.stat().st_size for path in task.paths[0].rglob("*") if path.is_file())
    monkeypatch.setattr(sizes, "FOREIGN_FILES", read)
    assert import_results(task).logs == 10
    task.output.unlink()
    monkeypatch.setattr(sizes, "FOREIGN_FILES", read - 1)
    with pytest.raises(UsageError, match="have more than"):
        import_results(task)


@pytest.mark.root
@pytest.mark.company
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_root_lists_the_folder_of_another_user_as_that_user(task, open_folder):
    theirs = open_folder / "theirs"
    theirs.mkdir()
    write_results(theirs)
    (theirs / "b").chmod(0o700)
    for path in (theirs, theirs / "a", *(theirs / "a").iterdir()):
        os.chown(path, 65534, 65534)
    (theirs / "c").mkdir(mode=0o700)
    files, passed = importing._list_below(theirs)
    assert {path.parent.name for path in files} == {"a"}
    assert {path.name: why for path, why in passed} == dict.fromkeys("bc", "the folder may not be entered")
    write_results(open_folder / "shared")
    (open_folder / "shared").chmod(0o777)
    with pytest.raises(UsageError, match="other users may write"):
        import_results(replace(task, paths=(open_folder / "shared",)))


def test_a_file_that_could_not_be_written_whole_is_not_there(tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("environment,metric,value\n" + "a,tps,1\nb,tps,2\n" * 2000)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        with pytest.raises(PgstrataError, match="cannot be written"):
            export_results(table, "csv", tmp_path / "out.csv")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]


def test_observations_that_could_not_be_written_whole_are_not_there(task):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, before[1]))
    try:
        with pytest.raises(PgstrataError, match="cannot be written"):
            import_results(task)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [path.name for path in task.output.parent.iterdir()] == ["results"]
