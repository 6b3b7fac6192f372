import json
from pathlib import Path

import pytest

from pgstrata.collectors.queries.sampler import parse_window
from pgstrata.errors import ParseError
from pgstrata.ports.collector import Window

CAPTURES = Path(__file__).parents[2] / "captures" / "queries"
CASES = sorted(path.parent for path in CAPTURES.glob("*/*/expected.json"))
NAMES = (
    "id", "query", "calls", "seconds", "rows", "blocks_hit", "blocks_read", "wal_bytes", "plans", "plan_seconds",
    "jit_functions", "jit_seconds", "since", "deallocations", "reset",
)  # fmt: skip


def window(transactions=100, outside=0):
    return Window(
        seconds=2.0,
        transactions=transactions,
        client_cpu=1.0,
        postmaster_pid=None,
        transport_pids=(),
        server_version=180000,
        outside=outside,
    )


def capture(*entries):
    default = dict.fromkeys(NAMES, "0") | {"wal_bytes": "", "reset": "1.5", "since": "1.0"}
    rows = [default | {name: str(value) for name, value in entry.items()} for entry in entries]
    return "".join("\t".join(row) + "\n" for row in (NAMES, *([row[name] for name in NAMES] for row in rows))).encode()


def entry(calls, seconds, *, query="SELECT $1", **more):
    return {"id": "7", "query": query, "calls": calls, "seconds": seconds, **more}


@pytest.mark.parametrize("case", CASES, ids=[f"{case.parent.name}-{case.name}" for case in CASES])
def test_every_capture_gives_the_expected_counts(case):
    facts = json.loads((case / "expected.json").read_text())
    found = parse_window(
        (case / "before.tsv").read_bytes(), (case / "after.tsv").read_bytes(), window(facts["transactions"])
    )
    assert found.lost == ""
    counts = {query.query: query for query in found.queries}
    assert counts.keys() == facts["queries"].keys()
    for text, expected in facts["queries"].items():
        for name, value in expected.items():
            assert getattr(counts[text], name) == (None if value is None else pytest.approx(value)), (text, name)


def test_counts_are_per_transaction_those_outside_slices_among_them():
    before, after = capture(entry(100, 1.0)), capture(entry(300, 3.0, wal_bytes="", rows=400))
    found = parse_window(before, after, window(transactions=80, outside=20))
    (count,) = found.queries
    assert (count.calls, count.seconds, count.rows, count.wal_bytes) == (2.0, 0.02, 4.0, None)
    assert count.latency == pytest.approx(0.01)


def test_a_new_statement_counts_from_its_start_and_one_that_was_not_called_not_at_all():
    before = capture(entry(5, 1.0))
    after = capture(entry(5, 1.0), {"id": "8", "query": "SELECT 2 FROM t", "calls": 10, "seconds": 1})
    assert [(count.query, count.calls) for count in parse_window(before, after, window()).queries] == [
        ("select ? from t", 0.1)
    ]


def test_after_a_reset_by_somebody_there_is_nothing():
    found = parse_window(capture(entry(5, 1.0)), capture(entry(90, 2.0, reset="2.5")), window())
    assert (found.queries, found.lost) == ((), "somebody reset pg_stat_statements during the run")


def test_entries_that_were_thrown_away_are_said_and_count_from_when_they_were_made_anew():
    before = capture(entry(500, 5.0, deallocations=1))
    for again in (entry(50, 0.5, deallocations=3), entry(600, 0.5, since="9.0", deallocations=3)):
        found = parse_window(before, capture(again), window())
        assert found.queries[0].calls == again["calls"] / 100
        assert found.lost.startswith("pg_stat_statements was full and threw entries away 2 times")
    gone = parse_window(
        before,
        capture({"id": "8", "query": "SELECT 2 FROM t", "calls": 10, "seconds": 1, "deallocations": 1}),
        window(),
    )
    assert gone.lost == "entries vanished from pg_stat_statements during the run: 1"


def test_the_same_statement_within_a_function_counts_with_it():
    inside = entry(40, 1.0)
    found = parse_window(capture(), capture(entry(60, 1.0), inside), window())
    assert [(count.calls, count.seconds) for count in found.queries] == [(1.0, 0.02)]


def test_without_transactions_nothing_is_said():
    assert parse_window(capture(), capture(entry(1, 1)), window(transactions=0)) is None


def test_captures_of_an_unknown_shape_are_named():
    good = capture(entry(1, 1))
    for bad in (b"id\tquery\n", good + b"one\tcell\n", good.replace(b"1.5", b"soon")):
        with pytest.raises(ParseError):
            parse_window(good, bad, window())


def test_where_no_statement_was_counted_the_settings_are_named_that_switch_it_off():
    for first in (capture(), capture(entry(5, 1.0))):
        found = parse_window(first, first, window())
        assert found.queries == ()
        assert "compute_query_id" in found.lost
