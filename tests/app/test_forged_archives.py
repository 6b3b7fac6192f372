"""An archive that comes from somebody else ends in an answer or in an error, never in a traceback or in no end."""

import itertools
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from archives import START, Second, behind, make_archive, planned, session, use
from pgstrata.app.correlate import load_associations
from pgstrata.app.explain import load_explanation, load_periods, load_profile
from pgstrata.app.export_archive import ArchiveWishes, export_archive
from pgstrata.errors import ArchiveError, PgstrataError
from pgstrata.model.archive import Holder, HolderKind, Horizon, Relation, RelationUse
from pgstrata.report.live.document import make_explanation
from pgstrata.report.live.json import explanation_json
from pgstrata.report.live.profile import make_profile_document, profile_json
from pgstrata.store.archives import plausible, schema
from pgstrata.store.archives.reader import ArchiveReader
from pgstrata.store.archives.schema import ARCHIVE
from pgstrata.store.archives.thinning import Keep
from pgstrata.store.archives.writer import ArchiveWriter

TABLES = {
    Relation(name="public.stock"): RelationUse(sequential_scans=5, updated=100, live_rows=20, dead_rows=7),
    Relation(name="public.stock_pkey", table="public.stock"): RelationUse(index_scans=5, index_rows=9),
}
HORIZON = Horizon(holder=Holder(kind=HolderKind.SLOT, name="old"), age=70, held=0)
PLANS = (planned("Index Scan using stock_pkey on stock"), planned("Seq Scan on stock"))
WORKING, WAITING = session("select"), session("update", "Lock/transactionid")
SECONDS = 300


