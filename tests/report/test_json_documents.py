from __future__ import annotations

import json
import math
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgstrata.model.answer import Interval, Verdict
from pgstrata.model.doubts import NamedDoubt
from pgstrata.report.json.answer import comparison_fields
from pgstrata.report.json.documents import pick_fields, render_document
from pgstrata.report.sentences.verdicts import Words, verdict_label, verdict_word
from pgstrata.units import Direction


@dataclass
class Something:
    value: float | None
    interval: Interval | None


@given(st.floats() | st.none(), st.floats())
def test_what_is_no_number_becomes_null(value, other):
    document = pick_fields(Something(value, Interval(low=other, high=value or 1.0)), "value interval")
    assert json.loads(render_document(document)) == document


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        (Interval(low=0.9, high=math.inf), None),
        (None, None),
        (Interval(low=0.9, high=1.1), [0.9, 1.1]),
    ],
)
def test_an_interval_without_one_end_is_none(interval, expected):
    assert pick_fields(Something(1.0, interval), "interval") == {"interval": expected}


def test_a_document_with_something_that_is_no_number_is_refused():
    with pytest.raises(ValueError, match="not JSON compliant"):
        render_document({"value": math.nan})


def test_names_stay_readable_in_a_document():
    assert "“ü”" in render_document({"name": "“ü”"})


def test_a_comparison_takes_what_only_its_answer_knows(desk):
    fields = comparison_fields(
        desk.comparison(warnings=(NamedDoubt(code="clock_source", names=("hpet",)),)),
        environment={"name": "x"},
        reference="y",
        cell="all",
        direction=Direction.LOWER,
        visible=0.02,
    )
    assert (fields["environment"], fields["reference"], fields["cell"]) == ({"name": "x"}, "y", "all")
    assert (fields["direction"], fields["smallest_visible_effect"]) == ("lower", 0.02)
    (warning,) = fields["warnings"]
    assert (warning["code"], warning["text"][:24]) == ("clock_source", "the clock source is hpet")


@pytest.mark.parametrize(
    ("verdict", "effect", "label"),
    [
        (Verdict.BETTER, 0.9, "lower"),
        (Verdict.WORSE, 1.1, "higher"),
        (Verdict.NEGLIGIBLE, 1.01, "higher, negligible"),
        (Verdict.NEGLIGIBLE, 0.99, "lower, negligible"),
        (Verdict.EQUIVALENT, 1.0, "no difference"),
        (Verdict.INCONCLUSIVE, 1.0, "cannot tell"),
        (Verdict.INSUFFICIENT, None, "too early"),
        (Verdict.UNSTABLE, None, "unstable"),
    ],
)
def test_a_metric_that_nobody_knows_has_words_of_its_own(desk, verdict, effect, label):
    words = Words(better="lower", worse="higher", direction=Direction.LOWER)
    item = desk.comparison(metric="seconds of a test", verdict=verdict, effect=effect)
    assert verdict_label(item, words) == label
    assert verdict_word(item, words) == label.removesuffix(", negligible")
