from __future__ import annotations

import dataclasses
import math

from pgstrata.model.answer import ALL_CELLS
from pgstrata.report.figures.effects import draw_axis
from pgstrata.report.sentences.factors import level_points, say_axis, step_sentences

_CELL = "simple-update-s10-c2"


def versions(desk, **changes):
    environments = tuple(desk.environment(f"pg{name}", (("server", name),)) for name in ("16", "17", "18"))
    return desk.answer(**{"environments": environments, "effects": (1.0, 1.042, 1.042), "blocks": 5, **changes})


def test_a_step_says_which_level_brought_it(desk):
    answer = desk.answer(cells=(desk.cell(2),), blocks=1)
    assert say_axis(desk.axis(), answer.study.plan.experiment) == (
        "along server: 18 brought +4.2 % [+3.1, +5.3] throughput (p = 0.002), over 9 blocks"
    )


def test_the_two_levels_at_a_step_are_told_where_they_contradict_it(desk):
    experiment = desk.answer(cells=(desk.cell(2),), blocks=1).study.plan.experiment
    (step,) = desk.axis().steps
    dip = desk.axis(steps=(dataclasses.replace(step, effect=0.992, beside=0.62),))
    assert "(p = 0.002; 18 against 16 alone: -38.0 %)" in say_axis(dip, experiment)
    assert "alone" not in say_axis(desk.axis(steps=(dataclasses.replace(step, beside=1.06),)), experiment)


def test_without_a_step_none_is_claimed_but_a_trend_is_said(desk):
    experiment = desk.answer(cells=(desk.cell(2),), blocks=1).study.plan.experiment
    flat = desk.axis(steps=(), p=0.31)
    assert say_axis(flat, experiment) == "along server from 16 to 18: no step stands out (p = 0.31), over 9 blocks"
    assert say_axis(desk.axis(steps=(), p=0.31, trend_p=0.012), experiment).endswith(
        "but there is a trend (p = 0.012, Page's test)"
    )


def test_the_axis_over_all_cells_is_told_and_single_cells_are_not(desk):
    answer = dataclasses.replace(desk.answer(blocks=1), axes=(desk.axis(), desk.axis(cell=ALL_CELLS, blocks=7)))
    (text,) = step_sentences(answer)
    assert text.endswith("over 7 blocks")


def test_points_are_ratios_to_the_mean_of_their_block(desk):
    answer = versions(desk)
    points = level_points(answer, desk.axis(levels=("16", "17", "18")))
    by_block = {block: [point.ratio for point in points if point.block == block] for block in range(1, 6)}
    assert all(len(found) in {0, 3} for found in by_block.values())
    for found in by_block.values():
        assert math.isclose(sum(map(math.log, found)), 0, abs_tol=1e-12)


def test_levels_are_taken_where_all_else_is_as_in_the_baseline(desk):
    environments = (
        desk.environment("a", (("server", "16"), ("settings.work_mem", "4MB"))),
        desk.environment("b", (("server", "18"), ("settings.work_mem", "8MB"))),
        desk.environment("c", (("server", "18"), ("settings.work_mem", "4MB"))),
    )
    answer = desk.answer(environments=environments, effects=(1.0, 9.0, 1.0), blocks=3)
    points = level_points(answer, desk.axis())
    assert max(point.ratio for point in points) < 1.2


def test_a_level_that_no_environment_has_gives_no_points(desk):
    assert level_points(desk.answer(blocks=1), desk.axis(levels=("16", "99"))) == ()
    assert draw_axis(desk.answer(blocks=1), desk.axis(levels=("16", "99"))) is None


def test_the_chart_has_a_dot_for_each_block_and_the_figures_of_each_step(desk):
    figure = draw_axis(versions(desk), desk.axis(levels=("16", "17", "18")))
    assert "+4.2 % [+3.1, +5.3]" in figure.svg
    for level in ("16", "17", "18"):
        assert f">{level}<" in figure.svg


def test_in_slices_the_rounds_are_compared_and_not_the_unlogged_stretch(desk):
    answer = desk.slices(versions(desk))
    (first, *others) = answer.study.runs
    stretched = dataclasses.replace(first, measurements=())
    study = dataclasses.replace(answer.study, runs=(stretched, *others))
    axis = desk.axis(levels=("16", "17", "18"), cell=first.cell)
    assert level_points(dataclasses.replace(answer, study=study), axis) == level_points(answer, axis)
