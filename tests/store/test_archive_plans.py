"""Plans of an archive: one row while a statement keeps its plan, and archives that are older than their table."""

import sqlite3
from contextlib import closing

import pytest

from archives import START, Second, make_archive, planned, session, use
from pgstrata.errors import ArchiveError
from pgstrata.model.archive import SessionsLook, Span
from pgstrata.model.query_plans import LivePlan, PlanSource, SeenPlan
from pgstrata.store.archives import plans
from pgstrata.store.archives.reader import ArchiveReader
from pgstrata.store.archives.schema import ARCHIVE
from pgstrata.store.archives.thinning import Keep
from pgstrata.store.archives.writer import ArchiveWriter

INDEX, SEQ = planned("Index Scan using stock_pkey on stock"), planned("Limit", "  Seq Scan on stock")
HASHED = "q0123456789ab"
DENIED = LivePlan(problem="permission denied for table stock")


def archive(folder, *plans, seconds=300):
    return make_archive(folder, seconds, lambda _: Second({session("7"): 1}), plans=plans)


def read(folder, begin=0, end=300):
    with ArchiveReader.open(folder) as reader:
        return reader.window(Span(begin=START + begin, end=START + end), reader.facts()).plans


def seen(first, last, plan, statement="7", times=1, **more):
    return SeenPlan(statement=statement, first=START + first, last=START + last, plan=plan, times=times, **more)


def test_a_plan_is_kept_once_until_another_is_seen(tmp_path):
    told = [(10, "7", INDEX), (70, "7", INDEX), (130, "7", INDEX), (190, "7", SEQ), (250, "7", SEQ), (20, "8", DENIED)]
    folder = archive(tmp_path / "a", *told)
    assert read(folder) == (
        seen(10, 130, INDEX, times=3), seen(20, 20, DENIED, "8"), seen(190, 250, SEQ, times=2)
    )  # fmt: skip


def test_a_window_has_the_plans_that_were_seen_in_it(tmp_path):
    folder = archive(tmp_path / "a", (10, "7", INDEX), (130, "7", INDEX), (190, "7", SEQ))
    assert read(folder, 0, 100) == (seen(10, 130, INDEX, times=2),)
    assert read(folder, 131, 190) == ()
    assert read(folder, 190, 300) == (seen(190, 190, SEQ),)


def test_a_recorder_that_goes_on_adds_no_row_for_a_plan_that_is_the_same(tmp_path):
    folder = archive(tmp_path / "a", (10, "7", INDEX))
    writer = ArchiveWriter.open(folder, Keep())
    writer.add_plan(START + 200, "7", INDEX)
    writer.flush(START + 201)
    writer.close()
    assert read(folder) == (seen(10, 200, INDEX, times=2),)


def logged(folder, *found):
    """An archive in which plans were logged: (second, statement, plan, times)."""
    make_archive(folder, 3000, lambda _: Second({session("7"): 1}), texts={"7": "select ?", HASHED: "select ?"})
    writer = ArchiveWriter.open(folder, Keep())
    for number, statement, plan, times in found:
        writer.add_plan(START + number, statement, plan, PlanSource.LOGGED, times)
    writer.add_plan(START + 15, "7", INDEX)
    writer.flush(START + 3000)
    writer.close()
    return folder


def test_logged_plans_of_several_shapes_have_a_row_each_with_their_number(tmp_path):
    told = ((10, "7", INDEX, 2), (20, "7", SEQ, 1), (30, "7", INDEX, 5), (900, "7", INDEX, 1))
    found = [each for each in read(logged(tmp_path / "a", *told), 0, 3000) if each.source is PlanSource.LOGGED]
    assert found == [
        seen(10, 30, INDEX, times=7, source=PlanSource.LOGGED), seen(20, 20, SEQ, source=PlanSource.LOGGED),
        seen(900, 900, INDEX, source=PlanSource.LOGGED),
    ]  # fmt: skip


def test_a_logged_statement_without_an_id_is_the_one_with_its_text(tmp_path):
    found = read(logged(tmp_path / "a", (10, HASHED, SEQ, 1)), 0, 3000)
    assert {each.statement for each in found} == {"7"}


def without_table(folder):
    with closing(sqlite3.connect(folder / ARCHIVE)) as connection:
        connection.execute("DROP TABLE plan")
        connection.commit()


