"""Other tools' results under the rule: pairs, headlines, cells, heaps, and what must be doubted of them."""

import dataclasses
import math
import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgstrata.compare.gate import import_code
from pgstrata.compare.one_look import BaselineFrom, ImportTerms, decide_import
from pgstrata.errors import ExitCode, UsageError
from pgstrata.model.answer import ALL_CELLS, Lane, Verdict
from pgstrata.model.doubts import BlocksLeftOut, NamedDoubt, TooFewBlocks, TooFewValues
from pgstrata.model.observation import Observation, PairingKey
from pgstrata.sources.table import ResultTable, parse_table
from pgstrata.stats.boundaries import exact_tail, fixed_critical
from pgstrata.units import Direction

NOISE = (0.01, -0.012, 0.004, -0.003, 0.008, -0.006, 0.002, 0.011, -0.009, 0.005, -0.001, 0.007)
# no ratio of small integers lies on its edge
ASK = ImportTerms(threshold=0.0312345, baseline="a")


def make_table(rows, *, metric="tps", blocks=True, cells=False, ignored=()):
    """Rows are (block, environment, value) or (block, environment, value, cell)."""
    columns = {"environment", "value"} | ({"block"} if blocks else set()) | ({"cell"} if cells else set())
    numbers = {label: number for number, label in enumerate(dict.fromkeys(str(row[0]) for row in rows), start=1)}
    return ResultTable(
        source="r.csv",
        columns=frozenset(columns),
        ignored=ignored,
        metric=metric,
        observations=tuple(
            Observation(
                target=row[1],
                cell=row[3] if cells else ALL_CELLS,
                measurements={metric: float(row[2])},
                provenance=f"r.csv:{line}",
                key=PairingKey(number=numbers[str(row[0])], label=str(row[0])) if blocks else None,
            )
            for line, row in enumerate(rows, start=2)
        ),
    )


def noisy(centre, n, shift=0):
    return [centre * math.exp(NOISE[(k * (shift + 1) + shift) % len(NOISE)]) for k in range(n)]


def series(n, **centres):
    """n blocks of one value for each environment."""
    values = {name: noisy(centre, n, shift) for shift, (name, centre) in enumerate(centres.items())}
    return [(block, name, values[name][block]) for block in range(n) for name in centres]


def decide(rows, question=ASK, **more):
    return decide_import(make_table(rows, **more), question)


def headline(rows, question=ASK, **more):
    (finding,) = decide(rows, question, **more).headlines
    return finding


def codes(comparison):
    return [warning.code for warning in comparison.warnings]


def doubt_of(warnings, code):
    return next(warning for warning in warnings if warning.code == code)


# ------------------------------------------------------------------------------------- verdicts


@pytest.mark.parametrize(
    ("b", "verdict"),
    [(1100, Verdict.BETTER), (900, Verdict.WORSE), (1000, Verdict.EQUIVALENT)],
)
def test_blocks_decide_as_they_do_in_a_study(b, verdict):
    found = headline(series(12, a=1000, b=b))
    assert (found.verdict, found.lane, found.blocks, found.decided_at) == (verdict, Lane.ONE_LOOK, 12, 12)
    assert found.effect == pytest.approx(b / 1000, abs=0.01)
    assert found.interval.low <= found.effect <= found.interval.high
    assert (found.confidence, found.cell, found.runs, found.exploratory) == (
        1 - exact_tail(12, fixed_critical(12, 0.045)),
        ALL_CELLS,
        24,
        False,
    )


@pytest.mark.parametrize(
    ("names", "terms", "baseline", "chosen"),
    [
        (("b", "a"), {"baseline": "a"}, "a", BaselineFrom.READER),
        (("b", "a", "c"), {"ordered": True}, "b", BaselineFrom.ORDER),
        (("new", "Main"), {}, "Main", BaselineFrom.NAME),
        (("18", "16"), {}, "16", BaselineFrom.NUMBER),
        (("8GB", "512MB"), {}, "512MB", BaselineFrom.NUMBER),
    ],
)
def test_the_baseline_is_the_one_that_was_named_or_whose_name_says_so(names, terms, baseline, chosen):
    answer = decide(series(12, **dict.fromkeys(names, 1000)), ImportTerms(**terms))
    assert (answer.question.baseline, answer.baseline_from) == (baseline, chosen)


