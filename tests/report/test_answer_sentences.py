from __future__ import annotations

import dataclasses
import re

import pytest

from desk import CELLS, DEMO
from pgstrata.model.answer import ALL_CELLS, Interval, Lane, Verdict
from pgstrata.model.doubts import CountedDoubt, NamedDoubt, PlainDoubt, Unstable
from pgstrata.model.experiment import ControlKind
from pgstrata.model.metrics import Measurement
from pgstrata.model.objective import Objective
from pgstrata.model.runs import Validity
from pgstrata.report.sentences.answer import answer_sentences, say_comparison
from pgstrata.report.sentences.doubts import doubt_sentences
from pgstrata.report.sentences.rates import rate_sentences

_COMMON = "All at scale 10 with 2 clients"


def say(answer):
    """The sentences without the one that says what all cells have in common."""
    return [sentence.text for sentence in answer_sentences(answer) if not sentence.text.startswith("All at scale")]


def test_a_difference_is_said_in_the_words_of_throughput(desk):
    answer = desk.verdict_answer(desk.comparison())
    assert say(answer) == [
        "18 is slower than 16 on simple-update: -3.1 % [-4.2, -1.9] at 95.5 % confidence, decided after 9 of 12 blocks"
    ]


def test_a_level_that_is_called_on_is_not_followed_by_another_on(desk):
    levels = tuple(desk.environment(name, (("settings.synchronous_commit", name),)) for name in ("on", "off"))
    (text,) = say(desk.verdict_answer(desk.comparison(environment="off", reference="on"), environments=levels))
    assert text.startswith("synchronous_commit = off is slower than synchronous_commit = on, on simple-update: ")


def test_a_cell_behind_a_baseline_that_is_called_on_follows_a_comma_in_sentences_about_a_control(desk):
    levels = [desk.environment(name, (("settings.synchronous_commit", "on"),)) for name in ("on", "again")]
    levels[1] = dataclasses.replace(levels[1], control=ControlKind.SAME)
    control = undecided(desk, "simple-update", 0.98, 1.02, environment="again", reference="on", control=True)
    cells = (desk.cell(2, "select-only"), desk.cell(2))
    text = " ".join(say(desk.verdict_answer(control, environments=tuple(levels), cells=cells)))
    assert " cannot be told apart from synchronous_commit = on, on simple-update: " in text


def test_a_gain_is_called_faster(desk):
    answer = desk.verdict_answer(
        desk.comparison(verdict=Verdict.BETTER, effect=1.042, interval=Interval(low=1.031, high=1.055))
    )
    assert "18 is faster than 16" in say(answer)[0]
    assert "+4.2 % [+3.1, +5.5]" in say(answer)[0]


def test_metrics_that_are_no_speed_have_their_own_words(desk):
    answer = desk.verdict_answer()
    text = say_comparison(answer, desk.comparison(metric="wal_per_tx", effect=1.2, interval=None))
    assert text.startswith("18 has more WAL per transaction than 16 on ")
    assert text.endswith(": +20.0 % at 95.5 % confidence, decided after 9 of 12 blocks")


def test_no_difference_names_the_threshold_and_the_interval(desk):
    interval = Interval(low=0.991, high=1.014)
    answer = desk.verdict_answer(
        desk.comparison(verdict=Verdict.EQUIVALENT, effect=1.001, equivalence_interval=interval)
    )
    (text,) = say(answer)
    assert text == (
        "No difference larger than 3 % between 18 and 16 on simple-update: between -0.9 % and +1.4 %, "
        "decided after 9 of 12 blocks"
    )


def test_of_many_environments_each_with_one_comparison_has_its_interval(desk):
    environments = tuple(desk.environment(f"e{place}", (("server", str(place)),)) for place in range(12))
    compared = (desk.comparison(environment=each.name) for each in environments[1:])
    texts = say(desk.verdict_answer(*compared, environments=environments))
    assert len(texts) == 11
    assert all("-3.1 % [-4.2, -1.9]" in text for text in texts)


