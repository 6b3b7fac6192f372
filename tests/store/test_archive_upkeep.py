"""An archive that is written for months: clocks that are set back, disks that are full, other programs, other users."""

import os
import sqlite3
import stat
from contextlib import closing

import pytest

from archives import START, Second, behind, counted, make_archive, session, use
from pgstrata.errors import ArchiveError, DiskFullError
from pgstrata.model.archive import EventKind, SessionsLook, Span
from pgstrata.store.archives import writer as writing
from pgstrata.store.archives.reader import ArchiveReader
from pgstrata.store.archives.schema import ARCHIVE, ArchiveBusyError
from pgstrata.store.archives.thinning import Keep
from pgstrata.store.archives.writer import ArchiveWriter

WORKING, WAITING = session("select"), session("update", "Lock/transactionid")
HOUR, DAY = 3600, 86_400


def ask(folder, query):
    with closing(sqlite3.connect(folder / ARCHIVE)) as connection:
        return connection.execute(query).fetchall()


def look(counts, blocked=None):
    return SessionsLook(counts=counts, blocked=blocked or {})


def add(writer, begin, seconds, counts):
    for number in range(seconds):
        writer.add_look(begin + number, look(counts))
    writer.flush(begin + seconds)


def test_a_second_that_comes_again_replaces_the_one_before_as_a_whole(tmp_path):
    folder = make_archive(
        tmp_path / "a", 180, lambda _: Second({WORKING: 3, WAITING: 2}, blocked=behind(WAITING)),
        uses=lambda _: {"select": use(10, 1.0), "update": use(10, 1.0)},
    )  # fmt: skip
    writer = ArchiveWriter.open(folder, Keep())
    add(writer, START + 60, 60, {WORKING: 1})
    writer.add_counted(START + 70, counted({"select": use(1, 0.1)}))
    writer.flush(START + 120)
    writer.tidy(START + 240)
    writer.close()
    for table, unit in (("second", 1), ("minute", 60)):
        within = f"moment >= {START + 60} AND moment < {START + 120}"
        assert ask(folder, f"SELECT sum(sessions) * 1.0 / {unit} FROM session_{table} WHERE {within}") == [(60 / unit,)]
        assert ask(folder, f"SELECT count(*) FROM blocked_{table} WHERE {within}") == [(0,)]
        assert ask(folder, f"SELECT sum(looks), sum(load) FROM look_{table} WHERE {within}") == [(60, 60)]
    assert ask(folder, "SELECT sum(sessions) FROM session_minute") == ask(
        folder, "SELECT sum(sessions) FROM session_second"
    )
    assert ask(folder, f"SELECT count(*) FROM statement_use WHERE moment = {START + 70}") == [(1,)]


def test_a_minute_that_reached_the_disk_late_is_summed_up_then(tmp_path):
    writer = ArchiveWriter.open(tmp_path / "a", Keep())
    add(writer, START, 30, {WORKING: 1})
    for number in range(30, 90):
        writer.add_look(START + number, look({WORKING: 1}))
    writer.tidy(START + 120)  # as after a flush that found no room
    writer.flush(START + 121)
    writer.tidy(START + 180)
    writer.close()
    assert ask(tmp_path / "a", "SELECT moment, looks FROM look_minute") == [(START, 60), (START + 60, 30)]
    assert ask(tmp_path / "a", "SELECT sum(sessions) FROM session_minute") == [(90,)]


def test_years_of_which_nothing_is_known_are_not_summed_up(tmp_path):
    writer = ArchiveWriter.open(tmp_path / "a", Keep(total=60 * 365 * DAY, detail=60 * 365 * DAY))
    add(writer, 100, 100, {WORKING: 1})
    add(writer, START, 100, {WORKING: 1})
    statements = []
    writer._connection.set_trace_callback(statements.append)
    writer.tidy(START + 120)
    writer.close()
    assert len(statements) < 100
    assert ask(tmp_path / "a", "SELECT sum(looks) FROM look_minute") == [(200,)]


def test_minutes_are_summed_up_again_after_a_clock_that_was_far_ahead(tmp_path):
    writer = ArchiveWriter.open(tmp_path / "a", Keep())
    add(writer, START + DAY, 120, {WORKING: 1})
    writer.tidy(START + DAY + 120)
    add(writer, START, 120, {WORKING: 1})
    writer.tidy(START + 120)
    writer.close()
    assert ask(tmp_path / "a", f"SELECT sum(looks) FROM look_minute WHERE moment < {START + DAY}") == [(120,)]


def test_a_fact_that_is_no_number_does_not_end_the_recorder(tmp_path):
    folder = make_archive(tmp_path / "a", 90, lambda _: Second({WORKING: 1}))
    with closing(sqlite3.connect(folder / ARCHIVE)) as connection:
        connection.execute("UPDATE fact SET value = 'soon' WHERE name = 'rolled_until'")
        connection.commit()
    writer = ArchiveWriter.open(folder, Keep())
    writer.tidy(START + 120)
    writer.close()
    assert ask(folder, "SELECT sum(looks) FROM look_minute") == [(90,)]


