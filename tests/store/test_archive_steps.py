"""Steps of an archive: sums of seconds or minutes, what is not known, and numbers that no recorder writes."""

import math
import sqlite3
from contextlib import closing

import pytest

from archives import START, Second, make_archive, session, use
from pgstrata.errors import ArchiveError
from pgstrata.model.archive import Span
from pgstrata.store.archives.reader import ArchiveReader
from pgstrata.store.archives.schema import ARCHIVE

WHOLE = Span(begin=START - 60, end=START + 600)


@pytest.fixture
def archive(tmp_path):
    return make_archive(
        tmp_path / "archive", 300, lambda n: Second({session(): 3} if n % 2 else {}, commits=float(n)),
        uses=lambda _: {"select": use(100, 2.0)},
    )  # fmt: skip


def steps(folder, seconds, span=WHOLE):
    with ArchiveReader.open(folder) as reader:
        return reader.steps(span, seconds)


def change(folder, statement):
    with closing(sqlite3.connect(folder / ARCHIVE)) as connection:
        connection.execute(statement)
        connection.commit()


def test_a_step_has_the_seconds_up_to_its_end(archive):
    found = steps(archive, 10)
    second = found[2]
    assert (second.end, second.seconds, second.looks) == (START + 20, 10, 10)
    assert second.load == 3 * 5
    assert second.commits == pytest.approx(sum(range(11, 21)) / 10)
    assert second.spent == pytest.approx(0.2)
    assert found[0].looks == 1
    assert sum(step.looks for step in found) == 300


def test_minutes_have_no_counts_of_statements(archive):
    found = steps(archive, 60)
    assert [step.end for step in found] == [START + 59 + 60 * number for number in range(5)]
    assert found[1].looks == 60
    assert found[1].commits == pytest.approx(89.5)
    assert all(math.isnan(step.spent) for step in found)


def test_a_part_has_the_same_steps(archive):
    assert steps(archive, 10, Span(begin=START + 100, end=START + 200)) == steps(archive, 10)[11:21]


def test_rates_and_intervals_that_are_not_known_are_none(archive):
    change(archive, f"UPDATE server_second SET commits = NULL WHERE moment BETWEEN {START + 11} AND {START + 20}")
    change(archive, f"UPDATE statement_interval SET complete = 0 WHERE moment = {START + 30}")
    found = steps(archive, 10)
    assert math.isnan(found[2].commits)
    assert math.isnan(found[3].spent)
    assert not math.isnan(found[3].commits)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE look_second SET load = -5",
        "UPDATE look_second SET looks = 1000",
        "UPDATE server_second SET commits = -1",
        "UPDATE server_second SET commits = 9e999",
        "UPDATE statement_interval SET spent = -3",
    ],
)
def test_numbers_that_no_recorder_writes_are_damage(archive, statement):
    change(archive, statement)
    with pytest.raises(ArchiveError):
        steps(archive, 10)
