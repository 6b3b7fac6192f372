"""The number of rounds follows from measured components, and stays what it was where that costs little."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgstrata.model.experiment import Interleave
from pgstrata.model.floor import FloorKey, FloorRecord, SliceComponents, SlicesMeasured
from pgstrata.model.plan import Design, FittedRounds
from pgstrata.model.reasons import Reason
from pgstrata.model.server import Fingerprint
from pgstrata.plan.rounds import fit_rounds
from pgstrata.stats.variance import best_rounds, slice_components, visit_cost

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HERE = Fingerprint(facts={"kernel": "6.1"})
DESIGN = Design(
    cell="c",
    interleave=Interleave.SLICES,
    reason=Reason(code="nothing_written"),
    slice_seconds=0.25,
    rounds=8,
    discarded=1,
)


def measured(sigma_round=0.021, upper=0.006, dead=4.0, share=0.25, rounds=8, days=1.0, host=HERE, **more):
    components = SliceComponents(
        sigma_round=sigma_round,
        sigma_visit=upper,
        sigma_start=upper / 2,
        sigma_start_upper=upper,
        visits=13,
        rounds=rounds,
    )
    slices = SlicesMeasured(components=components, dead_seconds=dead, round_seconds=share)
    key = FloorKey(cell="c", metric="tps", design=f"{rounds} slices", conditions={"design rounds": str(rounds)})
    fields = {
        "key": key,
        "host": host,
        "measured": (NOW - timedelta(days=days)).isoformat(),
        "differences": (0.001, -0.001) * 6,
        "study": f"s{days}",
        "source": "s",
        "version": "0",
        "slices": slices,
    }
    return FloorRecord(**{**fields, **more})


def rounds_of(*records):
    return fit_rounds(DESIGN, records, HERE, NOW).rounds


def test_without_components_a_design_is_left_as_it_is():
    assert fit_rounds(DESIGN, [], HERE, NOW) == DESIGN
    assert fit_rounds(DESIGN, [measured(slices=None)], HERE, NOW) == DESIGN


def test_the_default_is_kept_where_the_optimum_is_flat_and_the_design_has_the_components():
    design = fit_rounds(DESIGN, [measured(0.021, 0.01, 4.0)], HERE, NOW)
    assert best_rounds(0.021, 0.01, 4.0, 0.25) == 8
    assert design == replace(
        DESIGN,
        fitted=FittedRounds(between_rounds=0.021, between_starts=0.01, dead_seconds=4.0, slices_seconds=2.0),
    )


@pytest.mark.parametrize(
    ("known", "rounds"),
    [
        ({"upper": 0.003, "dead": 40.0}, 16),
        ({"upper": 0.0}, 16),
        ({"sigma_round": 0.004, "upper": 0.03, "dead": 1.0}, 2),
        ({"sigma_round": 0.0, "upper": 0.0}, 8),
    ],
)
def test_a_long_way_to_a_visit_asks_for_more_rounds_and_scatter_between_starts_for_fewer(known, rounds):
    assert rounds_of(measured(**known)) == rounds


def test_what_was_measured_elsewhere_or_long_ago_does_not_count():
    far = {"upper": 0.003, "dead": 40.0}
    assert rounds_of(measured(**far, host=Fingerprint(facts={"kernel": "6.2"}))) == 8
    assert rounds_of(measured(**far, days=31.0)) == 8


def test_the_newest_components_count_in_whatever_order_records_come():
    old, new = measured(upper=0.003, dead=40.0, days=2.0), measured(0.021, 0.01, 4.0, days=1.0)
    assert rounds_of(old, new) == rounds_of(new, old) == 8


def test_rounds_at_which_a_floor_was_measured_are_kept_where_they_cost_little_more():
    known = {"sigma_round": 0.02, "upper": 0.004, "dead": 16.0, "share": 0.5}
    assert best_rounds(0.02, 0.004, 16.0, 0.5) == 16
    assert rounds_of(measured(**known)) == 16
    assert rounds_of(measured(**known), measured(**known, rounds=14, days=2.0)) == 14
    few = measured(**known, rounds=14, days=2.0, differences=(0.001,) * 11)
    assert rounds_of(measured(**known), few) == 16


def test_what_is_nearly_zero_is_no_number_out_of_range():
    assert best_rounds(0.02, 5e-324, 0.0, 0.25) == 2
    assert best_rounds(0.02, 5e-324, 1.0, 0.25) == best_rounds(0.02, 0.0, 1.0, 0.25) == 16


positive = st.floats(1e-4, 0.2)


@given(positive, st.floats(0, 0.2), st.floats(0, 600), st.floats(0.05, 5))
def test_eight_rounds_are_left_only_where_limit_and_estimate_agree_that_others_cost_clearly_less(
    sigma_round, upper, dead, share
):
    rounds = rounds_of(measured(sigma_round, upper, dead, share))
    best = {sigma: best_rounds(sigma_round, sigma, dead, share) for sigma in (upper, upper / 2)}
    assert rounds in {8, best[upper]}
    if rounds != 8:
        assert (best[upper] < 8) == (best[upper / 2] < 8)
        for sigma, least in best.items():
            known = (sigma_round, sigma, dead, share)
            assert visit_cost(*known, 8) > 1.1 * visit_cost(*known, least)


def test_an_upper_limit_alone_is_no_reason_for_fewer_rounds():
    # 13 visits leave it open that starts scatter as much as this, and see nothing of it
    known = measured(0.02, 0.03, 3.0)
    nothing = replace(known.slices, components=replace(known.slices.components, sigma_start=0.0))
    clearly = replace(known.slices, components=replace(known.slices.components, sigma_start=0.025))
    assert rounds_of(replace(known, slices=nothing)) == 8
    assert rounds_of(replace(known, slices=clearly)) == 2


@pytest.mark.parametrize(
    ("start", "dead", "most"), [(0.0, 3.0, 1.0), (0.01, 3.0, 1.05), (0.02, 3.0, 1.0), (0.0, 30.0, 0.7)]
)
def test_rounds_chosen_from_thirteen_visits_cost_hardly_more_than_eight_and_often_much_less(start, dead, most):
    draws, costs = np.random.default_rng(1), []
    for _ in range(200):
        visits = draws.normal(0, start, (13, 1)) + draws.normal(0, 0.02, (13, 8))
        slices = SlicesMeasured(components=slice_components(list(visits)), dead_seconds=dead, round_seconds=0.25)
        rounds = rounds_of(measured(slices=slices))
        costs.append(visit_cost(0.02, start, dead, 0.25, rounds) / visit_cost(0.02, start, dead, 0.25, 8))
    assert np.mean(costs) <= most
