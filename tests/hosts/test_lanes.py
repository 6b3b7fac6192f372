"""Works side by side: one has its turn until it waits, interruptions reach all, and nobody is left behind."""

import os
import signal
import subprocess
import threading
import time

import pytest

from pgstrata.hosts.lanes import ThreadLanes, wait_for, waiting
from pgstrata.system import users

LIMIT = 20.0


def pause(event):
    with waiting():
        assert event.wait(LIMIT)


def test_what_one_waits_for_another_does_meanwhile():
    here, there, seen = threading.Event(), threading.Event(), []

    def first():
        seen.append("first")
        here.set()
        pause(there)
        seen.append("first again")

    def second():
        pause(here)
        seen.append("second")
        there.set()

    ThreadLanes()([first, second])
    assert seen == ["first", "second", "first again"]


def test_one_has_its_turn_until_it_waits():
    at_work, most = [], []

    def work():
        for _ in range(20):
            at_work.append(1)
            most.append(len(at_work))
            time.sleep(0.0005)
            at_work.pop()
            with waiting():
                time.sleep(0.0005)

    ThreadLanes()([work] * 3)
    assert set(most) == {1}


def test_what_one_raises_is_raised_when_the_others_have_ended():
    ended = []

    def fail():
        raise ValueError("no")

    def go_on():
        with waiting():
            time.sleep(0.05)
        ended.append(True)

    with pytest.raises(ValueError, match="no"):
        ThreadLanes()([fail, go_on])
    assert ended


def test_the_user_interrupts_each_of_them_once():
    cleaned, begun = [], threading.Barrier(3)

    def work():
        try:
            with waiting():
                begun.wait(LIMIT)
            while True:
                with waiting():
                    time.sleep(0.01)
        finally:
            # cleaning up waits, too, and is not interrupted again
            with waiting():
                time.sleep(0.01)
            cleaned.append(True)

    def interrupt():
        begun.wait(LIMIT)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        ThreadLanes()([work, work])
    assert cleaned == [True, True]


def test_a_single_work_has_no_thread():
    seen = []
    ThreadLanes()([lambda: seen.append(threading.current_thread())])
    assert seen == [threading.main_thread()]


def test_threads_are_used_again_and_outlive_the_works():
    seen, lanes = [], ThreadLanes()
    for _ in range(2):
        lanes([lambda: seen.append(threading.current_thread())] * 2)
    assert set(seen[:2]) == set(seen[2:])
    assert all(thread.is_alive() and thread.daemon for thread in seen)


def test_the_turn_is_kept_while_the_process_acts_as_somebody_else(monkeypatch):
    others, held, begun = [], threading.Event(), threading.Event()

    def acting():
        begun.set()
        monkeypatch.setattr(users, "_acting", ["somebody"])
        with waiting():
            held.wait(0.1)
        assert not others
        monkeypatch.setattr(users, "_acting", [])

    def other():
        # whichever has the first turn
        with waiting():
            begun.wait(60)
        others.append(True)

    ThreadLanes()([acting, other])
    assert others


def test_outside_of_lanes_nothing_is_given_away():
    with waiting():
        pass


def test_a_child_is_waited_for_until_it_ends_or_until_time_is_up():
    child = subprocess.Popen(["sh", "-c", "read line; exit 3"], stdin=subprocess.PIPE)
    with pytest.raises(subprocess.TimeoutExpired):
        wait_for(child, 0.01)
    child.stdin.close()
    assert wait_for(child, LIMIT) == 3
    # it is no child any more
    assert wait_for(child) == 3


def test_others_have_their_turn_while_a_child_is_waited_for():
    child, seen = subprocess.Popen(["sh", "-c", "read line"], stdin=subprocess.PIPE), []

    def wait():
        seen.append("waits")
        wait_for(child, LIMIT)
        seen.append("has waited")

    def end():
        while "waits" not in seen:
            with waiting():
                time.sleep(0.001)
        seen.append("ends it")
        child.stdin.close()

    ThreadLanes()([wait, end])
    assert seen == ["waits", "ends it", "has waited"]
