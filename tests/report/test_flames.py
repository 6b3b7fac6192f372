from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgstrata.model.attribution import RunStacks
from pgstrata.report.figures.flames import draw_flames, make_flames
from pgstrata.report.figures.frames import LEAST_WIDTH, MOST_FRAMES, arrange_frames, compare_stacks
from rendering import render_html

_CELL = "simple-update-s10-c2"
_EVIL = "<script>alert(1)</script>\x1b"
BASE = {
    "session;main;PostgresMain;exec_simple_query;ExecAgg": 300,
    "session;main;PostgresMain;exec_simple_query": 200,
    "session;main;PostgresMain;gone_function": 100,
    "checkpointer;main;BufferSync": 40,
}
MORE = {**BASE, "session;main;PostgresMain;exec_simple_query;ExecAgg": 600, "checkpointer;main;BufferSync": 41}
del MORE["session;main;PostgresMain;gone_function"]

paths = st.lists(st.sampled_from(["a", "b", "c", "d"]), min_size=1, max_size=6).map(";".join)
stacks = st.dictionaries(paths, st.integers(1, 1000), min_size=1, max_size=30)


def run(environment, block, found, *, cell=_CELL, seconds=1e-7, **changes) -> RunStacks:
    return RunStacks(environment=environment, cell=cell, block=block, seconds=seconds, stacks=found, **changes)


def side(environment, found, blocks=6) -> list[RunStacks]:
    """Blocks that differ a little."""
    return [
        run(environment, block, {stack: count + block % 3 for stack, count in found.items()})
        for block in range(1, blocks + 1)
    ]


def test_widths_are_cpu_time_and_changes_are_told_from_noise():
    flames = compare_stacks(side("pg18", MORE), side("pg16", BASE))
    frames = {frame.name: frame for frame in arrange_frames(flames)}
    assert frames["ExecAgg"].change.difference == pytest.approx(300e-7)
    assert frames["ExecAgg"].change.resolved
    assert not frames["checkpointer"].change.resolved
    assert "gone_function" not in frames
    assert flames.own["gone_function"].difference == pytest.approx(-101e-7)


@pytest.mark.parametrize("alike", [False, True])
def test_equal_environments_whose_blocks_scatter_are_grey_however_few_blocks_there_are(alike):
    """Forty functions in studies of two and of three blocks that scatter by a tenth, each or all: few are coloured."""
    rng = np.random.default_rng(5)
    coloured = made = wholes = 0
    for blocks in [2, 3] * 20:

        def draw(name, block):
            whole = rng.normal(1, 0.1) if alike else 1.0
            return run(
                name,
                block,
                {f"session;f{n}": int(1e4 * whole * rng.normal(1, 0.01 if alike else 0.1)) for n in range(40)},
            )

        flames = compare_stacks(*([draw(name, block) for block in range(blocks)] for name in ("pg18", "pg16")))
        made += len(flames.own)
        coloured += sum(change.resolved for change in flames.own.values())
        wholes += flames.whole.resolved
    assert coloured <= 0.01 * made
    assert wholes <= 1


def test_what_all_stacks_have_in_common_is_left_out():
    frames = arrange_frames(compare_stacks(side("pg18", MORE), side("pg16", BASE)))
    assert [(frame.name, frame.depth) for frame in frames] == [
        ("session", 0),
        ("exec_simple_query", 1),
        ("ExecAgg", 2),
        ("checkpointer", 0),
        ("BufferSync", 1),
    ]


def test_blocks_that_only_one_side_has_are_left_out_and_one_block_is_not_enough():
    assert compare_stacks(side("pg18", MORE, 9), side("pg16", BASE, 4)).blocks == 4
    assert compare_stacks(side("pg18", MORE, 1), side("pg16", BASE, 9)) is None
    assert compare_stacks([run("pg18", block, {}) for block in (1, 2, 3)], side("pg16", BASE)) is None


@given(st.lists(stacks, min_size=2, max_size=4), stacks)
def test_frames_lie_within_their_callers_and_add_up(found, other):
    runs = [run("a", block, each) for block, each in enumerate(found)]
    references = [run("b", block, other) for block in range(len(found))]
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


@given(st.lists(stacks, min_size=2, max_size=4))
def test_an_environment_against_itself_has_no_change(found):
    runs = [run("a", block, each) for block, each in enumerate(found)]
    flames = compare_stacks(runs, runs)
    assert not any(change.resolved for change in flames.inclusive.values())


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
    runs = [*side("pg16", BASE), *side("pg18", MORE), run("pg18-async", 1, {}, lacking=f"perf {_EVIL}")]
    runs += [dataclasses.replace(each, environment="pg16-control", user_only=True) for each in side("", BASE)]
    answer = dataclasses.replace(answer, stacks=tuple(runs))
    sheet = make_flames(answer)
    assert [part.title.partition(":")[0] for part in sheet.parts] == ["18 against 16", "16 a second time against 16"]
    assert [note.partition(":")[0] for note in sheet.notes] == ["Without what ran in the kernel", "Runs without stacks"]
    page = render_html(answer)
    assert "<h2>Where the CPU time changed</h2>" in page
    assert "<script" not in page
    assert "gone_function" in page
