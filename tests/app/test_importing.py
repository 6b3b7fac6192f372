"""What is read of folders of other tools' results, and how much: nothing that a stranger puts there takes all memory."""

import os
import resource
import weakref
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


def test_a_file_that_cannot_be_read_is_named_and_the_others_are_imported(task, monkeypatch):
    large = task.paths[0] / "a" / "run7.txt"
    large.write_text("x" * 5000)
    monkeypatch.setattr(sizes, "FOREIGN_FILE", 1000)
    done = import_results(task)
    assert len(done.assembled.observations) == 4
    assert [(each.where, each.what[:26]) for each in done.left_out] == [("a/run7.txt", "the file cannot be read: l")]
    with pytest.raises(UsageError, match="cannot be read: larger than") as refused:
        import_results(replace(task, paths=(large,), pattern=None, output=task.output.with_name("other.csv")))
    assert refused.value.remedy == "split the file"


def test_a_file_that_is_no_such_table_is_named_and_the_others_are_imported(tmp_path):
    folder = tmp_path / "history"
    folder.mkdir()
    (folder / "a.csv").write_text("time,commit,m\n2026-01-01,aaa0,10\n2026-01-02,aaa1,11\n")
    odd = folder / "b.csv"
    odd.write_text("15114239,15114239\n1,2\n")
    task = ImportTask(
        paths=(folder,), format="otava", pattern=None, terms=ReadingTerms(), question=ImportQuestion(),
        output=tmp_path / "o.csv",
    )  # fmt: skip
    done = import_results(task)
    assert len(done.assembled.observations) == 2
    assert [(each.where, each.what) for each in done.left_out] == [("b.csv", "two columns are called 15114239")]
    with pytest.raises(UsageError, match="two columns are called 15114239") as refused:
        import_results(replace(task, paths=(odd,), output=tmp_path / "p.csv"))
    assert refused.value.remedy == "write - for one that is not used"
    (folder / "a.csv").unlink()
    with pytest.raises(UsageError, match="two columns are called 15114239"):
        import_results(replace(task, output=tmp_path / "p.csv"))


def test_files_that_are_no_such_tables_are_not_kept(task, monkeypatch):
    """A gigabyte of them may be read one after the other."""
    read, alive = [], []

    class Rows:
        """What a reader has made of a file."""

    def refuse(text, terms):
        rows = Rows()
        read.append(weakref.ref(rows))
        alive.append(sum(each() is not None for each in read))
        raise UsageError("this is another table")

    for number in range(2, 6):
        (task.paths[0] / "a" / f"run{number}.txt").write_text("rows")
    monkeypatch.setitem(importing.FORMATS, "pgbench", replace(importing.FORMATS["pgbench"], read=refuse))
    with pytest.raises(UsageError, match="another table"):
        import_results(task)
    assert (len(alive), max(alive)) == (8, 2)


def test_the_reason_of_a_file_that_is_no_such_table_is_short(task, monkeypatch):
    usual = importing.FORMATS["pgbench"]

    def refuse(text, terms):
        if "1001.5" in text:
            raise UsageError("long " * 10_000)
        return usual.read(text, terms)

    monkeypatch.setitem(importing.FORMATS, "pgbench", replace(usual, read=refuse))
    left_out = import_results(task).left_out
    assert [each.file for each in left_out] == ["a/run1.txt", "b/run1.txt"]
    assert max(len(each.what) for each in left_out) < 300


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"\x1f\x8b\x08\0\0", "it is compressed (gzip): unpack it first"),
        (b"SQLite format 3\0\0", "it is a database (SQLite): export its results as text, CSV or JSON"),
        (b"tps = 1\0\0", "it is not text"),
    ],
)
def test_what_is_no_text_is_named_with_what_to_do(task, content, what):
    (task.paths[0] / "a" / "run7.txt").write_bytes(content)
    assert [(each.where, each.what) for each in import_results(task).left_out] == [("a/run7.txt", what)]


