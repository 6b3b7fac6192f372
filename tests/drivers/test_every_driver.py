"""Conformance of all drivers, on their captures."""

import math
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from damage import DAMAGES, damaged
from pgstrata.drivers.registry import driver_capabilities, find_driver, verify_data
from pgstrata.drivers.shares import join_evidence
from pgstrata.errors import ParseError
from pgstrata.model.experiment import Cell, Protocol
from pgstrata.model.metrics import LATENCY_QUANTILES, METRICS
from pgstrata.workloads import builtin_workloads

CAPTURES = Path(__file__).parents[1] / "captures"
DRIVERS = sorted(driver_capabilities())
CASES = [(key, case.parent) for key in DRIVERS for case in sorted((CAPTURES / key).glob("*/*/expected.json"))]
WORKLOADS = builtin_workloads()


def evidence_of(key, case):
    return {
        f"{key}.out": (case / "output.txt").read_bytes(),
        f"{key}.err": (case / "stderr.txt").read_bytes(),
    }


@pytest.mark.parametrize("key", DRIVERS)
class TestEveryDriver:
    def test_has_captures_a_workload_and_a_parser_of_its_name(self, key):
        assert find_driver(key).parser().name == key
        assert [case for driver, case in CASES if driver == key]
        assert [workload for workload in WORKLOADS.values() if workload.driver == key]
        assert all(driver in DRIVERS for workload in WORKLOADS.values() for driver in workload.drivers)

    def test_speaks_protocols_that_there_are(self, key):
        able = driver_capabilities()[key]
        assert set(able.protocols) <= set(Protocol)
        assert Protocol.PREPARED in able.protocols
        assert able.fixed_rate or not (able.whole_rates or able.skips_late)
        assert able.transaction_log or not able.pausable

    def test_left_nothing_where_nothing_ran(self, key):
        parser = find_driver(key).parser()
        assert not parser.ran({})
        assert not parser.ran({f"{key}.out": b""})
        assert not parser.parse({}).complete
        assert parser.messages({}) == ()

    def test_checks_what_it_loads(self, key):
        for name, workload in WORKLOADS.items():
            if workload.driver == key and not workload.data.checks:
                text = verify_data(Cell(workload=name, scale=3, clients=1, threads=1, driver=key))
                assert "SELECT" in text
                assert "@" not in text


@pytest.mark.parametrize(("key", "case"), CASES, ids=[f"{key}-{case.parent.name}-{case.name}" for key, case in CASES])
class TestEveryCapture:
    def test_has_figures_exactly_where_the_run_is_complete(self, key, case):
        parser, evidence = find_driver(key).parser(), evidence_of(key, case)
        assert parser.ran(evidence) == any(evidence[f"{key}.out"])
        result = parser.parse(evidence)
        if result.complete and result.by_script:
            # pgbench counts one that ended with the run in its total alone
            assert sum(result.by_script.values()) == pytest.approx(result.transactions, rel=0.001)
        if result.complete:
            assert result.tps > 0
            assert result.transactions > 0
            assert result.latency_mean > 0
        assert set(result.percentiles) <= set(LATENCY_QUANTILES.values())
        for series in result.series:
            assert series.metric in METRICS
            assert list(series.times) == sorted(series.times)
            assert len(series.times) == len(series.values)

    def test_says_what_it_complained_of(self, key, case):
        parser, evidence = find_driver(key).parser(), evidence_of(key, case)
        said = parser.messages(evidence)
        assert all(error in said for error in parser.parse(evidence).errors)
        # nothing of the run itself, only of it: another run's complaints would be taken for this one's
        assert parser.messages({f"warmup.{name}": content for name, content in evidence.items()}) == ()

    def test_what_two_machines_left_is_one_result(self, key, case):
        parser, evidence = find_driver(key).parser(), evidence_of(key, case)
        one = parser.parse(evidence)
        two = parser.parse(join_evidence([evidence, evidence]))
        assert (two.complete, two.transactions, two.failed) == (one.complete, 2 * one.transactions, 2 * one.failed)
        assert two.errors == (*one.errors, *one.errors)
        if one.complete:
            assert two.tps == pytest.approx(2 * one.tps)
            assert two.latency_mean == pytest.approx(one.latency_mean)
            assert [seconds for seconds, _ in two.statements] == pytest.approx([each for each, _ in one.statements])
        for quantile, value in one.percentiles.items():
            assert two.percentiles[quantile] == pytest.approx(value)


@pytest.mark.parametrize("key", DRIVERS)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), damages=DAMAGES)
def test_of_damaged_evidence_there_are_figures_or_a_refusal(key, data, damages):
    case = data.draw(st.sampled_from([case for driver, case in CASES if driver == key]))
    evidence = {name: damaged(content, damages) for name, content in evidence_of(key, case).items()}
    parser = find_driver(key).parser()
    assert all(isinstance(line, str) for line in parser.messages(evidence))
    try:
        result = parser.parse(evidence)
    except ParseError:
        return
    assert result.transactions >= 0
    assert result.tps is None or 0 <= result.tps < math.inf
    latencies = [result.percentiles[quantile] for quantile in sorted(result.percentiles)]
    assert latencies == sorted(latencies)