def test_an_undecided_comparison_names_no_winner(desk):
    answer = desk.verdict_answer(
        desk.comparison(verdict=Verdict.INCONCLUSIVE, effect=1.01, interval=Interval(low=0.976, high=1.031), blocks=7)
    )
    (text,) = say(answer)
    assert text == (
        "18 and 16 cannot be told apart on simple-update (inconclusive): between -2.4 % and +3.1 % at 95.5 % confidence "
        "after 7 of 12 blocks"
    )
    assert not {"faster", "slower"} & set(text.split())


@pytest.mark.parametrize(("effect", "word"), [(1.01, "faster"), (0.99, "slower")])
def test_a_negligible_difference_says_that_it_is_small(desk, effect, word):
    answer = desk.verdict_answer(desk.comparison(verdict=Verdict.NEGLIGIBLE, effect=effect))
    assert f"18 is {word} than 16" in say(answer)[0]
    assert "but by less than 3 % (real, but negligible)" in say(answer)[0]


def test_too_few_blocks_say_how_many_are_needed_and_claim_nothing(desk):
    answer = desk.verdict_answer(
        desk.comparison(verdict=Verdict.INSUFFICIENT, effect=0.9, interval=None, blocks=3, planned_blocks=5)
    )
    (text,) = say(answer)
    assert text == (
        "Not enough blocks yet to compare 18 with 16 on simple-update: 3 usable blocks so far, an interval needs 8; the plan has only 5"
    )


def test_a_collapsed_environment_is_a_result(desk):
    answer = desk.verdict_answer(desk.comparison(verdict=Verdict.COLLAPSED, effect=None, interval=None))
    assert say(answer)[0].startswith("18 collapsed on simple-update: it ran out of a resource")


def test_a_collapsed_baseline_leaves_nothing_to_compare_with(desk):
    warning = PlainDoubt(code="baseline_collapsed")
    answer = desk.verdict_answer(
        desk.comparison(verdict=Verdict.INSUFFICIENT, effect=None, interval=None, warnings=(warning,))
    )
    assert say(answer) == [
        "No comparison of 18 with 16 on simple-update: the baseline collapsed at this load: nothing to compare with"
    ]


def test_an_unstable_environment_gets_no_percentage(desk):
    answer = desk.verdict_answer(desk.comparison(verdict=Verdict.UNSTABLE, effect=None, interval=None))
    assert "%" not in say(answer)[0]


def test_blocks_in_two_groups_are_a_warning_beside_a_verdict_and_the_reason_of_one(desk):
    groups = Unstable(
        environments=("pg18", "pg16"),
        groups=((0.5, 0.9), (0.5, 1.1)),
        strays=0,
        blocks=9,
        limit=0.05,
        one_look=False,
        estimated=True,
    )
    said = "fall into two groups"
    answer = desk.verdict_answer(desk.comparison(warnings=(groups,)))
    assert any(said in text for text in doubt_sentences(answer))
    answer = desk.verdict_answer(
        desk.comparison(
            verdict=Verdict.UNSTABLE,
            effect=None,
            interval=None,
            warnings=(dataclasses.replace(groups, estimated=False),),
        )
    )
    assert said in say(answer)[0]
    assert not any(said in text for text in doubt_sentences(answer))


def test_a_control_that_agrees_is_said_last(desk):
    control = desk.comparison(
        environment="pg16-control",
        control=True,
        verdict=Verdict.INCONCLUSIVE,
        interval=Interval(low=0.98, high=1.02),
    )
    sentences = answer_sentences(desk.verdict_answer(control, desk.comparison()))
    assert sentences[-2].text == (
        "The control (16 a second time) cannot be told apart from 16: between -2.0 % and +2.0 % at 95.5 % confidence "
        "after 9 of 12 blocks; a fault of up to 2 % would not show"
    )
    assert not any(sentence.alarm for sentence in sentences)