@pytest.mark.parametrize("names", [("b", "a"), ("main", "master"), ("16", "patched")])
def test_where_no_name_tells_the_reader_has_to(names):
    with pytest.raises(UsageError, match="nothing says which environment") as caught:
        decide(series(12, **dict.fromkeys(names, 1000)), ImportTerms())
    assert caught.value.remedy.startswith(f"name it, such as --baseline {names[0]}; there are ")


def test_the_order_of_the_rows_changes_no_answer():
    rows = series(12, main=1000, new=1100)
    shuffled = random.Random(1).sample(rows, len(rows))
    ahead, back = (headline(each, ImportTerms()) for each in (rows, shuffled))
    assert (ahead.effect, ahead.verdict) == (pytest.approx(back.effect), back.verdict)


def test_with_a_look_after_each_block_the_first_that_decides_stands():
    rows = series(24, a=1000, b=1100)
    found = headline(rows, dataclasses.replace(ASK, sequential=True))
    assert (found.lane, found.blocks, found.decided_at, found.confidence) == (Lane.SEQUENTIAL, 8, 8, 0.955)
    with pytest.raises(UsageError, match="end at 60 blocks, and there are 61"):
        decide(series(61, a=1000, b=1100), dataclasses.replace(ASK, sequential=True))


def test_lower_is_better_of_metrics_that_are_not_known_only_if_it_is_said():
    rows = series(12, a=1000, b=1100)
    assert headline(rows, metric="pause").verdict is Verdict.BETTER
    found = headline(rows, dataclasses.replace(ASK, lower_is_better=True), metric="pause")
    assert found.verdict is Verdict.WORSE
    assert found.effect == pytest.approx(1.1, abs=0.01)


def test_a_known_metric_has_its_own_direction():
    rows = series(12, a=1000, b=1100)
    assert headline(rows, metric="latency_p99").verdict is Verdict.WORSE
    assert headline(rows, dataclasses.replace(ASK, lower_is_better=True), metric="latency_p99").verdict is Verdict.WORSE
    with pytest.raises(UsageError, match="tps is throughput, and higher values of it are better"):
        decide(rows, dataclasses.replace(ASK, lower_is_better=True))


def test_five_blocks_are_too_few_and_six_are_enough():
    assert headline(series(5, a=1000, b=2000)).verdict is Verdict.INSUFFICIENT
    assert headline(series(5, a=1000, b=2000)).interval is None
    assert headline(series(6, a=1000, b=2000)).verdict is Verdict.BETTER


def test_one_block_supports_nothing():
    found = headline(series(1, a=1000, b=2000))
    assert (found.verdict, found.interval) == (Verdict.INSUFFICIENT, None)
    assert doubt_of(found.warnings, "insufficient_blocks") == TooFewBlocks(blocks=1, needed=6)


@pytest.mark.alone
def test_ten_thousand_blocks_are_decided_in_seconds():
    rng = random.Random(1)
    lines = ["block,environment,value"]
    for block in range(10_000):
        drift = 1000 * math.exp(rng.gauss(0, 0.3))
        lines += [
            f"{block},{name},{drift * level * math.exp(rng.gauss(0, 0.05))}" for name, level in (("a", 1), ("b", 1.01))
        ]
    begin = time.monotonic()
    answer = decide_import(parse_table("\n".join(lines), "r.csv"), ASK)
    assert time.monotonic() - begin < 20
    (finding,) = answer.headlines
    assert finding.verdict is Verdict.NEGLIGIBLE
    assert finding.effect == pytest.approx(1.01, abs=0.002)


