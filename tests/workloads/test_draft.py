"""Drafts of workloads: what is read of normalised statements, and what becomes of their parameters."""

from __future__ import annotations

import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgstrata.model.draft import LOOK, ColumnFacts, CountedStatement
from pgstrata.model.server import Address
from pgstrata.workloads.draft.experiment import dump_command
from pgstrata.workloads.draft.marks import number_marks
from pgstrata.workloads.draft.scripts import choose, make_scripts
from pgstrata.workloads.draft.statements import How, TableName, parse_statement


def column(name, type_="integer", table="orders", **more):
    facts = {"numeric": type_ in {"integer", "numeric"}, "whole": type_ == "integer", "low": 1.0, "high": 900.0, **more}
    return ColumnFacts(schema="public", table=table, column=name, type=type_, **facts)


FACTS = {
    TableName(schema="", name="orders"): [
        column("id", unique=True),
        column("customer"),
        column("amount", "numeric", low=0.5, high=99.5),
        column("status", "text", low=None, high=None, distinct=3.0),
        column("kind", distinct=2.0, high=2.0),
        column("empty", low=None, high=None),
    ],
    TableName(schema="", name="customers"): [
        column("id", table="customers"),
        column("name", "text", table="customers"),
    ],
}


def used(text):
    return {n: (p.how, p.qualifier, p.column) for n, p in parse_statement(text).parameters.items()}


def script(text, **counts):
    one = CountedStatement(identity="7", text=text, calls=10, seconds=1.0, **counts)
    (made,) = make_scripts(choose([one], 10), FACTS)
    return made


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("SELECT * FROM orders WHERE id = $1", {1: (How.COMPARED, "", "id")}),
        ("SELECT * FROM orders o WHERE $1 <= o.id", {1: (How.COMPARED, "o", "id")}),
        ('SELECT * FROM "Orders" AS o WHERE o."Id" <> ($1::int)', {1: (How.COMPARED, "o", "Id")}),
        (
            "SELECT 1 FROM t WHERE a BETWEEN $1 AND $2 AND b = $3",
            {1: (How.COMPARED, "", "a"), 2: (How.COMPARED, "", "a"), 3: (How.COMPARED, "", "b")},
        ),
        ("SELECT 1 FROM t WHERE a IN ($1, $2)", {1: (How.COMPARED, "", "a"), 2: (How.COMPARED, "", "a")}),
        ("SELECT 1 FROM t WHERE a IN ($1 /*, ... */)", {1: (How.SEVERAL, "", "")}),
        ("SELECT 1 FROM t WHERE a = ANY ($1)", {1: (How.ARRAY, "", "")}),
        ("SELECT 1 FROM t WHERE a = $1::int[]", {1: (How.ARRAY, "", "")}),
        ("SELECT 1 FROM t LIMIT $1 OFFSET $2", {1: (How.LIMIT, "", ""), 2: (How.LIMIT, "", "")}),
        ("UPDATE t SET a = a + $1, b = $2", {1: (How.ADDED, "", "a"), 2: (How.COMPARED, "", "b")}),
        (
            "INSERT INTO t (a, b, c) VALUES ($1, $2, now()), ($3, $4::text, now()) ON CONFLICT (a) DO UPDATE SET b = $5",
            {1: (How.INSERTED, "", "a"), 2: (How.INSERTED, "", "b"), 3: (How.INSERTED, "", "a"),
             4: (How.INSERTED, "", "b"), 5: (How.COMPARED, "", "b")},
        ),
        ("SELECT 1 FROM t WHERE lower(a) = $1", {1: (How.UNKNOWN, "", "")}),
        ("SELECT 1 FROM t WHERE a + b = $1", {1: (How.UNKNOWN, "", "")}),
        ("SELECT 1 FROM t WHERE a = $1 / $2", {1: (How.UNKNOWN, "", ""), 2: (How.UNKNOWN, "", "")}),
        ("SELECT 1 FROM t WHERE a = -$1", {1: (How.UNKNOWN, "", "")}),
        ("SELECT 1 FROM t WHERE a > now() - interval $1", {1: (How.UNKNOWN, "", "")}),
        ("SELECT count(*) > $1 FROM t WHERE a->>$2 = $3", dict.fromkeys((1, 2, 3), (How.UNKNOWN, "", ""))),
        ("SELECT $1, * FROM t WHERE a = $1", {1: (How.COMPARED, "", "a")}),
    ],
)  # fmt: skip
def test_parameters_belong_to_the_columns_that_they_are_compared_with(text, found):
    assert used(text) == found


