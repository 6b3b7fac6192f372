import re
from dataclasses import replace
from types import SimpleNamespace

import pytest

from pgstrata.collectors.plans import PlanExplainer, choose_statements, planned_with, render_part
from pgstrata.drivers.pgbench.script import parse_statements
from pgstrata.errors import SqlError
from pgstrata.model.experiment import Protocol
from pgstrata.model.query_plans import PlannedWith
from pgstrata.ports.server import PartAnswer

PLAN = "Index Scan using pk on t  (cost=0.29..8.31 rows=1 width=4)"


class FakeSql:
    """Answers each statement with a plan, those with `bad` in them with an error."""

    def __init__(self, *, broken=False):
        self.broken = broken
        self.script = ""

    def answers(self, address, parts):
        if self.broken:
            raise SqlError("no connection")
        self.script = "\n".join(parts)
        failed = PartAnswer(error="relation does not exist", sqlstate="42P01")
        return tuple(failed if "bad" in part else PartAnswer(output=f"{PLAN}\n") for part in parts)


def explain(sql, script, version=180000, protocol=Protocol.PREPARED, settings=None):
    environment = SimpleNamespace(settings=settings or {})
    server = SimpleNamespace(
        address="there", environment=environment, build=SimpleNamespace(version=SimpleNamespace(number=version))
    )
    explainer = PlanExplainer()
    evidence = explainer.capture(SimpleNamespace(sql=sql, server=server), parse_statements(script, {}), protocol)
    return explainer.parse(evidence)


def test_a_plan_is_kept_as_it_is_beside_its_statement():
    (plan,) = explain(FakeSql(), "BEGIN; SELECT a FROM t WHERE b = :b; COMMIT;")
    assert (plan.statement, plan.text, plan.error) == ("SELECT a FROM t WHERE b = $1", PLAN, "")
    assert plan.shape == ("Index Scan using pk on t",)
    assert plan.planned_with is PlannedWith.PARAMETERS


def test_no_constant_of_a_statement_or_its_plan_is_kept():
    class Sql(FakeSql):
        def answers(self, address, parts):
            plan = (
                f"Limit  (cost=0..1 rows=1)\n  ->  {PLAN}\n        Filter: (b = 'gehe\nim 7'::text)\n"
                "        Workers Planned: 2\nJIT:\n  Functions: 5\n"
            )
            return tuple(replace(answer, output=plan) for answer in super().answers(address, parts))

    first, second, third = explain(
        Sql(), "SELECT a FROM t WHERE b = 'geheim'; SELECT a FROM t WHERE b = 4711; SELECT a FROM t WHERE b = :b;"
    )
    assert [plan.statement for plan in (first, second, third)] == [
        "SELECT a FROM t WHERE b = ?",
        "SELECT a FROM t WHERE b = ? -- 2",
        "SELECT a FROM t WHERE b = $1",
    ]
    assert first.text.splitlines() == [
        "Limit  (cost=0..1 rows=1)",
        f"  ->  {PLAN}",
        "        Filter: (b = ?::text)",
        "        Workers Planned: 2",
        "JIT:",
        "  Functions: 5",
    ]
    assert first.shape == ("Limit", "  Index Scan using pk on t", "    2 workers planned", "JIT")


def test_what_cannot_be_explained_is_said_and_the_others_are_explained():
    found = explain(FakeSql(), "SELECT a FROM bad; SELECT 1; COPY t TO STDOUT; DELETE FROM t;")
    assert [plan.error for plan in found] == [
        "relation does not exist",
        "",
        "only SELECT, INSERT, UPDATE, DELETE, MERGE, VALUES and WITH are explained",
        "",
    ]
    assert [bool(plan.text) for plan in found] == [False, True, False, True]


