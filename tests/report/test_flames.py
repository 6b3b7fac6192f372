from __future__ import annotations

import dataclasses
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgstrata.compare.causes.stacks import compare_stacks
from pgstrata.report.figures.flames import draw_flames, make_flames
from pgstrata.report.figures.frames import LEAST_WIDTH, MOST_FRAMES, arrange_frames
from rendering import render_html
from sampled_stacks import BASE, MORE, run_stacks, side, stacks

_EVIL = "<script>alert(1)</script>\x1b"


def test_widths_are_cpu_time_and_changes_are_told_from_noise():
    flames = compare_stacks(side("pg18", MORE), side("pg16", BASE))
    frames = {frame.name: frame for frame in arrange_frames(flames)}
    assert frames["ExecAgg"].change.difference == pytest.approx(300e-7)
    assert frames["ExecAgg"].change.resolved
    assert not frames["checkpointer"].change.resolved
    assert "gone_function" not in frames
    assert flames.own["gone_function"].difference == pytest.approx(-101e-7)


def test_what_all_stacks_have_in_common_is_left_out():
    frames = arrange_frames(compare_stacks(side("pg18", MORE), side("pg16", BASE)))
    assert [(frame.name, frame.depth) for frame in frames] == [
        ("session", 0),
        ("exec_simple_query", 1),
        ("ExecAgg", 2),
        ("checkpointer", 0),
        ("BufferSync", 1),
    ]


@given(st.lists(stacks, min_size=2, max_size=4), stacks)
def test_frames_lie_within_their_callers_and_add_up(found, other):
    runs = [run_stacks("a", block, each) for block, each in enumerate(found)]
    references = [run_stacks("b", block, other) for block in range(len(found))]
    flames = compare_stacks(runs, references)
    frames = arrange_frames(flames)
    assert len(frames) <= MOST_FRAMES
    whole = sum(frame.width for frame in frames if frame.depth == 0)
    assert whole == pytest.approx(1.0, abs=LEAST_WIDTH * 10)
    open_: list = []
    for frame in frames:
        assert frame.width >= LEAST_WIDTH * 0.999
        del open_[frame.depth :]
        assert len(open_) == frame.depth
        if open_:
            assert frame.left >= open_[-1].left - 1e-9
            assert frame.left + frame.width <= open_[-1].left + open_[-1].width + 1e-9
        open_.append(frame)
    own = sum(change.difference for change in flames.own.values())
    assert own == pytest.approx(flames.whole.difference, abs=1e-15)


def test_of_thousands_of_frames_some_hundred_are_drawn():
    many = {f"session;main;f{number};g{number}": 10 + number % 7 for number in range(450)}
    assert 0 < len(arrange_frames(compare_stacks(side("a", many), side("b", many)))) <= MOST_FRAMES


def test_names_of_functions_are_cut_and_escaped():
    evil = {f"session;{_EVIL * 20};x": 100, "session;y": 100}
    figure = draw_flames(compare_stacks(side("a", evil), side("b", evil)), "title", "16")
    assert "<script" not in figure.svg
    assert "\x1b" not in figure.svg
    assert max(map(len, re.findall(r"<title>([^<]*)</title>", figure.svg))) < 400


def test_more_is_warm_less_is_cold_and_noise_is_grey():
    less = {**BASE, "session;main;PostgresMain;exec_simple_query": 20}
    for found, colour in ((MORE, "#d55e00"), (less, "#0072b2")):
        svg = draw_flames(compare_stacks(side("pg18", found), side("pg16", BASE)), "", "16").svg
        assert colour in svg
        assert "#7f8790" in svg
        assert "(standard error " in svg


def test_the_report_draws_the_largest_and_says_what_is_lacking(desk):
    answer = desk.answer(blocks=3)
    runs = [*side("pg16", BASE), *side("pg18", MORE), run_stacks("pg18-async", 1, {}, lacking=f"perf {_EVIL}")]
    runs += [dataclasses.replace(each, environment="pg16-control", user_only=True) for each in side("", BASE)]
    answer = dataclasses.replace(answer, stacks=tuple(runs))
    sheet = make_flames(answer)
    assert [part.title.partition(":")[0] for part in sheet.parts] == ["18 against 16", "16 a second time against 16"]
    assert [note.partition(":")[0] for note in sheet.notes] == ["Without what ran in the kernel", "Runs without stacks"]
    page = render_html(answer)
    assert "<h2>Where the CPU time changed</h2>" in page
    assert "<script" not in page
    assert "gone_function" in page