def test_an_archive_without_the_table_is_read_and_gets_it_when_a_recorder_goes_on(tmp_path):
    folder = archive(tmp_path / "a")
    without_table(folder)
    before = (folder / ARCHIVE).read_bytes()
    assert read(folder) == ()
    assert (folder / ARCHIVE).read_bytes() == before
    writer = ArchiveWriter.open(folder, Keep())
    writer.add_plan(START + 10, "7", INDEX)
    writer.flush(START + 11)
    writer.close()
    assert read(folder) == (seen(10, 10, INDEX),)


def test_the_tables_of_an_older_archive_are_exported_all_the_same(tmp_path):
    folder = archive(tmp_path / "a")
    without_table(folder)
    with ArchiveReader.open(folder) as reader:
        facts = reader.facts()
        assert not list(reader.table("plans", facts.span, facts, by_minute=False).rows)


def test_a_plan_that_still_holds_is_not_dropped_and_its_statement_is_not_forgotten(tmp_path):
    folder, late = tmp_path / "a", 3 * 3600
    archive(folder, (10, "7", INDEX), (20, "8", SEQ))
    writer = ArchiveWriter.open(folder, Keep(detail=3600, total=2 * 3600))
    writer.add_plan(START + late, "7", INDEX)
    writer.add_look(START + late, SessionsLook(counts={session("9"): 1}, blocked={}))
    writer.flush(START + late)
    assert writer.tidy(START + late + 60).forgot
    writer.close()
    assert read(folder, late, late + 60) == (seen(10, late, INDEX, times=2),)
    with closing(sqlite3.connect(folder / ARCHIVE)) as connection:
        keys = {key for (key,) in connection.execute("SELECT key FROM statement")}
    assert keys == {"7", "9"}


@pytest.mark.parametrize("outline", ["", "'x'", "printf('%.*c', 900000, 'x')"])
def test_what_is_read_of_an_outline_is_bounded(tmp_path, outline):
    folder = archive(tmp_path / "a", (10, "7", INDEX))
    with closing(sqlite3.connect(folder / ARCHIVE)) as connection:
        connection.execute(f"UPDATE plan SET outline = {outline or repr('')}")
        connection.commit()
    (found,) = read(folder)
    assert sum(map(len, found.plan.outline)) <= 20_000


def test_of_more_plans_than_can_be_read_those_seen_most_often_are(tmp_path, monkeypatch):
    monkeypatch.setattr(plans, "_MOST", 2)
    folder = archive(tmp_path / "a", (10, "7", INDEX), (20, "8", SEQ), (70, "7", INDEX), (80, "9", SEQ), (90, "9", SEQ))
    assert read(folder) == (seen(10, 70, INDEX, times=2), seen(80, 90, SEQ, "9", times=2))


def test_a_key_of_a_statement_is_not_read_at_full_length_for_each_plan(tmp_path):
    folder = archive(tmp_path / "a", *((number, "8", INDEX if number % 2 else SEQ) for number in range(20)))
    with closing(sqlite3.connect(folder / ARCHIVE, isolation_level=None)) as connection:
        connection.execute("UPDATE statement SET key = printf('%.*c', 1000000, 'x') WHERE key = '8'")
        connection.execute("UPDATE OR IGNORE plan SET shape = printf('%.*c', 1000000, 'x') WHERE moment % 2")
    found = read(folder)
    assert len(found) == 20
    assert sum(len(each.statement) + len(each.plan.shape) for each in found) < 10_000


def test_nor_for_each_interval_of_what_a_recorder_goes_on_with(tmp_path):
    folder = make_archive(tmp_path / "a", 200, lambda _: Second({session("7"): 1}), uses=lambda _: {"8": use(1, 0.1)})
    with closing(sqlite3.connect(folder / ARCHIVE, isolation_level=None)) as connection:
        connection.execute("UPDATE statement SET key = printf('%.*c', 1000000, 'x') WHERE key = '8'")
    with ArchiveReader.open(folder) as reader:
        told = reader.recorded(reader.window(Span(begin=START, end=START + 200), reader.facts()))
    keys = [key for second in told if second.counted is not None for key in second.counted.uses]
    assert len(keys) > 10
    assert sum(map(len, keys)) < 10_000


def test_a_plan_that_was_seen_in_no_possible_year_is_damage(tmp_path):
    folder = archive(tmp_path / "a", (10, "7", INDEX))
    with closing(sqlite3.connect(folder / ARCHIVE, isolation_level=None)) as connection:
        connection.execute("UPDATE plan SET until = 1 << 39")
    with pytest.raises(ArchiveError, match="seconds of a plan"):
        read(folder)
