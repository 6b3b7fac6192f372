"""Main effects and interactions of crossed factors."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgstrata.stats.contrasts import make_contrasts


def crossed(**factors):
    """All combinations by name, such as 16/4k."""
    return {"/".join(levels): dict(zip(factors, levels, strict=True)) for levels in product(*factors.values())}


def measured(environments, effect, blocks=3):
    """Logs with a height per block and an effect that depends on the levels."""
    return {
        name: {block: 10.0 * block + effect(levels) for block in range(1, blocks + 1)}
        for name, levels in environments.items()
    }


FOUR = crossed(server=("16", "17"), pages=("4k", "huge"))


def effect_of_four(levels):
    return 0.1 * (levels["server"] == "17") + 0.02 * (levels["pages"] == "huge") * (1 + (levels["server"] == "17"))


def text_of(contrast):
    """pages huge : 4k x kernel 6.12 : 6.1."""
    return " x ".join(f"{change.factor} {change.level} : {change.against}" for change in contrast.changes)


def test_two_by_two_gives_both_main_effects_and_their_interaction():
    found = make_contrasts(FOUR, measured(FOUR, effect_of_four), baseline="16/4k")
    assert [text_of(contrast) for contrast in found] == [
        "server 17 : 16",
        "pages huge : 4k",
        "server 17 : 16 x pages huge : 4k",
    ]
    assert [contrast.is_interaction for contrast in found] == [False, False, True]
    assert [contrast.series.d.tolist() for contrast in found] == [
        pytest.approx([0.11] * 3),
        pytest.approx([0.03] * 3),
        pytest.approx([0.02] * 3),
    ]
    assert found[0].series.blocks == (1, 2, 3)


def test_the_baseline_says_which_level_the_others_are_compared_with():
    found = make_contrasts(FOUR, measured(FOUR, effect_of_four), baseline="17/huge")
    assert [text_of(contrast) for contrast in found][:2] == ["server 16 : 17", "pages 4k : huge"]
    assert found[2].series.d == pytest.approx([0.02] * 3)


def test_three_factors_average_over_the_third():
    eight = crossed(server=("16", "17"), pages=("4k", "huge"), wal=("lz4", "zstd", "off"))

    def effect(levels):
        return effect_of_four(levels) + {"lz4": 0.0, "zstd": 0.3, "off": 0.5}[levels["wal"]]

    found = make_contrasts(eight, measured(eight, effect), baseline="16/4k/lz4")
    values = {text_of(contrast): contrast.series.d[0] for contrast in found}
    assert values["wal off : lz4"] == pytest.approx(0.5)
    assert values["server 17 : 16"] == pytest.approx(0.11)
    assert values["server 17 : 16 x pages huge : 4k"] == pytest.approx(0.02)
    assert values["server 17 : 16 x wal zstd : lz4"] == pytest.approx(0.0)
    assert len(values) == 4 + 1 + 2 + 2


def test_a_block_counts_only_if_all_its_environments_have_a_value():
    logs = measured(FOUR, effect_of_four, blocks=5)
    del logs["17/huge"][2]
    logs["16/4k"][4] = math.nan
    found = make_contrasts(FOUR, logs, baseline="16/4k")
    assert {contrast.series.blocks for contrast in found} == {(1, 3, 5)}


def test_an_environment_that_was_never_measured_leaves_no_block():
    logs = measured(FOUR, effect_of_four)
    del logs["17/huge"]
    (first, *_) = make_contrasts(FOUR, logs, baseline="16/4k")
    assert first.series.blocks == ()
    assert first.series.d.shape == (0,)


def test_a_missing_corner_leaves_out_what_it_would_bias():
    three = {name: levels for name, levels in FOUR.items() if name != "17/huge"}
    found = make_contrasts(three, measured(three, effect_of_four), baseline="16/4k")
    assert found == ()


def test_levels_that_are_balanced_are_not_lost_with_those_that_are_not():
    six = crossed(server=("16", "17", "18"), pages=("4k", "huge"))
    del six["18/huge"]
    found = make_contrasts(six, measured(six, effect_of_four), baseline="16/4k")
    assert [text_of(contrast) for contrast in found] == [
        "server 17 : 16",
        "server 17 : 16 x pages huge : 4k",
    ]


def test_a_change_seen_at_one_combination_alone_is_no_main_effect():
    star = {
        "base": {"server": "16", "pages": "4k"},
        "new": {"server": "17", "pages": "4k"},
        "huge": {"server": "16", "pages": "huge"},
        "other": {"server": "18", "pages": "4k"},
        "other-huge": {"server": "18", "pages": "huge"},
    }
    found = make_contrasts(star, measured(star, lambda levels: 0.0), baseline="base")
    assert "server 18 : 16" in [text_of(contrast) for contrast in found]
    lonely = {"base": {"a": "1", "b": "1"}, "both": {"a": "2", "b": "2"}}
    assert make_contrasts(lonely, {}, baseline="base") == ()


def test_one_factor_is_not_crossed():
    three = crossed(server=("16", "17", "18"), pages=("4k",))
    found = make_contrasts(three, measured(three, lambda levels: 0.0), baseline="16/4k")
    assert found == ()


@pytest.mark.parametrize(
    ("environments", "baseline", "message"),
    [(FOUR, "18", "baseline"), ({**FOUR, "twin": FOUR["16/4k"]}, "16/4k", "same levels")],
)
def test_a_design_that_contradicts_itself_is_refused(environments, baseline, message):
    with pytest.raises(ValueError, match=message):
        make_contrasts(environments, {}, baseline=baseline)


@given(st.lists(st.floats(-1, 1), min_size=12, max_size=12), st.floats(-5, 5))
@settings(max_examples=40)
def test_what_all_environments_of_a_block_share_cancels(values, height):
    matrix = np.array(values).reshape(4, 3)
    logs = {name: dict(enumerate(row.tolist(), start=1)) for name, row in zip(FOUR, matrix, strict=True)}
    lifted = {name: {block: x + height * block for block, x in row.items()} for name, row in logs.items()}
    before, after = (make_contrasts(FOUR, of, baseline="16/4k") for of in (logs, lifted))
    for one, other in zip(before, after, strict=True):
        assert one.series.d == pytest.approx(other.series.d, abs=1e-9)
