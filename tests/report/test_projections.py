"""Which projections of its matrix a study has, which are drawn, and what of it is said."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pgstrata.errors import UsageError
from pgstrata.model.own_data import OwnData
from pgstrata.report.answer.projections import along_axes, make_bounds
from pgstrata.report.figures.projected import draw_projection
from pgstrata.report.projections.choice import choose_projections, find_axes
from pgstrata.report.projections.design import find_projections, find_undrawn, shorten_alike
from pgstrata.report.projections.estimates import gather_figures
from pgstrata.report.projections.model import CLIENTS, ENVIRONMENT, PAIR, SCALE
from pgstrata.report.sentences.projections import say_choice


def versions(desk, numbers=(14, 15, 16, 17)):
    return tuple(desk.environment(f"pg{number}", (("server", str(number)),)) for number in numbers)


def crossed(desk):
    return tuple(
        desk.environment(f"pg{number}-{pages}", (("server", str(number)), ("pages", pages)))
        for number in (14, 15, 16)
        for pages in ("4kB", "2MB")
    )


def cells(desk, clients, scales=(10,)):
    return tuple(replace(desk.cell(number), scale=scale) for scale in scales for number in clients)


def experiment(desk, environments, found, factors=("server",)):
    made = desk.answer(environments=environments, cells=found, blocks=1).study.plan.experiment
    return replace(made, factors=factors)


def kinds(projections):
    return [(*each.kind, each.fixed) for each in projections]


def test_a_factor_is_crossed_with_clients_and_clients_with_environments(desk):
    found = find_projections(experiment(desk, versions(desk), cells(desk, (1, 4, 16))))
    fixed = "simple-update, scale 10"
    assert kinds(found) == [("server", CLIENTS, fixed), (CLIENTS, ENVIRONMENT, fixed)]
    by_version, by_clients = found
    assert by_version.levels == ("14", "15", "16", "17")
    assert [curve.name for curve in by_version.curves] == ["1 client", "4 clients", "16 clients"]
    assert by_clients.numbers == (1, 4, 16)
    assert [curve.baseline for curve in by_clients.curves] == [True, False, False, False]


def test_every_field_of_the_matrix_is_in_a_projection_of_each_kind(desk):
    made = experiment(desk, versions(desk), cells(desk, (1, 4, 16), (10, 100, 1000)))
    found = find_projections(made)
    assert {each.kind for each in found} == {
        ("server", CLIENTS), ("server", SCALE), (CLIENTS, ENVIRONMENT), (SCALE, ENVIRONMENT)
    }  # fmt: skip
    fields = {(each.name, cell.identity) for each in made.environments for cell in made.cells}
    for kind in {each.kind for each in found}:
        shown = [
            (place.environment, place.cell)
            for each in found
            if each.kind == kind
            for curve in each.curves
            for place in curve.places
        ]
        assert len(shown) == len(set(shown))
        assert set(shown) == fields


def test_levels_of_a_crossed_factor_are_a_chart_each_and_lines_of_one_chart(desk):
    found = find_projections(experiment(desk, crossed(desk), cells(desk, (1, 4)), ("server", "pages")))
    assert kinds(found) == [
        ("server", CLIENTS, "simple-update, scale 10, pages = 4kB"),
        ("server", CLIENTS, "simple-update, scale 10, pages = 2MB"),
        ("server", ENVIRONMENT, "simple-update, scale 10, 1 client"),
        ("server", ENVIRONMENT, "simple-update, scale 10, 4 clients"),
    ]
    assert [curve.name for curve in found[2].curves] == ["4kB", "2MB"]


def test_an_axis_needs_three_levels(desk):
    assert find_projections(experiment(desk, versions(desk, (16, 18)), cells(desk, (1, 2), (10, 100)))) == ()


def test_a_combination_that_was_not_asked_for_is_a_gap(desk):
    found = find_projections(experiment(desk, crossed(desk)[:-1], cells(desk, (4,)), ("server", "pages")))
    gaps = [curve.places for curve in found[1].curves]
    assert [place is None for place in gaps[0]] == [False, False, True]


def test_data_of_ones_own_are_no_step_between_scales(desk):
    own = replace(desk.cell(4), scale=1, data=OwnData(command=("./fill",)))
    made = cells(desk, (4,), (10, 100, 1000))
    (along,) = find_projections(experiment(desk, versions(desk, (16, 18)), (own, *made)))
    assert along.numbers == (10, 100, 1000)


def test_data_of_ones_own_have_no_scale_in_their_title(desk):
    own = tuple(replace(desk.cell(number), scale=1, data=OwnData(command=("./fill",))) for number in (1, 2, 4))
    (along,) = find_projections(experiment(desk, versions(desk, (16, 18)), own))
    assert along.fixed == "simple-update, data by the command ./fill"


@pytest.mark.parametrize(
    ("names", "short"),
    [
        (["kernel = 3.0", "kernel = 3.10"], ["3.0", "3.10"]),
        (["prefix:/opt/pg/8.3", "prefix:/opt/pg/9.6"], ["8.3", "9.6"]),
        (["16", "18"], ["16", "18"]),
        (["16", "16 a second time"], ["16", "16 a second time"]),
        (["16"], ["16"]),
    ],
)
def test_names_lose_what_all_of_them_begin_with(names, short):
    assert shorten_alike(names) == short


def large(desk):
    return find_projections(experiment(desk, versions(desk), cells(desk, (1, 4, 16, 64), (10, 100, 1000))))


def test_all_charts_are_drawn_where_there_is_room_and_it_is_said(desk):
    chosen = choose_projections(large(desk))
    assert all(len(kind.drawn) == kind.of for kind in chosen)
    assert say_choice(chosen).startswith(
        "all 14 charts of this matrix are drawn: 3 by server, with a line for each number of clients;"
    )


def test_with_little_room_each_kind_has_its_turn_and_what_is_left_out_is_counted(desk):
    chosen = choose_projections(large(desk), charts=6)
    assert [len(kind.drawn) for kind in chosen] == [2, 2, 1, 1]
    said = say_choice(chosen)
    assert said.startswith("6 of 14 charts of this matrix are drawn: 2 of 3 by server,")
    assert "`pgstrata report STUDY --along server`" in said
    assert "`pgstrata export STUDY`" in said


def test_points_are_a_limit_too_but_one_chart_is_always_drawn(desk):
    assert sum(len(kind.drawn) for kind in choose_projections(large(desk), points=1)) == 1
    some = choose_projections(large(desk), points=60)
    assert sum(each.points for kind in some for each in kind.drawn) <= 60


@pytest.mark.parametrize("axis", ["server", CLIENTS, SCALE])
def test_every_axis_can_be_reached_by_asking_for_it(desk, axis):
    found = large(desk)
    chosen = choose_projections(found, along=(axis,), charts=1, points=1)
    drawn = [each for kind in chosen for each in kind.drawn]
    assert drawn == [each for each in found if each.axis == axis]


def test_the_section_has_a_part_for_each_kind_that_is_drawn(desk):
    answer = desk.answer(environments=versions(desk), cells=cells(desk, (1, 4, 16)), blocks=2)
    study = answer.study
    plan = replace(study.plan, experiment=replace(study.plan.experiment, factors=("server",)))
    (section,) = along_axes(replace(answer, study=replace(study, plan=plan)))
    titles = [block.title for block in section.blocks if hasattr(block, "title")]
    assert titles == [
        "By server, with a line for each number of clients", "By clients, with a line for each environment"
    ]  # fmt: skip


def test_a_study_without_an_axis_has_no_section(desk):
    assert along_axes(desk.answer(blocks=1)) == ()


def test_an_axis_is_called_by_its_factor_or_by_the_name_of_its_setting(desk):
    levels = tuple(desk.environment(f"w{size}", (("settings.work_mem", f"{size}MB"),)) for size in (4, 8, 16))
    found = find_projections(experiment(desk, levels, cells(desk, (1, 4, 16)), ("settings.work_mem",)))
    assert find_axes(found, ["work_mem", "settings.work_mem", "clients"]) == ("settings.work_mem", "clients")


def test_an_axis_of_two_levels_is_drawn_where_it_is_asked_for(desk):
    made = experiment(desk, versions(desk, (16, 18)), cells(desk, (1, 2), (10, 100)))
    found = find_projections(made, PAIR)
    assert {each.axis for each in found} == {"server", CLIENTS, SCALE}
    assert all(len(each.levels) == PAIR for each in found)
    assert {each.axis for each in found if each.gapped} == {CLIENTS, SCALE}
    assert find_axes(found, ["scale"], find_undrawn(made)) == (SCALE,)
    answer = desk.answer(environments=versions(desk, (16, 18)), cells=cells(desk, (1, 2)), blocks=2)
    assert along_axes(answer) == ()
    (section,) = along_axes(answer, (CLIENTS,))
    assert "Dotted lines join two levels" in section.blocks[0].text
    (by_factor,) = along_axes(answer, ("server",))
    assert "Dotted" not in by_factor.blocks[0].text


def test_the_line_between_two_numbers_of_clients_is_dotted_and_that_between_two_versions_is_not(desk):
    answer = desk.answer(environments=versions(desk, (16, 18)), cells=cells(desk, (1, 2)), blocks=7)
    figures, bounds = gather_figures(answer), make_bounds(answer)
    for each in find_projections(answer.study.plan.experiment, PAIR):
        svg = draw_projection(each, figures, bounds).svg
        assert ("stroke-dasharray" in svg) is (each.axis == CLIENTS), each.axis
        assert 'opacity=".2"' not in svg  # no band between two levels


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("clients", r"clients has one level in this study \(4\)"),
        ("pages", r"pages has one level in this study \(4kB\)"),
        ("server", "no two environments or cells differ in it alone"),
        ("kernel", "this study has no axis 'kernel'"),
    ],
)
def test_an_axis_that_would_mislead_is_refused_with_the_reason(desk, asked, said):
    levels = tuple(
        desk.environment(
            f"pg{number}", (("server", str(number)), ("settings.work_mem", f"{number}MB"), ("pages", "4kB"))
        )
        for number in (16, 17, 18)
    )
    made = experiment(desk, levels, cells(desk, (4,), (10, 100)), ("server", "settings.work_mem"))
    found = find_projections(made, PAIR)
    assert {each.axis for each in found} == {SCALE}
    with pytest.raises(UsageError, match=said) as caught:
        find_axes(found, [asked], find_undrawn(made))
    assert caught.value.remedy == "use one of scale"


def test_an_axis_that_is_not_there_is_refused_with_those_that_are(desk):
    with pytest.raises(UsageError) as caught:
        find_axes(large(desk), ["kernel"])
    assert caught.value.remedy == "use one of server, clients, scale"
    with pytest.raises(UsageError, match="kernel"):
        find_axes((), ["kernel"])
