"""Series of an archive: load by wait event and rates, in steps of seconds or of minutes, as a window has them."""

import math
import sqlite3
from collections import Counter
from contextlib import closing

import pytest

from archives import BLOCKER, START, Second, make_archive, session
from pgstrata.model.archive import Span
from pgstrata.store.archives.reader import ArchiveReader
from pgstrata.store.archives.schema import ARCHIVE
from pgstrata.store.archives.thinning import Keep

CPU, LOCK, OTHER = session("select"), session("update", "Lock/tuple"), session("delete", "Lock/tuple", "admin")
IDLE = session("select", "Client/ClientRead", state="idle")


def tell(number):
    if 600 <= number < 660:
        return Second(sessions=None)
    return Second(
        sessions={CPU: 2, LOCK: number % 3, OTHER: 1, IDLE: 5, BLOCKER: 1},
        commits=100.0 + number,
        host={"disk_await": 0.001 * (number % 10)},
    )


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    return make_archive(tmp_path_factory.mktemp("live") / "archive", 1205, tell)


def read(folder, begin, end):
    with ArchiveReader.open(folder) as reader:
        return reader.series(Span(begin=START + begin, end=START + end), reader.facts())


def window_of(folder, begin, end):
    with ArchiveReader.open(folder) as reader:
        return reader.window(Span(begin=START + begin, end=START + end), reader.facts())


def test_steps_are_ten_seconds_of_sums_by_wait_event(archive):
    found = read(archive, 0, 1205)
    assert (found.step, found.unit, len(found.looks)) == (10, 1, 120)
    assert found.looks[0] == 10
    assert sorted(found.load) == ["", "Lock/tuple"]
    assert found.load[""][:2] == (20, 20)
    assert found.load["Lock/tuple"][0] == sum(number % 3 + 1 for number in range(10))
    assert found.rates["commits"][0] == pytest.approx(104.5)
    assert found.rates["disk_await"][7] == pytest.approx(0.0045)


def test_steps_without_a_look_are_empty_and_not_known(archive):
    found = read(archive, 0, 1205)
    assert found.looks[59:67] == (10, 0, 0, 0, 0, 0, 0, 10)
    assert found.load[""][60] == 0
    assert math.isnan(found.rates["commits"][60])


def test_series_add_up_to_what_a_window_has(archive):
    found, window = (each(archive, 7, 1197) for each in (read, window_of))
    sums = Counter()
    for each, counts in window.sessions.items():
        if each.is_load:
            sums[f"{each.wait_type}/{each.event}".strip("/")] += sum(counts)
    assert {event: sum(counts) for event, counts in found.load.items()} == dict(sums)


def test_a_rest_that_is_no_whole_step_is_not_read(archive):
    found = read(archive, 3, 58)
    assert (found.span.begin, found.span.end, len(found.looks)) == (START + 3, START + 53, 5)


def test_where_seconds_are_gone_steps_are_minutes(tmp_path):
    folder = make_archive(tmp_path / "archive", 1205, tell, keep=Keep(detail=120))
    found = read(folder, 30, 1205)
    assert (found.step, found.unit) == (60, 60)
    assert found.span.begin == START + 60
    assert found.looks[:9] == (60,) * 9
    assert found.looks[9] == 0
    assert found.load[""][0] == 120


def test_a_window_shorter_than_a_step_has_none(archive):
    found = read(archive, 3, 8)
    assert found.looks == ()
    assert found.load == {}


def test_classes_that_are_not_known_or_have_huge_numbers_cost_nothing(tmp_path):
    folder = make_archive(tmp_path / "archive", 60, lambda _: Second(sessions={CPU: 2}))
    with closing(sqlite3.connect(folder / ARCHIVE)) as connection:
        connection.execute("UPDATE session_class SET id = 4611686018427387904")
        connection.execute("UPDATE session_second SET class = 4611686018427387904 WHERE moment % 2 = 0")
        connection.execute("UPDATE session_second SET class = -7 WHERE moment % 2 = 1")
        connection.commit()
    found = read(folder, 0, 60)
    assert found.load == {"": (10,) * 6}
    with closing(sqlite3.connect(folder / ARCHIVE)) as connection:
        connection.execute("DELETE FROM session_class")
        connection.commit()
    assert read(folder, 0, 60).load == {}
