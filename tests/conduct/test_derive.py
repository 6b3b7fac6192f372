from __future__ import annotations

from dataclasses import replace

import pytest

import records
from pgstrata.collectors.pgstat.sampler import PgstatCollector
from pgstrata.conduct.derive import derive_record
from pgstrata.model.experiment import Allow
from pgstrata.model.reasons import Reason
from pgstrata.model.runs import Measurement, RunStatus, StatementLatency, Validity

_HEADER = records.make_header(identity="b01/pg16/select-only-s1-c1", cell="select-only-s1-c1", seconds=4.0)


RESULT = records.make_result(transactions=400, statements=((0.002, "BEGIN;"), (0.008, "SELECT 1;")), version="18.0")


class Parser(records.Parser):
    def __init__(self, result=RESULT):
        super().__init__(result)


def test_the_statements_of_a_profile_become_part_of_the_record():
    record = derive_record(_HEADER, {"out": b"x"}, Parser(), (), Allow())
    assert record.status is RunStatus.COMPLETED
    assert record.statements == (
        StatementLatency(text="BEGIN;", seconds=0.002),
        StatementLatency(text="SELECT 1;", seconds=0.008),
    )


def test_every_percentile_that_the_driver_knows_is_measured():
    parser = Parser(replace(RESULT, percentiles={0.1: 0.001, 0.5: 0.002, 0.9: 0.004, 0.99: 0.05}))
    record = derive_record(_HEADER, {"out": b"x"}, parser, (), Allow())
    found = {item.metric: item.value for item in record.measurements if item.metric.startswith("latency_p")}
    assert found == {"latency_p10": 0.001, "latency_p50": 0.002, "latency_p90": 0.004, "latency_p99": 0.05}


def test_new_orders_per_minute_are_the_share_of_their_script_in_the_throughput():
    parser = Parser(replace(RESULT, tps=100.0, by_script={"new-order": 180, "payment": 220}))
    assert derive_record(_HEADER, {"out": b"x"}, parser, (), Allow()).value("new_orders") == 60 * 100.0 * 0.45


def test_a_load_without_orders_has_no_new_orders():
    parser = Parser(replace(RESULT, by_script={"one": 180, "two": 220}))
    assert derive_record(_HEADER, {"out": b"x"}, parser, (), Allow()).value("new_orders") is None


def test_power_is_queries_per_hour_by_the_geometric_mean_of_those_with_names():
    named = ((0.1, "/* one */ SELECT 1;"), (1.0, "/* another one */ SELECT 2;"))
    parser = Parser(replace(RESULT, statements=((5.0, "SELECT pg_sleep(5);"), *named)))
    record = derive_record(_HEADER, {"out": b"x"}, parser, (), Allow())
    assert record.value("power") == pytest.approx(3600 / 0.1**0.5)
    assert [each.name for each in record.statements] == ["", "one", "another one"]


def test_without_names_there_is_no_power():
    assert derive_record(_HEADER, {"out": b"x"}, Parser(), (), Allow()).value("power") is None


def test_a_run_that_left_nothing_has_no_statements():
    assert derive_record(_HEADER, {}, Parser(), (), Allow()).statements == ()


class _PerSecond:
    name = "steps"

    def parse(self, before, after, window):
        return (Measurement(metric="client_cpu", value=window.client_cpu / window.seconds),)


def test_a_run_that_failed_before_its_time_was_known_is_a_record_of_its_failure():
    evidence = {"out": b"x", "steps.before": b"0", "steps.after": b"1"}
    failed = replace(_HEADER, seconds=0.0, failure=Reason(code="failed", said="the server went away"))
    record = derive_record(failed, evidence, Parser(), (_PerSecond(),), Allow())
    assert record.status is RunStatus.FAILED
    whole = derive_record(_HEADER, evidence, Parser(), (_PerSecond(),), Allow())
    assert "client_cpu" in {item.metric for item in whole.measurements}


def test_a_run_in_which_counters_were_reset_is_valid_and_says_so():
    evidence = {
        "out": b"x",
        "pgstat.before": b"database.blks_hit\t900\n",
        "pgstat.after": b"database.blks_hit\t7\n",
    }
    record = derive_record(_HEADER, evidence, Parser(), (PgstatCollector(),), Allow())
    assert (record.status, record.validity) == (RunStatus.COMPLETED, Validity.VALID)
    assert [reason.code for reason in record.reasons] == ["counters_reset"]
