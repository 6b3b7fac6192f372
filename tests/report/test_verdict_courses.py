from __future__ import annotations

import dataclasses

import pytest

from pgstrata.compare import compare_study
from pgstrata.compare.headlines import primary_comparisons
from pgstrata.compare.verdicts.history import tell_stories
from pgstrata.model.answer import Verdict
from pgstrata.report.figures.verdict_courses import describe_course, domain_of, draw_courses


def judged(desk, **changes):
    answer = desk.answer(**changes)
    return dataclasses.replace(answer, comparisons=compare_study(answer.study.plan, answer.study.runs))


def tell_all(answer):
    return tell_stories(answer, primary_comparisons(answer))


def test_an_axis_holds_all_intervals_and_the_threshold(desk):
    for story in tell_all(judged(desk, blocks=12)):
        low, high = domain_of(story, 0.03)
        assert low < -3
        assert high > 3
        for look in story.looks:
            if look.interval is not None:
                assert low <= (look.interval.low - 1) * 100
                assert (look.interval.high - 1) * 100 <= high


def test_the_chart_says_when_it_was_decided_and_draws_blocks_beyond_as_empty(desk):
    answer = judged(desk, blocks=9)
    stories = tell_all(answer)
    figure = draw_courses(answer, stories[:2], "x")
    assert describe_course(stories[0].comparison) in figure.svg.replace("&gt;", ">")
    assert figure.label.startswith("How the verdicts came about, block by block. 18: slower")


def test_nothing_to_tell_gives_no_chart(desk):
    assert draw_courses(desk.answer(blocks=1), [], "x") is None
    assert tell_all(desk.verdict_answer(desk.comparison())) == ()


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "slower, decided after 9 of 12 blocks"),
        ({"verdict": Verdict.INCONCLUSIVE}, "cannot tell after 9 of 12 blocks"),
    ],
)
def test_a_course_is_described_in_a_few_words(desk, changes, expected):
    assert describe_course(desk.comparison(**changes)) == expected