def test_ties_everywhere_are_no_difference_and_a_doubt():
    found = headline([(block, name, 5) for block in range(12) for name in "ab"])
    assert (found.verdict, found.effect, found.interval.low, found.interval.high) == (Verdict.EQUIVALENT, 1, 1, 1)
    assert "identical" in codes(found)


def test_the_same_difference_in_every_block_is_a_difference():
    found = headline([(block, name, value) for block in range(12) for name, value in (("a", 100), ("b", 110))])
    assert (found.verdict, found.effect) == (Verdict.BETTER, pytest.approx(1.1))
    assert codes(found) == []


def test_a_huge_outlier_neither_hides_a_difference_nor_makes_one_and_is_named():
    rows = series(12, a=1000, b=1100)
    rows[9] = (*rows[9][:2], 1e300)
    found = headline(rows)
    assert found.verdict is Verdict.BETTER
    assert found.effect == pytest.approx(1.1, abs=0.03)
    assert doubt_of(found.warnings, "outliers").blocks == (str(rows[9][0]),)


def test_blocks_of_two_kinds_are_a_doubt_beside_the_interval():
    rows = [
        (block, name, value * (1.3 if name == "b" and block % 2 else 1))
        for block, name, value in series(16, a=1000, b=1000)
    ]
    found = headline(rows)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert 1 < found.effect < 1.3
    assert found.interval.low < 1.01
    assert found.interval.high > 1.29
    doubt = doubt_of(found.warnings, "unstable")
    assert (doubt.environments, [share for share, _ in doubt.groups], doubt.one_look) == (("b", "a"), [0.5, 0.5], True)


def test_many_blocks_far_away_are_one_too():
    rows = [
        (block, name, value * (3**block if name == "b" and block % 3 == 1 else 1))
        for block, name, value in series(16, a=1000, b=1000)
    ]
    found = headline(rows)
    assert found.verdict is not Verdict.UNSTABLE
    assert doubt_of(found.warnings, "unstable").estimated


def test_values_as_far_apart_as_floats_can_be_are_no_crash():
    found = headline([(block, name, value) for block in range(9) for name, value in (("a", 1e-308), ("b", 1e308))])
    assert (found.verdict, found.effect) == (Verdict.BETTER, math.inf)


# ------------------------------------------------------------------------------------- blocks that lack something


def test_two_environments_without_a_difference_say_once_that_their_number_is_not_corrected_for():
    found = decide(series(14, a=1000, b=1001, c=1002))
    assert [item.verdict for item in found.headlines] == [Verdict.EQUIVALENT] * 2
    assert doubt_of(found.warnings, "equivalences_uncorrected").number == 2
    assert "equivalences_uncorrected" not in {doubt.code for doubt in decide(series(14, a=1000, b=1001)).warnings}


def test_a_block_with_one_arm_is_left_out_and_named():
    rows = [row for row in series(14, a=1000, b=1100) if row[:2] not in {(3, "b"), (7, "a"), (9, "a")}]
    found = headline(rows)
    assert (found.blocks, found.runs) == (11, 25)
    assert doubt_of(found.warnings, "blocks_left_out") == BlocksLeftOut(
        environments=("b", "a"), lacking={(("b", None),): ("3",), (("a", None),): ("7", "9")}, used=11, many=True
    )


def test_a_block_without_either_arm_concerns_others():
    rows = series(12, a=1000, b=1000, c=1000)
    rows = [row for row in rows if row[0] != 5 or row[1] == "c"]
    assert [codes(finding) for finding in decide(rows).headlines] == [[], ["blocks_left_out"]]


def test_environments_that_share_no_block_are_not_compared():
    found = headline([(block, "a" if block < 9 else "b", 1) for block in range(18)])
    assert (found.verdict, found.blocks, found.effect, found.value) == (Verdict.INSUFFICIENT, 0, None, None)


