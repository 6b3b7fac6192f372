"""An archive is searched for incidents, and a recorder finds the same ones as it records."""

import json
import time
from dataclasses import replace

import numpy as np
import pytest

from archives import BLOCKER, START, Second, behind, make_archive, session
from pgstrata.app.incidents import load_incidents
from pgstrata.app.watching.alarms import Alarms
from pgstrata.diagnosis.live.detection import WEEK
from pgstrata.errors import ArchiveError, UsageError
from pgstrata.model.archive import SessionsLook
from pgstrata.model.incidents import DemandKind, IncidentKind
from pgstrata.ports.recording import RecordedSecond
from pgstrata.store.archives.thinning import Keep
from pgstrata.store.archives.writer import ArchiveWriter

SELECT, WAITING = session("select"), session("update", "Lock/transactionid")
REPORT = session("report", "IO/DataFileRead", application="reports")
RATE = 1 / WEEK


@pytest.fixture(autouse=True)
def _utc(monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def story(number, draws):
    """Two hours: a row that is locked for ten minutes, more demand, a report, a stall of a minute and a half."""
    locked, more, report = 2400 <= number < 3000, 4200 <= number < 4800, 5400 <= number < 6000
    stalled = 6600 <= number < 6690
    rate = 0 if stalled else 1000 * (0.6 if locked else 2 if more else 1)
    sessions = {SELECT: int(draws.binomial(8, 0.7)) * (2 if more else 1), WAITING: 1}
    blocked = {}
    if locked:
        sessions, blocked = {SELECT: 2, WAITING: 7, BLOCKER: 1}, behind(WAITING, sessions=7)
    if report:
        sessions[REPORT] = 4
    return Second(sessions=sessions, commits=float(round(rate * draws.normal(1, 0.03))), blocked=blocked)


@pytest.fixture(scope="module")
def seconds():
    draws = np.random.default_rng(7)
    return [story(number, draws) for number in range(7200)]


@pytest.fixture(scope="module")
def archive(tmp_path_factory, seconds):
    return make_archive(tmp_path_factory.mktemp("incidents") / "archive", 7200, seconds.__getitem__)


@pytest.fixture(scope="module")
def found(archive):
    return load_incidents(archive, None, None, rate=RATE)


def test_incidents_of_an_archive_are_found_with_beginning_and_end(found):
    locked, stalled = found.detected.incidents
    assert abs(locked.begin - (START + 2400)) <= 2
    assert abs(locked.end - (START + 3000)) <= 5
    assert locked.found - (START + 2400) <= 60
    assert locked.kind is IncidentKind.SLOWER
    assert abs(stalled.begin - (START + 6600)) <= 2
    assert abs(stalled.end - (START + 6690)) <= 5
    assert stalled.kind is IncidentKind.STALLED


def test_more_demand_and_a_report_stand_apart(found):
    assert [each.kind for each in found.detected.demand] == [DemandKind.MORE, DemandKind.STATEMENTS]
    assert found.detected.demand[1].statements == ("report",)


def test_each_incident_is_explained_by_the_time_before(found):
    locked = found.explained[0]
    assert locked.chosen.window.begin == found.detected.incidents[0].begin
    assert locked.chosen.comparison.end == locked.chosen.window.begin
    assert locked.explanation.blockers[0].root == BLOCKER


def test_a_part_of_an_archive_is_searched_and_what_is_usual_is_learned_before_it(archive):
    found = load_incidents(archive, f"@{START + 2000}", f"@{START + 3600}", rate=RATE)
    (locked,) = found.detected.incidents
    assert abs(locked.begin - (START + 2400)) <= 2
    assert found.detected.judged == found.detected.seconds == 1600


def test_an_incident_before_the_part_that_is_searched_is_not_learned_as_usual(archive, found):
    for begin in (3010, 3600):
        part = load_incidents(archive, f"@{START + begin}", None, rate=RATE).detected
        (stalled,) = part.incidents
        assert abs(stalled.begin - (START + 6600)) <= 2
        assert part.limit == pytest.approx(found.detected.limit, rel=0.005)
        assert part.judged == part.seconds == 7200 - begin


def test_an_incident_that_lasts_when_the_search_begins_is_told_with_its_beginning(archive):
    part = load_incidents(archive, f"@{START + 2700}", f"@{START + 3600}", rate=RATE).detected
    (locked,) = part.incidents
    assert abs(locked.begin - (START + 2400)) <= 2
    assert abs(locked.end - (START + 3000)) <= 5


def test_an_incident_that_lasts_has_no_end(archive):
    found = load_incidents(archive, None, f"@{START + 2700}", rate=RATE)
    (locked,) = found.detected.incidents
    assert (locked.end, locked.ending) == (None, None)
    assert found.explained[0] is not None


def test_only_minutes_are_searched_too(tmp_path, seconds):
    draws = np.random.default_rng(8)
    calm = [story(0, draws) for _ in range(4000)]
    folder = make_archive(tmp_path / "archive", 11_200, lambda number: [*calm, *seconds][number])
    writer = ArchiveWriter.open(folder, Keep(detail=3600))
    writer.tidy(START + 11_200 + 20 * 3600)
    writer.close()
    found = load_incidents(folder, None, None, rate=RATE)
    assert found.coarse_until is not None
    locked = found.detected.incidents[0]
    assert abs(locked.begin - (START + 6400)) <= 60


def test_an_archive_that_is_too_short_says_so(tmp_path, seconds):
    found = load_incidents(make_archive(tmp_path / "archive", 300, seconds.__getitem__), None, None, rate=RATE)
    assert (found.detected.incidents, found.detected.judged, found.detected.seconds) == ((), 0, 300)


def test_an_archive_without_known_transactions_has_no_incident(tmp_path):
    folder = make_archive(tmp_path / "archive", 1200, lambda _: Second(sessions={SELECT: 3}, commits=0.0))
    assert load_incidents(folder, None, None, rate=RATE).detected.incidents == ()


def test_an_empty_archive_and_a_time_outside_of_it_are_errors(tmp_path, archive):
    with pytest.raises(ArchiveError):
        load_incidents(tmp_path / "nowhere", None, None, rate=RATE)
    with pytest.raises(ArchiveError):
        load_incidents(archive, "@1000", "@2000", rate=RATE)
    with pytest.raises(UsageError):
        load_incidents(archive, "noon", None, rate=RATE)


def test_a_gap_is_told_and_is_no_incident(tmp_path, seconds):
    def tell(number):
        return Second(sessions=None) if 1200 <= number < 2000 else seconds[number]

    found = load_incidents(make_archive(tmp_path / "archive", 2400, tell), None, None, rate=RATE)
    assert found.detected.incidents == ()
    (gap,) = found.detected.gaps
    assert gap.seconds == pytest.approx(800, abs=20)


def test_a_window_in_a_gap_is_an_error_and_no_calm_time(tmp_path, seconds):
    def tell(number):
        return Second(sessions=None) if 1200 <= number < 2000 else seconds[number]

    folder = make_archive(tmp_path / "archive", 2400, tell)
    with pytest.raises(ArchiveError, match="nothing was recorded from 2026-11-26 16:41:40 to 16:51:40"):
        load_incidents(folder, f"@{START + 1300}", f"@{START + 1900}", rate=RATE)


class Recording:
    """A recorder's side: it feeds alarms, and writes the archive that they read causes from."""

    def __init__(self, folder, **more):
        self.told, self.announced = [], []
        self.writer = ArchiveWriter.open(folder, Keep())
        self.writer.add_facts({"server_version": "18.0"})
        self.alarms = Alarms(folder, self.told.append, rate=RATE, **more)
        self.alarms.announce = self.announced.append
        self.alarms.catch_up()
        self.alarms.begin({}, ())

    def feed(self, begin, seconds):
        for number, each in enumerate(seconds):
            moment = begin + number
            look = None if each.sessions is None else SessionsLook(counts=each.sessions, blocked=each.blocked)
            if look is not None:
                self.writer.add_look(moment, look)
                self.writer.add_server(moment, 1.0, {"commits": each.commits})
            server = {} if look is None else {"commits": each.commits}
            self.alarms.follow(RecordedSecond(moment=moment, look=look, server=server))
            if moment % 5 == 0:
                self.writer.flush(moment)
                self.alarms.saved(moment)
                self._wait_for_cause()

    def _wait_for_cause(self):
        """Causes are read beside the recorder: here they are waited for, whatever the machine does."""
        for _ in range(2000):
            if not self.alarms.is_reading:
                return
            time.sleep(0.01)
        raise AssertionError("no cause was read")

    def end(self):
        self.alarms.close()
        self.writer.close()


def test_a_recorder_finds_what_its_archive_shows_later(tmp_path, seconds, found):
    recording = Recording(tmp_path / "archive")
    recording.feed(START, seconds)
    recording.end()
    live = [each for each in recording.announced if each is not None]
    assert [(each.begin, each.found, each.kind) for each in live] == [
        (each.begin, each.found, each.kind) for each in found.detected.incidents
    ]
    assert recording.announced.count(None) == 2
    later = load_incidents(tmp_path / "archive", None, None, rate=RATE)
    assert later.detected.incidents == found.detected.incidents


def test_a_recorder_tells_of_an_incident_with_its_cause_and_of_its_end(tmp_path, seconds):
    recording = Recording(tmp_path / "archive")
    recording.feed(START, seconds[:3600])
    recording.end()
    begun, ended = recording.told
    assert begun.startswith("incident since 17:00:00: transactions take ")
    assert "; most likely, a session of the application admin idle in its transaction" in begun
    assert ended.startswith("the incident of 17:00:00 ended at 17:1")


def test_after_a_restart_a_recorder_knows_what_is_usual_and_that_an_incident_lasts(tmp_path, seconds):
    first = Recording(tmp_path / "archive")
    first.feed(START, seconds[:2700])
    first.end()
    second = Recording(tmp_path / "archive")
    assert [each.begin for each in second.announced] == [each.begin for each in first.announced]
    second.feed(START + 2720, seconds[2720:3600])
    second.end()
    assert second.announced[-1] is None
    assert second.told[-1].startswith("the incident of 17:00:00 ended at 17:1")


@pytest.mark.parametrize("late", range(1, 11, 3))
@pytest.mark.parametrize("away", [0, 3, 60])
def test_an_incident_that_begins_right_after_a_restart_has_its_own_second(tmp_path, late, away):
    draws = np.random.default_rng(late)
    calm = [story(0, draws) for _ in range(1804 + away + late)]
    slow = [replace(story(0, draws), commits=500.0) for _ in range(120)]
    first = Recording(tmp_path / "archive")
    first.feed(START, calm[:1804])
    first.writer.flush(START + 1804)
    first.end()
    second = Recording(tmp_path / "archive")
    second.feed(START + 1804 + away, [*calm[1804 + away :], *slow])
    second.end()
    (begun,) = second.announced
    assert abs(begun.begin - (START + len(calm))) <= 2
    assert begun.usual_throughput == pytest.approx(1000, rel=0.02), "the time before the restart counts"


class FakeHook:
    def __init__(self):
        self.calls = []

    def call(self, state, begin, document):
        self.calls.append((state.value, begin, json.loads(document)))

    def tell_failures(self, tell):
        pass

    def close(self, patience):
        pass


def test_the_command_is_called_at_the_beginning_and_at_the_end(tmp_path, seconds):
    hook = FakeHook()
    recording = Recording(tmp_path / "archive", hook=hook)
    recording.feed(START, seconds[:3600])
    recording.end()
    (begin, first, begun), (end, last, ended) = hook.calls
    assert (begin, end) == ("begin", "end")
    assert first == last == recording.announced[0].begin
    assert begun["incident"]["end"] is None
    assert "idle in its transaction" in begun["incident"]["cause"]
    assert ended["incident"]["ending"] == "as usual again"


@pytest.mark.parametrize("restarted", [False, True])
def test_a_clock_that_was_set_back_blinds_nobody(tmp_path, seconds, restarted):
    day = 86_400
    recording = Recording(tmp_path / "archive")
    recording.feed(START + day, seconds[:2700])
    assert recording.announced[-1] is not None
    if restarted:
        recording.end()
        recording = Recording(tmp_path / "archive")
    recording.feed(START, seconds[:3600])
    recording.end()
    until = "17:04:56" if restarted else "17:05:00"  # the last flush, or the last second
    assert recording.told[-3].startswith(f"the incident of 17:00:00 was seen until {until}, after ")
    assert recording.told[-2].startswith("incident since 17:00:00: transactions take ")
    assert recording.told[-1].startswith("the incident of 17:00:00 ended at 17:10:0")
    begun = [each for each in recording.announced if each is not None]
    assert begun[-1].begin == pytest.approx(START + 2400, abs=10)


def test_an_archive_that_cannot_be_read_does_not_keep_a_recorder_from_its_work(tmp_path, seconds):
    first = Recording(tmp_path / "archive")
    first.feed(START, seconds[:900])
    first.writer.flush(START + 900)
    first.alarms.close()
    first.writer._connection.execute("UPDATE look_second SET load = -7")
    told = []
    alarms = Alarms(tmp_path / "archive", told.append, rate=RATE)
    alarms.catch_up()
    first.writer.close()
    (said,) = told
    assert said.startswith("what is usual cannot be read from the archive and is learned anew: the archive is damaged")
    alarms.begin({}, ())
    alarms.follow(RecordedSecond(moment=START + 901))