@pytest.mark.parametrize(
    ("text", "tables"),
    [
        ("SELECT * FROM a, s.b AS x, (SELECT 1 FROM c) y, d", ["a", "x=s.b", "c", "d"]),
        ("UPDATE ONLY a SET x = 1 FROM b WHERE a.id = b.id", ["a", "b"]),
        ("WITH r AS (SELECT * FROM a) SELECT * FROM r JOIN b USING (id) FOR UPDATE", ["a", "b"]),
        ("DELETE FROM a USING b c WHERE a.x IS DISTINCT FROM c.x", ["a", "c=b"]),
        ("SELECT * FROM generate_series(1, 2) g JOIN a ON true", ["a"]),
    ],
)
def test_tables_are_found_with_their_aliases(text, tables):
    found = [
        (alias if alias == table.name else f"{alias}={'.'.join(filter(None, (table.schema, table.name)))}")
        for alias, table in parse_statement(text).tables
    ]
    assert sorted(found) == sorted(tables)


def test_ranges_come_from_statistics():
    made = script("SELECT * FROM orders WHERE id = $1 AND kind = $2 AND amount BETWEEN $3 AND $4")
    assert made.looks == 0
    assert "\\set id random(1, 900)\n" in made.text
    assert "-- kind: orders.kind (integer), 1 to 2 in its statistics; 2 distinct values" in made.text
    assert "\\set amount random(1, 99)\n" in made.text
    assert "\\set amount_2 random(:amount, 99)\n" in made.text
    last = made.text.rstrip().splitlines()[-1]
    assert last == "SELECT * FROM orders WHERE id = :id AND kind = :kind AND amount BETWEEN :amount AND :amount_2;"
    assert made.name == "01-select-orders.sql"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELECT 1 FROM orders WHERE status = $1", "status is a value of orders.status (text), 3 distinct values"),
        ("SELECT 1 FROM orders LIMIT $1", "limit is the number of rows of a LIMIT"),
        ("SELECT 1 FROM orders WHERE id = ANY ($1)", "is an array"),
        ("SELECT 1 FROM orders WHERE id IN ($1 /*, ... */)", "list of constants"),
        ("SELECT 1 FROM orders WHERE empty = $1", "has no statistics here: ANALYZE"),
        ("SELECT 1 FROM orders JOIN customers ON true WHERE id = $1", "compared with id, but its table is not clear"),
        ("SELECT 1 FROM nobody WHERE id = $1", "not visible"),
        ("INSERT INTO orders (id, customer) VALUES ($1, $2)", "in a unique index"),
        ("SELECT 1 FROM orders WHERE created > now() - interval $1", "not compared with a column (interval)"),
    ],
)
def test_a_person_must_look_where_no_range_is_known(text, reason):
    made = script(text)
    assert made.looks == 1
    (line,) = (line for line in made.text.splitlines() if line.startswith(LOOK))
    assert reason in line


def test_types_before_constants_become_casts_and_colons_stay_apart():
    made = script("SELECT a[i:j], b[$1:$2], c /* :no */ FROM orders WHERE customer = $3::int -- :nor\n AND d > date $4")
    last = made.text.rstrip().split("\n", made.text.count(LOOK) + 3)[-1]
    assert "a[i: j], b[:p1: :p2]" in last
    assert ":customer::int" in last
    assert "d > :p4::date" in last or "d > :d::date" in last
    assert ":no" not in last


def test_weights_are_the_ratio_of_calls_and_the_rest_is_listed():
    def one(text, calls, seconds, **more):
        return CountedStatement(identity="1", text=text, calls=calls, seconds=seconds, **more)

    chosen = choose(
        [
            one("SELECT 1 FROM orders WHERE id = $1", 3000, 50.0),
            one("UPDATE orders SET kind = $1 WHERE id = $2", 1000, 20.0),
            one("VACUUM orders", 1, 9.0),
            one(None, 1, 8.0),
            one("SELECT 2", 1, 7.0, top_level=False),
            one("SELECT * FROM pg_catalog.pg_class", 1, 3.0),
            one("SELECT '\\setshell'", 1, 2.0),
            one("SELECT 3", 5, 1.0),
        ],
        2,
    )
    made = list(make_scripts(chosen, FACTS))
    assert [each.weight for each in made] == [3, 1]
    assert sum(each.share for each in made) == pytest.approx(0.7)
    reasons = [left.reason for left in chosen.left_out]
    assert [any(word in reason for reason in reasons) for word in ("utility", "not shown", "function", "catalogues")]
    assert "backslash" in reasons[-1]
    assert (chosen.more, chosen.more_share) == (1, pytest.approx(0.01))


