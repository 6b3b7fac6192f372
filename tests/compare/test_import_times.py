"""The order in which others measured: environments one after the other, turns that were none, repeats that drift."""

import pytest

from pgstrata.compare.one_look import ImportTerms, decide_import
from pgstrata.sources.table import parse_table

VALUES = (100.2, 101.7, 99.6, 100.9)


def ask(rows, *, block=False, baseline="a"):
    header = f"{'block,' if block else ''}environment,value,started,seconds,validity,opening,repeats"
    return decide_import(parse_table("\n".join((header, *rows)), "r.csv"), ImportTerms(baseline=baseline))


def row(name, value, second, block=None, *, validity="valid", opening="", repeats="unknown"):
    fields = (name, value, 1_777_000_000 + second, 60, validity, opening, repeats)
    return ",".join(map(str, fields if block is None else (block, *fields)))


def codes(answer):
    return {doubt.code for doubt in answer.warnings}


def test_environments_that_were_measured_one_after_the_other_are_told():
    rows = [row("a", value, place) for place, value in enumerate(VALUES)]
    apart = ask([*rows, *(row("b", value, 100 + place) for place, value in enumerate(VALUES))])
    mixed = ask([*rows, *(row("b", value, place + 0.5) for place, value in enumerate(VALUES))])
    assert "measured_in_sequence" in codes(apart)
    assert "measured_in_sequence" not in codes(mixed)


def test_blocks_that_the_time_stamps_contradict_are_told():
    def rows(gap):
        return [row(name, value + place, place * gap + 2 * block, block=block)
                for block, value in enumerate(VALUES) for place, name in enumerate("ab")]  # fmt: skip

    assert "turns_contradicted" in codes(ask(rows(100), block=True))
    assert "turns_contradicted" not in codes(ask(rows(1), block=True))


@pytest.mark.parametrize(("step", "drifts"), [(0.03, True), (-0.03, True), (0.001, False), (0.0, False)])
def test_repeats_that_rise_or_fall_together_are_told(step, drifts):
    # rows from the last to the first: the stamps give the order
    rows = [row(name, 100 * (1 + step * turn), turn) for turn in (3, 2, 1, 0) for name in "abc"]
    assert ("repeats_drift" in codes(ask(rows))) is drifts


def test_repeats_with_equal_time_stamps_keep_the_order_of_the_file():
    rows = [row(name, 100 + change, 0) for change in (3, -4, 5, -2) for name in "abc"]
    assert "repeats_drift" not in codes(ask(rows))


def test_without_time_stamps_two_sorted_series_are_no_drift():
    rows = [f"{name},{100 + 5 * turn}" for turn in range(4) for name in "ab"]
    answer = decide_import(parse_table("\n".join(("environment,value", *rows)), "r.csv"), ImportTerms(baseline="a"))
    assert "repeats_drift" not in codes(answer)


def test_what_the_file_says_of_its_repeats_is_said_with_the_answer():
    (doubt,) = (each for each in ask([row("a", 1, 1), row("b", 2, 2)]).warnings if each.code == "no_blocks")
    assert doubt.of == ""
    told = ask([row("a", 1, 1, repeats="one-after-another"), row("b", 2, 2, repeats="one-after-another")])
    (doubt,) = (each for each in told.warnings if each.code == "no_blocks")
    assert doubt.of == "one-after-another"


def test_invalid_rows_stay_out_and_warm_ups_that_went_on_are_told():
    rows = [row("a", value, 2 * place, opening=-0.2 + place / 100) for place, value in enumerate(VALUES * 2)]
    rows += [row("b", value, 2 * place + 1, opening=0.0) for place, value in enumerate(VALUES * 2)]
    answer = ask([*rows, row("b", 1, 99, validity="invalid")])
    (finding,) = answer.headlines
    assert (finding.values, finding.invalid) == (8, 1)
    assert [doubt.environment for doubt in finding.warnings if doubt.code == "not_steady"] == ["a"]


def test_a_column_that_holds_something_else_is_not_used():
    text = "environment,value,started\na,1,early\na,2,late\nb,1,early\nb,2,early\n"
    table = parse_table(text, "r.csv")
    assert (table.ignored, table.observations[0].span) == (("started",), None)
