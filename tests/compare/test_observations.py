"""Comparisons need observations and a question: no plan, no servers, no transactions."""

import math
from dataclasses import replace

import pytest

from pgstrata.compare import compare_observations
from pgstrata.model.answer import Verdict
from pgstrata.model.observation import Observation, PairingKey
from pgstrata.model.question import Question
from pgstrata.units import Direction

NOISE = (0.01, -0.012, 0.004, -0.003, 0.008, -0.006, 0.002, 0.011, -0.009, 0.005)


def ask(metric="seconds_per_call", **more):
    return Question(
        metric=metric,
        direction=Direction.LOWER,
        threshold=0.03,
        baseline="before",
        environments=("after",),
        cells=("checkout",),
        blocks=10,
        **more,
    )


def watch(ratio):
    """Ten hours of a server that is watched: each is a bucket of time with the same hour of another day beside it."""
    return [
        Observation(
            target=name,
            cell="checkout",
            measurements={"seconds_per_call": 0.01 * (hour + 1) * value, "calls": 5000.0},
            provenance=f"archive {name} {hour}:00",
            key=PairingKey(number=hour, label=f"{hour}:00"),
        )
        for hour in range(10)
        for name, value in (("before", 1.0), ("after", ratio * math.exp(NOISE[hour])))
    ]


@pytest.mark.parametrize(("ratio", "verdict"), [(1.2, Verdict.WORSE), (0.8, Verdict.BETTER), (1.0, Verdict.EQUIVALENT)])
def test_buckets_of_time_by_a_metric_that_nobody_declared_are_compared_by_the_same_rule(ratio, verdict):
    (found,) = compare_observations([ask()], watch(ratio))
    assert (found.verdict, found.metric, found.cell) == (verdict, "seconds_per_call", "checkout")
    assert found.effect == pytest.approx(ratio, abs=0.01)


def test_what_is_asked_beside_the_question_is_exploratory_and_has_no_headline():
    found = compare_observations([ask(), ask("calls", primary=False)], watch(1.2))
    assert [(item.metric, item.exploratory) for item in found] == [("seconds_per_call", False), ("calls", True)]


def test_a_bucket_that_one_side_lacks_is_left_out():
    observations = [each for each in watch(1.0) if (each.target, each.key.number) != ("before", 3)]
    (found,) = compare_observations([replace(ask(), threshold=0.0001)], observations)
    assert (found.verdict, found.blocks, found.runs) == (Verdict.INCONCLUSIVE, 9, 19)