def test_a_control_that_differs_is_shouted_in_the_first_line(desk):
    control = desk.comparison(environment="pg16-control", control=True)
    first, *_ = answer_sentences(desk.verdict_answer(desk.comparison(), control))
    assert first.alarm
    assert first.text.startswith(
        "THE CONTROL DIFFERS FROM ITSELF: DO NOT TRUST ANY OTHER DIFFERENCE OF THIS STUDY. 16 a second time is slower"
    )


def test_a_control_on_data_built_anew_is_called_one(desk):
    environments = (
        desk.environment("pg16", (("server", "16"),)),
        desk.environment("again", (("server", "16"),), ControlKind.REBUILD),
    )
    control = desk.comparison(environment="again", control=True, verdict=Verdict.INSUFFICIENT, blocks=2)
    assert say(desk.verdict_answer(control, environments=environments))[-1] == (
        "The control (16 on data built anew) has too few blocks to say anything yet: 2 of 8"
    )


def test_many_cells_are_summarised_per_environment(desk):
    cells = tuple(desk.cell(clients) for clients in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512))
    verdicts = [Verdict.WORSE] * 4 + [Verdict.INCONCLUSIVE] * 5 + [Verdict.EQUIVALENT]
    comparisons = [
        desk.comparison(cell=cell.identity, verdict=verdict, effect=0.97 - place / 100)
        for place, (cell, verdict) in enumerate(zip(cells, verdicts, strict=True))
    ]
    assert say(desk.verdict_answer(*comparisons, cells=cells)) == [
        "18 against 16 in 10 cells: slower in 4 (-6.0 % to -3.0 %); no difference in 1; cannot tell in 5"
    ]


def test_secondary_metrics_make_no_headline(desk):
    answer = desk.verdict_answer(desk.comparison(), desk.comparison(metric="latency_p99", exploratory=True))
    assert len(say(answer)) == 1


def test_an_experiment_without_a_second_environment_says_so(desk):
    answer = desk.verdict_answer(environments=(desk.environment("pg16", (("server", "16"),)),))
    assert say(answer) == ["Nothing to compare: 16 is the only environment"]


def test_a_doubt_is_told_once_with_its_cells(desk):
    warning = CountedDoubt(code="suspect_runs", number=1, of=9, environment="pg16")
    cells = (desk.cell(1), desk.cell(2))
    comparisons = [
        desk.comparison(
            cell=cell.identity, environment=name, warnings=(warning,) if cell.clients == 1 else (), effect=0.9
        )
        for cell in cells
        for name in ("pg18", "pg18-async")
    ]
    assert doubt_sentences(desk.verdict_answer(*comparisons, cells=cells)) == (
        "1 of 9 runs of 16 is suspect and in the estimate (simple-update, scale 10, 1 client)",
    )


def test_runs_that_a_headline_counts_are_not_counted_again_for_its_cells(desk):
    def suspect(number, of, environment="pg18"):
        return CountedDoubt(code="suspect_runs", number=number, of=of, environment=environment)

    stopped = CountedDoubt(code="incomplete", number=4, of=9)
    beside = CountedDoubt(code="neighbours_differ", number=3, of=9)
    fewer = CountedDoubt(code="neighbours_differ", number=1, of=9)
    answer = desk.headlines(desk.answer(environments=DEMO[:2]), warnings=(suspect(7, 18), stopped, beside))
    headline, *cells = answer.comparisons
    cells = [
        dataclasses.replace(item, warnings=(suspect(3 + place, 9), suspect(1, 9, "pg16"), stopped, fewer))
        for place, item in enumerate(cells)
    ]
    answer = dataclasses.replace(answer, comparisons=(headline, *cells))
    assert doubt_sentences(answer) == (
        "7 of 18 runs of 18 are suspect and in the estimate (all cells together)",
        "Stopped early: 4 of 9 planned blocks were measured (all cells together)",
        (
            "in 3 blocks other processes used the CPU during one of the two environments only: they stay in the "
            "estimate, because random order exposes both to background load (all cells together)"
        ),
        (
            "1 of 9 runs of 16 is suspect and in the estimate (simple-update, scale 10, 2 clients; select-only, "
            "scale 10, 2 clients)"
        ),
    )


