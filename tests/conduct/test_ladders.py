"""Ladders of clients that end where throughput falls, over fakes: climbed once, the same in all environments, kept."""

from dataclasses import replace

import fakes
from little_plan import CELLS, carry_out, make_plan
from pgstrata.sources.ladders import LADDERS
from pgstrata.sources.rates import MAXIMA

LADDER = tuple(replace(CELLS[0], clients=clients, until_falls=True) for clients in (1, 2, 4, 8, 16, 32))
CURVES = {
    "a": {1: 100, 2: 190, 4: 300, 8: 295, 16: 250, 32: 100},
    "b": {1: 100, 2: 180, 4: 150, 8: 120, 16: 90, 32: 50},
}


def rates(**curves):
    return {(name, clients): tps for name, curve in (CURVES | curves).items() for clients, tps in curve.items()}


def runs(world, kind):
    """Environment and clients of the loads that were run."""
    return [
        (folder.split("/")[-2].split("--")[1], load.cell.clients)
        for folder, load in world.loads
        if folder.endswith(f"/{kind}")
    ]


def test_the_ladder_ends_where_all_environments_have_fallen():
    world = fakes.World(rates=rates())
    plan = make_plan(cells=LADDER)
    _, rig = carry_out(plan, world)
    measured = {(name, clients) for name in "ab" for clients in (1, 2, 4, 8, 16)}
    assert sorted(runs(world, "run")) == sorted([*measured, *measured]), "in both blocks, in both environments"
    fates = rig.store.fingerprint(LADDERS).facts
    assert [fates[cell.identity] for cell in LADDER] == ["measured"] * 5 + ["left out"]


def test_an_environment_that_has_fallen_is_climbed_no_further():
    world = fakes.World(rates=rates())
    _, rig = carry_out(make_plan(cells=LADDER), world)
    climbed = runs(world, "maximum")
    assert {clients for name, clients in climbed if name == "b"} == {1, 2, 4}
    assert climbed.count(("b", 4)) == 3, "what has fallen is measured twice more"
    assert rig.store.fingerprint(MAXIMA).facts[f"b/{LADDER[2].identity}"] == "150.0"


def test_a_moment_in_which_others_worked_ends_no_ladder():
    calls = []

    def hindered(folder):
        calls.append(folder)
        return 20.0 if folder.endswith("/maximum") and len([1 for each in calls if each == folder]) == 1 else 310.0

    world = fakes.World(rates=rates(b={}) | {("b", 8): hindered})
    world.rates |= {("b", clients): 100.0 + clients for clients in (1, 2, 4, 16, 32)}
    _, rig = carry_out(make_plan(cells=LADDER), world)
    assert {clients for name, clients in runs(world, "maximum") if name == "b"} == {1, 2, 4, 8, 16}
    assert rig.store.fingerprint(MAXIMA).facts[f"b/{LADDER[3].identity}"] == "310.0"


def test_a_ladder_without_a_fall_is_measured_to_its_end():
    world = fakes.World(rates=dict.fromkeys("ab", 100))
    plan = make_plan(cells=LADDER)
    _, rig = carry_out(plan, world)
    assert len(runs(world, "run")) == len(plan.runs)
    assert set(rig.store.fingerprint(LADDERS).facts.values()) == {"measured"}


def test_a_resumed_study_has_the_ladder_that_it_began_with():
    world = fakes.World(rates=rates())
    plan = make_plan(cells=LADDER)
    _, rig = carry_out(plan, world)
    done = [run.identity for run in plan.runs[:2]]
    store = fakes.FakeStore(done=done)
    store.fingerprints = rig.store.fingerprints
    faster = fakes.World(rates=dict.fromkeys("ab", 100))
    carry_out(plan, faster, store=store)
    assert not runs(faster, "maximum")
    assert {clients for _, clients in runs(faster, "run")} == {1, 2, 4, 8, 16}
    assert len(runs(faster, "run")) == 2 * 2 * 5 - len(done)


def test_cells_beside_a_ladder_are_measured_as_they_are():
    other = replace(CELLS[0], scale=2, clients=32)
    world = fakes.World(rates=rates())
    carry_out(make_plan(cells=(*LADDER, other)), world)
    assert ("a", 32) in runs(world, "run")
    assert ("a", 32) not in runs(world, "maximum")


def test_in_visits_of_all_environments_too():
    world = fakes.World(rates=rates())
    plan = make_plan(cells=LADDER, together=True)
    _, rig = carry_out(plan, world)
    assert rig.store.fingerprint(LADDERS).facts[LADDER[5].identity] == "left out"
    assert not [folder for folder, load in world.loads if load.cell.clients == 32 and folder.endswith("/run")]
