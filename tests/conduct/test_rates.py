"""Rates as shares of the slowest maximum, over fakes: measured once, the same for all, and kept."""

from dataclasses import replace

import pytest

import fakes
from little_plan import CELLS, carry_out, make_plan
from pgstrata.errors import ServerFailedError
from pgstrata.sources.rates import MAXIMA, RATES

CELL = replace(CELLS[0], rate_share=0.8)
HALF = replace(CELLS[0], rate_share=0.5)


def maxima(world):
    return [folder for folder, _ in world.loads if folder.endswith("/maximum")]


def rates_of_runs(world):
    return {(folder.split("--")[2].split("/")[0], load.cell.rate) for folder, load in world.loads if "/run" in folder}


def test_all_environments_have_the_share_of_the_slowest_maximum():
    world = fakes.World(rates={"a": 1000, "b": 600.7})
    _, rig = carry_out(make_plan(cells=(CELL, HALF)), world)
    assert len(maxima(world)) == 2, "cells that differ in their rates share a measurement"
    assert rates_of_runs(world) == {(CELL.identity, 480.0), (HALF.identity, 300.0)}
    kept = rig.store.fingerprint(RATES).facts
    assert kept == {CELL.identity: "480.0", HALF.identity: "300.0"}
    assert sorted(rig.store.fingerprint(MAXIMA).facts.values()) == ["1000.0", "600.7"]


def test_a_resumed_study_has_the_rate_that_it_began_with():
    world = fakes.World(rates={"a": 1000, "b": 600})
    plan = make_plan(cells=(CELL,))
    _, rig = carry_out(plan, world)
    store = fakes.FakeStore(done=[run.identity for run in plan.runs[:2]])
    store.fingerprints = rig.store.fingerprints
    faster = fakes.World(rates={"a": 5000, "b": 5000})
    carry_out(plan, faster, store=store)
    assert not maxima(faster)
    assert rates_of_runs(faster) == {(CELL.identity, 480.0)}


def test_an_environment_that_does_nothing_is_named():
    world = fakes.World(rates={"a": 1000, "b": 0})
    with pytest.raises(ServerFailedError, match="b had no transaction"):
        carry_out(make_plan(cells=(CELL,)), world)
    assert not [folder for folder, _ in world.loads if "/run" in folder]
