import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgstrata.collectors.pgstat.sampler import doubt_resets, parse_counters, parse_window
from pgstrata.errors import ParseError
from pgstrata.model.metrics import METRICS
from pgstrata.model.reasons import Reason
from pgstrata.ports.collector import Window

CAPTURES = Path(__file__).parents[2] / "captures" / "pgstat"
CASES = sorted(path.parent for path in CAPTURES.glob("*/*/expected.json"))


def window(transactions=100, version=180000):
    return Window(
        seconds=2.0,
        transactions=transactions,
        client_cpu=1.0,
        postmaster_pid=None,
        transport_pids=(),
        server_version=version,
    )


def measured(before, after, transactions=100):
    return {
        found.metric: found.value
        for found in parse_window(text(before).encode(), text(after).encode(), window(transactions))
    }


def text(counters):
    return "".join(f"{name}\t{value}\n" for name, value in counters.items())


@pytest.mark.parametrize("case", CASES, ids=[f"{case.parent.name}-{case.name}" for case in CASES])
def test_every_capture_gives_the_expected_measurements(case):
    facts = json.loads((case / "window.json").read_text())
    found = parse_window(
        (case / "before.tsv").read_bytes(),
        (case / "after.tsv").read_bytes(),
        window(facts["transactions"], facts["server_version"]),
    )
    expected = json.loads((case / "expected.json").read_text())
    assert {one.metric: one.value for one in found} == pytest.approx(expected)
    assert expected.keys() <= METRICS.keys()


def test_captures_of_every_kind_of_statements_are_there():
    assert {case.parent.name for case in CASES} == {
        "8.3",
        "8.4",
        "9.0",
        "9.1",
        "9.2",
        "9.3",
        "9.4",
        "9.5",
        "9.6",
        "10",
        "11",
        "12",
        "13",
        "14",
        "15",
        "16",
        "17",
        "18",
    }


def test_a_counter_that_went_backwards_says_nothing():
    assert "wal_per_tx" not in measured({"lsn.position": 500}, {"lsn.position": 400})
    assert measured({"lsn.position": 500}, {"lsn.position": 700})["wal_per_tx"] == 2.0


def test_a_counter_that_is_missing_or_null_says_nothing():
    assert measured({}, {"wal.records": 5}) == {}
    assert measured({"wal.records": ""}, {"wal.records": 5}) == {}


def test_statistics_that_were_reset_in_between_say_nothing_even_if_they_grew():
    before = {"wal.records": 5, "wal.stats_reset": 1000.5, "lsn.position": 0}
    after = {"wal.records": 900, "wal.stats_reset": 2000.5, "lsn.position": 100}
    assert measured(before, after) == {"wal_per_tx": 1.0}


def test_blocks_are_left_out_where_the_server_has_not_counted_the_transactions_yet():
    before = {"database.xact_commit": 0, "database.xact_rollback": 0, "database.blks_hit": 0}
    late = {"database.xact_commit": 60, "database.xact_rollback": 0, "database.blks_hit": 300}
    assert measured(before, late) == {}
    assert measured(before, {**late, "database.xact_commit": 100})["blocks_hit_per_tx"] == 3.0
    assert measured(before, {**late, "database.xact_rollback": 40})["blocks_hit_per_tx"] == 3.0


def test_checkpoints_are_those_on_time_and_those_on_request():
    before = {"checkpoints.timed": 1, "checkpoints.requested": 4}
    assert measured(before, {"checkpoints.timed": 2, "checkpoints.requested": 6})["checkpoints"] == 3
    assert "checkpoints" not in measured(before, {"checkpoints.timed": 2})


def test_without_transactions_nothing_is_given_per_transaction():
    found = measured(
        {"lsn.position": 1, "tables.autovacuum_count": 1}, {"lsn.position": 2, "tables.autovacuum_count": 3}, 0
    )
    assert found == {"autovacuums": 2.0}


@pytest.mark.parametrize("line", ["wal.records", "wal.records\tmany", "\t5", "wal.records\tinf", "a\tb\tc"])
def test_an_unknown_shape_is_quoted(line):
    with pytest.raises(ParseError) as error:
        parse_counters(f"snapshot\t180000\n{line}\n".encode())
    assert repr(line) in str(error.value)


@given(st.binary(max_size=200), st.lists(st.sampled_from(["a\t1\n", "a\t\n", "lsn.position\t9\n", "x", "\t"])))
def test_no_capture_ends_in_anything_but_a_parse_error(noise, lines):
    for before in (noise, "".join(lines).encode()):
        with contextlib.suppress(ParseError):
            parse_window(before, "".join(lines).encode(), window())


@pytest.mark.parametrize("case", CASES, ids=[f"{case.parent.name}-{case.name}" for case in CASES])
def test_captures_of_real_servers_are_in_no_doubt(case):
    assert doubt_resets((case / "before.tsv").read_bytes(), (case / "after.tsv").read_bytes()) == ()


@pytest.mark.parametrize(
    ("changes", "views"),
    [
        ({"database.stats_reset": 20.0}, ("database",)),
        ({"wal.stats_reset": 20.0}, ("wal",)),
        ({"database.xact_commit": 3}, ("database",)),
        ({"lsn.position": 50.0, "checkpoints.timed": 0}, ("checkpoints", "lsn")),
    ],
)
def test_counters_that_were_reset_are_told(changes, views):
    before = {"database.stats_reset": 10.0, "database.xact_commit": 100, "lsn.position": 100.0, "checkpoints.timed": 3}
    (doubt,) = doubt_resets(text(before).encode(), text(before | changes).encode())
    assert doubt == Reason(code="counters_reset", names=views)


def test_what_may_shrink_is_in_no_doubt():
    before = {"database.size": 100.0, "tables.autovacuum_count": 3, "tables.n_dead_tup": 5}
    assert doubt_resets(text(before).encode(), text(dict.fromkeys(before, 1.0)).encode()) == ()
