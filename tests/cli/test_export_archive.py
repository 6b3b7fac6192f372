"""`pgstrata export ARCHIVE`: what was recorded as tables for other tools, all of it, and never over anybody's file."""

import csv
import importlib.util
import io
import os
import sqlite3
import stat
import sys
from contextlib import closing

import pytest

from archives import BLOCKER, START, Second, behind, make_archive, planned, session, use
from pgstrata.app import export_archive as exporting
from pgstrata.app.export_archive import ArchiveWishes, export_archive
from pgstrata.app.open_report import write_shown
from pgstrata.app.report import write_page
from pgstrata.errors import DiskFullError, UsageError
from pgstrata.model.archive import (
    HOST_RATES,
    RELATION_FIELDS,
    SERVER_RATES,
    Holder,
    HolderKind,
    Horizon,
    Relation,
    RelationUse,
)
from pgstrata.report.blocks.model import Document
from pgstrata.store.archives.reader import ArchiveReader
from pgstrata.store.archives.schema import ARCHIVE
from pgstrata.store.archives.thinning import Keep
from program import pgstrata

NASTY = 'a,"b"\r=cmd|x\u2028\x1b[31m\ndrop'
TABLES = (
    "looks", "sessions", "server", "host", "group", "statements", "blocked", "relations", "horizon", "plans", "events", "texts",
)  # fmt: skip
WAITING = session("20", "Lock/tuple", application=NASTY)

STOCK = Relation(name="public.stock")
HOLDER = Horizon(holder=Holder(kind=HolderKind.SLOT, name="standby", pid=0, state=""), age=7, held=30)


def tell(number):
    if number == 50:
        return Second(None)
    blocked = behind(WAITING, BLOCKER if number % 2 else None, pid=4711 if number % 2 else 0)
    seen = {session("10"): 2, WAITING: 1, session("", "Client/ClientRead", state="idle in transaction"): 1}
    relations = {STOCK: RelationUse(sequential_scans=3.0, dead_rows=40.0)} if number % 60 == 59 else {}
    return Second(seen, 100.0 + number, blocked, {"host_user_cpu": 0.5}, relations, HOLDER if number == 30 else None)


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    folder = tmp_path_factory.mktemp("export")
    uses = {"10": use(100, 0.5, 7.0), "20": use(10, 2.0)}
    plans = [(number, "10", planned("Limit", "  Seq Scan on t")) for number in (30, 90)]
    make_archive(folder / "a", 120, tell, uses=lambda _: uses, texts={"20": NASTY, "10": "select 1"}, plans=plans)
    return folder


def read(file):
    return list(csv.DictReader(io.StringIO(file.read_bytes().decode(), newline="")))


@pytest.fixture(scope="module")
def exported(archive):
    done = pgstrata(archive, "export", "a")
    assert done.returncode == 0, done.stderr
    assert "a-export/looks.csv: 119 rows\n" in done.stdout
    return {name: read(archive / "a-export" / f"{name}.csv") for name in TABLES}


def test_each_look_has_its_load_and_each_session_its_class(exported):
    assert [int(row["moment"]) for row in exported["looks"]] == [START + n for n in range(120) if n != 50]
    assert {(row["looks"], row["seconds"], row["load"]) for row in exported["looks"]} == {("1", "1", "3.0")}
    rows = [row for row in exported["sessions"] if row["moment"] == str(START + 7)]
    assert sorted((row["statement"], row["state"], row["event"], row["is_load"], row["sessions"]) for row in rows) == [
        ("", "idle in transaction", "ClientRead", "0", "1"), ("10", "active", "", "1", "2"),
        ("20", "active", "tuple", "1", "1"),
    ]  # fmt: skip
    loads = sum(int(row["sessions"]) for row in exported["sessions"] if row["is_load"] == "1")
    assert loads == sum(float(row["load"]) for row in exported["looks"])


def test_rates_of_server_and_host_have_a_column_each_and_unknown_ones_are_empty(exported):
    assert tuple(exported["server"][0]) == ("moment", "seconds", *SERVER_RATES)
    assert tuple(exported["host"][0]) == ("moment", "seconds", *HOST_RATES)
    assert [float(row["commits"]) for row in exported["server"]] == [100.0 + n for n in range(120) if n != 50]
    assert {row["wal_bytes"] for row in exported["server"]} == {""}


def test_statements_blockers_events_and_texts_are_there(exported):
    assert len(exported["statements"]) == 24
    first = exported["statements"][0]
    assert (first["moment"], first["interval_seconds"], first["statement"], first["calls"], first["blocks_hit"]) == (
        str(START + 10), "10.0", "10", "100.0", "7.0",
    )  # fmt: skip
    assert {(row["root_pid"], row["root_state"], row["statement"]) for row in exported["blocked"]} == {
        ("0", "", "20"), ("4711", "idle in transaction", "20"),
    }  # fmt: skip
    assert [row["kind"] for row in exported["events"]] == ["recorder started"]
    assert exported["texts"] == [{"statement": "10", "text": "select 1"}, {"statement": "20", "text": NASTY}]


