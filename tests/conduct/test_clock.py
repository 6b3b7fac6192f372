"""The wall clock against the monotonic one, as a real host reads them."""

import time

import pytest

from pgstrata.hosts import local
from pgstrata.hosts.local import LocalHost


@pytest.mark.parametrize("jump", [0.0, 3600.0, -3600.0])
def test_a_jump_of_the_wall_clock_during_a_run_is_its_drift(monkeypatch, jump):
    host = LocalHost()
    before = host.clock()
    real = time.time
    monkeypatch.setattr(local.time, "time", lambda: real() + jump)
    time.sleep(0.05)
    after = host.clock()
    seconds = after.monotonic - before.monotonic
    assert 0.05 <= seconds < 5
    assert (after.wall - before.wall) - seconds == pytest.approx(jump, abs=0.05)