def test_output_that_powershell_wrote_is_read(task):
    text = RESULT.format(tps=1002.5).replace("\n", "\r\n")
    (task.paths[0] / "a" / "run7.txt").write_bytes(text.encode("utf-16"))
    done = import_results(task)
    assert done.left_out == ()
    assert 1002.5 in [each.measurements["tps"] for each in done.assembled.observations]


def test_a_log_with_the_name_that_pgbench_gives_belongs_to_the_only_result_of_its_folder(task):
    (task.paths[0] / "b" / "pgbench_log.77").write_text(LOG)
    pattern = parse_pattern("{system}/{run}.txt")
    assert import_results(replace(task, pattern=pattern)).unfit == ("b/pgbench_log.77",)
    task.output.unlink()
    (task.paths[0] / "b" / "run1.txt").unlink()
    done = import_results(replace(task, pattern=pattern))
    assert (done.logs, done.unfit) == (1, ())
    assert [each.span is not None for each in done.assembled.observations] == [False, False, True]


def test_a_value_that_cannot_be_compared_is_left_out_and_named(task):
    (task.paths[0] / "a" / "run7.txt").write_text(RESULT.format(tps="0.000000"))
    done = import_results(task)
    assert len(done.assembled.observations) == 4
    assert [(each.where, each.what) for each in done.left_out] == [
        ("a/run7.txt:1", "tps: the value is not above zero, and differences are ratios")
    ]


def test_a_result_that_is_in_two_files_counts_once(task):
    for system in ("a", "b"):
        (task.paths[0] / system / "run5.txt").write_text(RESULT.format(tps="1002.512345"))
    done = import_results(replace(task, pattern=parse_pattern("{system}/*.txt")))
    assert (len(done.assembled.observations), done.left_out) == (6, ())
    task.output.unlink()
    (task.paths[0] / "a" / "run5 (copy).txt").write_text(RESULT.format(tps="1002.512345"))
    again = import_results(replace(task, pattern=parse_pattern("{system}/*.txt")))
    assert len(again.assembled.observations) == 6
    assert [(each.file, each.what) for each in again.left_out] == [
        ("a/run5.txt", "it is the same result as in a/run5 (copy).txt")
    ]


def test_results_without_the_metric_that_is_wanted_are_named(task):
    wanted = replace(task, terms=ReadingTerms(metrics=("latency_p99",)))
    with pytest.raises(UsageError, match="there is no result in 4 files") as refused:
        import_results(wanted)
    assert refused.value.details[0] == "a/run0.txt:1: no value of latency_p99"


def test_the_time_in_a_path_is_when_the_run_began(task):
    for place in sorted(task.paths[0].rglob("*.txt")):
        place.rename(place.with_name(f"{place.stem}_2026-01-0{place.stem[-1]}_07-34-47.txt".replace("-00", "-05")))
    done = import_results(replace(task, pattern=parse_pattern("{system}/{run}_{started}.txt")))
    assert {each.span.started for each in done.assembled.observations} == {
        "2026-01-05T07:34:47+00:00", "2026-01-01T07:34:47+00:00"
    }  # fmt: skip
    assert "started" not in done.assembled.observations[0].dimensions


def test_a_path_without_a_time_where_one_is_expected_is_refused(task):
    with pytest.raises(UsageError, match="which is not a time") as refused:
        import_results(replace(task, pattern=parse_pattern("{system}/{started}.txt")))
    assert "'run0' in a/run0.txt" in refused.value.what


def test_of_a_folder_of_benchbase_only_the_summaries_are_read(task):
    summary = '{"Throughput (requests/second)": %s, "DBMS Type": "%s"}'
    for system in ("a", "b"):
        (task.paths[0] / system / "tpcc_x.summary.json").write_text(summary % (100 + ord(system), system))
        (task.paths[0] / system / "tpcc_x.raw.csv").write_text("1,2\n")
    done = import_results(replace(task, format="benchbase", pattern=None))
    assert (done.files, len(done.unfit), done.left_out) == (2, 6, ())
    named = replace(task, format="benchbase", pattern=None, paths=(task.paths[0] / "a" / "run0.txt",))
    with pytest.raises(UsageError, match="there is no result in 1 file"):
        import_results(replace(named, output=task.output.with_name("other.csv")))


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
