"""An archive keeps what its recorder saw: through restarts, kills, full disks and age, and for one recorder only."""

import itertools
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace

import pytest

from archives import BLOCKER, START, Second, behind, make_archive, session, use
from pgstrata.errors import ArchiveError, DiskFullError
from pgstrata.model.archive import (
    ArchiveEvent,
    EventKind,
    Holder,
    HolderKind,
    Horizon,
    Relation,
    RelationUse,
    SessionsLook,
    Span,
)
from pgstrata.store.archives import writer as writing
from pgstrata.store.archives.reader import ArchiveReader
from pgstrata.store.archives.schema import ARCHIVE, ArchiveInUseError
from pgstrata.store.archives.thinning import Keep
from pgstrata.store.archives.writer import ArchiveWriter

WORKING, WAITING = session("select"), session("update", "Lock/transactionid")
DAY = 86_400
LONG = 9000
"""More seconds than are kept at least."""


def read(folder, begin=None, end=None, most=240):
    with ArchiveReader.open(folder) as reader:
        facts = reader.facts()
        span = Span(begin=facts.span.begin if begin is None else begin, end=facts.span.end if end is None else end)
        return facts, reader.window(span, facts, most=most), reader.texts()


def test_what_was_written_is_read(tmp_path):
    seen = {WORKING: 2, WAITING: 3}
    facts, window, texts = read(
        make_archive(
            tmp_path / "a", 60, lambda _: Second(seen, 50.0, behind(WAITING, sessions=3), {"host_user_cpu": 0.5}),
            uses=lambda _: {"select": use(100, 0.5), "update": use(10, 2.0)}, texts={"select": "select ?"},
        )
    )  # fmt: skip
    assert facts.span == Span(begin=START, end=START + 60)
    assert facts.facts["server_version"] == "18.0"
    assert window.looks == (1,) * 60
    assert dict(window.sessions) == {WORKING: (2,) * 60, WAITING: (3,) * 60}
    assert set(window.rates["commits"]) == {50.0}
    assert set(window.rates["host_user_cpu"]) == {0.5}
    ((blocking, sessions),) = window.blocked.items()
    assert (blocking.root, blocking.pid, blocking.held, sessions) == (BLOCKER, 4711, 30, 180)
    assert window.counted == 60.0
    assert window.transactions == pytest.approx(59 * 50)
    assert window.statements["update"].calls == 60
    assert texts == {"select": "select ?"}
    assert [event.kind for event in window.events] == [EventKind.STARTED]


def test_cells_hold_the_same_sums_whatever_their_number(tmp_path):
    numbers = itertools.cycle([1, 2, 5, 0, 3])
    folder = make_archive(tmp_path / "a", 601, lambda _: Second({WORKING: next(numbers)}))
    sums = [sum(read(folder, most=most)[1].sessions[WORKING]) for most in (1, 7, 240, 1000)]
    assert len(set(sums)) == 1
    assert [sum(read(folder, most=most)[1].looks) for most in (1, 7, 240)] == [601] * 3


def test_courses_are_a_window_without_what_is_counted_over_all_of_it(tmp_path):
    def tell(number):
        return Second({WORKING: number % 5}, blocked=behind(WAITING), host={"host_user_cpu": float(number)})

    folder = make_archive(tmp_path / "a", 601, tell, uses=lambda _: {"select": use(100, 0.5)})
    with ArchiveReader.open(folder) as reader:
        facts = reader.facts()
        window, courses = (read(facts.span, facts, most=50) for read in (reader.window, reader.courses))
    assert window.statements
    assert window.blocked
    assert window.events
    bare = {"blocked": {}, "statements": {}, "counted": None, "transactions": 0.0, "events": ()}
    assert courses == replace(window, **bare)


def test_seconds_that_nobody_looked_at_are_gaps(tmp_path):
    def tell(number):
        return Second(None if 20 <= number < 50 or number == 70 else {WORKING: 1})

    _, window, _ = read(make_archive(tmp_path / "a", 100, tell))
    assert window.gaps == (Span(begin=START + 20, end=START + 50),)
    _, window, _ = read(tmp_path / "a", begin=START + 30, end=START + 80)
    assert window.gaps == (Span(begin=START + 30, end=START + 50),)