def test_statements_become_intervals_of_ten_minutes_little_by_little(tmp_path):
    begin = START // 600 * 600
    folder = make_archive(
        tmp_path / "a", 3 * HOUR, lambda _: Second({WORKING: 1}), begin=begin,
        uses=lambda number: {"select": use(number, 0.5), f"q{number % 7}": use(1, 0.1)},
    )  # fmt: skip
    sums = "SELECT sum(calls), round(sum(seconds), 6) FROM statement_use"
    intervals = "SELECT sum(seconds), round(sum(spent), 6) FROM statement_interval"
    before = ask(folder, sums), ask(folder, intervals)
    writer = ArchiveWriter.open(folder, Keep(detail=HOUR))
    for minute in range(60):
        writer.tidy(begin + 3 * HOUR + minute * 60)
    writer.close()
    assert (ask(folder, sums), ask(folder, intervals)) == before
    old = f"moment <= {begin + 2 * HOUR + 2400}"
    assert ask(folder, f"SELECT count(*) FROM statement_interval WHERE {old} AND moment % 600 <> 0") == [(0,)]
    assert ask(folder, f"SELECT count(*), min(seconds), max(seconds) FROM statement_interval WHERE {old}") == [
        (16, 600.0, 600.0)
    ]


def test_names_are_looked_for_once_an_hour_although_something_is_dropped_each_minute(tmp_path):
    begin = START // HOUR * HOUR
    folder = make_archive(tmp_path / "a", 4 * HOUR, lambda _: Second({WORKING: 1}), begin=begin)
    writer = ArchiveWriter.open(folder, Keep(detail=HOUR, total=2 * HOUR))
    found = [writer.tidy(begin + 4 * HOUR + minute * 60) for minute in range(120)]
    writer.close()
    assert all(found)
    assert sum(each.forgot for each in found) == 2


# ------------------------------------------------------------------------------------------------ disks and programs


def fill(writer, more=0):
    """From now on the database finds no room beyond what it has."""
    (pages,) = writer._connection.execute("PRAGMA page_count").fetchone()
    writer._connection.execute(f"PRAGMA max_page_count = {pages + more}")


