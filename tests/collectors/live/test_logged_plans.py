"""Plans of auto_explain in a log of any format: the same nodes, and nothing of a statement but its normalised text."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgstrata.collectors.live.log import LogReader
from pgstrata.collectors.live.logged_plans import PlanLines, read_logged_plan
from pgstrata.diagnosis.query_text import hash_query, normalise

MOMENT = 1_795_710_000
QUERY = "SELECT s.note\n  FROM stock s JOIN orders o ON o.id = s.id\n WHERE s.note = 'canary' AND o.id = 7"
PLAN = """\
Limit  (cost=0.57..16.62 rows=1 width=36) (actual time=0.015..0.016 rows=1 loops=1)
  ->  Hash Left Join  (cost=0.57..16.62 rows=1 width=36) (actual time=0.015..0.016 rows=1 loops=1)
        Hash Cond: (o.id = s.id)
        Buffers: shared hit=7
        ->  Index Scan using orders_pkey on orders o  (cost=0.29..8.30 rows=1 width=8) (never executed)
              Index Cond: (id = 7)
        ->  Parallel Seq Scan on stock s  (cost=0.00..8.31 rows=1 width=36) (actual time=0.01..0.01 rows=1 loops=1)
              Filter: (note = 'canary'::text)"""
OUTLINE = (
    "Limit", "  Hash Left Join", "    Index Scan using orders_pkey on orders o", "    Parallel Seq Scan on stock s",
)  # fmt: skip
DOCUMENT = {
    "Query Text": QUERY,
    "Plan": {
        "Node Type": "Limit",
        "Plans": [
            {
                "Node Type": "Hash Join", "Join Type": "Left",
                "Plans": [
                    {
                        "Node Type": "Index Scan", "Index Name": "orders_pkey", "Relation Name": "orders", "Alias": "o",
                        "Scan Direction": "Forward", "Index Cond": "(id = 7)",
                    },
                    {
                        "Node Type": "Seq Scan", "Relation Name": "stock", "Alias": "s", "Parallel Aware": True,
                        "Filter": "(note = 'canary'::text)",
                    },
                ],
            }
        ],
    },
}  # fmt: skip
BODY = {"text": f"Query Text: {QUERY}\n{PLAN}", "json": json.dumps(DOCUMENT, indent=2)}
PREFIX, NEXT = "2026-11-28 01:02:03 UTC [7] ", "2026-11-28 01:02:04 UTC [7] LOG:  checkpoint starting: wal\n"


def plain(body):
    return f"{PREFIX}LOG:  duration: 3.651 ms  plan:\n\t" + body.replace("\n", "\n\t") + f"\n{NEXT}"


def csv(body):
    quoted = body.replace('"', '""')
    head = '2026-11-28 01:02:03.1 UTC,"u","d",7,"[local]",1.2,3,"SELECT",2026,4/5,6,LOG,00000,'
    return f'{head}"duration: 3.651 ms  plan:\n{quoted}",,,,,,,,,"psql","client backend",,0\n'


def jsonlog(body):
    entry = {"pid": 7, "error_severity": "LOG", "message": f"duration: 3.651 ms  plan:\n{body}", "query_id": 42}
    return json.dumps(entry) + "\n"


def plans(text, step=0):
    reader, found = LogReader(), []
    content = text.encode()
    for begin in range(0, len(content), step or len(content)):
        reader.read(content[begin : begin + (step or len(content))], MOMENT)
        found += reader.plans.take()
    return found


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("log", [plain, csv, jsonlog])
def test_each_format_of_log_and_plan_gives_the_same_nodes(log, form):
    (found,) = plans(log(BODY[form]))
    assert found.plan.outline == OUTLINE
    assert found.text == normalise(QUERY)
    assert found.statement == hash_query(found.text)
    assert "canary" not in repr(found)


@pytest.mark.parametrize("log", [plain, csv, jsonlog])
def test_a_plan_that_is_read_in_pieces_is_one(log):
    assert plans(log(BODY["text"]), step=97) == plans(log(BODY["text"]))


def test_several_plans_and_what_stands_between_are_told_apart():
    text = plain(BODY["text"]) + csv(BODY["json"]) + NEXT + plain(BODY["json"]) + jsonlog(BODY["text"])
    assert len(plans(text)) == 4


def test_parameters_are_no_part_of_the_statement_and_an_id_is_its_key():
    body = f"Query Text: select $1\nQuery Parameters: $1 = 'canary'\n{PLAN}\nQuery Identifier: -42"
    (found,) = plans(plain(body))
    assert (found.statement, found.text) == ("-42", "select ?")


@pytest.mark.parametrize(
    "body",
    [
        "Query Text: select 1", f"<explain>{PLAN}</explain>", '{"Query Text": "select 1"}', '{"Query Text": 1, "Plan": []}',
        '{"Plan":' * 5000, "", "Query Text: \n" + PLAN, f"Query Text: SELECT a AS pgstrata FROM t\n{PLAN}",
    ],
)  # fmt: skip
def test_what_is_no_plan_of_the_servers_is_left_out(body):
    assert not plans(plain(body))


@pytest.mark.parametrize(
    "forged",
    [
        {"Plan": {"Node Type": "Gather", "Workers Planned": float("inf")}},
        {"Plan": {"Node Type": "\ud800"}},
        {"Query Text": "select \udfff"},
        {"Query Identifier": "qfedcba987654"},
        {"Query Identifier": "7" * 1000},
    ],
)
def test_what_a_client_logs_in_the_name_of_auto_explain_is_no_plan_that_cannot_be_kept(forged):
    assert plans(plain(json.dumps(DOCUMENT)))
    assert not plans(plain(json.dumps(DOCUMENT | forged)))


def test_of_an_endless_message_no_more_than_a_piece_is_kept():
    lines = PlanLines()
    lines.add("", "duration: 3.651 ms  plan:")
    for _ in range(100):
        lines.add("\t" + "x" * 50_000, None)
    assert sum(map(len, lines._lines)) <= 1 << 19
    lines.add("", "duration: 3.651 ms  plan:")
    for line in BODY["text"].splitlines():
        lines.add(f"\t{line}", None)
    lines.add("", None)
    assert len(lines.take()) == 1


def test_a_flood_of_plans_is_bounded():
    assert len(plans(plain(BODY["text"]) * 200)) == 50


@given(st.lists(st.sampled_from([*BODY["text"].splitlines(), *BODY["json"].splitlines(), "x", '"', "{"])))
def test_lines_in_any_order_are_no_traceback(lines):
    read_logged_plan(lines)


def test_workers_and_parts_stand_where_the_text_has_them():
    document = {
        "Query Text": "select ?", "JIT": {},
        "Plan": {
            "Node Type": "Gather", "Workers Planned": 2,
            "Plans": [
                {"Node Type": "Aggregate", "Strategy": "Hashed", "Partial Mode": "Partial"},
                {"Node Type": "Result", "Subplan Name": "InitPlan 1 (returns $0)"},
                {"Node Type": "ModifyTable", "Operation": "Update", "Relation Name": "t", "Alias": "t"},
                {"Node Type": "Bitmap Index Scan", "Index Name": "a"},
            ],
        },
    }  # fmt: skip
    found = read_logged_plan(json.dumps(document).split("\n"))
    assert found.plan.outline == (
        "Gather", "  2 workers planned", "  Partial HashAggregate", "  InitPlan", "    Result", "  Update on t",
        "  Bitmap Index Scan on a", "JIT",
    )  # fmt: skip
