"""A recorder asks for the plans of the statements with most time, each seldom, and says what it cannot have."""

import pytest

from archives import START, planned, use
from fake_clock import FakeClock
from pgstrata.app.watching.connection import Connected
from pgstrata.app.watching.plans import EVERY, MOST, PlansAsker
from pgstrata.app.watching.server import LiveServer
from pgstrata.collectors.live.logged_plans import LoggedPlan
from pgstrata.errors import DatabaseFullError, SessionLostError, SqlError
from pgstrata.model.archive import REST
from pgstrata.model.query_plans import LivePlan, PlanProblem, PlanSource

PLAN = "Index Scan using {} on stock  (cost=0.29..8.30 rows=1 width=4)\n"


class Session:
    """Plans by the text of a statement, or the error with which EXPLAIN fails; whatever else is asked is remembered."""

    def __init__(self, clock):
        self.clock, self.asked, self.plans, self.texts, self.takes = clock, [], {}, {}, 0.0
        self.superuser = b"f"

    def rows(self, statement, *, timeout=30.0):
        self.asked.append(statement)
        if "set_config" in statement:
            return b"500ms\t100ms\t" + self.superuser + b"\n"
        if "pg_stat_statements" not in statement:
            return b""
        known = {key: text for key, text in self.texts.items() if f"'{key}" in statement or f" {key}" in statement}
        return "".join(f"{key}\t{text}\n" for key, text in known.items()).encode()

    def rows_of_text(self, statement, *, timeout=30.0):
        self.asked.append(statement)
        self.clock.advance(self.takes)
        text = statement.rpartition(") ")[2]
        if isinstance(self.plans[text], Exception):
            raise self.plans[text]
        return PLAN.format(self.plans[text]).encode()

    @property
    def explained(self):
        return [statement.rpartition(") ")[2] for statement in self.asked if statement.startswith("EXPLAIN")]


class Rig:
    def __init__(self, number="180000", counting="public"):
        self.clock, self.kept, self.told = FakeClock(wall=float(START)), [], []
        self.session = Session(self.clock)
        said = {"number": number, "counting": counting, "loaded": "5000"}
        self.connected = Connected(session=self.session, server=LiveServer(said=said, system="7"), feed=None)
        self.sources, self.texts = [], {}
        self.asker = PlansAsker(self.clock.monotonic, self.keep, self.texts.update, self.told.append)

    def keep(self, moment, key, plan, source, times):
        self.kept.append((moment, key, plan))
        self.sources.append((source, times))

    def count(self, *statements):
        """Statements of which the first took most time, each with its plan."""
        for number, text in enumerate(statements):
            self.session.texts.setdefault(str(number), f"\t{text}")
            self.session.plans.setdefault(text, "stock_pkey")
        uses = {str(number): use(1, 100.0 - number) for number in range(len(statements))}
        self.asker.rank({REST: use(1000, 1000.0), **uses})

    def run(self, seconds):
        for _ in range(0, seconds, EVERY):
            self.clock.advance(EVERY)
            self.asker.ask(self.connected, int(self.clock.wall()))


@pytest.fixture
def rig():
    return Rig()


def test_each_of_the_largest_is_asked_for_once_a_minute_one_at_a_time(rig):
    rig.count(*(f"select {number}" for number in range(2 * MOST)))
    rig.run(EVERY)
    assert rig.session.explained == ["select 0"]
    rig.run(9 * EVERY)
    assert rig.session.explained == [f"select {number}" for number in range(MOST)]
    rig.run(600 - 10 * EVERY)
    assert all(8 <= rig.session.explained.count(f"select {number}") <= 10 for number in range(MOST))
    assert len({moment for moment, _, _ in rig.kept}) == len(rig.kept), "never two in a second"
    assert {plan.outline for _, _, plan in rig.kept} == {("Index Scan using stock_pkey on stock",)}


def test_it_is_asked_in_a_read_only_transaction_with_little_time(rig):
    rig.count("select 0")
    rig.run(EVERY)
    texts, begin, limits, _, explain, _, end = rig.session.asked
    assert "pg_stat_statements" in texts
    assert (begin, end) == ("BEGIN READ ONLY", "COMMIT")
    assert "statement_timeout" in limits
    assert "lock_timeout" in limits
    assert explain.startswith("EXPLAIN (GENERIC_PLAN")
    assert rig.connected.asked == 2, "the texts, and what was committed"


def test_a_statement_that_takes_long_to_be_planned_is_asked_for_seldom(rig):
    rig.session.takes = 0.3
    rig.count("select 0")
    rig.run(290)
    assert rig.session.explained == ["select 0"]
    rig.run(30)
    assert len(rig.session.explained) == 2


