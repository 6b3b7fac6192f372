"""A recorder goes on whatever becomes of its server, and its archive tells what happened."""

import http.client
import math
from contextlib import closing, suppress

import pytest

from archives import START
from fake_clock import FakeClock
from pgstrata.app.watching.endpoint import parse_listen
from pgstrata.app.watching.recent import Recent
from pgstrata.app.watching.recorder import Recorder
from pgstrata.app.watching.ticker import Ticker
from pgstrata.app.watching.watch import open_endpoint
from pgstrata.collectors.live.counters import counters_statement
from pgstrata.collectors.live.sessions import sessions_statement
from pgstrata.errors import ArchiveError, HostNotFitError, SessionLostError, SqlError
from pgstrata.model.archive import EventKind
from pgstrata.model.attribution import ValueInterval
from pgstrata.model.incidents import Incident, IncidentKind
from pgstrata.store.archives.reader import ArchiveReader
from pgstrata.store.archives.thinning import Keep
from pgstrata.store.archives.writer import ArchiveWriter

VERSION = 180000


class FakeServer:
    """Answers as a server does; `broken` is what a session or a connection fails with."""

    def __init__(self):
        self.started, self.system, self.broken, self.commits, self.calls, self.resets = 1000.0, "7", None, 0, 0, "0\t1"
        self.read_only, self.number, self.counting, self.sessions, self.opened = "on", VERSION, "public", 0, 0
        self.asked = []

    def connect(self):
        if self.broken:
            raise SqlError(self.broken)
        self.sessions += 1
        self.opened += 1
        return FakeSession(self)

    def answer(self, statement):
        if "pg_control_system" in statement:
            return self.system
        if "server_version" in statement:
            words = (
                "18.0", self.number, self.read_only, "t", "f", self.started, "10.0.0.9", "1", "on", self.counting, "5000",
                "on", "1000", "shop", "0", "100", "128MB",
            )  # fmt: skip
            return "\t".join(map(str, words))
        if statement == sessions_statement(VERSION):
            return "client backend\tshop\tclerk\tapp\tactive\tLock\ttuple\t42\t\t11\t3\t12\n"
        if statement == counters_statement(VERSION):
            self.commits += 51
            return f"database.xact_commit\t{self.commits}\ndatabase.xact_rollback\t0\ndatabase.stats_reset\t1"
        if "pg_stat_statements_info" in statement:
            return self.resets
        if "string_to_array" in statement:
            return "42\tUPDATE t SET a = ?\n43\tSELECT pgstrata FROM x"
        self.calls += 100
        return f"42\t{self.calls}\t{self.calls / 100}\t1\t1\t1\t1\n43\t{self.calls}\t1\t1\t1\t1\t1"


class FakeSession:
    pid = 4711

    def __init__(self, server):
        self.server, self.prepared = server, {}

    def rows(self, statement, *, timeout=30.0):
        if self.server.broken:
            raise SessionLostError(self.server.broken)
        if statement.startswith("PREPARE "):
            name, _, prepared = statement.removeprefix("PREPARE ").partition(" AS\n")
            self.prepared[name] = prepared
            return b""
        if statement.startswith("EXECUTE "):
            statement = self.prepared[statement.removeprefix("EXECUTE ")]
        self.server.asked.append(statement)
        return f"{self.server.answer(statement)}\n".encode()

    def close(self):
        self.server.sessions -= 1


class NoHost:
    def read_files(self, paths):
        return {}


@pytest.fixture
def rig(tmp_path):
    return Rig(tmp_path / "archive")


class Rig:
    def __init__(self, folder, **more):
        self.folder, self.told, self.server, self.clock = folder, [], FakeServer(), FakeClock(wall=float(START))
        self.recorder = Recorder(
            connect=self.server.connect, here=NoHost(), archive=ArchiveWriter.open(folder, Keep()),
            ticker=Ticker(self.clock), tell=self.told.append, **more,
        )  # fmt: skip

    def run(self, seconds):
        for _ in range(seconds):
            self.recorder.step(self.recorder.ticker.wait())

    def end(self):
        self.recorder.run(0)
        self.recorder.archive.close()
        with ArchiveReader.open(self.folder) as reader:
            facts = reader.facts()
            return facts, reader.window(facts.span, facts), reader.texts()


def known(window):
    """Rates of commits, where they are known."""
    return [rate for rate in window.rates["commits"] if math.isfinite(rate)]


def kinds(window):
    return [event.kind for event in window.events]


def test_every_second_has_a_look_and_statements_have_one_each_ten(rig):
    rig.recorder.begin()
    rig.run(40)
    facts, window, texts = rig.end()
    assert sum(window.looks) == 40
    assert facts.limits == ("no_host",)
    assert window.statements["42"].calls == 300
    assert texts["42"] == "update t set a = ?"
    assert "43" not in window.statements, "the recorder's own statements are no load"
    assert all(40 < rate < 50 for rate in known(window)), "the recorder's own transactions are not the load's"
    assert rig.server.opened == 1