@pytest.mark.parametrize(
    "text",
    [
        "ALTER ROLE shop PASSWORD 'hunter2'",
        "ALTER ROLE shop PASSWORD E'hun\\'hunter2'",
        "ALTER ROLE shop PASSWORD $a$hunter2$a$",
        "ALTER ROLE shop PASSWORD 'hunter2",
        "CREATE SUBSCRIPTION s CONNECTION 'password=hunter2' PUBLICATION p -- hunter2",
    ],
)
def test_what_is_left_out_is_shown_without_its_constants(text):
    chosen = choose([CountedStatement(identity="1", text=text, calls=1, seconds=1.0)], 3)
    (left,) = chosen.left_out
    assert left.text.startswith(text[:10])
    assert "hunter2" not in left.text


def test_the_command_for_the_dump_shows_no_password_and_quotes_names():
    command = dump_command(Address(host="db", port=5433, user="me", database=""), "my shop'\n")
    assert command.startswith("pg_dump --format=custom --no-owner --no-privileges --file=my-shop.dump")
    assert "--host=db --port=5433 --username=me" in command
    assert "\n" not in command


HOSTILE = st.text(alphabet=string.printable + "$1$2\u00e9\u2028", max_size=120)


@given(HOSTILE)
def test_no_text_of_a_statement_breaks_the_reader_or_reaches_pgbench_as_a_command(text):
    statement = f"SELECT {text} FROM orders WHERE id = $1"
    chosen = choose([CountedStatement(identity="1", text=statement, calls=1, seconds=1.0)], 1)
    for made in make_scripts(chosen, FACTS):
        lines = made.text.splitlines()
        commands = [line for line in lines if "\\" in line]
        assert all(line.startswith("\\set ") for line in commands)
        assert made.text.count(";\n") == 1


@pytest.mark.parametrize(
    ("text", "numbered"),
    [
        ("SELECT ? FROM t WHERE a BETWEEN ? AND ?", "SELECT $1 FROM t WHERE a BETWEEN $2 AND $3"),
        ("SELECT 1 FROM t WHERE a=? AND b IN (?,?)", "SELECT 1 FROM t WHERE a=$1 AND b IN ($2,$3)"),
        (
            "SELECT a FROM t WHERE id = $2 AND kind = ? AND n = $1",
            "SELECT a FROM t WHERE id = $2 AND kind = $3 AND n = $1",
        ),
        ("SELECT a FROM t WHERE doc ? ?", "SELECT a FROM t WHERE doc ? $1"),
        ("SELECT a FROM t WHERE doc ?| ? AND doc ?& ?", "SELECT a FROM t WHERE doc ?| $1 AND doc ?& $2"),
        ("SELECT ?::jsonb ? ?", "SELECT $1::jsonb ? $2"),
        ("SELECT ?||?, ? || ?", "SELECT $1||$2, $3 || $4"),
        (
            "SELECT /* ? */ \"a?\" -- ?\nFROM t WHERE b = '?' AND c = ?",
            "SELECT /* ? */ \"a?\" -- ?\nFROM t WHERE b = '?' AND c = $1",
        ),
        ("SELECT interval ? + ?", "SELECT interval $1 + $2"),
        ("SELECT 1", "SELECT 1"),
    ],
)
def test_marks_of_old_servers_become_numbers(text, numbered):
    assert number_marks(text) == numbered


@given(st.text(alphabet="?$|&'\"/*- ab1(),\n", max_size=60))
def test_marks_are_numbered_each_once_and_nothing_else_changes(text):
    numbered = number_marks(text)
    assert numbered.count("?") <= text.count("?")
    if "$" not in text:
        assert re.sub(r"\$\d+", "?", numbered) == text or re.search(r"\?\d", text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELECT pg_stat_statements_reset()", "it calls pg_stat_statements_reset(), which is about the server"),
        ("SELECT pg_is_in_recovery ( )", "it calls pg_is_in_recovery(), which is about the server"),
        ("SELECT PG_Terminate_Backend($1)", "it calls pg_terminate_backend(), which is about the server"),
        (
            "SELECT id FROM orders WHERE pg_relation_size($1) > id",
            "it calls pg_relation_size(), which is about the server",
        ),
    ],
)
def test_calls_about_the_server_are_no_load(text, reason):
    one = CountedStatement(identity="7", text=text, calls=10, seconds=1.0)
    chosen = choose([one], 10)
    assert [left.reason for left in chosen.left_out] == [reason]
    assert not chosen.statements


@pytest.mark.parametrize(
    "text",
    [
        "SELECT pg_advisory_xact_lock($1)",
        "SELECT pg_notify($1, $2)",
        "SELECT pg_typeof(id) FROM orders",
        "SELECT total(pg_a) FROM orders",
    ],
)
def test_functions_that_applications_call_are_a_load(text):
    one = CountedStatement(identity="7", text=text, calls=10, seconds=1.0)
    assert choose([one], 10).statements
