import math

import pytest

from pgstrata.stats.moderated import moderated_error, resolve_holm


def test_what_blocks_and_what_is_known_beforehand_are_averaged_by_their_degrees_of_freedom():
    error, freedom = moderated_error(9.0, 1.0, 0.25, 4.0, blocks=3)
    assert freedom == 6
    assert error == pytest.approx(math.sqrt((4 * 2.0 + 2 * 9.0) / 6 / 3))


def test_an_error_is_never_below_that_of_counting():
    error, _ = moderated_error(0.0, 1.0, 0.0, 4.0, blocks=4)
    assert error == pytest.approx(math.sqrt(1 / 4))


def test_holm_stops_at_the_first_that_may_be_chance():
    assert resolve_holm([0.04, 0.001, 0.02], 0.05) == (True, True, True)
    assert resolve_holm([0.04, 0.001, 0.03], 0.05) == (False, True, False)
    assert resolve_holm([], 0.05) == ()