def test_a_headline_needs_every_cell_in_a_block():
    rows = [(block, name, 100, cell) for block in range(12) for name in "ab" for cell in ("x", "y")]
    rows.remove((4, "b", 100, "y"))
    answer = decide(rows, cells=True)
    assert [finding.blocks for finding in answer.headlines] == [11]
    assert [finding.blocks for finding in answer.explored] == [12, 11]
    assert doubt_of(answer.headlines[0].warnings, "blocks_left_out").lacking == {(("b", "y"),): ("4",)}


# ------------------------------------------------------------------------------------- several cells, several environments


def cells_of(effects, n=12):
    """a against b, whose values are effects[cell] times as large, with noise that differs from cell to cell."""
    return [
        (
            block,
            name,
            1000 * (effect if name == "b" else 1) * math.exp(NOISE[(block * (shift + 2) + (name == "b")) % 12]),
            cell,
        )
        for block in range(n)
        for shift, (cell, effect) in enumerate(effects.items())
        for name in "ab"
    ]


def test_the_headline_is_the_geometric_mean_over_cells_and_cells_are_exploratory():
    answer = decide(cells_of({"x": 1.21, "y": 1.0}), cells=True)
    (finding,) = answer.headlines
    assert (finding.cell, finding.exploratory) == (ALL_CELLS, False)
    assert finding.effect == pytest.approx(1.1, abs=0.01)
    assert [(item.cell, item.exploratory) for item in answer.explored] == [
        ("x", True),
        ("y", True),
    ]
    assert [item.verdict for item in answer.explored] == [Verdict.BETTER, Verdict.EQUIVALENT]
    p = [item.repeated_p for item in answer.explored]
    assert answer.explored[0].adjusted_p == pytest.approx(min(1, 2 * p[0]))


def test_a_single_cell_is_its_own_headline():
    answer = decide(cells_of({"x": 1.1}), cells=True)
    assert [finding.cell for finding in answer.headlines] == ["x"]
    assert answer.explored == ()


def test_headlines_share_the_error_probability():
    answer = decide(series(24, a=1000, b=1100, c=1000, d=1000))
    levels = {finding.environment: finding.level for finding in answer.headlines}
    # .045 / 3 rounded down to the grid; the difference found leaves .045 / 2 to the others
    assert levels == {"b": 0.015, "c": 0.0225, "d": 0.0225}
    assert 0.985 <= answer.headlines[0].confidence < 0.9855


def test_with_many_environments_few_blocks_are_too_few():
    names = {name: 1000 * (2 if name == "b" else 1) for name in "abcdefghij"}
    found = decide(series(8, **names)).headlines[0]
    assert (found.verdict, found.level) == (Verdict.INSUFFICIENT, 0.005)
    assert doubt_of(found.warnings, "insufficient_blocks") == TooFewBlocks(blocks=8, needed=9)


def test_a_history_of_many_levels_has_a_headline_each():
    names = {f"e{n}": 1000 * (2 if n == 100 else 1) for n in range(173)}
    answer = decide(series(14, **names), ImportTerms())
    verdicts = {item.environment: item.verdict for item in answer.headlines}
    assert len(verdicts) == 172
    assert verdicts["e100"] is Verdict.BETTER
    assert set(verdicts.values()) == {Verdict.BETTER, Verdict.EQUIVALENT}


# ------------------------------------------------------------------------------------- without blocks


def heap(**values):
    return [(0, name, value) for name, found in values.items() for value in found]


def test_three_runs_against_three_support_no_interval():
    found = headline(heap(a=[100, 101, 102], b=[200, 201, 202]), blocks=False)
    assert (found.verdict, found.interval, found.blocks) == (Verdict.INSUFFICIENT, None, 0)
    assert found.effect == pytest.approx(2, abs=0.02)
    assert found.warnings == (TooFewValues(values=(3, 3), needed=4),)