@pytest.fixture(scope="module")
def true(tmp_path_factory):
    folder = tmp_path_factory.mktemp("forged") / "a"
    make_archive(
        folder, SECONDS,
        lambda number: Second(
            {WORKING: 2, WAITING: number // 200 * 5}, 50.0, behind(WAITING), {"host_user_cpu": 0.5, "cpu_limit": 2.0},
            TABLES if number % 60 == 59 else {}, HORIZON if number % 10 == 0 else None,
        ),
        uses=lambda number: {"select": use(100, 0.5), "update": use(10, 2.0 + number // 200 * 40)},
        texts={"select": "select ?", "update": "update ?"},
        plans=[(number, "update", PLANS[number // 200]) for number in range(0, SECONDS, 50)],
    )  # fmt: skip
    with closing(sqlite3.connect(folder / ARCHIVE, isolation_level=None)) as connection:
        # of the first two minutes only the sums are left
        for table in ("look", "session", "blocked", "server", "host", "group"):
            connection.execute(f"DELETE FROM {table}_second WHERE moment < {START + 120}")
    return folder


@pytest.fixture
def forge(true, tmp_path):
    """A copy in which statements of SQL were executed."""

    def change(*statements):
        folder = tmp_path / "copy"
        folder.mkdir()
        (folder / ARCHIVE).write_bytes((true / ARCHIVE).read_bytes())
        with closing(sqlite3.connect(folder / ARCHIVE, isolation_level=None)) as connection:
            for statement in statements:
                connection.execute(statement)
        return folder

    return change


def use_it(folder, *more):
    """What is read of an archive to answer; the errors of those that failed."""
    begin = f"@{START + 200}"

    def show():
        found = load_profile(folder, begin, None)
        assert make_profile_document(found, "0")
        assert profile_json(found)

    def explain():
        found = load_explanation(folder, begin, None, None)
        assert make_explanation(found, "0")
        assert explanation_json(found)

    errors = []
    for read in (show, explain, *more):
        try:
            read()
        except PgstrataError as error:
            errors.append(error)
    return errors


def other_readers(folder):
    return (
        lambda: load_periods(folder, f"@{START + 200}", None, f"@{START}..@{START + 100}"),
        lambda: load_associations(folder, None, None),
        lambda: export_archive(folder, "csv", folder.with_name("tables"), ArchiveWishes()),
    )


RATES = {f"{table}_{size}" for table in ("server", "host", "group") for size in ("second", "minute")}


def columns():
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(schema._SCHEMA + ";".join(text for texts in schema._LATER.values() for text in texts))
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        for table in tables:
            for number, name, kind, *_ in connection.execute(f"PRAGMA table_info({table})"):
                # all rates are read alike
                if number < 3 or table not in RATES or name in {"connections", "host_user_cpu", "cpu_limit"}:
                    yield table, name, kind


VALUES = {
    "INTEGER": ((1 << 63) - 1, -1),
    "REAL": (1e308, -1.0, "9e999", 5e-324),
    "TEXT": ("printf('%.*c', 1100000, 'x')", "'\x1b[31m<b>'", "cast(x'ff00fe' as text)"),
}
FORGED = [(*column, value, not number) for column in columns() for number, value in enumerate(VALUES[column[2]])]


@pytest.mark.parametrize(("table", "column", "kind", "value", "everywhere"), FORGED)
def test_whatever_a_value_is_there_is_an_answer_or_an_error(forge, table, column, kind, value, everywhere):
    where = "" if kind == "REAL" else f"WHERE {column} = (SELECT max({column}) FROM {table})"
    try:
        folder = forge(f"UPDATE OR IGNORE {table} SET {column} = {value} {where}")
    except sqlite3.IntegrityError:
        return  # SQLite itself refuses it
    for error in use_it(folder, *(other_readers(folder) if everywhere else ())):
        assert error.what
        assert error.remedy
    ArchiveWriter.open(folder, Keep()).close()


def test_the_archive_that_is_forged_has_answers_as_it_is(forge):
    folder = forge()
    (few,) = use_it(folder, *other_readers(folder))
    assert "associations need" in few.what


@pytest.mark.parametrize(
    "made",
    [
        "CREATE TRIGGER t AFTER INSERT ON look_second BEGIN DELETE FROM look_second; END",
        "CREATE VIEW v AS SELECT 1",
        "CREATE INDEX i ON look_second (hex(zeroblob(looks)))",
        "CREATE INDEX event_kind ON event (kind) WHERE kind > 'a'",
    ],
)
def test_what_would_be_executed_is_refused(forge, made):
    folder = forge(made)
    with pytest.raises(ArchiveError, match="that no recorder has made"):
        load_profile(folder, None, None)
    with pytest.raises(ArchiveError, match="that no recorder has made"):
        ArchiveWriter.open(folder, Keep())


@pytest.mark.parametrize(
    "statements",
    [
        ("DROP TABLE look_second", "CREATE VIEW look_second AS SELECT 1 AS moment, 1 AS looks, 1 AS load"),
        ("DROP TABLE event", "CREATE VIRTUAL TABLE event USING fts5(moment, kind, detail)"),
        ("ALTER TABLE look_second ADD COLUMN more TEXT",),
        ("ALTER TABLE plan ADD COLUMN more TEXT",),
        ("ALTER TABLE group_second ADD COLUMN more TEXT",),
        ("DROP TABLE group_minute", "CREATE VIEW group_minute AS SELECT * FROM host_minute"),
        ("DROP TABLE plan", "CREATE VIRTUAL TABLE plan USING fts5(moment, statement, until, shape, outline, problem)"),
    ],
)
def test_other_tables_are_damage(forge, statements):
    with pytest.raises(ArchiveError, match="damaged"):
        load_profile(forge(*statements), None, None)


def test_unknown_names_are_left_out_or_shown_as_they_are(forge):
    folder = forge(
        "UPDATE event SET kind = 'something new'", "UPDATE session_class SET kind = 'walrus', wait_type = 'New'",
        "UPDATE fact SET value = 'no_such_limit' WHERE name = 'limits'", "DELETE FROM fact WHERE name <> 'limits'",
    )  # fmt: skip
    assert not use_it(folder)


@pytest.mark.parametrize(
    "table", ["session_class", "statement", "look_second", "fact", "server_second", "event", "plan"]
)
def test_rows_that_are_missing_are_no_traceback(forge, table):
    use_it(forge(f"DELETE FROM {table}"))


MANY = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {})"


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        (f"{MANY.format(3000)} INSERT INTO event SELECT {START + 250}, 'disk full', '', 1 FROM n", "events"),
        (
            f"{MANY.format(3000)} INSERT INTO blocked_second SELECT {START + 250}, 1, 0, i + 9999, 1, 1 FROM n",
            "blocked sessions",
        ),
    ],
)
def test_more_rows_than_can_be_shown_are_an_error_with_a_remedy(forge, monkeypatch, statement, what):
    monkeypatch.setattr(plausible.take, "__kwdefaults__", {"most": 1000})
    with pytest.raises(ArchiveError, match=f"more than 1,000 {what}") as found:
        load_profile(forge(statement), f"@{START + 200}", None)
    assert found.value.remedy == "choose a shorter window"


def test_classes_without_number_are_an_error_with_a_remedy(forge, monkeypatch):
    monkeypatch.setattr("pgstrata.store.archives.reader._MOST_CLASSES", 1000)
    folder = forge(f"{MANY.format(1001)} INSERT INTO session_second SELECT {START + 250}, i + 9, 1 FROM n")
    with pytest.raises(ArchiveError, match="more than 1,000 classes of sessions"):
        load_profile(folder, f"@{START + 200}", None)


def test_a_tree_that_leads_to_the_same_pages_again_and_again_has_an_end(true, tmp_path):
    """Interior pages of a table, each of which has the next one as all of its children (file format, 1.6)."""
    folder = tmp_path / "copy"
    folder.mkdir()
    (folder / ARCHIVE).write_bytes(bomb((true / ARCHIVE).read_bytes()))
    with (
        pytest.raises(ArchiveError, match="reading it takes far longer"),
        ArchiveReader.open(folder) as reader,
    ):
        reader._connection.execute("SELECT sum(looks) FROM look_second WHERE looks > 7").fetchone()


def bomb(content):
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.deserialize(content[:18] + b"\1\1" + content[20:])  # not with a log, which it cannot have in memory
        ((root,),) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'look_second'")
        (size,), (pages,) = (connection.execute(f"PRAGMA {name}").fetchone() for name in ("page_size", "page_count"))
    levels, each = 12, 60
    places = [root, *range(pages + 1, pages + levels + 1)]
    found = bytearray(content.ljust(size * (pages + levels + 1), b"\0"))
    found[28:32] = (pages + levels).to_bytes(4, "big")
    for place, child in itertools.pairwise(places):
        found[(place - 1) * size : place * size] = interior(size, child, each)
    leaf = places[-1]
    row = bytes([4, 1, 4, 0, 8, 8])  # lengths of record, id and header; then no value and two noughts
    found[(leaf - 1) * size : leaf * size] = page(size, 13, [row], b"")
    return bytes(found[: size * (pages + levels)])


def interior(size, child, each):
    cells = [child.to_bytes(4, "big") + bytes([number + 1]) for number in range(each)]
    return page(size, 5, cells, child.to_bytes(4, "big"))


def page(size, kind, cells, right):
    content, places = bytearray(size), []
    end = size
    for cell in cells:
        end -= len(cell)
        content[end : end + len(cell)] = cell
        places.append(end)
    head = bytes([kind, 0, 0]) + len(cells).to_bytes(2, "big") + end.to_bytes(2, "big") + b"\0" + right
    content[: len(head)] = head
    pointers = b"".join(place.to_bytes(2, "big") for place in places)
    content[len(head) : len(head) + len(pointers)] = pointers
    return bytes(content)


def test_a_file_that_others_put_beside_an_archive_is_not_waited_for(true, tmp_path):
    folder = Path(tmp_path / "copy")
    folder.mkdir()
    (folder / ARCHIVE).write_bytes((true / ARCHIVE).read_bytes())
    os.mkfifo(folder / f"{ARCHIVE}-wal")
    with pytest.raises(ArchiveError, match="ordinary file"):
        load_profile(folder, None, None)