@pytest.mark.parametrize(
    ("state", "said", "kept"),
    [
        ("42P01", 'relation "t2" does not exist', 'relation "t2" does not exist'),
        ("22P02", 'invalid input syntax for type integer: "geheim"', "invalid input syntax for type integer: ?"),
        ("22003", 'value "4711" is out of range for type integer', "value ? is out of range for type integer"),
        ("42601", "syntax error at or near \"'geheim'\"", "syntax error at or near ?"),
        ("42601", 'syntax error at or near "4711"', "syntax error at or near ?"),
        ("57014", "canceling statement due to statement timeout", "canceling statement due to statement timeout"),
    ],
)
def test_the_servers_error_is_kept_without_values(state, said, kept):
    class Sql(FakeSql):
        def answers(self, address, parts):
            return tuple(PartAnswer(error=said, sqlstate=state) for _ in parts)

    (plan,) = explain(Sql(), "SELECT a FROM t WHERE b = 'geheim';")
    assert (plan.error, plan.text) == (kept, "")


def test_a_statement_that_cannot_be_prepared_has_its_own_error_first():
    sql = FakeSql()
    explain(sql, "SELECT a FROM t; SELECT b FROM t;", version=120000)
    prepared, executed = (sql.script.index(word) for word in ("PREPARE pgstrata_1", "EXECUTE pgstrata_1"))
    assert prepared < executed
    assert "\\if" not in sql.script


def test_without_a_connection_every_statement_says_so():
    (plan,) = explain(FakeSql(broken=True), "SELECT 1;")
    assert (plan.error, plan.shape) == ("no connection", ())


def test_a_script_without_statements_leaves_nothing():
    assert explain(FakeSql(), "\\sleep 1 ms\nBEGIN; COMMIT;") == ()


@pytest.mark.parametrize(
    ("version", "protocol", "mode", "expected"),
    [
        (180000, Protocol.PREPARED, "auto", PlannedWith.PARAMETERS),
        (120000, Protocol.PREPARED, "auto", PlannedWith.PARAMETERS),
        (110022, Protocol.PREPARED, "auto", PlannedWith.VALUES),
        (180000, Protocol.SIMPLE, "auto", PlannedWith.VALUES),
        (180000, Protocol.EXTENDED, "auto", PlannedWith.VALUES),
        (180000, Protocol.PREPARED, "force_custom_plan", PlannedWith.VALUES),
    ],
)
def test_a_statement_is_planned_as_its_protocol_has_it_planned(version, protocol, mode, expected):
    assert planned_with(version, protocol, {"plan_cache_mode": mode}) is expected


def test_each_version_is_asked_in_its_own_way():
    script = "\\set b random(7, 9)\nSELECT :a + :b;"
    for version, protocol, sent in (
        (160000, Protocol.PREPARED, "EXPLAIN (GENERIC_PLAN) SELECT $1 + $2"),
        (120000, Protocol.PREPARED, "EXPLAIN EXECUTE pgstrata_0(NULL, NULL);"),
        (100000, Protocol.PREPARED, "EXPLAIN SELECT 1 + 7"),
        (160000, Protocol.SIMPLE, "EXPLAIN SELECT 1 + 7"),
    ):
        sql = FakeSql()
        explain(sql, script, version=version, protocol=protocol)
        assert sent in sql.script


def test_nothing_of_a_statement_is_ever_a_command_of_psql_and_nothing_may_write():
    script = "SELECT '\n\\! touch /tmp/x\n', $a$\\q$a$;\nUPDATE t SET a = 1;"
    asked = choose_statements(parse_statements(script, {}), PlannedWith.PARAMETERS)
    text = "\n".join(
        render_part(one, PlannedWith.PARAMETERS, 180000, place) for place, one in enumerate(asked)
    )  # fmt: skip
    outside = "".join(re.split(r"\$pgstrata[0-9]+\$", text)[::2])
    assert "touch" not in outside
    assert "UPDATE" not in outside
    assert text.count("BEGIN READ ONLY;") == text.count("ROLLBACK;") == len(asked) == 2
    assert "ANALYZE" not in text


def test_equal_statements_are_asked_once_and_only_so_many():
    assert len(choose_statements(parse_statements("SELECT 1; SELECT 1;", {}), PlannedWith.VALUES)) == 1
    many = "".join(f"SELECT {number};" for number in range(500))
    found = choose_statements(parse_statements(many, {}), PlannedWith.VALUES)
    assert sum(not one.error for one in found) == 100
    assert found[-1].error == "only 100 statements are explained"
