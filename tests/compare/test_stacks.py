"""CPU time of functions in two environments: which changes exceed chance."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgstrata.compare.causes.stacks import compare_stacks
from sampled_stacks import BASE, MORE, run_stacks, side, stacks


@pytest.mark.parametrize("alike", [False, True])
def test_equal_environments_whose_blocks_scatter_are_grey_however_few_blocks_there_are(alike):
    """Forty functions in studies of two and of three blocks that scatter by a tenth, each or all: few are coloured."""
    rng = np.random.default_rng(5)
    coloured = made = wholes = 0
    for blocks in [2, 3] * 20:

        def draw(name, block):
            whole = rng.normal(1, 0.1) if alike else 1.0
            return run_stacks(
                name,
                block,
                {f"session;f{n}": int(1e4 * whole * rng.normal(1, 0.01 if alike else 0.1)) for n in range(40)},
            )

        flames = compare_stacks(*([draw(name, block) for block in range(blocks)] for name in ("pg18", "pg16")))
        made += len(flames.own)
        coloured += sum(change.resolved for change in flames.own.values())
        wholes += flames.whole.resolved
    assert coloured <= 0.01 * made
    assert wholes <= 1


def test_blocks_that_only_one_side_has_are_left_out_and_one_block_is_not_enough():
    assert compare_stacks(side("pg18", MORE, 9), side("pg16", BASE, 4)).blocks == 4
    assert compare_stacks(side("pg18", MORE, 1), side("pg16", BASE, 9)) is None
    assert compare_stacks([run_stacks("pg18", block, {}) for block in (1, 2, 3)], side("pg16", BASE)) is None


@given(st.lists(stacks, min_size=2, max_size=4))
def test_an_environment_against_itself_has_no_change(found):
    runs = [run_stacks("a", block, each) for block, each in enumerate(found)]
    flames = compare_stacks(runs, runs)
    assert not any(change.resolved for change in flames.inclusive.values())
