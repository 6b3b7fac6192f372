import itertools
import os
import signal
import subprocess
import time

from hypothesis import given
from hypothesis import strategies as st

from pgstrata.conduct.turns import order_turns, parse_marks, render_script
from pgstrata.model.experiment import Interleave
from pgstrata.model.plan import Design


def design(rounds=4, discarded=1):
    return Design(cell="c", interleave=Interleave.SLICES, slice_seconds=0.05, rounds=rounds, discarded=discarded)


@given(rounds=st.integers(1, 20), discarded=st.integers(0, 3), arms=st.integers(1, 6), seed=st.integers(0, 2**32))
def test_each_round_gives_every_arm_one_slice(rounds, discarded, arms, seed):
    turns = order_turns(design(rounds, discarded), arms, seed)
    assert len(turns) == (rounds + discarded) * arms
    for start in range(0, len(turns), arms):
        assert sorted(turn.arm for turn in turns[start : start + arms]) == list(range(arms))
    measured = [turn.round for turn in turns if turn.round]
    assert measured == sorted(measured)
    assert set(measured) == set(range(1, rounds + 1))
    assert turns == order_turns(design(rounds, discarded), arms, seed)


def test_the_order_within_a_round_varies():
    turns = order_turns(design(rounds=40), 2, seed=3)
    firsts = [turns[place].arm for place in range(0, len(turns), 2)]
    assert 5 < sum(firsts) < 36


def test_a_last_line_without_its_end_is_no_slice():
    assert [mark.arm for mark in parse_marks(b"0 1 100 200\n1 0 300 400\n1 1 50")] == [1, 0]
    assert parse_marks(b"") == ()


def test_the_script_lets_one_group_run_at_a_time(tmp_path):
    """Two loops write the time into files; between a slice's end and the next start both stand still."""
    loop = "while :; do echo ${EPOCHREALTIME/[.,]/}000; done"
    files = [(tmp_path / f"loop-{number}").open("wb") for number in range(2)]
    loops = [subprocess.Popen(["bash", "-c", loop], stdout=file, start_new_session=True) for file in files]
    try:
        for process in loops:
            os.killpg(process.pid, signal.SIGSTOP)
        time.sleep(0.1)
        groups = {number: (process.pid,) for number, process in enumerate(loops)}
        turns = order_turns(design(), 2, seed=1)
        script = tmp_path / "turns.sh"
        script.write_bytes(render_script(turns, groups, 0.05))
        marks = parse_marks(subprocess.run(["sh", str(script)], capture_output=True, check=True).stdout)
    finally:
        for process, file in zip(loops, files, strict=True):
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            file.close()
    assert [(mark.round, mark.arm) for mark in marks] == [(turn.round, turn.arm) for turn in turns]
    assert all(before.stop <= after.start for before, after in itertools.pairwise(marks))
    for number in range(2):
        own = [mark for mark in marks if mark.arm == number]
        others = [mark for mark in marks if mark.arm != number]
        times = [int(word) for word in (tmp_path / f"loop-{number}").read_text().split() if int(word) > marks[0].start]
        # a busy machine may give it no CPU in some of its turns
        assert sum(any(mark.start <= moment <= mark.stop for moment in times) for mark in own) > len(own) / 2
        # a stop takes effect a moment after the signal
        inside = [m for m in times if any(o.start + 20_000_000 < m < o.stop for o in others)]
        assert not inside


def test_a_client_that_has_gone_is_passed_over(tmp_path):
    gone = subprocess.Popen(["true"], start_new_session=True)
    gone.wait()
    script = tmp_path / "turns.sh"
    script.write_bytes(render_script(order_turns(design(), 1, seed=1), {0: (gone.pid,)}, 0.01))
    done = subprocess.run(["sh", str(script)], capture_output=True, check=True)
    assert done.stdout == b""
    assert done.stderr == b""


def test_all_storage_of_an_arm_is_written_back_after_its_slices():
    script = render_script(
        order_turns(design(), 2, seed=1), {0: (7,), 1: (8, 9)}, 0.01, {0: ("/data", "/a wal"), 1: ("/x",)}
    )
    calls = {line for line in script.decode().splitlines() if line.startswith("turn ")}
    assert {line.split(" 0.01 ")[1] for line in calls} == {"/data '/a wal'", "/x"}


def test_a_turn_writes_back_each_folder(tmp_path):
    (tmp_path / "sync").write_text(f'#!/bin/sh\necho "$@" >>{tmp_path}/said\n')
    (tmp_path / "sync").chmod(0o755)
    idle = subprocess.Popen(["sleep", "30"], start_new_session=True)
    try:
        for folders in (("/a", "/b"), ("/a",), ()):
            script = render_script(order_turns(design(1, 0), 1, seed=1), {0: (idle.pid,)}, 0.01, {0: folders})
            path = f"{tmp_path}:{os.environ['PATH']}"
            done = subprocess.run(["sh"], input=script, capture_output=True, check=True, env={"PATH": path})
            assert len(parse_marks(done.stdout)) == 1
    finally:
        os.killpg(idle.pid, signal.SIGKILL)
        idle.wait()
    assert (tmp_path / "said").read_text().splitlines() == ["-f /a /b", "-f /a"]
