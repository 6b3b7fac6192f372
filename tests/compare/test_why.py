"""Which runs an attribution is made of, and what is said where there is none."""

from dataclasses import replace

import pytest

from pgstrata.compare.causes.why import find_why
from pgstrata.model.activity import SessionCount, SessionState
from pgstrata.model.attribution import Method, Obstacle, Part
from pgstrata.model.reasons import Reason
from pgstrata.model.runs import Validity
from studies import BASE, CELL, OTHER, make_plan, make_run


def sampled(client=60, running=20, waiting=20):
    rows = [
        (SessionState.CLIENT, "", "", "", client),
        (SessionState.RUNNING, "", "", "UPDATE t", running),
        (SessionState.WAITING, "IO", "WalSync", "END", waiting),
    ]
    return tuple(
        SessionCount(state=state, wait_type=kind, event=event, query=query, samples=samples)
        for state, kind, event, query, samples in rows
        if samples
    )


def run(environment, block, sessions=None, tps=1000.0, **rest):
    values = {"tps": tps * (1 + 0.01 * block), "backend_cpu_per_tx": 0.8e-3, "run_queue_per_tx": 0.1e-3, **rest}
    return replace(make_run(environment, block, **values), sessions=sampled() if sessions is None else sessions)


def both(blocks=range(1, 5), **rest):
    slow = {"tps": 800.0, "sessions": sampled(60, 20, 60)} | rest
    return [each for block in blocks for each in (run(BASE, block), run(OTHER, block, **slow))]


def test_the_time_of_a_transaction_is_that_of_all_clients():
    (found,) = find_why(make_plan(), both()).attributions
    assert (found.environment, found.reference, found.cell, found.blocks) == (OTHER, BASE, CELL, 4)
    assert found.method is Method.COUNTED
    # 4 clients at 800 and 1000 transactions per second, a few more in later blocks
    assert found.total.reference == pytest.approx(4 / 1000, rel=0.05)
    assert found.total.difference == pytest.approx(1e-3, rel=0.05)
    assert found.causes[0].event == "IO/WalSync"


def test_runs_that_may_not_enter_and_blocks_that_are_not_shared_are_left_out():
    runs = both()
    runs[0] = replace(runs[0], validity=Validity.INVALID)
    runs.append(run(OTHER, 9))
    (found,) = find_why(make_plan(), runs).attributions
    assert found.blocks == 3


def without_counts(runs, blocks):
    return [replace(each, measurements=each.measurements[:1]) if each.block in blocks else each for each in runs]


def test_a_block_in_which_the_kernels_counts_were_lost_is_left_out_and_does_not_decide_for_all():
    (found,) = find_why(make_plan(), without_counts(both(), {2})).attributions
    assert (found.method, found.blocks) == (Method.COUNTED, 3)
    assert {part.part for part in found.parts} >= {Part.CPU, Part.QUEUE}


@pytest.mark.parametrize("lost", [{1, 2, 3}, {1, 2, 3, 4}])
def test_where_most_blocks_have_no_counts_all_of_them_are_as_sampled(lost):
    (found,) = find_why(make_plan(), without_counts(both(), lost)).attributions
    assert (found.method, found.blocks) == (Method.SAMPLED, 4)


def test_in_slices_the_time_is_that_of_the_rounds_which_both_have():
    runs = []
    for block in (1, 2, 3):
        for name, rounds in ((BASE, (1000.0, 2000.0, 0.0)), (OTHER, (500.0, 1000.0, 700.0))):
            made = make_run(name, block, together=f"t{block}", rounds=rounds, tps=1.0)
            runs.append(replace(made, sessions=sampled()))
    (found,) = find_why(make_plan(), runs).attributions
    assert found.method is Method.SAMPLED
    assert found.total.reference == pytest.approx(4 / 1500)
    assert found.total.value == pytest.approx(4 / 750)


def test_what_was_counted_beside_is_paired_in_the_same_blocks():
    runs = [
        each
        for block in range(1, 5)
        for each in (
            run(BASE, block, wal_per_tx=500.0 + block, checkpoints=0.0),
            run(OTHER, block, wal_per_tx=800.0 + block, checkpoints=0.0),
        )
    ]
    (found,) = find_why(make_plan(), runs).attributions
    (wal,) = (item for item in found.beside if item.metric == "wal_per_tx")
    assert (wal.difference, wal.blocks) == (pytest.approx(300.0), 4)
    assert "checkpoints" not in {item.metric for item in found.beside}


