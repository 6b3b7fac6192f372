"""Environments of a table as ordered levels: where the step lies, when none can be told, and what must be doubted."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgstrata.compare.gate import import_code
from pgstrata.compare.one_look import ImportTerms, decide_import
from pgstrata.errors import ExitCode, UsageError
from pgstrata.model.answer import ALL_CELLS, Verdict
from pgstrata.model.doubts import NamedDoubt
from pgstrata.model.levels import order_by_number
from pgstrata.sources.table import parse_table

LEVELS = ("v14", "v15", "v16", "v17", "v18")


def write(levels=LEVELS, *, n=6, step=0.06, at=2, cells=("",), blocks=True, seed=5, order=None):
    """Rows in which the levels from place `at` on are higher; `order` is that of the rows."""
    noise = np.random.default_rng(seed)
    lines = [",".join(name for name in ("block", "environment", "cell", "value") if blocks or name != "block")]
    for block in range(n):
        for cell in cells:
            for level in order or levels:
                value = 1000 * math.exp(step * (levels.index(level) >= at) + noise.normal(0, 0.01))
                lines.append(",".join((*((str(block),) if blocks else ()), level, cell or "c", repr(value))))
    return "\n".join(lines) + "\n"


def ask(text, **question):
    return decide_import(parse_table(text, "r.csv"), ImportTerms(ordered=True, **question))


def codes(answer):
    return {warning.code for warning in answer.warnings}


def test_the_level_that_brought_the_change_is_named_within_blocks():
    (axis,) = ask(write()).axes
    assert (axis.levels, axis.blocks, axis.factor) == (LEVELS, 6, "environment")
    (step,) = axis.steps
    assert (step.before, step.after) == ("v15", "v16")
    assert step.effect == pytest.approx(math.exp(0.06), abs=0.015)
    assert axis.p <= 0.05


@pytest.mark.parametrize(
    ("step", "n", "lower", "verdict"),
    [
        (0.06, 12, False, Verdict.BETTER),
        (0.06, 12, True, Verdict.WORSE),
        (-0.06, 12, False, Verdict.WORSE),
        (0.015, 20, False, Verdict.NEGLIGIBLE),
        (0.06, 6, False, Verdict.BETTER),
        (0.02, 6, False, Verdict.INCONCLUSIVE),
    ],
)
def test_a_step_is_judged_as_a_pair_is(step, n, lower, verdict):
    (axis,) = ask(write(step=step, n=n), lower_is_better=lower).axes
    assert [each.verdict for each in axis.steps] == [verdict]
    assert (axis.steps[0].interval is None) == (n == 6)


@pytest.mark.parametrize("blocks", [True, False])
def test_the_two_levels_at_a_step_are_compared_alone_too(blocks):
    (step,) = ask(write(blocks=blocks)).axes[0].steps
    assert step.beside == pytest.approx(math.exp(0.06), abs=0.02)
    assert step.beside != step.effect


def test_levels_at_which_so_few_blocks_show_no_step_are_named():
    (axis,) = ask(write(n=2, step=0.5)).axes
    assert {"v15", "v18"} <= set(axis.out_of_reach)
    assert "v16" not in axis.out_of_reach
    assert ask(write(n=6)).axes[0].out_of_reach == ()


def test_a_gate_does_not_pass_where_so_few_blocks_could_not_show_a_step_at_a_level():
    few, enough = ask(write(n=2, step=0.5)), ask(write(n=6))
    assert {item.verdict for answer in (few, enough) for item in answer.headlines} == {Verdict.INSUFFICIENT}
    assert import_code(few) is ExitCode.UNDECIDED
    assert import_code(enough) is ExitCode.DONE
    assert import_code(ask(write(n=2, step=-0.5))) is ExitCode.FAILED


def test_without_blocks_each_cell_has_an_axis_and_they_share_the_level():
    answer = ask(write(blocks=False, cells=("small", "large")))
    assert [axis.cell for axis in answer.axes] == ["small", "large"]
    assert all(axis.blocks == 0 and axis.trend_p is None for axis in answer.axes)
    assert all([step.after for step in axis.steps] == ["v16"] for axis in answer.axes)
    assert NamedDoubt(code="no_blocks", names=LEVELS) in answer.warnings


def test_with_blocks_the_mean_of_the_cells_comes_first_and_single_cells_follow():
    answer = ask(write(cells=("small", "large")))
    assert [axis.cell for axis in answer.axes] == [ALL_CELLS, "small", "large"]


def test_the_order_is_that_of_first_appearance_whatever_the_baseline():
    answer = ask(write(), baseline="v17")
    assert (answer.levels, answer.axes[0].levels) == (LEVELS, LEVELS)


def test_headlines_are_the_same_with_and_without_steps():
    text = write(n=9)
    plain = decide_import(parse_table(text, "r.csv"), ImportTerms())
    assert ask(text).headlines == plain.headlines
    assert (plain.axes, plain.levels) == ((), ())


def test_a_trend_without_a_step_is_tested_and_few_blocks_are_told():
    (axis,) = ask(write(n=2, levels=LEVELS[:3])).axes
    assert not axis.steps
    assert axis.smallest_p > 0.05
    assert ask(write(n=8, step=0)).axes[0].trend_p is not None


@pytest.mark.parametrize("names", [("a",), ("a", "b")])
def test_fewer_than_three_levels_are_no_axis(names):
    text = "environment,value\n" + "".join(f"{name},{value}\n" for name in names for value in range(1, 6))
    remedy = "add the rows of"
    with pytest.raises(UsageError) as caught:
        ask(text)
    assert remedy in (caught.value.remedy or "")


def test_a_level_that_lacks_a_cell_is_left_out_there_and_too_few_levels_have_no_p():
    text = write(blocks=False, levels=LEVELS[:3], cells=("small",)) + "v14,large,1\nv15,large,2\n"
    small, large = ask(text).axes
    assert small.p is not None
    assert (large.levels, large.p, large.steps) == (("v14", "v15"), None, ())


def test_no_block_with_two_levels_gives_no_p_and_no_warning_of_numbers():
    lines = ["block,environment,value", *(f"{number},{level},1" for number, level in enumerate(LEVELS))]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (axis,) = ask("\n".join(lines)).axes
    assert (axis.p, axis.blocks) == (None, 0)


@pytest.mark.parametrize("blocks", [True, False])
def test_values_at_the_ends_of_what_a_number_can_be_are_borne(blocks):
    lines = ["block,environment,value" if blocks else "environment,value"]
    for block in range(8):
        for level, value in zip("abcd", ("1e-300", "2e-300", "1e300", "2e300"), strict=True):
            lines.append(f"{block},{level},{value}" if blocks else f"{level},{value}")
    (axis,) = ask("\n".join(lines)).axes
    assert [step.after for step in axis.steps] == ["b", "c", "d"]


@pytest.mark.parametrize(
    ("levels", "by_number"),
    [
        (("14", "15", "16"), ("14", "15", "16")),
        (("18", "17", "16"), ("16", "17", "18")),
        (("14", "18", "16"), ("14", "16", "18")),
        (("pg14", "pg18", "pg16"), ("pg14", "pg16", "pg18")),
        (("pg-18", "pg-9.6", "pg-16"), ("pg-9.6", "pg-16", "pg-18")),
        (("1", "-2", "0"), ("-2", "0", "1")),
        (("1.5", "1.9", "1.10"), ("1.5", "1.9", "1.10")),
        (("1.5", "1.10", "1.9"), ("1.5", "1.9", "1.10")),
        (("64kB", "8kB", "1MB"), ("8kB", "64kB", "1MB")),
        (("off", "on", "remote"), ()),
        (("16-patched", "14", "18"), ()),
    ],
)
def test_levels_are_ordered_by_number_where_all_have_one(levels, by_number):
    assert order_by_number(levels) == by_number


def test_an_order_of_measuring_that_looks_like_no_order_of_levels_is_doubted():
    assert "order_of_file" in codes(ask(write(order=("v16", "v14", "v15", "v18", "v17"))))
    assert "order_of_file" not in codes(ask(write()))
    assert "order_of_file" not in codes(ask(write(order=("v18", "v17", "v16", "v15", "v14"))))


@settings(max_examples=20, deadline=None)
@given(st.floats(1e-6, 1e6), st.booleans())
def test_scaling_all_values_changes_no_step(factor, blocks):
    text = write(n=5, blocks=blocks)
    head, *rows = text.splitlines()
    scaled = [f"{row.rpartition(',')[0]},{float(row.rpartition(',')[2]) * factor!r}" for row in rows]
    (one,), (other,) = ask(text).axes, ask("\n".join([head, *scaled])).axes
    assert [step.after for step in one.steps] == [step.after for step in other.steps]
    assert [step.effect for step in one.steps] == pytest.approx([step.effect for step in other.steps])