def test_seconds_in_which_the_host_was_not_read_are_gaps_of_its_own(tmp_path):
    def tell(number):
        return Second({WORKING: 1}, host={} if 20 <= number < 50 or 70 <= number < 73 else {"host_user_cpu": 0.5})

    _, window, _ = read(make_archive(tmp_path / "a", 100, tell))
    assert (window.gaps, window.host_gaps) == ((), (Span(begin=START + 20, end=START + 50),))
    _, window, _ = read(tmp_path / "a", begin=START + 30, end=START + 40)
    assert window.host_gaps == (Span(begin=START + 30, end=START + 40),)


def test_an_archive_without_a_host_has_no_gaps_in_it(tmp_path):
    _, window, _ = read(make_archive(tmp_path / "a", 30, lambda _: Second({WORKING: 1})))
    assert window.host_gaps == ()


def test_minutes_in_which_the_host_was_not_read_are_gaps_of_long_windows(tmp_path):
    def tell(number):
        return Second({WORKING: 1}, host={} if 600 <= number < 1200 else {"host_user_cpu": 0.5})

    _, window, _ = read(make_archive(tmp_path / "a", LONG, tell))
    assert (window.unit, window.gaps) == (60, ())
    assert window.host_gaps == (Span(begin=START + 600, end=START + 1200),)


def test_a_recorder_goes_on_with_an_archive_that_is_there(tmp_path):
    make_archive(tmp_path / "a", 30, lambda _: Second({WORKING: 1}))
    _, window, _ = read(make_archive(tmp_path / "a", 30, lambda _: Second({WORKING: 2}), begin=START + 60))
    assert sum(window.sessions[WORKING]) == 90
    with closing(sqlite3.connect(tmp_path / "a" / ARCHIVE)) as connection:
        assert connection.execute("SELECT count(*) FROM session_class").fetchone() == (1,)


def test_a_second_recorder_is_refused_while_the_first_is_at_work(tmp_path):
    first = ArchiveWriter.open(tmp_path / "a", Keep())
    with pytest.raises(ArchiveInUseError, match=rf"another recorder .*process {os.getpid()}"):
        ArchiveWriter.open(tmp_path / "a", Keep())
    first.close()
    ArchiveWriter.open(tmp_path / "a", Keep()).close()


def test_another_server_is_not_recorded_into_the_same_archive(tmp_path):
    make_archive(tmp_path / "a", 1, lambda _: Second(), facts={"system": "7"})
    writer = ArchiveWriter.open(tmp_path / "a", Keep())
    writer.claim("7")
    with pytest.raises(ArchiveError, match="of another server"):
        writer.claim("8")
    writer.close()


@pytest.mark.parametrize(
    ("number", "said"), [(3, "knows formats up to 2"), (1, "record into another folder"), (0, "damaged")]
)
def test_an_archive_of_another_format_is_refused(tmp_path, number, said):
    make_archive(tmp_path / "a", 5, lambda _: Second({WORKING: 1}))
    with closing(sqlite3.connect(tmp_path / "a" / ARCHIVE)) as connection:
        connection.execute(f"PRAGMA user_version = {number}")
    for use_it in (lambda: read(tmp_path / "a"), lambda: ArchiveWriter.open(tmp_path / "a", Keep())):
        with pytest.raises(ArchiveError, match=said):
            use_it()


def test_what_is_no_archive_is_refused(tmp_path):
    with pytest.raises(ArchiveError, match="no archive"):
        read(tmp_path)
    (tmp_path / ARCHIVE).write_bytes(b"not a database at all, and long enough for a header" * 50)
    with pytest.raises(ArchiveError, match="damaged"):
        read(tmp_path)
    (tmp_path / ARCHIVE).unlink()
    os.mkfifo(tmp_path / ARCHIVE)
    with pytest.raises(ArchiveError, match="ordinary"):
        read(tmp_path)


KILLED = """
import sys, time
from pathlib import Path
from archives import Second, session
from pgstrata.model.archive import SessionsLook
from pgstrata.store.archives.thinning import Keep
from pgstrata.store.archives.writer import ArchiveWriter
writer = ArchiveWriter.open(Path(sys.argv[1]), Keep())
for number in range(1000000):
    writer.add_look({start} + number, SessionsLook(counts={{session(): 1}}, blocked={{}}))
    if number % 5 == 0:
        writer.flush({start} + number)
        print(number, flush=True)
"""