@pytest.mark.parametrize(
    ("runs", "obstacle", "counts"),
    [
        (both(blocks=(1,)), Obstacle.FEW_BLOCKS, (1, 1)),
        ([replace(each, sessions=()) for each in both()], Obstacle.NO_SESSIONS, (4, 0)),
        (
            [replace(each, sessions=() if each.block > 1 else each.sessions) for each in both()],
            Obstacle.FEW_SAMPLED,
            (4, 1),
        ),
    ],
)
def test_where_there_is_no_attribution_it_says_why(runs, obstacle, counts):
    found = find_why(make_plan(), runs)
    assert found.attributions == ()
    (missing,) = found.missing
    assert (missing.obstacle, missing.lost) == (obstacle, None)
    assert (missing.blocks, missing.sampled) == counts


def test_a_sampler_that_was_lost_is_named():
    lost = Reason(code="sampler_lost", names=("sessions",), how="ended", said="no more connections")
    runs = [replace(each, sessions=(), reasons=(lost,)) for each in both()]
    (missing,) = find_why(make_plan(), runs).missing
    assert (missing.obstacle, missing.lost) == (Obstacle.SAMPLER_LOST, lost)


SHORT = {"latency_mean": 0.51e-3}
"""Sessions at a fixed rate are 0.01 of 4 ms within a transaction."""


def at_rate(**rest):
    """A plan at a fixed rate and its runs: 4 clients, 1000 transactions per second, so 4 ms for each of a session."""
    plan = make_plan()
    cells = tuple(replace(cell, rate=1000.0) for cell in plan.experiment.cells)
    plan = replace(plan, experiment=replace(plan.experiment, cells=cells))
    lag = {"schedule_lag": 0.5e-3}
    runs = [
        each
        for block in range(1, 5)
        for each in (
            replace(run(BASE, block, sampled(700, 150, 150), latency_mean=2.5e-3, **lag), cell=cells[0].identity),
            replace(run(OTHER, block, sampled(550, 150, 300), latency_mean=3.1e-3, **lag), cell=cells[0].identity),
        )
    ]
    return plan, runs


def test_at_a_fixed_rate_the_pauses_of_sessions_are_left_out():
    plan, runs = at_rate()
    (found,) = find_why(plan, runs).attributions
    # latency from the scheduled start, less the lag
    assert found.total.reference == pytest.approx(2.0e-3)
    assert found.total.difference == pytest.approx(0.6e-3)
    assert found.causes[0].event == "IO/WalSync"
    parts = {(part.part, part.event): part.difference for part in found.parts}
    assert parts[Part.WAIT, "IO/WalSync"] == pytest.approx(0.6e-3, rel=0.1)
    assert {account.environment for account in find_why(plan, runs).accounts} == {BASE, OTHER}


def test_a_fixed_rate_without_its_lag_has_no_attribution():
    plan, runs = at_rate()
    kept = [
        replace(each, measurements=tuple(one for one in each.measurements if one.metric != "schedule_lag"))
        for each in runs
    ]
    assert find_why(plan, kept).missing[0].obstacle is Obstacle.FIXED_RATE


def test_where_sessions_were_seen_in_their_pauses_only_there_is_no_attribution():
    plan, runs = at_rate()
    idle = [replace(each, sessions=sampled(client=20, running=0, waiting=0)) for each in runs]
    idle = [
        replace(
            each, measurements=tuple(replace(one, value=SHORT.get(one.metric, one.value)) for one in each.measurements)
        )
        for each in idle
    ]
    found = find_why(plan, idle)
    assert (found.missing[0].obstacle, found.missing[0].sampled) == (Obstacle.FIXED_RATE, 0)
    assert not found.accounts


def test_levels_are_told_in_the_blocks_that_all_of_them_have():
    found = find_why(make_plan(), both()[:-1])
    assert {item.environment: item.blocks for item in found.accounts} == {BASE: 3, OTHER: 3}
    waits = {
        item.environment: row.seconds for item in found.accounts for row in item.account.rows if row.part is Part.WAIT
    }
    assert waits[OTHER] > waits[BASE]
