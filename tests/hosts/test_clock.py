"""The offset between two clocks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_clock import FakeClock
from pgstrata.hosts.clock import measure_clock
from pgstrata.hosts.shell import ShellHost
from pgstrata.model.clocks import ClockExchange, estimate_offset
from pgstrata.ports.host import ClockReading

delays = st.floats(0, 5)


@given(st.floats(-7200, 7200), st.lists(st.tuples(delays, delays), min_size=1, max_size=9))
def test_the_true_offset_lies_within_the_uncertainty(offset, ways):
    exchanges = [
        ClockExchange(asked=1000.0 * i, took=there + back, told=1000.0 * i + there + offset)
        for i, (there, back) in enumerate(ways)
    ]
    found = estimate_offset(exchanges, 0.0)
    assert abs(found.offset_seconds - offset) <= found.uncertainty + 1e-6
    assert found.uncertainty == min(there + back for there, back in ways) / 2


def test_the_quickest_exchange_is_trusted():
    slow = ClockExchange(asked=0.0, took=2.0, told=2.0)
    quick = ClockExchange(asked=10.0, took=0.02, told=10.51)
    found = estimate_offset((slow, quick, slow), 0.004)
    assert (found.offset_seconds, found.uncertainty, found.round_trip) == pytest.approx((0.5, 0.01, 0.004))
    assert not found.apart


class SlowHost:
    """A host an hour ahead, some way off."""

    def __init__(self, clock, delays):
        self._clock = clock
        self._delays = iter(delays)

    def clock(self):
        self._clock.advance(0.01)
        told = self._clock.wall() + 3600
        self._clock.advance(next(self._delays))
        return ClockReading(wall=told, monotonic=1.0)

    def exists(self, path):
        self._clock.advance(0.005)
        return True


def test_clocks_an_hour_apart_are_told():
    clock = FakeClock()
    found = measure_clock(SlowHost(clock, (1, 2, 0.03, 0.5, 3, 3, 3, 3)), clock)
    assert found.offset_seconds == pytest.approx(3600, abs=0.02)
    assert found.uncertainty == pytest.approx(0.02)
    assert found.round_trip == pytest.approx(0.005)
    assert found.apart


def test_a_shell_of_this_machine_has_its_clock():
    import time

    class RealClock:
        wall, monotonic = staticmethod(time.time), staticmethod(time.monotonic)

    host = ShellHost(name="here")
    found = measure_clock(host, RealClock())
    host.close()
    assert abs(found.offset_seconds) <= found.uncertainty + 0.001
    assert 0 < found.round_trip <= 0.5
    assert not found.apart