def test_a_kill_loses_nothing_that_was_committed(tmp_path):
    folder = tmp_path / "a"
    child = subprocess.Popen(
        [sys.executable, "-c", KILLED.format(start=START), folder],
        stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    told = [int(child.stdout.readline()) for _ in range(40)]
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    _, window, _ = read(folder)
    assert sum(window.looks) >= told[-1] + 1
    writer = ArchiveWriter.open(folder, Keep())
    writer.tidy(START + 3600)
    writer.close()
    with closing(sqlite3.connect(folder / ARCHIVE)) as connection:
        (minutes,) = connection.execute("SELECT sum(sessions) FROM session_minute").fetchone()
    assert minutes == sum(read(folder)[1].looks)


def counts(folder, table):
    with closing(sqlite3.connect(folder / ARCHIVE)) as connection:
        return connection.execute(f"SELECT count(*), min(moment) FROM {table}").fetchone()


def test_seconds_become_minutes_with_age_and_the_load_stays_the_same(tmp_path):
    folder = tmp_path / "a"
    numbers = itertools.cycle([1, 4, 0])
    make_archive(
        folder, 7200, lambda _: Second({WORKING: next(numbers)}, 80.0), uses=lambda _: {"select": use(800, 4.0)}
    )
    before = read(folder)[1]
    writer = ArchiveWriter.open(folder, Keep(detail=3600, total=DAY))
    assert writer.tidy(START + 7200).detailed_since == START + 3600
    writer.close()
    assert counts(folder, "session_second") == (3600, START + 3600)
    facts, after, _ = read(folder)
    assert facts.span.begin == START
    assert facts.detailed_since == START + 3600
    assert sum(after.sessions[WORKING]) == sum(before.sessions[WORKING])
    assert sum(after.looks) == 7200
    assert after.unit == 60
    assert after.statements["select"].calls == pytest.approx(before.statements["select"].calls)
    assert counts(folder, "statement_interval")[0] < 400
    recent = read(folder, begin=START + 3700, end=START + 4000)[1]
    assert (recent.unit, sum(recent.looks)) == (1, 300)


STOCK, PKEY = Relation(name="public.stock"), Relation(name="public.stock_pkey", table="public.stock")
SLOT = Holder(kind=HolderKind.SLOT, name="old_standby")


def with_tables(number):
    """A second of an hour: each minute tables are counted, and vacuum is held back more and more."""
    uses = {STOCK: RelationUse(sequential_scans=3.0, dead_rows=float(number)), PKEY: RelationUse(index_scans=6.0)}
    horizon = Horizon(holder=SLOT, age=1000 + number, held=0) if number % 10 == 0 else None
    return Second({WORKING: 1}, relations=uses if number % 60 == 59 else {}, horizon=horizon)


def test_tables_and_oldest_snapshots_stay_the_same_when_they_are_thinned(tmp_path):
    folder = make_archive(tmp_path / "a", 7200, with_tables)
    before = read(folder)[1]
    assert before.relations_counted == 7200.0
    assert before.relations == {
        STOCK: RelationUse(sequential_scans=360.0, dead_rows=7199.0), PKEY: RelationUse(index_scans=720.0)
    }  # fmt: skip
    assert before.horizons == (Horizon(holder=SLOT, age=8190, held=0),)
    writer = ArchiveWriter.open(folder, Keep(detail=3600, total=DAY))
    writer.tidy(START + 7200)
    writer.close()
    after = read(folder)[1]
    assert after.relations == before.relations
    assert after.relations_counted == before.relations_counted
    assert after.horizons == before.horizons
    assert counts(folder, "relation_interval")[0] == 66
    writer = ArchiveWriter.open(folder, Keep(detail=3600, total=3600))
    writer.tidy(START + 14400)
    writer.close()
    with closing(sqlite3.connect(folder / ARCHIVE)) as connection:
        assert connection.execute("SELECT count(*) FROM relation").fetchone() == (0,)


def test_what_is_older_than_it_may_be_is_gone_with_its_names(tmp_path):
    folder = tmp_path / "a"
    make_archive(folder, 60, lambda _: Second({session("old"): 1}))
    writer = ArchiveWriter.open(folder, Keep(detail=3600, total=2 * 3600))
    writer.add_look(START + 3 * 3600, SessionsLook(counts={session("new"): 1}, blocked={}))
    writer.flush(START)
    assert writer.tidy(START + 3 * 3600 + 60).forgot
    # ids that were forgotten are given anew
    writer.add_look(START + 3 * 3600 + 61, SessionsLook(counts={session("old"): 1}, blocked={}))
    writer.flush(START)
    writer.close()
    _, window, _ = read(folder)
    assert {each.statement for each in window.sessions} == {"old", "new"}
    assert window.span.begin >= START + 3 * 3600


def test_a_size_is_kept_by_dropping_the_oldest_seconds_first(tmp_path):
    folder, many = tmp_path / "a", {session(f"q{number}"): 1 for number in range(20)}
    make_archive(folder, LONG, lambda _: Second(many))
    size = (folder / ARCHIVE).stat().st_size
    writer = ArchiveWriter.open(folder, Keep(size=size // 2))
    found = writer.tidy(START + LONG)
    writer.close()
    assert found.by_size
    assert START < found.detailed_since < START + LONG
    facts, window, _ = read(folder)
    assert facts.span.begin == START
    assert sum(window.looks) == LONG
    assert (folder / ARCHIVE).stat().st_size < size * 0.6


def test_on_a_full_disk_the_oldest_is_thinned_and_the_newest_is_kept(tmp_path):
    folder, many = tmp_path / "a", {session(f"q{number}"): 1 for number in range(20)}
    make_archive(folder, LONG, lambda _: Second(many))
    writer = ArchiveWriter.open(folder, Keep())
    (pages,) = writer._connection.execute("PRAGMA page_count").fetchone()
    writer._connection.execute(f"PRAGMA max_page_count = {pages + 10}")
    end = START + LONG
    for number in range(300):
        writer.add_look(end + number, SessionsLook(counts=many, blocked={}))
    writer.flush(end + 300)
    writer.flush(end + 301)
    writer.close()
    facts, window, _ = read(folder, begin=end)
    assert sum(window.looks) == 300
    assert facts.span.begin == START
    assert counts(folder, "session_second")[1] > START
    with ArchiveReader.open(folder) as reader:
        events = reader.window(Span(begin=end, end=end + 400), facts).events
    assert EventKind.FULL in {event.kind for event in events}
    assert (folder / writing.RESERVE).stat().st_size == writing.RESERVED


def test_where_nothing_can_be_thinned_a_full_disk_is_told_and_the_newest_waits_in_memory(tmp_path):
    writer = ArchiveWriter.open(tmp_path / "a", Keep())
    (pages,) = writer._connection.execute("PRAGMA page_count").fetchone()
    writer._connection.execute(f"PRAGMA max_page_count = {pages}")
    for number in range(200):
        looked = {session(f"{'q' * 200}{number}-{each}"): 1 for each in range(20)}
        writer.add_look(START + number, SessionsLook(counts=looked, blocked={}))
    with pytest.raises(DiskFullError, match="full"):
        writer.flush(START + 200)
    writer._connection.execute("PRAGMA max_page_count = 1000000")
    writer.flush(START + 205)
    writer.close()
    assert sum(read(tmp_path / "a")[1].looks) == 200


def test_foreign_texts_are_kept_as_they_are(tmp_path):
    odd = session("'; DROP TABLE statement; --", "Lock/<b>\x1b[31m", application="tab\there")
    _, window, texts = read(
        make_archive(tmp_path / "a", 3, lambda _: Second({odd: 1}), texts={"'; DROP TABLE statement; --": "<script>"})
    )
    assert list(window.sessions) == [odd]
    assert texts == {"'; DROP TABLE statement; --": "<script>"}


def test_events_tell_when_something_happened(tmp_path):
    writer = ArchiveWriter.open(tmp_path / "a", Keep())
    writer.add_look(START, SessionsLook(counts={}, blocked={}))
    writer.add_event(ArchiveEvent(moment=START, kind=EventKind.LOST, detail="gone"))
    writer.flush(START)
    writer.close()
    _, window, _ = read(tmp_path / "a")
    assert [(event.kind, event.detail) for event in window.events] == [(EventKind.LOST, "gone")]


def test_a_statement_that_waited_before_it_had_an_id_is_the_one_with_its_text(tmp_path):
    waiting, working = session("qab12", "Lock/relation"), session("17", "Lock/relation")
    second = Second({waiting: 2, working: 1, session("qcd34"): 1}, blocked={**behind(waiting), **behind(working)})
    texts = {"17": "update t", "qab12": "update t", "18": "select ?", "qcd34": ""}
    _, window, _ = read(make_archive(tmp_path / "a", 10, lambda _: second, texts=texts))
    assert {each.statement: sum(counts) for each, counts in window.sessions.items()} == {"17": 30, "qcd34": 10}
    assert [(each.waiting.statement, sessions) for each, sessions in window.blocked.items()] == [("17", 20)]


@pytest.mark.parametrize("most", [1, 7, 240])
def test_what_was_counted_in_cells_adds_up_to_the_window(tmp_path, most):
    numbers = itertools.count(1)
    folder = make_archive(
        tmp_path / "a", 300, lambda _: Second({WORKING: 1}),
        uses=lambda _: {"select": use(next(numbers), 0.5, 3.0), "other": use(1, 1.0)},
    )  # fmt: skip
    with ArchiveReader.open(folder) as reader:
        facts = reader.facts()
        span = Span(begin=START + 40, end=START + 250)
        window = reader.window(span, facts)
        found = reader.use_courses(span, ("select", "unknown"), most=most)
    assert set(found.uses) == {"select", "unknown"}
    assert len(found.seconds) == min(most, 21)
    assert sum(found.seconds) == window.counted == 210.0
    whole = window.statements["select"]
    assert sum(cell.calls for cell in found.uses["select"]) == whole.calls
    assert sum(cell.blocks_hit for cell in found.uses["select"]) == whole.blocks_hit
    assert {cell.calls for cell in found.uses["unknown"]} == {0.0}


def test_a_window_without_counts_has_no_cells_of_them(tmp_path):
    folder = make_archive(tmp_path / "a", 30, lambda _: Second({WORKING: 1}))
    with ArchiveReader.open(folder) as reader:
        found = reader.use_courses(Span(begin=START, end=START + 30), ("select",))
    assert (found.seconds, found.uses) == ((), {"select": ()})


LIMITED = {"host_user_cpu": 1.5, "cpu_throttled": 0.5, "cpu_limit": 2.0, "group_cpu_stalled": 0.25}


def limited(number):
    """A container whose limit is halved after a minute."""
    return Second({session(): 1}, host={**LIMITED, "cpu_limit": 2.0 if number < 60 else 1.0})


def test_the_control_group_is_kept_beside_the_host_by_second_and_by_minute(tmp_path):
    folder = make_archive(tmp_path / "archive", 180, limited)
    fine = read(folder)[1].rates
    assert (fine["cpu_limit"][0], fine["cpu_limit"][-1]) == (2.0, 1.0)
    assert fine["group_cpu_stalled"][5] == 0.25
    assert fine["cpu_throttled"][5] == 0.5
    assert "group_read" not in fine
    writer = ArchiveWriter.open(folder, Keep(detail=3600))
    writer.tidy(START + 8 * 86_400)
    writer.close()
    assert counts(folder, "group_second")[0] == 0
    assert set(read(folder)[1].rates["cpu_limit"]) == {2.0, 1.0}


def test_a_host_without_a_known_control_group_has_no_rows_of_one(tmp_path):
    folder = make_archive(tmp_path / "archive", 60, lambda _: Second({session(): 1}, host={"host_user_cpu": 1.0}))
    assert (counts(folder, "host_second")[0], counts(folder, "group_second")[0]) == (60, 0)


def test_an_archive_from_before_control_groups_is_read_and_gets_the_tables_when_a_recorder_goes_on(tmp_path):
    folder = make_archive(tmp_path / "archive", 60, limited)
    with closing(sqlite3.connect(folder / ARCHIVE)) as connection:
        connection.executescript("DROP TABLE group_second; DROP TABLE group_minute")
    before = (folder / ARCHIVE).read_bytes()
    assert "cpu_limit" not in read(folder)[1].rates
    assert (folder / ARCHIVE).read_bytes() == before
    writer = ArchiveWriter.open(folder, Keep())
    writer.add_host(START + 60, 1.0, LIMITED)
    writer.flush(START + 61)
    writer.close()
    assert counts(folder, "group_second")[0] == 1
