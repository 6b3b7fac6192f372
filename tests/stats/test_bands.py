"""Intervals of several effects that hold together."""

import numpy as np
import pytest

from pgstrata.stats.bands import estimate_band

CURVES = 400


def misses(samples, band):
    """Whether any interval of the band lacks zero, the truth."""
    spans = [each.interval for each in band.estimates]
    return len(spans) == len(samples) and any(span.excludes_zero for span in spans)


@pytest.mark.parametrize("shared", [0.0, 0.9])
def test_a_band_over_eleven_effects_seldom_misses_any_of_them(shared):
    rng = np.random.default_rng(20261124)
    missed = 0
    for _ in range(CURVES):
        own, common = rng.normal(0, 1, (11, 20)), rng.normal(0, 1, 20)
        samples = list(np.sqrt(1 - shared) * own + np.sqrt(shared) * common)
        missed += misses(samples, estimate_band(samples, horizon=60))
    assert missed / CURVES <= 0.045


def test_a_band_over_one_effect_is_its_interval_and_needs_no_more_blocks():
    (found,) = estimate_band([np.linspace(1, 2, 8)], horizon=60).estimates
    assert found.interval is not None


def test_eleven_effects_have_no_band_before_twelve_blocks():
    rng = np.random.default_rng(1)
    for blocks, there in ((11, False), (12, True)):
        band = estimate_band(list(rng.normal(1, 0.1, (11, blocks))), horizon=60)
        assert [each.interval is not None for each in band.estimates] == [there] * 11


def test_an_effect_without_blocks_has_its_place_and_its_share():
    band = estimate_band([np.empty(0), np.linspace(1, 2, 20)], horizon=60)
    assert band.estimates[0] is None
    assert band.estimates[1] is not None
    assert band.level == pytest.approx(0.04)