def test_a_small_effect_that_was_found_early_asks_for_a_fresh_study(desk):
    warning = PlainDoubt(code="small_and_early")
    answer = desk.verdict_answer(desk.comparison(effect=0.98, warnings=(warning,)))
    assert say(answer)[0].endswith(
        "decided after 9 of 12 blocks; small and found early, it may look larger than it is: confirm in a fresh study"
    )
    assert doubt_sentences(answer) == ()
    assert "fresh study" not in say(desk.verdict_answer(desk.comparison(effect=0.98)))[0]


def test_warnings_of_the_study_come_first_among_the_doubts(desk):
    warning = NamedDoubt(code="clock_source", names=("hpet",))
    (text,) = doubt_sentences(desk.verdict_answer(desk.comparison(effect=0.9), warnings=(warning,)))
    assert text.startswith("The clock source is hpet")


def two_cells(desk, *comparisons):
    cells = (desk.cell(2, "select-only"), desk.cell(2))
    return desk.verdict_answer(*comparisons, cells=cells)


def undecided(desk, cell, low, high, **changes):
    return desk.comparison(
        cell=f"{cell}-s10-c2",
        verdict=Verdict.INCONCLUSIVE,
        interval=Interval(low=low, high=high),
        **{"blocks": 7, **changes},
    )


def test_cells_with_the_same_verdict_share_a_sentence(desk):
    pair = undecided(desk, "select-only", 0.962, 1.101), undecided(desk, "simple-update", 0.908, 1.031)
    assert say(two_cells(desk, *pair)) == [
        (
            "18 and 16 cannot be told apart (inconclusive): between -3.8 % and +10.1 % on select-only, "
            "between -9.2 % and +3.1 % on simple-update, over 7 blocks"
        )
    ]


def test_cells_with_different_numbers_of_blocks_say_each_its_own(desk):
    pair = undecided(desk, "select-only", 0.96, 1.1), undecided(desk, "simple-update", 0.9, 1.03, blocks=9)
    assert say(two_cells(desk, *pair)) == [
        (
            "18 and 16 cannot be told apart (inconclusive): between -4.0 % and +10.0 % on select-only over 7 blocks, "
            "between -10.0 % and +3.0 % on simple-update over 9 blocks"
        )
    ]


def test_differences_come_before_what_cannot_be_told_and_controls_come_last(desk):
    control = undecided(desk, "simple-update", 0.98, 1.02, environment="pg16-control", control=True)
    first = undecided(desk, "select-only", 0.96, 1.1)
    texts = say(two_cells(desk, control, first, desk.comparison(environment="pg18-async")))
    assert [text.split(" is ")[0].split(" and ")[0].split(" cannot")[0] for text in texts] == [
        "18 (commit_delay = 100)",
        "18",
        "The control (16 a second time)",
    ]


def test_what_all_cells_have_in_common_is_said_once(desk):
    pair = undecided(desk, "select-only", 0.96, 1.1), desk.comparison()
    texts = [sentence.text for sentence in answer_sentences(two_cells(desk, *pair))]
    assert texts[-1] == _COMMON
    assert sum("scale" in text or "clients" in text for text in texts) == 1


def test_what_differs_between_the_cells_is_said_in_each_sentence(desk):
    cells = (desk.cell(1), desk.cell(4))
    pair = [desk.comparison(cell=cell.identity) for cell in cells]
    texts = [sentence.text for sentence in answer_sentences(desk.verdict_answer(*pair, cells=cells))]
    assert texts == [
        (
            "18 is slower than 16: -3.1 % [-4.2, -1.9] on simple-update with 1 client, "
            "-3.1 % [-4.2, -1.9] on simple-update with 4 clients, over 9 blocks"
        ),
        "All at scale 10",
    ]


def test_cells_without_enough_blocks_share_a_sentence(desk):
    pair = [
        desk.comparison(cell=f"{cell}-s10-c2", verdict=Verdict.INSUFFICIENT, interval=None, blocks=blocks)
        for cell, blocks in (("select-only", 3), ("simple-update", 4))
    ]
    assert say(two_cells(desk, *pair)) == [
        "Not enough blocks yet to compare 18 with 16 on select-only and simple-update: 3 to 4 usable blocks so far, an interval needs 8"
    ]