def test_four_against_four_support_one():
    answer = decide(heap(a=[100, 101, 102, 103], b=[200, 201, 202, 203]), blocks=False)
    (finding,) = answer.headlines
    assert (finding.verdict, finding.lane) == (Verdict.BETTER, Lane.ONE_LOOK)
    assert (finding.values, finding.baseline_values, answer.paired) == (4, 4, False)
    assert answer.warnings == (NamedDoubt(code="no_blocks", names=()),)


def test_without_blocks_each_cell_is_a_headline():
    rows = [
        (0, name, 100 + 3 * k + (50 if name == "b" and cell == "x" else 0), cell)
        for k in range(10)
        for name in "ab"
        for cell in ("x", "y")
    ]
    answer = decide(rows, blocks=False, cells=True)
    found = answer.headlines
    assert [(item.cell, item.verdict) for item in found] == [("x", Verdict.BETTER), ("y", Verdict.INCONCLUSIVE)]
    assert [item.level for item in found] == [0.0225, 0.045]
    assert answer.explored == ()


def test_an_environment_that_lacks_a_cell_is_told_apart_from_one_that_is_equal():
    rows = [(0, "a", k + 1, cell) for k in range(9) for cell in ("x", "y")] + [(0, "b", k + 1, "x") for k in range(9)]
    found = decide(rows, blocks=False, cells=True).headlines[1]
    assert (found.verdict, found.value, found.values) == (Verdict.INSUFFICIENT, None, 0)


# ------------------------------------------------------------------------------------- doubts about the table


@pytest.mark.parametrize("metric", ["latency_ms", "Time per op", "p99", "cpu", "elapsed (s)", "page faults"])
def test_a_name_that_sounds_as_if_lower_were_better_is_a_doubt(metric):
    warnings = decide(series(12, a=1, b=1), metric=metric).warnings
    assert doubt_of(warnings, "direction_assumed").names == (metric,)


@pytest.mark.parametrize(
    "metric", ["tps", "ops", "requests per second", "MB/s", "tpmC", "value", "timely", "latency_p99"]
)
def test_other_names_are_none(metric):
    assert decide(series(12, a=1, b=1), metric=metric).warnings == ()


def test_columns_that_are_not_used_are_named():
    warnings = decide(series(12, a=1, b=1), ignored=("host", "date", "x", "y")).warnings
    assert warnings == (NamedDoubt(code="ignored_columns", names=("host", "date", "x", "y")),)


@pytest.mark.parametrize(
    ("rows", "question", "said"),
    [
        ([(1, "a", 1)], ImportTerms(), "r.csv: a is the only environment: there is nothing to compare it with"),
        (
            [(1, "a", 1), (1, "b", 1)],
            ImportTerms(baseline="c"),
            "--baseline: r.csv has no environment 'c'\n  -> choose one of a, b",
        ),
    ],
)
def test_what_cannot_be_asked_is_told_why(rows, question, said):
    with pytest.raises(UsageError) as caught:
        decide(rows, question)
    assert str(caught.value).startswith(said)


# ------------------------------------------------------------------------------------- what must not matter

VALUES = st.integers(1, 1000)
PAIRED = st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=30)
HEAPS = st.tuples(st.lists(VALUES, min_size=1, max_size=20), st.lists(VALUES, min_size=1, max_size=20))


def paired_rows(pairs, scale=1.0, names=str):
    return [
        (names(block), name, value * scale)
        for block, pair in enumerate(pairs)
        for name, value in zip("ab", pair, strict=True)
    ]


def figures(comparison):
    ends = (comparison.interval, comparison.equivalence_interval)
    effect = [comparison.effect] if comparison.effect is not None else []
    return [*effect, *(end for interval in ends if interval for end in (interval.low, interval.high))]


def essence(comparison):
    return (comparison.verdict, comparison.blocks, comparison.repeated_p, comparison.level, comparison.decided_at)


def mirrored(verdict):
    return {Verdict.BETTER: Verdict.WORSE, Verdict.WORSE: Verdict.BETTER}.get(verdict, verdict)


