"""The answer on other tools' results as people and programs read it."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forged_pages import decision_page
from pgstrata.compare.one_look import ImportTerms, decide_import
from pgstrata.errors import UsageError
from pgstrata.model.doubts import Outliers
from pgstrata.report.blocks.page import emit_page
from pgstrata.report.commands.decide import decision_json, render_decision
from pgstrata.report.commands.decision_page import make_decision_document
from pgstrata.report.json.answer import answer_json
from pgstrata.sources.table import parse_table
from pgstrata.stats.boundaries import exact_tail, fixed_critical
from rendering import plain_charts

NOISE = (0.01, -0.012, 0.004, -0.003, 0.008, -0.006, 0.002, 0.011, -0.009, 0.005, -0.001, 0.007)


def make_answer(levels, *, n=12, metric=None, cells=(), blocks=True, question=None, header=""):
    """Blocks of one value for each environment (and cell), with a little noise."""
    lines = [f"{'block,' if blocks else ''}environment,value{',cell' if cells else ''}{header}"]
    for block in range(n):
        for place, (name, level) in enumerate(levels.items()):
            for cell in cells or ("",):
                value = level * math.exp(NOISE[(block * (place + 1) + place) % 12])
                more = f",{block}" * header.count(",")
                lines.append(f"{f'{block},' if blocks else ''}{name},{value}{f',{cell}' if cells else ''}{more}")
    terms = question or ImportTerms()
    terms = terms if terms.baseline or terms.ordered else replace(terms, baseline=next(iter(levels)))
    return decide_import(parse_table("\n".join(lines), "r.csv", metric=metric), terms)


def joined(text):
    return " ".join(text.split())


@pytest.mark.parametrize(
    ("metric", "b", "said"),
    [
        ("tps", 1100, "b is faster than a: +"),
        ("latency_p99", 1100, "b is slower than a: +"),
        ("server_cpu_per_tx", 900, "b has less server CPU per transaction than a: -"),
        ("ops", 1100, "The ops of b is higher than that of a, which is better: +"),
        ("ops", 900, "The ops of b is lower than that of a, which is worse: -"),
        (None, 900, "The value of b is lower than that of a, which is worse: -"),
        ("tps", 1000, "No difference larger than 3 % between b and a: between "),
    ],
)
def test_the_answer_comes_first_in_the_words_of_the_metric(metric, b, said):
    assert joined(render_decision(make_answer({"a": 1000, "b": b}, metric=metric))).startswith(said)


def test_how_sure_it_is_and_over_how_many_blocks_is_part_of_the_sentence():
    text = joined(render_decision(make_answer({"a": 1000, "b": 1100})))
    assert "] at 96.4 % confidence, at one look over 12 blocks." in text
    terms = "Baseline: a; higher values are better; threshold 3 %; if you look after each new block, use --sequential."
    assert terms in text


def test_with_a_look_after_each_block_the_boundaries_of_a_study_hold():
    levels = {"a": 1000, "b": 1100}
    text = joined(render_decision(make_answer(levels, question=ImportTerms(sequential=True), metric="tps")))
    assert "at 95.5 % confidence, with a look after each of 8 blocks." in text
    assert "--sequential" not in text
    few = joined(render_decision(make_answer(levels, n=6, question=ImportTerms(sequential=True))))
    assert few.startswith("Not enough blocks yet to compare b with a: 6 usable blocks so far, an interval needs 8.")


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("new", "main"), "Baseline: main, by its name; "),
        (("18", "16", "17"), "Baseline: 16, the lowest number; "),
        (("pg-18", "pg-9.6"), "Baseline: pg-9.6, the lowest number; "),
    ],
)
def test_a_baseline_that_was_not_named_is_told_with_the_reason(names, said):
    lines = ["block,environment,value", *(f"{n},{name},{n + 1}" for n in range(9) for name in names)]
    assert said in joined(render_decision(decide_import(parse_table("\n".join(lines), "r"), ImportTerms())))


def test_a_real_difference_inside_the_threshold_is_told_as_negligible():
    text = joined(
        render_decision(make_answer({"a": 1000, "b": 1100}, question=ImportTerms(threshold=0.3), metric="tps"))
    )
    assert "b is faster than a, but by less than 30 % (real, but negligible): +" in text


def test_what_cannot_be_told_is_not_told():
    answer = make_answer({"a": 1000, "b": 1010}, question=ImportTerms(threshold=0.001))
    assert "b and a cannot be told apart (inconclusive): between " in joined(render_decision(answer))


def test_too_few_blocks_and_too_few_values_say_how_many_it_takes():
    assert "Too few blocks to compare b with a: 4 usable blocks, an interval needs 6." in joined(
        render_decision(make_answer({"a": 1, "b": 2}, n=4))
    )
    text = joined(render_decision(make_answer({"a": 1, "b": 2}, n=3, blocks=False)))
    assert "Too few values to compare b with a: 3 against 3, an interval needs 4 against 4." in text
    assert "! There is no column block" in text


def test_one_table_holds_all_environments_of_one_cell():
    text = render_decision(make_answer({"a": 1000, "b": 1100, "c": 1000}, metric="tps"))
    rows = [
        line.split() for line in text.splitlines() if line.startswith(("b ", "c ")) and "[" in line and "is" not in line
    ]
    assert [row[0] for row in rows] == ["b", "c"]
    assert rows[0][-1] == "faster"
    assert "2 headlines share 4.5 % of error (Holm)" in joined(text)


def test_several_cells_have_a_table_for_each_environment_with_the_headline_on_top():
    text = render_decision(make_answer({"a": 1000, "b": 1100, "c": 900}, cells=("small", "large"), metric="tps"))
    assert "b is faster than a over all cells together: " in text
    lines = text.splitlines()
    start = lines.index("b against a")
    assert lines[start + 1].split()[0] == "cell"
    assert [lines[start + 3 + k].split()[0] for k in range(3)] == ["all", "small", "large"]
    assert "c against a" in lines
    assert "cells are exploratory" in joined(text)


@pytest.mark.parametrize(
    ("other", "said"), [(1100, " is faster than jit on, on "), (1000, "between jit off and jit on, on ")]
)
def test_a_cell_behind_a_baseline_that_is_called_on_follows_a_comma(other, said):
    answer = make_answer({"jit on": 1000, "jit off": other}, cells=("small", "large"), metric="tps", blocks=False)
    assert said in joined(render_decision(answer))


def test_many_environments_are_counted_and_only_differences_are_told():
    levels = {f"e{n}": 1000 for n in range(10)} | {"worse": 500}
    text = render_decision(make_answer(levels, n=20, metric="tps"))
    sentences = joined(text.partition("\n\n")[0])
    assert sentences.startswith("10 comparisons with e0: slower in 1, no difference in 9. worse is slower than e0: ")
    assert "e3 " not in sentences


def test_environments_with_too_few_blocks_are_told_together():
    text = joined(render_decision(make_answer(dict.fromkeys("abcde", 1), n=4)))
    assert text.startswith(
        "Too few blocks to compare b, c, d and e with a: 4 usable blocks, an interval with 4 headlines "
    )
    assert text.count("oo few blocks to compare") == 1
    assert "too early" not in text


def test_what_is_left_out_stands_before_the_table_and_once_for_all_comparisons():
    lines = ["block,environment,value"]
    for block in range(9):
        lines += [
            f"{block},{name},{block + 1 + place}" for place, name in enumerate("abcd") if (block, name) != (3, "a")
        ]
    text = joined(render_decision(decide_import(parse_table("\n".join(lines), "r"), ImportTerms(baseline="a"))))
    said = "! Rows are missing, so that 1 block is left out of 3 of 3 comparisons"
    assert text.count("left out of") == 2
    assert text.index(said) < text.index("Baseline: a")


def test_of_hundreds_of_cells_those_that_differ_are_shown():
    cells = tuple(f"c{n}" for n in range(150))
    text = render_decision(make_answer(dict.fromkeys("abcdefghij", 1000), cells=cells))
    assert len(text.splitlines()) < 250
    assert "(131 more cells: --json has them all)" in text
    assert "(3 more environments: --json has them all)" in text


def test_of_many_remarks_of_one_kind_the_first_are_told_and_the_rest_counted():
    answer = make_answer(dict.fromkeys("abcdefgh", 1000), n=9)
    doubt = Outliers(environments=("b", "a"), blocks=("3",))
    items = [
        replace(item, warnings=(replace(doubt, environments=(item.environment, "a")),)) for item in answer.comparisons
    ]
    text = joined(render_decision(replace(answer, comparisons=tuple(items))))
    assert text.count("! Far from the other blocks of") == 2
    assert "! The same of 5 more comparisons: --json has them all." in text


def test_doubts_stand_below_the_table_without_what_the_sentence_said():
    text = render_decision(make_answer({"a": 1, "b": 2}, n=3, header=",host"))
    assert text.endswith("\n\n! Columns that are not used: host.\n")


@pytest.mark.parametrize("cells", [(), ("a cell with a rather long name", "y")])
def test_no_line_is_wider_than_a_mail(cells):
    levels = {"the unpatched development branch": 123456.7, "the same with the patch applied": 120000.1}
    text = render_decision(make_answer(levels, cells=cells, metric="latency_ms", header=",host"))
    assert max(map(len, text.splitlines())) <= 78


@pytest.mark.parametrize(
    ("value", "shown"), [(0.00012345, "0.0001234"), (1.5, "1.5"), (123456.7, "123,457"), (1e15, "1e+15")]
)
def test_values_are_shown_in_the_unit_of_the_file(value, shown):
    lines = ["block,environment,value", *(f"{n},{name},{value}" for n in range(9) for name in "ab")]
    assert f" {shown} " in render_decision(decide_import(parse_table("\n".join(lines), "r"), ImportTerms(baseline="a")))


# ------------------------------------------------------------------------------------- JSON


def test_the_document_has_the_shape_of_a_studys(desk):
    study = json.loads(answer_json(desk.answer()))
    document = json.loads(decision_json(make_answer({"a": 1000, "b": 1100}, cells=("x", "y"))))
    assert set(study) <= set(document)
    assert set(study["comparisons"][0]) <= set(document["comparisons"][0])
    assert (document["schema"], document["study"], document["rig"], document["floor"]) == (1, None, None, None)
    assert document["baseline"] == {"name": "a", "levels": {}, "control": None}
    assert (document["metric"], document["threshold"], document["source"]) == ("value", 0.03, "r.csv")


def test_a_comparison_says_what_it_is_of():
    document = json.loads(decision_json(make_answer({"a": 1000, "b": 900}, cells=("all", "y"))))
    found = [(item["cell"], item["exploratory"], item["verdict"]) for item in document["comparisons"]]
    assert found == [("all", False, "worse"), ({"identity": "all"}, True, "worse"), ({"identity": "y"}, True, "worse")]
    first = document["comparisons"][0]
    assert (first["lane"], first["blocks"], first["decided_at"], first["confidence"]) == (
        "one look",
        12,
        12,
        1 - exact_tail(12, fixed_critical(12, 0.045)),
    )
    assert first["interval"][0] < first["effect"] < first["interval"][1]
    assert document["comparisons"][1]["adjusted_p"] is not None


def test_where_there_is_no_interval_there_is_null():
    (found,) = json.loads(decision_json(make_answer({"a": 1, "b": 2}, n=3, blocks=False)))["comparisons"]
    assert (found["interval"], found["verdict"], found["values"], found["blocks"]) == (None, "insufficient", 3, 0)
    assert found["warnings"][0]["code"] == "insufficient_values"


def test_infinite_ratios_are_null():
    lines = [
        "block,environment,value",
        *(f"{n},{name},{value}" for n in range(9) for name, value in (("a", 1e-308), ("b", 1e308))),
    ]
    text = decision_json(decide_import(parse_table("\n".join(lines), "r"), ImportTerms(baseline="a")))
    (found,) = json.loads(text)["comparisons"]
    assert (found["effect"], found["interval"], found["verdict"]) == (None, None, "better")


# ------------------------------------------------------------------------------------- anything

ROWS = st.lists(
    st.tuples(
        st.sampled_from("123456789"),
        st.sampled_from(["a", "b", "all", "-", "x" * 90]),
        st.sampled_from(["5e-324", "1e-308", "1", "1.0", "1.5", "2", "1e308", "1.7e308"]) | st.floats(0.5, 2).map(repr),
        st.sampled_from(["small", "all", "[bold]"]),
    ),
    min_size=2,
    max_size=60,
)


@given(ROWS, st.sampled_from([(0, 1, 2), (0, 1, 2, 3), (1, 2), (1, 2, 3)]), st.sampled_from([None, "tps", "p99"]))
def test_any_table_has_an_answer_in_words_and_json_or_an_error_with_a_remedy(rows, columns, metric):
    header = ("block", "environment", "value", "cell")
    unique = {(row[0], row[1], row[3] if 3 in columns else ""): row for row in rows}.values() if 0 in columns else rows
    lines = [",".join(row[place] for place in columns) for row in (header, *unique)]
    table = parse_table("\n".join(lines), "r.csv", metric=metric)
    if len({row.target for row in table.observations}) == 1:
        with pytest.raises(UsageError, match="only environment"):
            decide_import(table, ImportTerms())
        return
    answer = decide_import(table, ImportTerms(baseline=table.observations[0].target))
    assert render_decision(answer)
    assert json.loads(decision_json(answer))["comparisons"]
    with plain_charts():
        assert emit_page(make_decision_document(answer))


def test_charts_of_price_and_throughput_name_their_cell_and_are_explained_once():
    page = decision_page()
    assert page.count("Up is faster, left is cheaper.") == 1
    assert page.count("<figcaption>") == 4
