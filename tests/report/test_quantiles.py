from __future__ import annotations

from pgstrata.model.answer import Interval, Verdict
from pgstrata.report.quantiles import draw_quantiles, quantile_rows

_CELL = "simple-update-s10-c2"


def shifted(desk, *percents, environments=("pg18",)):
    return [
        desk.comparison(
            environment=name, metric=f"latency_p{percent}", verdict=Verdict.WORSE, effect=1 + percent / 1000,
            interval=Interval(low=1.001, high=1.2), exploratory=True,
        )
        for name in environments
        for percent in percents
    ]  # fmt: skip


def test_percentiles_come_in_their_order_for_each_environment(desk):
    comparisons = shifted(desk, 99, 50, 95, environments=("pg18-async", "pg18"))
    rows = quantile_rows(desk.verdict_answer(desk.comparison(), *comparisons), _CELL)
    assert [row.percentile for row in rows] == [50, 95, 99, 50, 95, 99]
    assert rows[0].name == "18 (commit_delay = 100)"


def test_a_percentile_is_judged_by_its_own_threshold(desk):
    rows = quantile_rows(desk.verdict_answer(desk.comparison(), *shifted(desk, 50, 95, 99)), _CELL)
    limits = [float(row.threshold.removesuffix(" %")) for row in rows]
    assert limits[0] == 3
    assert limits == sorted(limits)


def test_three_percentiles_make_a_chart_and_two_do_not(desk):
    assert draw_quantiles(desk.verdict_answer(*shifted(desk, 50, 95)), _CELL, "x") is None
    figure = draw_quantiles(desk.verdict_answer(*shifted(desk, 50, 95, 99)), _CELL, "x")
    for tick in ("p50", "p95", "p99"):
        assert f">{tick}<" in figure.svg


def test_other_metrics_cells_and_pairs_are_not_among_them(desk):
    others = [desk.comparison(metric="latency_mean"), desk.comparison(metric="latency_p50", reference="pg18-async")]
    assert quantile_rows(desk.verdict_answer(*others), _CELL) == ()
    assert quantile_rows(desk.verdict_answer(*shifted(desk, 50)), "elsewhere") == ()
