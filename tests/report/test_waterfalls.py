from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drawn import drawings, texts
from pgstrata.model.attribution import Attribution, Contribution, Method, Part, ValueInterval
from pgstrata.report.figures.waterfalls import (
    MOST_PARTS,
    Stack,
    cut_name,
    draw_stacks,
    draw_waterfall,
    fold_parts,
    name_part,
    say_difference,
    stack_levels,
)

_US = 1e-6
_EVIL = "<script>alert('x')</script>"


def contribution(part=Part.CPU, event="", *, reference=100.0, difference=-9.1, half=1.0, resolved=True) -> Contribution:
    """Figures in microseconds."""
    span = None if half is None else ValueInterval(low=(difference - half) * _US, high=(difference + half) * _US)
    return Contribution(
        part=part,
        event=event,
        query="",
        value=(reference + difference) * _US,
        reference=reference * _US,
        difference=difference * _US,
        interval=span,
        resolved=resolved,
        samples=100,
    )


def attribution(*parts: Contribution) -> Attribution:
    difference = sum(part.difference for part in parts) / _US
    reference = sum(part.reference for part in parts) / _US
    total = contribution(None, reference=reference, difference=difference)
    return Attribution(
        environment="pg18",
        reference="pg16",
        cell="c",
        method=Method.COUNTED,
        blocks=9,
        samples=900,
        total=total,
        parts=parts,
        queries=(),
        rows=parts,
        causes=(),
    )


PARTS = (
    contribution(),
    contribution(Part.WAIT, "IO/WalSync", difference=31.0, half=4.0),
    contribution(Part.CLIENT, difference=0.8, half=3.0, resolved=False),
    contribution(Part.REST, reference=0.0, difference=0.3, half=2.0, resolved=False),
)


def words_of(svg: str) -> list[str]:
    """Of the wide drawing."""
    return texts(drawings(svg)[0])


def words_on_a_phone(svg: str) -> list[str]:
    return texts(drawings(svg)[1])


def test_a_waterfall_goes_from_the_reference_by_its_parts_to_the_environment():
    figure = draw_waterfall(attribution(*PARTS), ("16", "18"), "18 against 16")
    words = words_of(figure.svg)
    names = ["16", "IO/WalSync", "CPU", "client and network", "rest: off the CPU, no event", "18"]
    assert [word for word in words if word in names] == names[::-1]  # the axis counts from below
    assert "+31.0 µs [+27.0, +35.0]" in words
    assert "-9.1 µs [-10.1, -8.1]" in words
    assert "+0.8 µs [-2.2, +3.8] unresolved" in words
    assert "300 µs" in words
    assert "323 µs" in words


def test_on_a_phone_each_bar_has_its_name_and_its_figures_above_it():
    words = words_on_a_phone(draw_waterfall(attribution(*PARTS), ("16", "18"), "").svg)
    assert "16: 300 µs" in words
    assert "IO/WalSync: +31.0 µs [+27.0, +35.0]" in words
    at = words.index("rest: off the CPU, no event")
    assert words[at + 1] == "+0.3 µs [-1.7, +2.3] unresolved"


def test_names_of_events_are_cut_and_escaped():
    evil = contribution(Part.WAIT, f"Extension/{_EVIL}\x1b[31m{'x' * 200}")
    figure = draw_waterfall(attribution(evil), (_EVIL, "18"), "")
    assert "<script" not in figure.svg
    assert "\x1b" not in figure.svg
    assert len(name_part(evil)) <= 40


def test_an_unresolved_part_is_pale_and_says_so():
    resolved, open_ = (draw_waterfall(attribution(contribution(resolved=it)), ("16", "18"), "") for it in (True, False))
    assert "unresolved" not in resolved.svg
    assert "unresolved" in open_.svg
    assert 'opacity="0.35"' in open_.svg


def test_a_part_without_an_interval_has_no_whisker_and_no_difference_is_zero():
    assert say_difference(contribution(difference=0.0, half=None)) == "0 µs"
    assert say_difference(contribution(difference=0.04, half=0.5)) == "0.0 µs [-0.5, +0.5]"
    assert say_difference(contribution(difference=0.48, half=0.5)) == "+0.5 µs [0.0, +1.0]"
    assert say_difference(contribution(difference=-0.03, half=None)) == "0.0 µs"
    assert draw_waterfall(attribution(contribution(half=None, difference=0.0)), ("16", "18"), "").svg


@given(st.lists(st.tuples(st.sampled_from(list(Part)), st.integers(0, 40), st.floats(-1e3, 1e3)), max_size=60))
def test_folded_parts_add_up_to_the_same_total(found):
    parts = [
        contribution(part, f"IO/{event}" if part is Part.WAIT else "", difference=difference)
        for part, event, difference in found
    ]
    folded = fold_parts(attribution(*parts))
    assert sum(part.difference for part in folded) == pytest.approx(sum(part.difference for part in parts), abs=1e-12)
    others = sum(part.part not in {Part.WAIT, Part.REST} for part in parts)
    rests = sum(part.part is Part.REST for part in parts)
    assert len(folded) - rests <= max(MOST_PARTS, others + 1)


@given(st.lists(st.dictionaries(st.tuples(st.just(Part.WAIT), st.text(max_size=5)), st.floats(-1, 1), max_size=30),
                min_size=1, max_size=4))  # fmt: skip
def test_levels_have_the_same_parts_in_the_same_order_and_keep_their_sums(levels):
    stacks = stack_levels(levels)
    assert len({tuple((each.part, each.event) for each in stack) for stack in stacks}) == 1
    for level, stack in zip(levels, stacks, strict=True):
        assert sum(each.seconds for each in stack) == pytest.approx(sum(level.values()), abs=1e-9)
        assert len(stack) <= MOST_PARTS + 1


def test_levels_are_stacked_bars_with_their_totals():
    levels = [{(Part.CPU, ""): 4e-4, (Part.WAIT, "IO/WalSync"): 8e-4, (Part.REST, ""): rest} for rest in (1e-5, -4e-5)]
    stacks = [Stack(name=name, times=times) for name, times in zip(("16", "18"), stack_levels(levels), strict=True)]
    figure = draw_stacks(stacks, "Along server")
    words = words_of(figure.svg)
    assert {"16", "18", "1.21 ms", "1.16 ms", "CPU", "IO/WalSync", "rest: off the CPU, no event"} <= set(words)
    assert "16: CPU 400 µs" in figure.label


def test_a_name_without_anything_but_letters_is_left_alone():
    assert cut_name("IO/WalSync") == "IO/WalSync"
    assert cut_name("a\x00b") == "a\ufffdb"


def test_every_row_keeps_its_name_beside_environments_with_names_of_many_lines():
    name = "prefix:/opt/builds/with-a-patch-of-our-own/bin (search_path = a_schema,another_schema_with_a_long_name)"
    words = words_of(draw_waterfall(attribution(), (f"16 {name}", f"18 {name}"), "").svg)
    assert {name_part(part) for part in attribution().parts} <= set(words)
