from __future__ import annotations

import dataclasses

import pytest

from pgstrata.compare import compare_study
from pgstrata.compare.headlines import primary_comparisons
from pgstrata.compare.verdicts.history import tell_stories
from pgstrata.model.answer import Lane


def judged(desk, **changes):
    answer = desk.answer(**changes)
    return dataclasses.replace(answer, comparisons=compare_study(answer.study.plan, answer.study.runs))


def tell_all(answer):
    return tell_stories(answer, primary_comparisons(answer))


def test_the_last_look_is_the_comparison_itself(desk):
    answer = judged(desk, blocks=12)
    stories = tell_all(answer)
    assert len(stories) == 9
    for story in stories:
        comparison = story.comparison
        last = [look for look in story.looks if look.counted][-1]
        assert last.n == (comparison.decided_at or comparison.blocks)
        assert last.interval == comparison.interval


def test_the_interval_of_the_last_look_is_what_the_rule_computes_for_it(desk):
    answer = judged(desk, blocks=12, effects=(1.0, 0.999, 1.001, 1.0))
    hidden = tuple(dataclasses.replace(item, interval=None) for item in answer.comparisons)
    open_ended = dataclasses.replace(
        answer, comparisons=tuple(dataclasses.replace(item, decided_at=None, blocks=13) for item in hidden)
    )
    known = {(item.environment, item.cell): item for item in answer.comparisons if item.metric == "tps"}
    for story in tell_all(open_ended):
        comparison = known[story.comparison.environment, story.comparison.cell]
        look = story.looks[(comparison.decided_at or comparison.blocks) - 1]
        if comparison.lane is Lane.SEQUENTIAL and comparison.interval is not None:
            assert look.interval.low == pytest.approx(comparison.interval.low)
            assert look.interval.high == pytest.approx(comparison.interval.high)
            assert look.effect == pytest.approx(comparison.effect)


def test_there_is_no_interval_while_there_are_too_few_blocks(desk):
    story = tell_all(judged(desk, blocks=9, effects=(1.0, 1.0, 1.0, 1.0)))[0]
    assert all(look.interval is None for look in story.looks[:6])