def test_tables_and_what_holds_back_vacuum_are_there(exported):
    assert tuple(exported["relations"][0]) == ("moment", "interval_seconds", "relation", "on_table", *RELATION_FIELDS)
    told = [(row["moment"], row["relation"], row["on_table"], row["sequential_scans"], row["dead_rows"])
            for row in exported["relations"]]  # fmt: skip
    assert told == [(str(START + moment), "public.stock", "", "3.0", "40.0") for moment in (60, 120)]
    (row,) = exported["horizon"]
    assert (row["moment"], row["kind"], row["name"], row["age"]) == (
        str(START + 30),
        HolderKind.SLOT.value,
        "standby",
        "7",
    )


def test_plans_are_there_with_the_time_in_which_they_were_seen(exported):
    (row,) = exported["plans"]
    assert (int(row["moment"]), int(row["until"])) == (START + 30, START + 90)
    assert (row["statement"], row["outline"], row["problem"]) == ("10", "Limit\n  Seq Scan on t", "")


def test_text_of_strangers_stays_one_field_as_it_is(exported):
    assert {row["application"] for row in exported["blocked"]} == {NASTY}
    assert {len(row) for rows in exported.values() for row in rows if None in row} == set()


def test_a_part_of_it_can_be_chosen(archive):
    window = ("--from", f"@{START + 20}", "--to", f"@{START + 40}")
    done = pgstrata(archive, "export", "a", *window, "-o", "part", "--table", "looks", "--table", "statements")
    assert done.stdout == "part/looks.csv: 20 rows\npart/statements.csv: 4 rows\n"
    assert sorted(each.name for each in (archive / "part").iterdir()) == ["looks.csv", "statements.csv"]
    assert {row["moment"] for row in read(archive / "part" / "statements.csv")} == {str(START + 30), str(START + 40)}


def test_texts_can_be_left_out(archive):
    assert pgstrata(archive, "export", "a", "-o", "silent", "--no-query-text").returncode == 0
    assert sorted(each.stem for each in (archive / "silent").iterdir()) == sorted(set(TABLES) - {"texts"})
    assert b"select 1" not in b"".join(each.read_bytes() for each in (archive / "silent").iterdir())


def test_minutes_are_means_and_sums_of_their_seconds(archive):
    assert pgstrata(archive, "export", "a", "-o", "minutes", "--by", "minute").returncode == 0
    looks = read(archive / "minutes" / "looks.csv")
    assert [(row["moment"], row["seconds"], row["looks"], row["load"]) for row in looks] == [
        (str(START), "60", "59", "3.0"), (str(START + 60), "60", "60", "3.0"),
    ]  # fmt: skip
    sums = [int(row["sessions"]) for row in read(archive / "minutes" / "sessions.csv") if row["statement"] == "10"]
    assert sums == [118, 120]


def test_where_seconds_were_thinned_minutes_stand_in_and_no_time_counts_twice(tmp_path):
    hours = 3 * 3600
    make_archive(tmp_path / "a", hours, lambda _: Second({session("10"): 2}), keep=Keep(detail=3600 + 17))
    with ArchiveReader.open(tmp_path / "a") as reader:
        assert reader.facts().detailed_since > START + 3600
    export_archive(tmp_path / "a", "csv", tmp_path / "out", ArchiveWishes(tables=("looks", "sessions")))
    looks = read(tmp_path / "out" / "looks.csv")
    assert {row["seconds"] for row in looks} == {"1", "60"}
    assert sum(int(row["looks"]) for row in looks) == hours
    covered = [
        moment for row in looks for moment in range(int(row["moment"]), int(row["moment"]) + int(row["seconds"]))
    ]
    assert covered == list(range(START, START + hours))
    assert sum(int(row["sessions"]) for row in read(tmp_path / "out" / "sessions.csv")) == 2 * hours


def test_nothing_of_a_users_is_overwritten_and_nothing_is_left_of_what_failed(archive, monkeypatch):
    mine = archive / "mine"
    mine.mkdir()
    for target in (mine, archive / "a" / ARCHIVE):
        with pytest.raises(UsageError, match="exists already"):
            export_archive(archive / "a", "csv", target, ArchiveWishes())
    assert list(mine.iterdir()) == []
    (archive / "link").symlink_to(archive / "nowhere")
    with pytest.raises(UsageError, match="exists already"):
        export_archive(archive / "a", "csv", archive / "link", ArchiveWishes())
    assert not (archive / "nowhere").exists()

    def fill(*_):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(exporting, "_write_csv", fill)
    with pytest.raises(DiskFullError, match="No space left"):
        export_archive(archive / "a", "csv", archive / "failed", ArchiveWishes())
    assert not (archive / "failed").exists()