def test_an_alarm_over_many_cells_stays_short(desk):
    cells = tuple(desk.cell(clients) for clients in (1, 2, 4, 8, 16, 32))
    controls = [desk.comparison(cell=cell.identity, environment="pg16-control", control=True) for cell in cells]
    (alarm,) = [each for each in answer_sentences(desk.verdict_answer(*controls, cells=cells)) if each.alarm]
    assert alarm.text == (
        "THE CONTROL DIFFERS FROM ITSELF: DO NOT TRUST ANY OTHER DIFFERENCE OF THIS STUDY. "
        "16 a second time against 16 in 6 cells: slower in 6 (-3.1 %)"
    )


def test_a_control_in_one_of_several_cells_names_the_cell(desk):
    control = undecided(desk, "simple-update", 0.98, 1.02, environment="pg16-control", control=True)
    assert say(two_cells(desk, control, desk.comparison()))[-1] == (
        "The control (16 a second time) cannot be told apart from 16 on simple-update: between -2.0 % and +2.0 % at "
        "95.5 % confidence after 7 of 12 blocks; a fault of up to 2 % would not show"
    )


# ------------------------------------------------------------------------------------------------ headlines


def test_the_headline_comes_first_and_single_cells_are_called_exploratory(desk):
    cells = [
        desk.comparison(cell=f"{cell}-s10-c2", effect=effect, interval=Interval(low=effect - 0.01, high=effect + 0.01))
        for cell, effect in (("select-only", 0.95), ("simple-update", 0.96))
    ]
    first, second = say(two_cells(desk, *cells, desk.comparison(cell=ALL_CELLS, confidence=0.98, level=0.02)))
    assert first == (
        "18 is slower than 16 over all cells together: -3.1 % [-4.2, -1.9] at 98 % confidence, "
        "decided after 9 of 12 blocks"
    )
    assert second == (
        "Single cells, exploratory: 18 against 16: slower on select-only (-5.0 % [-6.0, -4.0]) and simple-update "
        "(-4.0 % [-5.0, -3.0])"
    )


def test_a_single_cell_needs_no_headline_beside_it(desk):
    answer = desk.verdict_answer(desk.comparison(), desk.comparison(cell=ALL_CELLS, effect=0.5))
    (text,) = say(answer)
    assert "-3.1 %" in text


def test_one_look_says_so(desk):
    (text,) = say(desk.verdict_answer(desk.comparison(lane=Lane.ONE_LOOK, blocks=30, effect=0.8)))
    assert text.endswith("at 95.5 % confidence, at one look over 30 blocks")


def test_the_time_that_it_took_is_said(desk):
    answer = desk.answer(blocks=9, cells=(desk.cell(2),))
    assert re.search(r"decided after 9 of 9 blocks, \d+ min", say(answer)[0])


def test_an_interval_at_a_small_level_needs_more_blocks(desk):
    comparison = desk.comparison(verdict=Verdict.INSUFFICIENT, interval=None, blocks=7, level=0.005)
    assert "7 usable blocks so far, an interval needs 11" in say(desk.verdict_answer(comparison))[0]


def control_cells(desk, verdicts, **changes):
    cells = tuple(desk.cell(clients) for clients in (1, 2, 4))
    headline = desk.comparison(
        environment="pg16-control",
        control=True,
        cell=ALL_CELLS,
        verdict=Verdict.EQUIVALENT,
        effect=1.0,
        interval=Interval(low=0.99, high=1.01),
    )
    singles = [
        desk.comparison(environment="pg16-control", control=True, cell=cell.identity, verdict=verdict, **changes)
        for cell, verdict in zip(cells, verdicts, strict=True)
    ]
    return desk.verdict_answer(headline, *singles, cells=cells)