def test_a_server_that_restarts_is_reached_again_and_the_gap_is_known(rig):
    rig.recorder.begin()
    rig.run(20)
    rig.server.broken = "the database system is shutting down"
    rig.run(15)
    rig.server.broken, rig.server.started, rig.server.commits, rig.server.calls = None, 2000.0, 0, 0
    rig.run(40)
    _, window, _ = rig.end()
    assert kinds(window) == [EventKind.LOST, EventKind.RESTARTED, EventKind.STOPPED]
    (gap,) = window.gaps
    assert 15 <= gap.seconds <= 32
    assert all(rate >= 0 for rate in known(window))
    assert rig.told[0] == "connection lost: the database system is shutting down; trying again"
    assert rig.told[1].startswith("the server was restarted; connected again after")
    assert rig.server.sessions == 0


def test_a_lost_connection_is_no_restart(rig):
    rig.recorder.begin()
    rig.run(5)
    rig.server.broken = "terminating connection"
    rig.run(1)
    rig.server.broken = None
    rig.run(10)
    assert EventKind.CONNECTED in kinds(rig.end()[1])


def test_a_server_that_cannot_be_reached_at_the_start_is_an_error(rig):
    rig.server.broken = "no such host"
    with pytest.raises(SqlError, match="no such host"):
        rig.recorder.begin()


@pytest.mark.parametrize(
    ("name", "value", "error", "said"),
    [
        ("read_only", "off", HostNotFitError, "would not be read-only"),
        ("number", 90600, HostNotFitError, "cannot be watched"),
    ],
)
def test_a_server_that_must_not_be_watched_is_refused_and_left(rig, name, value, error, said):
    setattr(rig.server, name, value)
    with pytest.raises(error, match=said):
        rig.recorder.begin()
    assert rig.server.sessions == 0


def test_another_server_behind_the_same_name_ends_the_recorder(rig):
    rig.recorder.begin()
    rig.run(10)
    rig.server.broken = "gone"
    rig.run(1)
    rig.server.broken, rig.server.system = None, "8"
    with pytest.raises(ArchiveError, match="another server"):
        rig.run(10)
    assert rig.server.sessions == 0


def test_a_reset_by_somebody_else_is_told(rig):
    rig.recorder.begin()
    rig.run(20)
    rig.server.calls, rig.server.resets = 0, "0\t2"
    rig.run(10)
    _, window, _ = rig.end()
    assert EventKind.EVICTED in kinds(window)


def test_without_the_extension_statements_are_not_asked_for(rig):
    rig.server.counting = ""
    rig.recorder.begin()
    rig.run(20)
    facts, window, _ = rig.end()
    assert "no_extension" in facts.limits
    assert window.counted is None
    assert not any("pg_stat_statements(" in statement for statement in rig.server.asked)


def test_texts_are_not_kept_where_nobody_wants_them(tmp_path):
    rig = Rig(tmp_path / "archive", query_text=False)
    rig.recorder.begin()
    rig.run(40)
    _, window, texts = rig.end()
    assert texts == {}
    assert "42" in window.statements


def test_a_clock_that_jumps_makes_no_second_come_twice(rig):
    rig.recorder.begin()
    rig.run(10)
    rig.clock._wall += 3600
    rig.run(10)
    rig.clock._wall -= 1800
    rig.run(10)
    facts, window, _ = rig.end()
    assert sum(window.looks) == 30
    steps = [event.detail for event in window.events if event.kind is EventKind.CLOCK]
    assert steps == ["+3600 s", "-1800 s"]
    assert facts.span.seconds > 3600


def test_an_error_of_the_server_is_told_once_and_looks_go_on(rig, monkeypatch):
    rig.recorder.begin()
    rig.run(3)
    answer = rig.server.answer

    def fail(statement):
        raise SqlError("canceling statement due to statement timeout", sqlstate="57014")

    monkeypatch.setattr(rig.server, "answer", fail)
    rig.run(5)
    monkeypatch.setattr(rig.server, "answer", answer)
    rig.run(5)
    _, window, _ = rig.end()
    assert kinds(window).count(EventKind.MISSED) == 1
    assert len(rig.told) == 1
    assert sum(window.looks) == 8


def test_an_interrupt_leaves_a_whole_archive(rig, monkeypatch):
    rig.recorder.begin()
    monkeypatch.setattr(rig.clock, "sleep", _interrupt_after(rig.clock, 7))
    with suppress(KeyboardInterrupt):
        rig.recorder.run(None)
    rig.recorder.archive.close()
    with ArchiveReader.open(rig.folder) as reader:
        facts = reader.facts()
        assert sum(reader.window(facts.span, facts).looks) == 7
    assert rig.server.sessions == 0


def _interrupt_after(clock, seconds):
    left = [seconds]

    def sleep(time):
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        clock.advance(time)

    return sleep


