"""Runs of an experiment as observations."""

from dataclasses import replace

import pytest

from pgstrata.compare.pairing.arms import sort_observations
from pgstrata.model.observation import Observation, PairingKey
from pgstrata.model.runs import RunStatus, Validity
from pgstrata.sources.runs import observe_runs
from studies import BASE, CELL, make_run


def test_a_run_is_observed_with_its_time_its_block_and_only_what_is_asked_for():
    run = make_run(BASE, 3, tps=1000.0, latency_p99=0.002)
    (found,) = observe_runs([run], frozenset({"tps"}))
    assert (found.target, found.cell, found.provenance) == (BASE, CELL, run.identity)
    assert (found.span.started, found.span.seconds) == (run.started, run.measured_seconds)
    assert (found.key.number, found.key.together) == (3, "")
    assert found.measurements == {"tps": 1000.0}


def test_a_failed_run_is_invalid_and_a_collapsed_one_says_so():
    failed, collapsed = (
        observe_runs([replace(make_run(BASE, 1, tps=1.0), status=status)], frozenset({"tps"}))[0]
        for status in (RunStatus.FAILED, RunStatus.COLLAPSED)
    )
    assert (failed.validity, failed.collapsed) == (Validity.INVALID, False)
    assert collapsed.collapsed


def test_observations_without_a_key_are_kept_in_their_order_and_share_no_block():
    values = (3.0, 1.0, 2.0)
    arms = sort_observations(
        Observation(target="a", cell="all", measurements={"x": value}, provenance="f:1") for value in values
    )
    arm = arms["a", "all"]
    assert (tuple(arm.loose["x"]), arm.made, arm.blocks) == (values, 3, set())


def test_a_target_is_observed_once_in_a_block():
    twice = Observation(
        target="a", cell="c", measurements={"x": 1.0}, provenance="f:1", key=PairingKey(number=1, label="night")
    )
    with pytest.raises(ValueError, match="block night, cell c"):
        sort_observations([twice, twice])