def test_rows_are_read_in_order_of_time_without_being_sorted(archive):
    """What SQLite had to sort first would be in memory or on disk as a whole."""
    with closing(sqlite3.connect(archive / "a" / ARCHIVE)) as connection:
        for definition in exporting_queries():
            names = {"begin": START, "end": START + 100}
            plan = " ".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {definition}", names))
            assert "TEMP B-TREE" not in plan, (definition, plan)


def exporting_queries():
    from pgstrata.store.archives import tables

    for definition in tables._TABLES.values():
        yield definition.query.replace("{size}", "second").replace("{unit}", "1")


def test_only_a_portion_of_the_rows_is_in_memory(archive, monkeypatch, tmp_path):
    """Rows are taken from their table a portion at a time."""
    monkeypatch.setattr(exporting, "_PORTION", 7)
    portions = []
    original = exporting.islice

    def watched(rows, number):
        portions.append(number)
        return original(rows, number)

    monkeypatch.setattr(exporting, "islice", watched)
    done = export_archive(archive / "a", "csv", tmp_path / "out", ArchiveWishes(tables=("looks",)))
    assert done.rows == {"looks.csv": 119}
    assert portions == [7] * 18
    assert len(read(tmp_path / "out" / "looks.csv")) == 119


@pytest.mark.skipif(importlib.util.find_spec("pyarrow") is not None, reason="pyarrow is installed")
def test_parquet_without_pyarrow_says_what_to_install(archive):
    done = pgstrata(archive, "export", "a", "--format", "parquet", "-o", "p")
    assert (done.returncode, done.stdout) == (2, "")
    assert "pip install 'pgstrata[parquet]'" in done.stderr
    assert not (archive / "p").exists()


@pytest.mark.skipif(importlib.util.find_spec("pyarrow") is None, reason="pyarrow is not installed")
def test_parquet_has_the_rows_and_columns_of_csv(archive, exported, monkeypatch):
    from pyarrow import parquet

    monkeypatch.setattr(exporting, "_PORTION", 50)
    export_archive(archive / "a", "parquet", archive / "p", ArchiveWishes())
    for name in TABLES:
        table = parquet.read_table(archive / "p" / f"{name}.parquet")
        rows = [{key: "" if value is None else str(value) for key, value in row.items()} for row in table.to_pylist()]
        assert rows == exported[name], name


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("a", "--format", "otava"), "--format: 'otava' is not a valid choice for an archive"),
        (("a", "--by", "hour"), "--by: 'hour' is not a valid choice"),
        (("a", "--table", "fact"), "choose one of looks, sessions, server"),
        (("a", "--table", "texts", "--no-query-text"), "--table: texts are left out by --no-query-text"),
        (("a", "--from", "lunch"), "'lunch' is not a time"),
        (("nowhere", "--from", "13:00"), "--from: this is only for archives"),
        (("nowhere", "--no-query-text"), "--no-query-text: this is only for archives"),
    ],
)
def test_what_cannot_be_exported_is_refused_with_a_remedy(archive, arguments, said):
    before = set(archive.iterdir())
    done = pgstrata(archive, "export", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert "->" in done.stderr
    assert set(archive.iterdir()) == before


def test_a_damaged_archive_leaves_no_folder(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / ARCHIVE).write_bytes(b"not a database at all, and long enough for a header" * 50)
    done = pgstrata(tmp_path, "export", "a")
    assert done.returncode == 1
    assert "damaged" in done.stderr
    assert not (tmp_path / "a-export").exists()
    assert "Traceback" not in done.stderr, sys.version


@pytest.fixture
def _open_umask():
    before = os.umask(0)
    yield
    os.umask(before)


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.usefixtures("_open_umask")
def test_what_is_written_from_an_archive_is_for_its_owner_only_whatever_the_umask(archive, tmp_path):
    found = export_archive(archive / "a", "csv", tmp_path / "tables", ArchiveWishes())
    assert mode_of(found.output) == 0o700
    assert {mode_of(file) for file in found.output.iterdir()} == {0o600}
    for command in (("window", "a"), ("incidents", "a"), ("explain", "a", "--from", f"@{START + 60}")):
        page = tmp_path / f"{command[0]}.html"
        page.touch()
        done = pgstrata(archive, *command, "--report", str(page))
        assert done.returncode == 0, done.stderr
        assert mode_of(page) == 0o600
    assert mode_of(write_shown(archive / "a", tmp_path / "opened.html")) == 0o600


@pytest.mark.usefixtures("_open_umask")
def test_what_is_written_from_a_study_follows_the_umask(tmp_path):
    document = Document(
        name="a", title="a study", summary="", answer=(), doubts=(), sections=(), colophon=""
    )  # fmt: skip
    assert mode_of(write_page(document, tmp_path / "a.html", option="-o")) == 0o666
    assert mode_of(write_page(document, tmp_path / "b.html", option="-o", new=True)) == 0o666
    assert mode_of(write_page(document, tmp_path / "c.html", option="-o", new=True, private=True)) == 0o600
    os.umask(0o027)
    assert mode_of(write_page(document, tmp_path / "d.html", option="-o")) == 0o640