def test_another_program_that_writes_is_waited_for_by_the_next_flush(tmp_path):
    writer = ArchiveWriter.open(tmp_path / "a", Keep())
    add(writer, START, 10, {WORKING: 1})
    with closing(sqlite3.connect(tmp_path / "a" / ARCHIVE, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        writer.add_look(START + 10, look({WORKING: 1}))
        with pytest.raises(ArchiveBusyError, match="another program writes to the archive"):
            writer.flush(START + 11)
        with pytest.raises(ArchiveBusyError):
            writer.tidy(START + 60)
        other.execute("ROLLBACK")
    writer.flush(START + 12)
    writer.close()
    assert ask(tmp_path / "a", "SELECT count(*) FROM look_second") == [(11,)]


def test_the_reserve_comes_back_when_there_is_room_again(tmp_path):
    writer = ArchiveWriter.open(tmp_path / "a", Keep())
    fill(writer)
    writer.add_look(START, look({session("q" * 200 + str(number)): 1 for number in range(300)}))
    with pytest.raises(DiskFullError):
        writer.flush(START)
    assert not (tmp_path / "a" / writing.RESERVE).exists()
    writer._connection.execute("PRAGMA max_page_count = 1000000")
    writer.flush(START + 5)
    writer.tidy(START + 60)
    writer.close()
    assert (tmp_path / "a" / writing.RESERVE).stat().st_size == writing.RESERVED


def test_a_disk_that_others_keep_full_does_not_cost_the_past_again_and_again(tmp_path, monkeypatch):
    folder, many = tmp_path / "a", {session(f"q{number}"): 1 for number in range(40)}
    make_archive(folder, 3 * HOUR, lambda _: Second(many))
    writer = ArchiveWriter.open(folder, Keep())

    def fail(self):
        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise error

    monkeypatch.setattr(ArchiveWriter, "_commit", fail)
    kept = []
    for number in range(20):
        with pytest.raises(DiskFullError):
            writer.flush(START + 3 * HOUR + 5 * number)
        kept.append(writer._connection.execute("SELECT count(*) FROM look_second").fetchone()[0])
    monkeypatch.undo()
    writer.flush(START + 3 * HOUR + 120)
    writer.close()
    assert kept[0] < 3 * HOUR
    assert len(set(kept)) == 1
    assert ask(folder, f"SELECT count(*) FROM event WHERE kind = '{EventKind.FULL}'") == [(1,)]


def test_memory_is_bounded_while_the_disk_is_full(tmp_path, monkeypatch):
    monkeypatch.setattr(writing, "_MOST_WAITING", 60)
    monkeypatch.setattr(writing, "_MOST_WAITING_USES", 6)
    monkeypatch.setattr(writing, "_MOST_WAITING_ROWS", 100)
    writer = ArchiveWriter.open(tmp_path / "a", Keep())
    fill(writer)
    for number in range(600):
        writer.add_look(START + number, look({session(f"{'q' * 300}{number}-{each}"): 1 for each in range(20)}))
        writer.add_server(START + number, 1.0, {"commits": 5.0})
        writer.add_texts({f"q{number}": "text"})
        if number % 10 == 0:
            writer.add_counted(START + number, counted({"q": use(1, 1.0)}))
        if number % 5 == 0:
            with pytest.raises(DiskFullError):
                writer.flush(START + number)
    waiting = len(writer._looks), len(writer._uses), len(writer._waiting), len(writer._texts)
    assert all(found <= most + 10 for found, most in zip(waiting, (60, 6, 100, 60), strict=True))
    writer._connection.execute("PRAGMA max_page_count = 1000000")
    writer.flush(START + 600)
    writer.close()
    assert ask(tmp_path / "a", "SELECT max(moment) FROM look_second") == [(START + 599,)]


def test_ids_that_are_not_in_memory_any_more_are_found_in_the_archive(tmp_path, monkeypatch):
    monkeypatch.setattr(writing, "_MOST_KNOWN", 3)
    writer = ArchiveWriter.open(tmp_path / "a", Keep())
    for number in range(30):
        add(writer, START + number, 1, {session(f"q{number % 10}"): 1})
        assert max(len(writer._statements), len(writer._classes)) <= 3
    writer.close()
    assert ask(tmp_path / "a", "SELECT count(*) FROM session_class") == [(10,)]
    assert ask(tmp_path / "a", "SELECT count(*) FROM statement") == [(10,)]


# ----------------------------------------------------------------------------------------------------- other users


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
@pytest.mark.parametrize("there", [True, False])
def test_nobody_but_its_owner_can_read_an_archive(tmp_path, umask, there):
    folder = tmp_path / "a"
    if there:
        folder.mkdir(mode=0o755)
    before = os.umask(umask)
    try:
        writer = ArchiveWriter.open(folder, Keep())
        add(writer, START, 10, {WORKING: 1})
        names = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
        writer.close()
    finally:
        os.umask(before)
    assert {"archive.sqlite", "archive.sqlite-wal", "archive.sqlite-shm", "archive.lock", "reserve"} == set(names)
    assert set(names.values()) == {0o600}
    if not there:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_an_archive_that_its_owner_lets_others_read_stays_so(tmp_path):
    folder = make_archive(tmp_path / "a", 3, lambda _: Second({WORKING: 1}))
    (folder / ARCHIVE).chmod(0o640)
    ArchiveWriter.open(folder, Keep()).close()
    assert stat.S_IMODE((folder / ARCHIVE).stat().st_mode) == 0o640


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o702])
def test_a_folder_that_all_may_write_to_is_refused(tmp_path, mode):
    folder = tmp_path / "a"
    folder.mkdir()
    folder.chmod(mode)
    with pytest.raises(ArchiveError, match="other users may write to the folder"):
        ArchiveWriter.open(folder, Keep())
    assert not list(folder.iterdir())


@pytest.mark.parametrize("name", [ARCHIVE, "archive.lock"])
def test_a_link_in_the_place_of_a_file_is_not_followed(tmp_path, name):
    folder, victim = tmp_path / "a", tmp_path / "victim"
    folder.mkdir()
    (folder / name).symlink_to(victim)
    with pytest.raises(ArchiveError):
        ArchiveWriter.open(folder, Keep())
    assert not victim.exists()


def test_a_window_of_what_was_set_back_has_each_second_once(tmp_path):
    writer = ArchiveWriter.open(tmp_path / "a", Keep())
    add(writer, START, 60, {WORKING: 2})
    add(writer, START + 30, 60, {WAITING: 1})
    writer.close()
    with ArchiveReader.open(tmp_path / "a") as reader:
        window = reader.window(Span(begin=START, end=START + 90), reader.facts())
    assert window.looks == (1,) * 90
    assert sum(window.sessions[WORKING]) == 60
    assert sum(window.sessions[WAITING]) == 60


def test_a_class_of_which_seconds_alone_are_left_is_not_forgotten(tmp_path):
    folder = tmp_path / "a"
    writer = ArchiveWriter.open(folder, Keep(detail=HOUR, total=HOUR))
    early, late, gone = session("early"), session("late"), session("gone")
    first = START + HOUR - START % HOUR
    add(writer, first - 30, 30, {gone: 1})
    add(writer, first + 40, 20, {early: 1})  # its minute begins before what is kept
    add(writer, first + HOUR + 30, 5, {late: 1})  # its minute has not ended yet
    found = writer.tidy(first + HOUR + 36)
    writer.close()
    assert found.forgot
    assert ask(folder, "SELECT count(*) FROM session_minute") == [(0,)]
    with ArchiveReader.open(folder) as reader:
        facts = reader.facts()
        assert set(reader.window(facts.span, facts).sessions) == {early, late}
    assert ask(folder, "SELECT count(*) FROM session_class") == [(2,)]
