"""A recorder goes on whatever becomes of its server, and its archive tells what happened."""

import http.client
import math
import sqlite3
from contextlib import closing, suppress

import pytest

from archives import START
from fake_clock import FakeClock
from pgstrata.app.httpd.listen import parse_listen
from pgstrata.app.watching.host_feed import HostSecond, OpenedHostFeed
from pgstrata.app.watching.recent import Recent
from pgstrata.app.watching.recorder import Recorder
from pgstrata.app.watching.ticker import Ticker
from pgstrata.app.watching.watch import open_endpoint
from pgstrata.collectors.live.counters import counters_statement
from pgstrata.collectors.live.horizon import horizon_statement
from pgstrata.collectors.live.log import LOG_RIGHT, log_statement
from pgstrata.collectors.live.relations import relations_statement
from pgstrata.collectors.live.sessions import sessions_statement
from pgstrata.errors import ArchiveError, HostFileError, HostNotFitError, SessionLostError, SqlError
from pgstrata.model.archive import ArchiveEvent, EventKind
from pgstrata.model.attribution import ValueInterval
from pgstrata.model.incidents import Incident, IncidentKind
from pgstrata.store.archives.reader import ArchiveReader
from pgstrata.store.archives.thinning import Keep, Thinning
from pgstrata.store.archives.writer import ArchiveWriter

VERSION = 180000


class FakeServer:
    """Answers as a server does; `broken` is what a session or a connection fails with."""

    def __init__(self):
        self.started, self.system, self.broken, self.commits, self.calls, self.resets = 1000.0, "7", None, 0, 0, "0\t1"
        self.read_only, self.number, self.counting, self.sessions, self.opened = "on", VERSION, "public", 0, 0
        self.asked, self.scans, self.catalogue, self.log_right, self.timing = [], 0, 1000, "t", "on"
        self.committed = lambda: 60

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
                "on", self.catalogue, "shop", "0", "100", "128MB", self.timing,
            )  # fmt: skip
            return "\t".join(map(str, words))
        if statement == sessions_statement(VERSION):
            return "client backend\tshop\tclerk\tapp\tactive\tLock\ttuple\t42\t\t11\t3\t12\n"
        if statement == counters_statement(VERSION):
            self.commits += self.committed()
            return f"database.xact_commit\t{self.commits}\ndatabase.xact_rollback\t0\ndatabase.stats_reset\t1"
        if statement == LOG_RIGHT:
            return self.log_right
        if statement in (log_statement(), log_statement(named=False)):
            return "log/postgresql.log\t/data\t1"
        if statement == horizon_statement():
            return "session\treports\t77\tidle in transaction\t9000\t600"
        if statement == relations_statement():
            self.scans += 10
            return f"table\tpublic.stock\t\t{self.scans}\t" + "\t".join("5" * 13)
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
    name, user = "local", "me"

    def read_files(self, paths):
        return {}

    def run(self, command, **_):
        raise HostFileError("there is no such file")


@pytest.fixture
def rig(tmp_path):
    return Rig(tmp_path / "archive")