def test_a_cell_of_a_control_that_differs_by_chance_is_told_calmly(desk):
    answer = control_cells(desk, [Verdict.WORSE, Verdict.EQUIVALENT, Verdict.EQUIVALENT], adjusted_p=0.13)
    sentences = answer_sentences(answer)
    assert not any(sentence.alarm for sentence in sentences)
    assert any("differs in 1 of 3 cells (-3.1 % [-4.2, -1.9]), no more than" in sentence.text for sentence in sentences)


def test_a_cell_of_a_control_that_differs_beyond_chance_is_shouted(desk):
    answer = control_cells(desk, [Verdict.WORSE, Verdict.EQUIVALENT, Verdict.EQUIVALENT], adjusted_p=0.0015)
    assert answer_sentences(answer)[0].alarm


def test_environments_compared_with_each_other_are_named(desk):
    answer = desk.verdict_answer(desk.comparison())
    pair = desk.comparison(environment="pg18-async", reference="pg18")
    assert say_comparison(answer, pair).startswith("18 (commit_delay = 100) is slower than 18 on")
    assert len(say(dataclasses.replace(answer, pairs=(pair,)))) == 1


def test_factors_and_steps_are_part_of_the_answer(desk):
    answer = dataclasses.replace(desk.verdict_answer(desk.comparison()), effects=(desk.effect(),), axes=(desk.axis(),))
    _, factor, step = say(answer)
    assert factor.startswith("Effect of huge_pages, on against off")
    assert step.startswith("Along server: 18 brought +4.2 %")


@pytest.mark.parametrize(
    ("objectives", "text"),
    [
        (("p99", "p99"), "with p99 below 20 ms"),
        (("mean", "mean"), "with a mean latency below 20 ms"),
        (("p99", "p50"), "within their limits of latency"),
    ],
)
def test_a_rate_within_an_objective_is_said_as_transactions_that_are_sustained(desk, objectives, text):
    answer = desk.verdict_answer()
    experiment = answer.study.plan.experiment
    cells = tuple(
        dataclasses.replace(experiment.cells[0], objective=Objective(of=of, limit=0.02), label=f"-{place}")
        for place, of in enumerate(objectives)
    )
    plan = dataclasses.replace(answer.study.plan, experiment=dataclasses.replace(experiment, cells=cells))
    answer = dataclasses.replace(answer, study=dataclasses.replace(answer.study, plan=plan))
    comparison = desk.comparison(
        metric="sustained_rate",
        verdict=Verdict.BETTER,
        effect=1.12,
        interval=Interval(low=1.1, high=1.14),
        cell=ALL_CELLS,
    )
    found = say_comparison(answer, comparison)
    assert found.startswith(f"18 sustains more transactions per second than 16 {text}")
    assert "+12.0 % [+10.0, +14.0]" in found


def test_rates_within_an_objective_are_in_the_answer_with_the_figures_of_the_table(desk):
    answer = desk.answer(environments=DEMO[:2], cells=CELLS[:1], blocks=3)
    plan = answer.study.plan
    cell = dataclasses.replace(plan.experiment.cells[0], objective=Objective(of="p99", limit=0.02))
    experiment = dataclasses.replace(plan.experiment, cells=(cell,), metric="sustained_rate")
    rates = {DEMO[0].name: [590.0, 600.0, 610.0], DEMO[1].name: [3000.0, 3300.0]}
    runs = tuple(
        dataclasses.replace(
            run,
            cell=cell.identity,
            validity=Validity.VALID,
            measurements=(Measurement(metric="sustained_rate", value=rate),),
        )
        for name, values in rates.items()
        for run, rate in zip([run for run in answer.study.runs if run.environment == name], values, strict=False)
    )
    study = dataclasses.replace(answer.study, plan=dataclasses.replace(plan, experiment=experiment), runs=runs)
    (text,) = rate_sentences(dataclasses.replace(answer, study=study))
    assert re.fullmatch(
        r"transactions per second with p99 below 20 ms \(median of the runs, 95 % interval\): "
        r"600 \[5\d\d, 6\d\d\] in 16, 3,150 in 18",
        text,
    )
    assert rate_sentences(answer) == []