class Heard:
    """A follower that keeps what it is told; `fails` names the call at which it fails."""

    name = "the listener"

    def __init__(self, fails=""):
        self.seconds, self.events, self.texts, self.calls, self.fails = [], [], {}, [], fails
        self.alarms = []

    def _call(self, name):
        self.calls.append(name)
        if name == self.fails:
            raise RuntimeError("broken")

    def begin(self, facts, limits):
        self._call("begin")
        self.facts, self.limits = facts, limits

    def follow(self, second):
        self._call("follow")
        self.seconds.append(second)

    def learn(self, texts):
        self._call("learn")
        self.texts |= texts

    def note(self, event):
        self._call("note")
        self.events.append(event.kind)

    def alarm(self, incident):
        self._call("alarm")
        self.alarms.append(incident)

    def saved(self, moment):
        self._call("saved")

    def close(self):
        self._call("close")


def test_followers_are_told_what_is_recorded(tmp_path):
    heard = Heard()
    rig = Rig(tmp_path / "archive", followers=(heard,))
    rig.recorder.begin()
    rig.run(40)
    _, window, texts = rig.end()
    assert [second.moment for second in heard.seconds] == list(range(window.span.begin, window.span.end))
    assert all(second.look is not None for second in heard.seconds)
    rates = [second.server["commits"] for second in heard.seconds if second.server]
    assert rates == pytest.approx(known(window), abs=0.001)
    assert sum(second.server_seconds for second in heard.seconds) == pytest.approx(39)
    counted = [second.counted for second in heard.seconds if second.counted]
    assert sum(each.uses["42"].calls for each in counted) == window.statements["42"].calls
    assert math.fsum(each.spent for each in counted) > 0
    assert heard.texts == texts
    assert heard.limits == ("no_host",)
    assert heard.events == [EventKind.STARTED, EventKind.STOPPED]
    assert (heard.calls[0], heard.calls[-1]) == ("begin", "close")


@pytest.mark.parametrize("call", ["begin", "follow", "learn", "note", "saved", "close"])
def test_a_follower_that_fails_is_left_out_and_the_others_go_on(tmp_path, call):
    failing, heard = Heard(fails=call), Heard()
    rig = Rig(tmp_path / "archive", followers=(failing, heard))
    rig.recorder.begin()
    rig.run(40)
    _, window, _ = rig.end()
    assert sum(window.looks) == len(heard.seconds) == 40
    assert failing.calls[-1] == call
    assert failing.calls.count(call) == 1
    assert rig.told[-1] == "the listener failed and was stopped; recording goes on (RuntimeError: broken)"


def test_one_follower_tells_the_others_of_an_incident(tmp_path):
    failing, heard = Heard(fails="alarm"), Heard()
    rig = Rig(tmp_path / "archive", followers=(failing, heard))
    rig.recorder.begin()
    incident = Incident(
        kind=IncidentKind.SLOWER, begin=START, begin_interval=ValueInterval(low=START - 3, high=START + 2),
        found=START + 40, factor=2.0, peak=3.0, throughput=50.0, usual_throughput=100.0, load=8.0, usual_load=8.0,
    )  # fmt: skip
    rig.run(1)
    rig.recorder.alarm(incident)
    rig.recorder.alarm(None)
    rig.end()
    assert heard.alarms == [incident, None]
    assert failing.alarms == []


def test_seconds_without_a_connection_have_no_look(tmp_path):
    heard = Heard()
    rig = Rig(tmp_path / "archive", followers=(heard,))
    rig.recorder.begin()
    rig.run(5)
    rig.server.broken = "gone"
    rig.run(5)
    rig.end()
    assert [second.look is None for second in heard.seconds] == [False] * 5 + [True] * 5


def test_metrics_of_a_recorder_are_offered_while_it_is_at_work(tmp_path):
    recent = Recent()
    rig = Rig(tmp_path / "archive", followers=(recent,))
    endpoint = open_endpoint(parse_listen("127.0.0.1:0", anywhere=False), rig.recorder, recent)
    try:
        rig.recorder.begin()
        answer, before = rig.server.answer, len(rig.server.asked)
        rig.server.answer = lambda statement: rig.clock.advance(0.01) or answer(statement)
        rig.run(10)
        with closing(http.client.HTTPConnection(endpoint.url.split("/")[2], timeout=60)) as connection:
            connection.request("GET", "/metrics")
            lines = connection.getresponse().read().decode().splitlines()
    finally:
        endpoint.close()
    took = next(float(line.split()[1]) for line in lines if line.startswith("pgstrata_recorder_look_seconds_total "))
    assert took == pytest.approx(0.01 * (len(rig.server.asked) - before), abs=1e-5)
    assert {"pgstrata_up 1", "pgstrata_recorder_looks_total 10", 'pgstrata_load{class="Lock"} 1'} <= set(lines)
    assert not [line for line in lines if "shop" in line or "clerk" in line or "update" in line.lower()]