class Rig:
    def __init__(self, folder, **more):
        self.folder, self.told, self.server, self.clock = folder, [], FakeServer(), FakeClock(wall=float(START))
        self.recorder = Recorder(
            connect=self.server.connect, here=OpenedHostFeed(NoHost(), self.clock.monotonic),
            archive=ArchiveWriter.open(folder, Keep()), ticker=Ticker(self.clock), tell=self.told.append, **more,
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
    assert all(45 < rate < 60 for rate in known(window)), "the recorder's own transactions are not the load's"
    assert rig.server.opened == 1


def test_a_server_that_counts_late_and_has_no_other_transactions_has_none(rig):
    told = [0]

    def each_third_time():
        told.append(len(rig.server.asked))
        return 0 if len(told) % 3 != 1 else told[-1] - told[-4]

    rig.server.committed = each_third_time
    rig.recorder.begin()
    rig.run(60)
    assert max(known(rig.end()[1])[5:]) == 0


def test_tables_and_what_holds_back_vacuum_are_recorded(rig):
    rig.recorder.begin()
    rig.run(130)
    _, window, _ = rig.end()
    ((relation, found),) = window.relations.items()
    assert (relation.name, relation.is_index) == ("public.stock", False)
    assert found.sequential_scans == 30
    assert found.live_rows == 5
    assert window.relations_counted == pytest.approx(110)
    (horizon,) = window.horizons
    assert (horizon.holder.name, horizon.holder.pid, horizon.age, horizon.held) == ("reports", 77, 9000, 600)


def test_a_database_with_too_many_tables_is_not_asked_for_them(rig):
    rig.server.catalogue = 1 << 30
    rig.recorder.begin()
    rig.run(70)
    facts, window, _ = rig.end()
    assert window.relations_counted is None
    assert "many_tables" in facts.limits
    assert relations_statement() not in rig.server.asked


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
    (reset,) = (event for event in window.events if event.kind is EventKind.RESET)
    assert reset.detail == "pg_stat_statements"
    assert EventKind.EVICTED not in kinds(window)


def test_entries_that_are_thrown_away_are_told_as_such(rig):
    rig.recorder.begin()
    rig.run(20)
    rig.server.resets = "7\t1"
    rig.run(10)
    assert EventKind.EVICTED in kinds(rig.end()[1])


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
    steps = {event.detail for event in window.events if event.kind is EventKind.CLOCK}
    assert steps == {"+3600 s", "-1800 s"}
    assert facts.span.seconds > 3600


def moments(heard):
    return [second.moment - START for second in heard.seconds]


def test_moments_follow_a_clock_that_was_set_back(tmp_path):
    heard = Heard()
    rig = Rig(tmp_path / "archive", followers=(heard,))
    rig.recorder.begin()
    rig.run(20)
    rig.clock._wall -= 7200
    rig.run(20)
    assert moments(heard) == [*range(1, 21), *range(21 - 7200, 41 - 7200)]
    rig.clock._wall -= 30
    rig.run(5)
    assert moments(heard)[40:] == [each - 7200 for each in range(41, 46)], "after a short step back it waits"
    assert int(rig.clock.wall()) == heard.seconds[-1].moment


def test_a_recorder_that_was_set_back_still_reaches_its_server_again(rig):
    rig.recorder.begin()
    rig.run(5)
    rig.server.broken = "gone"
    rig.run(5)
    rig.clock._wall -= 7200
    rig.server.broken = None
    rig.run(20)
    assert rig.server.sessions == 1


def test_a_machine_that_was_suspended_makes_no_rates_of_what_passed_meanwhile(rig):
    rig.recorder.begin()
    rig.run(30)
    rig.clock._wall += 3600
    rig.server.commits += 3_600_000
    rig.server.calls += 3_600_000
    rig.run(30)
    _, window, _ = rig.end()
    assert max(known(window)) < 60
    assert window.statements["42"].calls == 500
    assert [gap.seconds for gap in window.gaps] == [3600]


def test_seconds_that_are_missed_do_not_keep_back_what_is_due_in_them(tmp_path):
    heard = Heard()
    rig = Rig(tmp_path / "archive", followers=(heard,))
    answer = rig.server.answer

    def slow(statement):
        if statement == sessions_statement(VERSION):
            rig.clock.advance(1.5)
        return answer(statement)

    rig.server.answer = slow
    rig.recorder.begin()
    rig.run(1)
    rig.clock.advance(0.2 if heard.seconds[0].moment % 2 else 1.2)
    rig.run(90)
    assert {moment % 2 for moment in moments(heard)[1:]} == {1}
    assert heard.calls.count("saved") > 30
    assert sum(second.counted is not None for second in heard.seconds) >= 16
    with sqlite3.connect(rig.folder / "archive.sqlite") as connection:
        assert connection.execute("SELECT count(*) FROM look_minute").fetchone() >= (2,)
    connection.close()


def fail_at(rig, wanted, sqlstate, what="no"):
    """Statements with a text fail from now on; how often they were asked."""
    answer, asked = rig.server.answer, []

    def fail(statement):
        if wanted not in statement:
            return answer(statement)
        asked.append(statement)
        raise SqlError(what, sqlstate=sqlstate)

    rig.server.answer = fail
    return asked


COUNTERS = counters_statement(VERSION)


@pytest.mark.parametrize(
    ("wanted", "sqlstate", "part", "remedy"),
    [
        (COUNTERS, "57014", "statistics of the server", ""),
        ("pg_stat_statements(", "42P01", "counters of statements", "CREATE EXTENSION"),
        ("pg_stat_statements_info", "42501", "counters of statements", "GRANT pg_monitor"),
        ("string_to_array", "57014", "texts of statements", ""),
    ],
)
def test_a_part_that_fails_costs_the_others_nothing_and_is_told_once(rig, wanted, sqlstate, part, remedy):
    rig.recorder.begin()
    asked = fail_at(rig, wanted, sqlstate)
    rig.run(300)
    _, window, _ = rig.end()
    assert sum(window.looks) == 300
    assert ("commits" in window.rates) == (wanted != COUNTERS)
    assert (window.counted is not None) == (part != "counters of statements")
    missed = [event.detail for event in window.events if event.kind is EventKind.MISSED]
    assert missed == [f"{part}: no"]
    assert len(rig.told) == 1
    assert remedy in rig.told[0]
    assert 4 <= len(asked) <= 8, "it is tried again, less and less often"


def test_without_the_right_to_use_the_schema_of_an_extension_that_right_is_named(rig):
    rig.recorder.begin()
    fail_at(rig, "pg_stat_statements(", "42501", "permission denied for schema monitoring")
    rig.run(20)
    (told,) = rig.told
    assert "GRANT USAGE ON this SCHEMA" in told


@pytest.mark.parametrize("sqlstate", ["0A000", "42703", "42501"])
def test_a_view_that_the_server_does_not_show_costs_the_others_nothing(tmp_path, sqlstate):
    heard = Heard()
    rig = Rig(tmp_path / "archive", followers=(heard,))
    answer = rig.server.answer
    commits = answer(COUNTERS)

    def refuse(statement):
        if "c.name AS pgstrata" not in statement:
            return answer(statement)
        if "lsn.position" in statement:
            raise SqlError("pg_current_wal_insert_lsn() is not supported", sqlstate=sqlstate)
        return answer(COUNTERS) if "database.xact_commit" in statement else "wal.records\t5"

    assert "lsn.position" in COUNTERS
    assert "xact_commit" in commits
    rig.server.answer = refuse
    rig.recorder.begin()
    rig.run(90)
    assert "no_position" in heard.limits
    facts, window, _ = rig.end()
    assert len(known(window)) > 80
    assert "no_position" in facts.limits
    assert [told for told in rig.told if "position in the WAL" in told] == rig.told
    assert len(rig.told) == 1
    assert not any(event.kind is EventKind.MISSED for event in window.events)
    whole = [statement for statement in rig.server.asked if statement == COUNTERS]
    assert len(whole) <= 2, "what the server refuses is not asked for again"


def test_views_are_asked_for_again_once_the_role_may_see_more(rig):
    answer, rights = rig.server.answer, ["f"]

    def refuse(statement):
        if "server_version" in statement:
            words = answer(statement).split("\t")
            return "\t".join((*words[:3], rights[0], *words[4:]))
        if "lsn.position" in statement and rights[0] == "f":
            raise SqlError("permission denied", sqlstate="42501")
        return answer(COUNTERS) if "database.xact_commit" in statement else answer(statement)

    rig.server.answer = refuse
    rig.recorder.begin()
    rig.run(70)
    assert "no_position" in rig.recorder.limits
    rights[0] = "t"
    rig.run(70)
    assert not {"no_position", "no_pg_monitor"} & set(rig.recorder.limits)


def test_that_reads_and_writes_are_not_timed_is_a_limit(rig):
    rig.server.timing = "off"
    rig.recorder.begin()
    assert "no_io_timing" in rig.recorder.limits


def test_a_log_of_another_machine_that_turns_out_to_be_closed_is_told(tmp_path):
    there = TalkingHost()
    rig = Rig(tmp_path / "archive", there=there)
    rig.recorder.begin()
    rig.run(5)
    there.log_limit = "no_log"
    rig.run(70)
    assert "no_log" in rig.end()[0].limits
    assert [told for told in rig.told if "log cannot be read" in told] == rig.told != []


def test_a_part_that_works_again_is_recorded_again(rig):
    rig.recorder.begin()
    answer = rig.server.answer
    fail_at(rig, COUNTERS, "57014")
    rig.run(30)
    rig.server.answer = answer
    rig.run(60)
    assert len(known(rig.end()[1])) > 30


def test_sessions_that_cannot_be_read_cost_neither_counters_nor_statements(rig):
    rig.recorder.begin()
    rig.run(5)
    answer = rig.server.answer
    fail_at(rig, sessions_statement(VERSION), "57014")
    rig.run(60)
    rig.server.answer = answer
    rig.run(5)
    _, window, _ = rig.end()
    assert sum(window.looks) == 10
    assert len(known(window)) > 60
    assert window.counted == 60


def test_an_answer_of_another_shape_is_no_end(rig, monkeypatch):
    rig.recorder.begin()
    monkeypatch.setattr(rig.server, "answer", lambda _: "what\tis\tthis")
    rig.run(70)
    assert rig.recorder.looks == 0
    assert len(rig.told) == 6
    assert all("could not be read" in told for told in rig.told)


def test_an_answer_of_another_shape_is_not_quoted_where_no_texts_are_kept(tmp_path):
    rig = Rig(tmp_path / "archive", query_text=False)
    rig.recorder.begin()
    rig.run(5)
    answer = rig.server.answer
    rig.server.answer = lambda statement: (
        "select secrets" if statement == sessions_statement(VERSION) else answer(statement)
    )
    rig.run(10)
    rig.server.answer = answer
    rig.run(10)
    (missed,) = (event for event in rig.end()[1].events if event.kind is EventKind.MISSED)
    assert missed.detail == "sessions: unknown shape of a session"
    assert not any("secrets" in told for told in rig.told)


def test_counters_of_the_host_that_cannot_be_read_are_no_end(rig):
    class Strange(NoHost):
        def read_files(self, paths):
            return dict.fromkeys(paths, b"postgres cpu x y z")

    answer = rig.server.answer
    rig.server.answer = lambda statement: answer(statement).replace("10.0.0.9", "")
    rig.recorder.here = OpenedHostFeed(Strange(), rig.clock.monotonic)
    rig.recorder.begin()
    rig.run(20)
    assert sum(rig.end()[1].looks) == 20


@pytest.mark.parametrize(("sqlstate", "verb"), [("26000", "EXECUTE"), ("42P05", "PREPARE"), ("0A000", "EXECUTE")])
def test_where_statements_cannot_be_prepared_they_are_asked_as_they_are(rig, monkeypatch, sqlstate, verb):
    rows = FakeSession.rows

    def refuse(session, statement, **more):
        if statement.startswith(verb):
            raise SqlError("prepared statement does not exist", sqlstate=sqlstate)
        return rows(session, statement, **more)

    monkeypatch.setattr(FakeSession, "rows", refuse)
    rig.recorder.begin()
    rig.run(30)
    _, window, _ = rig.end()
    assert sum(window.looks) == 30
    assert EventKind.MISSED not in kinds(window)
    assert window.counted == 20


def test_who_is_not_let_in_any_more_is_told_why_and_asks_seldom(rig):
    rig.recorder.begin()
    rig.run(5)
    rig.server.broken = "gone"
    rig.run(1)
    rig.server.broken = 'password authentication failed for user "watcher"'
    tries, connect = [], rig.recorder.connect

    def count():
        tries.append(1)
        return connect()

    rig.recorder.connect = count
    rig.run(900)
    assert len(tries) <= 4
    assert [told for told in rig.told if "still no connection" in told] == [
        'still no connection: password authentication failed for user "watcher"; trying again every 300 s'
    ]


@pytest.mark.parametrize(("name", "value"), [("read_only", "off"), ("number", 90600)])
def test_a_server_that_must_not_be_watched_any_more_ends_the_recorder(rig, name, value):
    rig.recorder.begin()
    rig.run(5)
    rig.server.broken = "gone"
    rig.run(1)
    rig.server.broken = None
    setattr(rig.server, name, value)
    with pytest.raises(HostNotFitError):
        rig.run(10)
    assert rig.server.sessions == 0


def test_what_changes_at_the_server_is_noticed_while_it_is_recorded(tmp_path):
    heard = Heard()
    rig = Rig(tmp_path / "archive", followers=(heard,))
    rig.server.counting = ""
    rig.recorder.begin()
    assert "no_extension" in heard.limits
    rig.run(65)
    rig.server.counting = "public"
    rig.run(65)
    assert "no_extension" not in heard.limits
    rig.run(30)
    rig.server.counting = ""
    rig.run(60)
    assert any("the extension pg_stat_statements is not in this database" in told for told in rig.told)
    facts, window, _ = rig.end()
    assert "no_extension" in facts.limits
    assert window.counted > 0


def test_a_server_that_does_not_say_which_it_is_takes_no_archive_over(rig):
    rig.recorder.begin()
    rig.run(5)
    rig.server.broken, rig.server.system = "gone", ""
    rig.run(1)
    rig.server.broken = None
    rig.run(10)
    rig.server.broken, rig.server.system = "gone", "8"
    rig.run(1)
    rig.server.broken = None
    with pytest.raises(ArchiveError, match="another server"):
        rig.run(10)


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
    missed = [event.detail.partition(":")[0] for event in window.events if event.kind is EventKind.MISSED]
    assert missed == ["sessions", "statistics of the server"]
    assert len(rig.told) == 2
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


def test_statements_that_are_known_by_their_texts_alone_do_not_fill_memory_for_months(rig):
    rig.recorder.begin()
    rig.run(20)
    rig.recorder._identities |= {f"q{number}": "" for number in range(20_001)}
    rig.run(20)
    assert len(rig.recorder._identities) == 2
    _, window, _ = rig.end()
    assert set(window.statements) == {"42"}, "the recorder's own are still known as such"


def test_statements_of_the_counters_are_asked_for_before_those_of_sessions(rig):
    rig.recorder.begin()
    rig.run(15)
    rig.recorder._identities.clear()
    rig.recorder._wanted |= {f"1{number:04}" for number in range(500)}
    rig.run(5)
    assert rig.recorder._identities["42"] == "update t set a = ?"


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


def test_followers_and_connection_are_closed_although_the_archive_can_no_longer_be_written(tmp_path, monkeypatch):
    heard = Heard()
    rig = Rig(tmp_path / "archive", followers=(heard,))
    rig.recorder.begin()
    rig.run(3)

    def fail(_, now):
        raise ArchiveError("the archive is damaged")

    monkeypatch.setattr(ArchiveWriter, "flush", fail)
    with pytest.raises(ArchiveError, match="damaged"):
        rig.recorder.run(0)
    assert heard.calls[-1] == "close"
    assert rig.server.sessions == 0


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


class Alarming(Heard):
    """Tells the others of an incident while it is told a second itself."""

    announce = None

    def follow(self, second):
        super().follow(second)
        self.announce(None)


def test_a_follower_that_fails_while_another_tells_of_an_incident_is_left_out_once(tmp_path):
    first, failing, heard = Alarming(), Heard(fails="alarm"), Heard()
    rig = Rig(tmp_path / "archive", followers=(first, failing, heard))
    first.announce = rig.recorder.alarm
    rig.recorder.begin()
    rig.run(3)
    rig.end()
    assert failing.calls[-1] == "alarm"
    assert len(heard.seconds) == 3
    assert [text for text in rig.told if "was stopped" in text] == [
        "the listener failed and was stopped; recording goes on (RuntimeError: broken)"
    ]


def test_seconds_without_a_connection_have_no_look(tmp_path):
    heard = Heard()
    rig = Rig(tmp_path / "archive", followers=(heard,))
    rig.recorder.begin()
    rig.run(5)
    rig.server.broken = "gone"
    rig.run(5)
    rig.end()
    assert [second.look is None for second in heard.seconds] == [False] * 5 + [True] * 5


def test_texts_that_the_archive_has_forgotten_are_asked_for_again(rig, monkeypatch):
    rig.recorder.begin()
    rig.run(50)
    asked = [statement for statement in rig.server.asked if "string_to_array" in statement]
    forgetting = Thinning(begin=0, detailed_since=0, by_size=False, forgot=True)
    monkeypatch.setattr(ArchiveWriter, "tidy", lambda *_: forgetting)
    rig.run(70)
    assert len([statement for statement in rig.server.asked if "string_to_array" in statement]) > len(asked)


def test_another_program_that_writes_to_the_archive_is_told_once_and_no_end(rig):
    rig.recorder.begin()
    rig.run(10)
    other = sqlite3.connect(rig.folder / "archive.sqlite", isolation_level=None)
    rig.recorder.archive._connection.execute("PRAGMA busy_timeout = 0")
    other.execute("BEGIN IMMEDIATE")
    before = int(rig.clock.wall())
    rig.run(60)
    assert before - 5 <= rig.recorder.unsaved_since <= before + 5
    other.execute("ROLLBACK")
    other.close()
    rig.run(60)
    assert rig.recorder.unsaved_since is None
    assert sum(rig.end()[1].looks) == 130
    assert len(rig.told) == 1
    assert "another program writes to the archive: new records are kept in memory for a while; close it" in rig.told[0]


class TalkingHost:
    """The server's host with a log; `broken` is what it fails with."""

    name, log_limit = "ssh:db1", ""

    def __init__(self, backends=(1,)):
        self.backends, self.places, self.broken = backends, [], None

    def runs(self, backend):
        return backend in self.backends

    def aim(self, place):
        self.places.append(place)

    def read(self, moment):
        if self.broken:
            raise HostFileError(self.broken)
        events = (ArchiveEvent(moment=moment, kind=EventKind.ERRORS, times=3),) if moment % 10 == 0 else ()
        return HostSecond(rates={"host_user_cpu": 0.5}, events=events)

    def close(self):
        pass


def test_the_named_host_is_read_and_its_log_counted(tmp_path):
    heard, there = Heard(), TalkingHost()
    rig = Rig(tmp_path / "archive", there=there, followers=(heard,))
    rig.recorder.begin()
    rig.run(40)
    facts, window, _ = rig.end()
    assert "no_host" not in facts.limits
    assert set(window.rates["host_user_cpu"]) == {0.5}
    errors = [event for event in window.events if event.kind is EventKind.ERRORS]
    assert [event.times for event in errors] == [3, 3, 3, 3]
    assert heard.events.count(EventKind.ERRORS) == 4
    assert there.places[0].path == "/data/log/postgresql.log"


def test_a_role_that_may_not_ask_for_the_log_does_not_ask_for_it(tmp_path):
    there = TalkingHost()
    rig = Rig(tmp_path / "archive", there=there)
    rig.server.log_right = "f"
    rig.recorder.begin()
    rig.run(70)
    rig.end()
    assert there.places
    assert not any("pg_current_logfile()," in statement for statement in rig.server.asked)
    assert log_statement(named=False) in rig.server.asked
    assert rig.told == []


def test_a_host_on_which_the_server_does_not_run_is_refused(tmp_path):
    rig = Rig(tmp_path / "archive", there=TalkingHost(backends=()))
    with pytest.raises(HostNotFitError, match="the server does not run on ssh:db1"):
        rig.recorder.begin()
    assert rig.server.sessions == 0


def test_a_host_that_fails_is_told_once_and_sessions_are_recorded(tmp_path):
    there = TalkingHost()
    rig = Rig(tmp_path / "archive", there=there)
    rig.recorder.begin()
    there.broken = "no space"
    rig.run(30)
    assert sum(rig.end()[1].looks) == 30
    assert sum("no space" in told for told in rig.told) == 1


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
