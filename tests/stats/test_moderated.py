import math

import numpy as np
import pytest

from pgstrata.stats.moderated import moderated_error, resolve_holm
from pgstrata.stats.student import two_sided_point


def test_what_blocks_and_what_is_known_beforehand_are_averaged_by_their_degrees_of_freedom():
    error, freedom = moderated_error(3.0, 1.0, 0.25, 4.0, blocks=3)
    assert freedom == 6
    assert error == pytest.approx(math.sqrt((4 * 2.0 + 2 * 3.0) / 6 / 3))


def test_what_fluctuates_twice_as_much_as_others_of_its_kind_is_left_to_its_own_blocks():
    error, freedom = moderated_error(9.0, 1.0, 0.25, 4.0, blocks=3)
    assert (error, freedom) == (pytest.approx(math.sqrt(9.0 / 3)), 2)


def test_a_mean_of_what_comes_in_bursts_among_calm_things_is_covered():
    rng = np.random.default_rng(20261124)
    covered = 0
    for d in rng.normal(0, 3, (2000, 5)):
        error, freedom = moderated_error(float(d.var(ddof=1)), 0.5, 0.5, 1.0, blocks=5)
        covered += abs(d.mean()) <= two_sided_point(0.05, freedom) * error
    assert covered / 2000 > 0.93


def test_an_error_is_never_below_that_of_counting():
    error, _ = moderated_error(0.0, 1.0, 0.0, 4.0, blocks=4)
    assert error == pytest.approx(math.sqrt(1 / 4))


def test_holm_stops_at_the_first_that_may_be_chance():
    assert resolve_holm([0.04, 0.001, 0.02], 0.05) == (True, True, True)
    assert resolve_holm([0.04, 0.001, 0.03], 0.05) == (False, True, False)
    assert resolve_holm([], 0.05) == ()
