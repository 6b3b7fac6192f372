"""Blocks of the baseline against itself between those of a long experiment: when, how many, and what they cost."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgstrata.model.experiment import ControlKind, Interleave, Reset
from pgstrata.plan.floors import floor_key
from pgstrata.plan.forecast import trial_seconds
from pgstrata.plan.refresh import EVERY, blocks_before, forecast_refresh, may_refresh, plan_refresh

sys.path.insert(0, str(Path(__file__).parent))
from test_floors import BASE, CAPACITY, OTHER, READ, WORKLOADS, WRITE, digest, plan

HOURS = replace(READ, run=600.0)
SAME = replace(BASE, name="a-2", control=ControlKind.SAME)
REBUILD = replace(BASE, name="a-3", control=ControlKind.REBUILD)


def long(cells=(HOURS,), blocks=24, **more):
    return plan(cells, blocks=blocks, **more)


def test_the_first_comes_when_ten_blocks_are_done_and_more_are_to_come():
    assert [blocks_before(number) for number in (1, 10, 11, 20, 21, 24)] == [0, 0, 1, 1, 2, 2]


@given(st.integers(1, 200))
def test_there_is_one_for_every_ten_blocks_and_never_one_more(number):
    assert 0 <= blocks_before(number + 1) - blocks_before(number) <= 1
    assert blocks_before(number) * EVERY < number


def test_only_long_experiments_refresh_a_floor():
    assert may_refresh(long())
    assert not may_refresh(plan(blocks=24)), "24 blocks of runs of 10 s are no long experiment"
    assert not may_refresh(long(blocks=10)), "nothing comes after the tenth block"
    assert not may_refresh(long(budget=3600.0)), "the budget ends it before"
    assert may_refresh(long(budget=7200.0))


def test_a_control_of_the_experiment_serves_as_well_and_one_by_rebuild_does_not():
    assert not may_refresh(long(environments=(BASE, OTHER, SAME)))
    assert may_refresh(long(environments=(BASE, OTHER, REBUILD)))


@pytest.mark.parametrize("interleave", [Interleave.RUNS, Interleave.SLICES])
def test_what_is_measured_belongs_to_the_floor_of_the_experiment(interleave):
    asked = long((HOURS, replace(WRITE, run=600.0)), interleave=interleave)
    twice = plan_refresh(asked, 2, WORKLOADS, CAPACITY)
    assert [one.control for one in twice.experiment.environments] == [None, ControlKind.SAME]
    assert (twice.designs, twice.experiment.cells) == (asked.designs, asked.experiment.cells)
    for cell in asked.experiment.cells:
        ours, theirs = (floor_key(one, cell.identity, "tps", WORKLOADS) for one in (asked, twice))
        assert ours.digest == theirs.digest


def test_the_plan_of_the_experiment_stays_what_it_is():
    asked = long()
    assert asked.refresh is None
    refreshed = replace(asked, refresh=forecast_refresh(asked, WORKLOADS, CAPACITY))
    assert (refreshed.identity, refreshed.blocks, refreshed.forecast) == (asked.identity, asked.blocks, asked.forecast)
    assert digest(refreshed) == digest(asked)


@pytest.mark.parametrize(("interleave", "visits"), [(Interleave.RUNS, 2), (Interleave.SLICES, 1)])
def test_the_forecast_counts_blocks_visits_and_seconds_with_a_trial_of_both_servers(interleave, visits):
    asked = long(environments=(BASE, OTHER, REBUILD), interleave=interleave)
    refresh = forecast_refresh(asked, WORKLOADS, CAPACITY)
    assert (refresh.blocks, refresh.visits) == (2, visits)
    block = asked.forecast.seconds_per_block * 2 / 3 + 2 * trial_seconds(HOURS, WORKLOADS)
    assert refresh.seconds == pytest.approx(2 * block)


def test_a_baseline_that_cannot_be_measured_twice_refreshes_nothing():
    asked = long(reset=Reset.CLONE, interleave=Interleave.SLICES)
    tight = replace(CAPACITY, free_disk=1)
    assert forecast_refresh(asked, WORKLOADS, tight) is None
