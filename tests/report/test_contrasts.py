from __future__ import annotations

import dataclasses

import pytest

from pgstrata.model.answer import ALL_CELLS, Interval, Verdict
from pgstrata.report.answer.tables import contrast_table
from pgstrata.report.sentences.factors import contrast_sentences, primary_effects


def with_effects(desk, *effects, cells=1):
    answer = desk.answer(blocks=1, cells=tuple(desk.cell(2, name) for name in ("simple-update", "select-only")[:cells]))
    return dataclasses.replace(answer, effects=effects)


def test_a_main_effect_names_what_it_depends_on(desk):
    answer = with_effects(desk, desk.effect(), desk.interaction())
    assert contrast_sentences(answer) == [
        (
            "effect of huge_pages, on against off (exploratory): +3.1 % [+2.0, +4.2], faster; "
            "it depends on server: +1.5 % [+0.4, +2.6] comes on top with server = 18"
        )
    ]


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        (Verdict.EQUIVALENT, "it does not depend on server by more than 3 % (18 instead of 16)"),
        (Verdict.INCONCLUSIVE, "whether it depends on server cannot be told: between +0.4 % and +2.6 %"),
        (Verdict.NEGLIGIBLE, "it hardly depends on server"),
    ],
)
def test_an_interaction_claims_no_more_than_its_verdict(desk, verdict, expected):
    (text,) = contrast_sentences(with_effects(desk, desk.effect(), desk.interaction(verdict=verdict)))
    assert expected in text


def test_an_interaction_that_is_too_early_is_not_mentioned(desk):
    (text,) = contrast_sentences(with_effects(desk, desk.effect(), desk.interaction(verdict=Verdict.INSUFFICIENT)))
    assert "depend" not in text


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        (Verdict.EQUIVALENT, "no difference larger than 3 %"),
        (Verdict.INCONCLUSIVE, "inconclusive, between -1.0 % and +2.0 %"),
        (Verdict.INSUFFICIENT, "too early to tell, after 9 blocks"),
        (Verdict.NEGLIGIBLE, "faster, negligible"),
    ],
)
def test_every_main_effect_can_be_said(desk, verdict, expected):
    effect = desk.effect(verdict=verdict, effect=1.01, interval=Interval(low=0.99, high=1.02))
    assert expected in contrast_sentences(with_effects(desk, effect))[0]


def table_of(answer):
    return contrast_table(primary_effects(answer), answer.study.plan.experiment)


def test_sentences_are_about_all_cells_together_and_the_table_holds_the_rest(desk):
    answer = with_effects(desk, desk.effect(effect=1.9), desk.effect(cell=ALL_CELLS), cells=2)
    (text,) = contrast_sentences(answer)
    assert "+3.1 %" in text
    assert primary_effects(answer)[0].cell == ALL_CELLS
    assert table_of(answer).columns[-1].cells == ("all cells together", "simple-update")


def test_many_factors_are_counted(desk):
    effects = [desk.effect(factor=f"settings.{letter}") for letter in "abcdefg"]
    (text,) = contrast_sentences(with_effects(desk, *effects))
    assert "7 of 7 main effects" in text


def test_a_row_has_the_figures_of_the_contrast(desk):
    found = table_of(with_effects(desk, desk.interaction(decided_at=None, repeated_p=None), desk.effect()))
    effect, interval, _, decided, p = (column.cells for column in found.columns)
    main, other = "huge_pages: on against off", "huge_pages: on against off; with server 18 instead of 16"
    assert (found.names.cells, effect[0], interval[0]) == ((main, other), "+3.1 %", "[+2.0, +4.2]")
    assert (decided, p) == (("after 9", "not in 9"), ("≤ 0.01", "-"))


def test_contrasts_of_other_metrics_are_left_out(desk):
    assert primary_effects(with_effects(desk, desk.effect(metric="latency_p99"))) == []
