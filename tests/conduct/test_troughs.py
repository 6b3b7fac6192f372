"""The trough of throughput after a checkpoint."""

import pytest

from pgstrata.conduct.troughs import STARTS, checkpoint_trough
from pgstrata.model.metrics import Series


def tps(values):
    return Series(metric="tps", times=tuple(float(second) for second in range(len(values))), values=tuple(values))


def starts(*seconds):
    return Series(metric=STARTS, times=tuple(map(float, seconds)), values=(1.0,) * len(seconds))


def dipping(at, low, *, length=200, width=15):
    return [low if at + 2 <= second < at + 2 + width else 100.0 for second in range(length)]


def test_the_trough_is_the_lowest_ten_seconds_as_a_share_of_before():
    assert checkpoint_trough((tps(dipping(60, 70.0)), starts(60))) == pytest.approx(0.7)


def test_a_stall_of_a_single_second_counts_a_tenth():
    assert checkpoint_trough((tps(dipping(60, 0.0, width=1)), starts(60))) == pytest.approx(0.9)


def test_of_several_checkpoints_the_median_counts():
    values = [min(pair) for pair in zip(dipping(60, 70.0, length=400), dipping(250, 50.0, length=400), strict=True)]
    assert checkpoint_trough((tps(values), starts(60, 250))) == pytest.approx(0.6)


@pytest.mark.parametrize("at", [(), (10,), (150,), (60, 80)])
def test_without_a_whole_stretch_around_a_checkpoint_there_is_none(at):
    assert checkpoint_trough((tps(dipping(60, 70.0)), starts(*at))) is None


def test_without_seconds_or_events_there_is_none():
    assert checkpoint_trough(()) is None
    assert checkpoint_trough((starts(60),)) is None
    assert checkpoint_trough((tps(dipping(60, 70.0)),)) is None


def test_a_gap_in_the_seconds_gives_none():
    series = tps(dipping(60, 70.0))
    gap = Series(
        metric="tps", times=series.times[:80] + series.times[81:], values=series.values[:80] + series.values[81:]
    )
    assert checkpoint_trough((gap, starts(60))) is None


def test_a_server_that_did_nothing_before_gives_none():
    assert checkpoint_trough((tps([0.0] * 200), starts(60))) is None
