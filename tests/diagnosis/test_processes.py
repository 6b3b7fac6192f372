"""What processes that serve no client did, beside an account."""

import numpy as np
import pytest

from pgstrata.diagnosis.account import Seen
from pgstrata.diagnosis.attribution import attribute
from pgstrata.diagnosis.processes import contribute_processes
from pgstrata.model.activity import ProcessCount, SessionCount, SessionState
from pgstrata.model.attribution import Part

CLIENTS, LOOKS, T = 2, 50, 1e-3


def process(kind, samples, wait="", state=SessionState.RUNNING):
    wait_type, _, event = wait.partition("/")
    state = SessionState.WAITING if wait else state
    return ProcessCount(kind=kind, state=state, wait_type=wait_type, event=event, query="", samples=samples)


def window(*processes, seconds=T):
    sessions = (SessionCount(state=SessionState.CLIENT, wait_type="", event="", query="", samples=CLIENTS * LOOKS),)
    return Seen(
        seconds=seconds,
        sessions=sessions,
        cpu=0.0,
        queue=0.0,
        processes=tuple(each for each in processes if each.samples),
    )


def test_two_workers_that_compute_all_the_time_have_twice_that_of_a_client():
    busy = [window(process("parallel worker", 2 * LOOKS))] * 3
    (row,) = contribute_processes([window()] * 3, busy)
    assert (row.process, row.part, row.event) == ("parallel worker", Part.RUNNING, "")
    # of two clients each transaction has T of its own client, which is half of the samples of sessions
    assert row.reference == pytest.approx(T)
    assert (row.value, row.samples) == (0.0, 300)
    assert row.resolved
    assert row.difference == pytest.approx(-T)
    assert row.interval.low < -T < row.interval.high < 0


def test_what_a_process_waited_for_is_told_apart_and_the_largest_change_is_first():
    value = [window(process("checkpointer", 20, "IO/DataFileWrite"), process("checkpointer", 9)) for _ in range(5)]
    reference = [window(process("walwriter", 1, "IO/WalSync"), process("checkpointer", 9)) for _ in range(5)]
    rows = contribute_processes(value, reference)
    assert [(row.process, row.event, row.resolved) for row in rows] == [
        ("checkpointer", "IO/DataFileWrite", True),
        ("walwriter", "IO/WalSync", False),
        ("checkpointer", "", False),
    ]


def test_what_was_seen_too_seldom_is_put_together_or_left_out():
    seldom = [process("checkpointer", 1, f"IO/{name}") for name in ("DataFileSync", "DataFileFlush", "WalSync")]
    value = [window(*seldom, process("autovacuum worker", 1)), window(*seldom)]
    (row,) = contribute_processes(value, [window(), window()])
    assert (row.process, row.part, row.event, row.samples) == ("checkpointer", Part.WAIT, "", 6)
    assert contribute_processes([window(), window()], [window(), window()]) == ()


@pytest.mark.parametrize("blocks", [2, 3, 5])
@pytest.mark.parametrize("burst", [1, 40])
def test_equal_environments_have_hardly_any_process_that_differs(blocks, burst):
    """Also where what works in the background does so for many looks at a time, and is one row alone."""
    rng = np.random.default_rng(3)
    kinds = (
        [("checkpointer", "IO/DataFileWrite", 8), ("walwriter", "IO/WalSync", 4)]
        if burst == 1
        else [("checkpointer", "IO/DataFileWrite", 0.7)]
    )

    def draw():
        return [
            window(*(process(kind, burst * int(rng.poisson(rate)), wait) for kind, wait, rate in kinds))
            for _ in range(blocks)
        ]

    wrong = sum(any(row.resolved for row in contribute_processes(draw(), draw())) for _ in range(200))
    assert wrong <= 20


def test_what_waits_for_others_has_nothing_to_do():
    idle = [
        window(
            process("pg_wait_sampling collector", LOOKS, "Extension/Extension"),
            process("walsender", LOOKS, "Client/WalSenderWaitForWal"),
        )
    ] * 2
    assert contribute_processes(idle, idle) == ()


def test_parallel_workers_of_which_the_kernel_was_asked_are_told_apart():
    busy = [
        window(
            process("parallel worker", 20, state=SessionState.AWAKE),
            process("parallel worker", 9, state=SessionState.ASLEEP),
        )
    ] * 3
    assert {(row.part, row.samples) for row in contribute_processes(busy, [window()] * 3)} == {
        (Part.RUNNING, 60),
        (Part.REST, 27),
    }


def test_they_stand_beside_an_account_and_are_no_part_of_it():
    value, reference = [window(process("walwriter", 9)) for _ in range(3)], [window(seconds=2e-3) for _ in range(3)]
    found = attribute(value, reference, environment="new", reference_name="old", cell="c")
    assert [row.process for row in found.processes] == ["walwriter"]
    assert sum(part.difference for part in found.parts) == pytest.approx(found.total.difference)
    assert not any(item.process for item in (*found.rows, *found.causes))
