"""Waiting for what happens soon, and what something costs at best whatever else the machine does."""

import time


def least_seconds(work, limit, *, clock=time.process_time, tries=5):
    """The least that one of up to five calls took; a call below the limit is the last.

    Background load takes the CPU and the caches from some tries, seldom from all.
    """
    taken = []
    while not taken or (min(taken) >= limit and len(taken) < tries):
        begun = clock()
        work()
        taken.append(clock() - begun)
    return min(taken)


def wait_for(condition, seconds=5.0):
    """Wait until a condition holds; a failure after so many seconds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"it did not happen within {seconds} s"
        time.sleep(0.01)