def test_what_may_not_be_planned_is_kept_told_once_and_tried_again_after_an_hour(rig):
    denied = SqlError("permission denied for table stock", sqlstate="42501")
    rig.session.plans |= {"update 0": denied, "update 1": denied}
    rig.count("update 0", "update 1", "select 2")
    rig.run(600)
    assert [plan.problem for _, key, plan in rig.kept if key in {"0", "1"}] == [denied.what] * 2
    assert [plan.outline for _, key, plan in rig.kept if key == "2"]
    (told,) = rig.told
    assert told.startswith("a statement has no plan in the archive: permission denied for table stock (GRANT SELECT")
    assert rig.session.asked.count("ROLLBACK") == 2
    rig.run(3600)
    assert rig.session.explained.count("update 0") == 2


def test_errors_do_not_fill_the_servers_log(rig):
    texts = [f"select {number}" for number in range(MOST)]
    rig.session.plans |= dict.fromkeys(texts, SqlError("relation does not exist", sqlstate="42P01"))
    rig.count(*texts)
    rig.run(600)
    assert len(rig.session.explained) <= 7
    assert "search_path" in rig.told[0]


def test_a_lock_in_the_way_is_no_reason_of_the_statement(rig):
    rig.session.plans["select 0"] = SqlError("canceling statement due to lock timeout", sqlstate="55P03")
    rig.count("select 0")
    rig.run(60)
    assert not rig.kept
    assert not rig.told


@pytest.mark.parametrize(
    ("row", "problem"),
    [("constants\t", PlanProblem.CONSTANTS), ("superuser\t", PlanProblem.SUPERUSER), ("kind\t", None)],
)
def test_texts_that_cannot_be_explained_are_not_and_what_has_no_plan_is_not_spoken_of(rig, row, problem):
    rig.session.texts["0"] = row
    rig.count("copy t")
    rig.run(600)
    assert not rig.session.explained
    assert [plan.problem for _, _, plan in rig.kept] == ([problem] if problem else [])
    assert not rig.told


@pytest.mark.parametrize("rig", [Rig(number="150000"), Rig(counting="")])
def test_servers_without_generic_plans_or_counted_statements_are_not_asked(rig):
    rig.count("select 0")
    rig.run(60)
    assert not rig.session.asked


def test_a_failure_leaves_no_transaction_open_and_a_lost_connection_is_left_to_the_recorder(rig):
    full = DatabaseFullError("no space left on device", host="db1", port=5432)
    rig.session.plans |= {"select 0": full, "select 1": SessionLostError("terminating connection")}
    rig.count("select 0", "select 1")
    with pytest.raises(DatabaseFullError):
        rig.run(EVERY)
    assert rig.session.asked[-1] == "ROLLBACK"
    with pytest.raises(SessionLostError):
        rig.run(EVERY)
    assert rig.session.asked[-1].startswith("EXPLAIN")


def test_logged_plans_are_counted_by_shape_and_their_texts_are_learnt_once(rig):
    index, scan = planned("Index Scan using a on t"), planned("Seq Scan on t")
    logged = [LoggedPlan(statement="q1", text="select ?", plan=plan) for plan in (index, scan, index)]
    rig.asker.keep_logged(START, logged)
    assert list(zip(rig.kept, rig.sources, strict=True)) == [
        ((START, "q1", index), (PlanSource.LOGGED, 2)), ((START, "q1", scan), (PlanSource.LOGGED, 1))
    ]  # fmt: skip
    assert rig.texts == {"q1": "select ?"}
    rig.texts.clear()
    rig.asker.keep_logged(START + 1, logged)
    assert not rig.texts


def test_a_role_that_becomes_a_superuser_asks_for_no_more_plans(rig):
    rig.count("select 0", "select 1")
    rig.run(EVERY)
    rig.session.superuser = b"t"
    rig.run(EVERY)
    assert rig.session.explained == ["select 0"]
    assert rig.kept[-1][1:] == ("1", LivePlan(problem=PlanProblem.SUPERUSER))
    assert rig.session.asked[-1] == "COMMIT"


def test_what_a_function_sets_while_a_statement_is_planned_is_taken_back(rig):
    rig.count("select 0")
    rig.run(EVERY)
    place = next(number for number, said in enumerate(rig.session.asked) if said.startswith("EXPLAIN"))
    assert rig.session.asked[place - 1] == "SAVEPOINT pgstrata"
    assert rig.session.asked[place + 1 :] == ["ROLLBACK TO SAVEPOINT pgstrata", "COMMIT"]


def test_memory_of_texts_is_bounded(rig, monkeypatch):
    monkeypatch.setattr("pgstrata.app.watching.plans._MOST_KNOWN", 3)
    rig.count(*(f"select {number}" for number in range(MOST)))
    rig.run(EVERY)
    rig.count("select 0")
    rig.run(EVERY)
    assert rig.session.explained == ["select 0", "select 0"]