@given(PAIRED, st.sampled_from([1e-9, 0.001, 0.3, 7.0, 1e12]))
def test_a_unit_changes_nothing(pairs, scale):
    found, scaled = headline(paired_rows(pairs)), headline(paired_rows(pairs, scale))
    assert essence(scaled) == essence(found)
    assert figures(scaled) == pytest.approx(figures(found), rel=1e-9)


@given(PAIRED, st.randoms(use_true_random=False))
def test_neither_the_order_of_rows_nor_the_names_of_blocks_change_anything(pairs, rng):
    rows = paired_rows(pairs)
    changed = paired_rows(pairs, names=lambda block: f"night {chr(0x4E00 + 7919 * block % 5000)}")
    rng.shuffle(changed)
    found, shuffled = headline(rows), headline(changed)
    assert essence(shuffled) == essence(found)
    assert figures(shuffled) == pytest.approx(figures(found), rel=1e-12)


@given(PAIRED)
def test_swapped_arms_turn_the_sign_and_invert_the_interval(pairs):
    rows = paired_rows(pairs)
    there, back = headline(rows), headline(rows, dataclasses.replace(ASK, baseline="b"))
    assert back.verdict is mirrored(there.verdict)
    assert (back.effect is None) is (there.effect is None)
    assert back.effect is None or back.effect == pytest.approx(1 / there.effect, rel=1e-9)
    assert (back.interval is None) is (there.interval is None)
    if there.interval:
        assert back.interval.low == pytest.approx(1 / there.interval.high, rel=1e-9)
        assert back.interval.high == pytest.approx(1 / there.interval.low, rel=1e-9)


@given(PAIRED)
def test_the_interval_contains_the_estimate(pairs):
    found = headline(paired_rows(pairs))
    for interval in (found.interval, found.equivalence_interval):
        assert interval is None or interval.low <= found.effect * (1 + 1e-9)
        assert interval is None or interval.high >= found.effect * (1 - 1e-9)


@given(PAIRED)
def test_lower_is_better_turns_the_verdict_and_no_figure(pairs):
    rows = paired_rows(pairs)
    higher = headline(rows, metric="x")
    lower = headline(rows, dataclasses.replace(ASK, lower_is_better=True), metric="x")
    assert lower.verdict is mirrored(higher.verdict)
    assert figures(lower) == pytest.approx(figures(higher), rel=1e-9)


@settings(max_examples=50)
@given(st.lists(st.tuples(VALUES, VALUES, VALUES, VALUES), min_size=7, max_size=15), st.randoms(use_true_random=False))
def test_cells_may_come_in_any_order_too(blocks, rng):
    rows = [
        (block, name, value, cell)
        for block, four in enumerate(blocks)
        for (name, cell), value in zip((("a", "x"), ("b", "x"), ("a", "y"), ("b", "y")), four, strict=True)
    ]
    found = decide(rows, cells=True).headlines[0]
    rng.shuffle(rows)
    shuffled = decide(rows, cells=True).headlines[0]
    assert essence(shuffled) == essence(found)
    assert figures(shuffled) == pytest.approx(figures(found), rel=1e-9)


@settings(max_examples=50)
@given(HEAPS, st.sampled_from([1e-9, 3.0]), st.randoms(use_true_random=False))
def test_without_blocks_units_order_and_arms_do_not_matter_either(heaps, scale, rng):
    rows = heap(a=heaps[0], b=heaps[1])
    found = headline(rows, blocks=False)
    other = [(block, name, value * scale) for block, name, value in rows]
    rng.shuffle(other)
    changed = headline(other, blocks=False)
    assert essence(changed) == essence(found)
    assert figures(changed) == pytest.approx(figures(found), rel=1e-9)
    back = headline(rows, dataclasses.replace(ASK, baseline="b"), blocks=False)
    assert back.verdict is mirrored(found.verdict)
    assert back.effect == pytest.approx(1 / found.effect, rel=1e-9)
    if found.interval:
        assert found.interval.low * (1 - 1e-9) <= found.effect <= found.interval.high * (1 + 1e-9)
        assert back.interval.low == pytest.approx(1 / found.interval.high, rel=1e-9)


