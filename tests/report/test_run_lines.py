from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pgstrata.model.metrics import Series
from pgstrata.report.figures.run_lines import break_label, choose_lines, spread, thin


@given(values=st.lists(st.floats(0, 1e6), min_size=1, max_size=2000))
def test_thinning_keeps_the_deepest_dip_and_the_highest_peak(values):
    series = Series(metric="tps", times=tuple(float(t) for t in range(len(values))), values=tuple(values))
    times, kept = thin(series)
    assert len(kept) <= 152
    assert (min(kept), max(kept)) == (min(values), max(values))
    assert list(times) == sorted(times)


@given(items=st.lists(st.integers(), unique=True), most=st.integers(1, 20))
def test_a_choice_is_spread_from_first_to_last(items, most):
    chosen = spread(items, most)
    assert len(chosen) == min(len(items), most)
    assert len(set(chosen)) == len(chosen)


@given(text=st.text(st.characters(codec="ascii", exclude_categories=["Cc"])))
def test_a_broken_label_loses_nothing(text):
    assert break_label(text).replace("\n", "") == text


def test_invalid_runs_are_not_drawn_as_lines(desk):
    answer = desk.answer()
    invalid = {run.identity for run in answer.study.runs if run.validity == "invalid"}
    drawn = {line.run for cell in answer.study.plan.experiment.cells for line in choose_lines(answer, cell.identity)}
    assert invalid
    assert not invalid & drawn
