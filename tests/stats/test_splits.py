"""The random orders behind the search for steps: drawn once for all values that have their gaps at the same places."""

import numpy as np
import pytest

from pgstrata.stats import splits
from pgstrata.stats.ordered import find_steps


@pytest.fixture
def logs():
    values = np.random.default_rng(7).normal(0, 0.02, (9, 5))
    values[:, 3:] += 0.03
    values[2, 1] = values[5, 4] = np.nan
    return values


def test_orders_that_are_kept_give_the_same_as_orders_drawn_anew(logs, monkeypatch):
    kept = find_steps(logs), find_steps(logs)
    monkeypatch.setattr(splits, "_MOST_KEPT", 0)
    assert (find_steps(logs), find_steps(logs)) == kept


def test_values_of_one_pass_make_no_difference(logs, monkeypatch):
    whole = find_steps(logs)
    monkeypatch.setattr(splits, "_PART", 700)
    assert find_steps(logs) == whole


def test_each_order_has_every_place_of_its_row_once_and_gaps_stay():
    there = np.array([[True, False, True, True], [True, True, True, True]])
    first, second = splits._orders(there, splits._Draws(number=5, size=3, seed=1))
    assert first[:, 0].T.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    orders = np.concatenate([first, second], axis=1)
    assert orders.shape == (4, 6, 2)
    assert (np.sort(orders, axis=0)[:, :, 1].T == [4, 5, 6, 7]).all()
    assert (np.sort(orders, axis=0)[:, :, 0].T == [0, 1, 2, 3]).all()
    assert (orders[1, :, 0] == 1).all()