def test_the_direction_is_part_of_the_answer():
    assert decide(series(12, a=1, b=1), metric="server_cpu_per_tx").question.direction is Direction.LOWER


@pytest.mark.parametrize(
    ("ordered", "cells", "blocks", "said"),
    [(False, 5001, 1, "5,001 comparisons are too many"), (True, 10, 1001, "20,020 rows are too many")],
)
def test_more_than_can_be_compared_soon_is_refused_with_the_number(ordered, cells, blocks, said):
    rows = [(b, name, 1, f"c{c}") for b in range(blocks) for c in range(cells) for name in "ab"]
    with pytest.raises(UsageError, match=said):
        decide_import(make_table(rows, cells=True), dataclasses.replace(ASK, ordered=ordered))


# ------------------------------------------------------------------------------------- dependence


def seconds(name, n, level, seed):
    """One run, second by second."""
    rng, value, rows = random.Random(seed), 0.0, []
    for second in range(n):
        value = 0.95 * value + rng.gauss(0, 0.02)
        rows.append((second, name, level * math.exp(value)))
    return rows


def test_the_seconds_of_one_run_are_one_value():
    rows = [*seconds("a", 120, 1000, 1), *seconds("b", 120, 1300, 2)]
    answer = decide(rows, blocks=False)
    assert [item.verdict for item in answer.headlines] == [Verdict.INSUFFICIENT]
    assert (answer.headlines[0].values, answer.headlines[0].baseline_values) == (1, 1)
    doubt = doubt_of(answer.warnings, "dependent_values")
    assert doubt.environments == ("a", "b")
    assert doubt.correlation > 0.8


def test_steps_are_not_found_in_seconds_of_one_run_for_each_level():
    rows = [row for place, name in enumerate("abcd") for row in seconds(name, 60, 1000 + 100 * place, place)]
    answer = decide(rows, ImportTerms(ordered=True), blocks=False)
    assert [axis.steps for axis in answer.axes] == [()]


def test_blocks_whose_differences_follow_each_other_decide_nothing():
    rows = [row for pair in zip(seconds("a", 100, 1000, 3), seconds("b", 100, 1300, 4), strict=True) for row in pair]
    found = headline(rows)
    assert (found.verdict, found.effect, found.decided_at) == (Verdict.INSUFFICIENT, None, None)
    assert codes(found) == ["dependent_values"]
    assert found.warnings[0].blocks == 100


def test_looks_after_each_block_that_follow_each_other_decide_nothing_either():
    rows = [row for pair in zip(seconds("a", 50, 1000, 3), seconds("b", 50, 1300, 4), strict=True) for row in pair]
    found = headline(rows, dataclasses.replace(ASK, sequential=True))
    assert (found.verdict, codes(found)) == (Verdict.INSUFFICIENT, ["dependent_values"])


def test_steps_are_not_found_in_blocks_that_are_the_seconds_of_one_run_for_each_level():
    levels = [seconds(name, 60, 1000 + 100 * place, place) for place, name in enumerate("abcd")]
    rows = [row for block in zip(*levels, strict=True) for row in block]
    answer = decide(rows, ImportTerms(ordered=True))
    assert {item.verdict for item in answer.headlines} == {Verdict.INSUFFICIENT}
    assert answer.axes == ()
    assert import_code(answer) is ExitCode.UNDECIDED


def test_drift_that_both_share_is_no_dependence():
    drift = [value / 1000 for _, _, value in seconds("", 100, 1000, 5)]
    rng = random.Random(6)
    rows = [
        (block, name, each * level * math.exp(rng.gauss(0, 0.02)))
        for block, each in enumerate(drift)
        for name, level in (("a", 1000), ("b", 1300))
    ]
    assert headline(rows).verdict is Verdict.BETTER
