"""What the rig could have seen, in words, in JSON and in a plan."""

import json
import math
import sys
from dataclasses import replace

import pytest

from pgstrata.model.answer import ALL_CELLS
from pgstrata.model.floor import Floor
from pgstrata.model.plan import HORIZON, Block
from pgstrata.model.reasons import Reason
from pgstrata.report.answer.notes import floor_note
from pgstrata.report.json.answer import answer_json
from pgstrata.report.planning.floor import (
    find_sensitivities,
    floor_json,
    floors_json,
    measured_json,
    render_effect,
    say_measured,
    visible_effect,
)
from pgstrata.report.planning.plan import plan_json, render_plan
from pgstrata.report.planning.power import power_json
from pgstrata.stats.boundaries import ALPHA
from pgstrata.stats.power import smallest_effect

UPDATE, SELECT = "simple-update-s10-c2", "select-only-s10-c2"


def floor(cell, s0, **more):
    fields = {
        "s0": s0,
        "differences": 13,
        "cell": cell,
        "metric": "tps",
        "design": "runs of 60 s",
        "host": "h",
        "measured": "2026-03-01T12:00:00+00:00",
        "source": "study x",
    }
    return Floor(**{**fields, **more})


def plan_of(desk, *floors, answer=None):
    plan = (answer or desk.verdict_answer()).study.plan
    return replace(plan, floors={one.cell: one for one in floors})


def test_fewer_blocks_see_less(desk):
    plan = plan_of(desk, floor(UPDATE, 0.01))
    # three environments share the level
    seen = smallest_effect(0.01, math.log1p(0.03), 9, alpha=ALPHA / 2)
    comparison = desk.comparison(blocks=9, decided_at=None)
    shown = floor_json(plan, [comparison, desk.comparison(environment="x", blocks=7, decided_at=None)])
    assert shown["smallest_visible_effect"] == pytest.approx(seen)
    assert visible_effect(plan, comparison) == pytest.approx(seen)
    assert visible_effect(plan, desk.comparison(metric="latency_p99")) is None


def test_one_that_was_decided_early_could_have_seen_what_all_its_blocks_see(desk):
    plan = plan_of(desk, floor(UPDATE, 0.01))
    planned = smallest_effect(0.01, math.log1p(0.03), len(plan.blocks), alpha=ALPHA / 2)
    assert visible_effect(plan, desk.comparison(blocks=9, decided_at=9)) == pytest.approx(planned)


@pytest.mark.parametrize("blocks", [12, 24, HORIZON])
@pytest.mark.parametrize("others", [1, 3])
def test_a_report_sees_what_its_plan_foresaw(desk, blocks, others):
    environments = [desk.environment(f"e{place}", (("server", f"1{place}"),)) for place in range(others + 1)]
    answer = desk.verdict_answer(desk.comparison(environment="e1", blocks=blocks), environments=tuple(environments))
    study = replace(answer.study, plan=plan_of(desk, floor(UPDATE, 0.02), answer=answer))
    study = replace(
        study, plan=replace(study.plan, blocks=tuple(Block(number=n + 1, visits=()) for n in range(blocks)))
    )
    answer = replace(answer, study=study)
    (foreseen,) = power_json(study.plan)
    shown = json.loads(answer_json(answer))
    assert shown["floor"]["smallest_visible_effect"] == foreseen["smallest_visible_effect"]
    assert shown["comparisons"][0]["smallest_visible_effect"] == foreseen["smallest_visible_effect"]
    size = render_effect(foreseen["smallest_visible_effect"])
    assert f"differences from {size} on are found with {blocks} blocks by four studies of five" in floor_note(
        answer, UPDATE
    )
    assert f"within {blocks} blocks it sees differences from {size} on" in " ".join(render_plan(study.plan).split())
    alone = floor(UPDATE, 0.02)
    assert (
        measured_json(study.plan, [alone])[0]["smallest_visible_effect"] == foreseen["smallest_visible_effect"]
    ) is (blocks == HORIZON)


def test_the_smallest_visible_effect_counts_equality_and_outliers(desk):
    pair = desk.verdict_answer(
        environments=(desk.environment("a", (("server", "16"),)), desk.environment("b", (("server", "18"),)))
    )
    plan = plan_of(desk, floor(UPDATE, 0.02), answer=pair)
    seen = [visible_effect(plan, desk.comparison(environment="b", blocks=blocks)) for blocks in (14, 16, 24)]
    assert seen == pytest.approx([0.031, 0.026, 0.021], abs=0.001)


def test_a_control_does_not_share_the_level(desk):
    plan = plan_of(desk, floor(UPDATE, 0.02))
    control, headline = (visible_effect(plan, desk.comparison(control=one)) for one in (True, False))
    assert control < headline


def test_all_cells_together_speak_first(desk):
    answer = desk.verdict_answer(cells=(desk.cell(2), desk.cell(2, "select-only")))
    plan = plan_of(desk, floor(UPDATE, 0.02), floor(SELECT, 0.005), floor(ALL_CELLS, 0.004), answer=answer)
    assert [seen.floor.cell for seen in find_sensitivities(plan)] == [ALL_CELLS, UPDATE, SELECT]
    assert floor_json(plan)["cell"] == ALL_CELLS


def test_without_all_cells_together_the_worst_cell_speaks(desk):
    answer = desk.verdict_answer(cells=(desk.cell(2), desk.cell(2, "select-only")))
    plan = plan_of(desk, floor(UPDATE, 0.02), floor(SELECT, 0.005), answer=answer)
    assert floor_json(plan)["cell"] == UPDATE
    assert [one["cell"] for one in floors_json(plan)] == [UPDATE, SELECT]


def test_what_is_not_relied_upon_is_told_to_programs_only_with_its_doubt(desk):
    plan = plan_of(desk, floor(UPDATE, 0.01, doubt=Reason(code="", text="it is old")))
    assert floor_json(plan) is None
    (one,) = floors_json(plan)
    assert (one["s0"], one["smallest_visible_effect"], one["doubt"]) == (0.01, None, "it is old")


def test_without_a_floor_nothing_is_said(desk):
    plan = plan_of(desk)
    assert (floor_json(plan), floors_json(plan)) == (None, [])


def test_too_few_blocks_see_nothing(desk):
    plan = plan_of(desk, floor(UPDATE, 0.01))
    assert visible_effect(plan, desk.comparison(blocks=2, decided_at=None)) is None
    assert floor_json(plan, [desk.comparison(blocks=2, decided_at=None)])["smallest_visible_effect"] is None


def test_a_floor_that_was_just_measured_says_what_it_lets_studies_see(desk):
    plan = plan_of(desk)
    text = say_measured(plan, floor(UPDATE, 0.01))
    assert text.startswith(f"{UPDATE} (throughput, runs of 60 s): 1.0 % from 13 differences of study x; 12 blocks see")
    assert "it is not used: it is zero" in say_measured(
        plan, floor(UPDATE, 0.0, doubt=Reason(code="", text="it is zero"))
    )
    assert measured_json(plan, [floor(UPDATE, 0.01)])[0]["blocks"] == HORIZON


@pytest.mark.parametrize(
    ("effect", "text"), [(0.104, "10 %"), (0.0124, "1.2 %"), (0.0004, "0.04 %"), (None, "no size")]
)
def test_effects_have_two_digits(effect, text):
    assert render_effect(effect) == text


# --------------------------------------------------------------------------------------------------- plans


def section(text, title="What it can see"):
    return next(part for part in text.split("\n\n") if part.startswith(title))


def with_costs(plan, budget=None):
    cost = replace(plan.forecast, seconds_per_block=30.0, seconds_building=60.0, seconds_total=420.0)
    return replace(plan, forecast=cost, experiment=replace(plan.experiment, budget=budget))


def test_a_plan_forecasts_blocks_and_minutes_for_each_effect(desk):
    text = section(render_plan(with_costs(plan_of(desk, floor(UPDATE, 0.01)))))
    for effect in ("2 %:", "3 %:", "5 %:", "10 %:", "equal:"):
        assert effect in text
    assert "noise floor 1.0 % (13 differences, runs of 60 s, 2026-03-01, study x)" in " ".join(text.split())
    assert "within 12 blocks it sees differences from" in text
    assert max(map(len, text.splitlines())) <= 100


def test_larger_effects_are_likelier_and_take_fewer_blocks(desk):
    document = json.loads(plan_json(with_costs(plan_of(desk, floor(UPDATE, 0.02)))))
    (power,) = document["forecast"]["power"]
    *real, equal = power["effects"]
    assert [one["effect"] for one in real] == [0.02, 0.03, 0.05, 0.1]
    assert equal["effect"] == 0
    likely, blocks = ([one[name] for one in real] for name in ("probability", "blocks"))
    assert likely == sorted(likely)
    assert blocks == sorted(blocks, reverse=True)
    assert real[0]["seconds"] == pytest.approx(30 * real[0]["blocks"])
    assert document["floors"][0]["s0"] == 0.02


def test_a_noisy_rig_is_warned_of(desk):
    text = section(render_plan(with_costs(plan_of(desk, floor(UPDATE, 0.08)))))
    assert "warning: only differences from" in text
    assert "3 % would matter" in text
    assert "warning" not in section(render_plan(with_costs(plan_of(desk, floor(UPDATE, 0.003)))))


def test_a_budget_that_cannot_answer_the_question_is_warned_of(desk):
    plan = with_costs(plan_of(desk, floor(UPDATE, 0.015)), budget=60.0 + 11 * 30.0)
    text = " ".join(section(render_plan(plan)).split())
    assert "warning: the budget holds 11 of 12 blocks; only differences from" in text
    assert "within 11 blocks" in text
    nothing = " ".join(section(render_plan(with_costs(plan, budget=70.0))).split())
    assert "no difference can be seen" in nothing


def test_without_a_floor_the_command_that_measures_it_is_named_with_its_time(desk):
    text = " ".join(section(render_plan(with_costs(plan_of(desk)), "x.toml")).split())
    # 4 environments take 30 s, so 13 blocks of two take 195 s
    assert (
        "no noise floor for these cells on this host: `pgstrata floor x.toml` measures it in about 3 min 15 s" in text
    )
    document = json.loads(plan_json(with_costs(plan_of(desk))))
    assert (document["floors"], document["forecast"]["power"]) == ([], [])
    assert document["forecast"]["floor_seconds"] == 195


def test_a_floor_of_some_cells_leaves_the_others_to_be_measured(desk):
    answer = desk.verdict_answer(cells=(desk.cell(2), desk.cell(2, "select-only")))
    text = section(render_plan(plan_of(desk, floor(UPDATE, 0.01), answer=answer)))
    assert f"no noise floor for {SELECT} on this host" in text


def test_a_floor_that_is_not_relied_upon_says_why(desk):
    answer = desk.verdict_answer(cells=(desk.cell(2), desk.cell(2, "select-only")))
    old = [floor(cell, 0.01, doubt=Reason(code="", text="it is old")) for cell in (ALL_CELLS, UPDATE)]
    text = section(render_plan(plan_of(desk, *old, answer=answer)))
    assert f"the noise floor of {UPDATE} is not used: it is old" in text
    assert text.count("it is old") == 1
    assert "no noise floor for these cells" in text


def test_a_long_experiment_with_a_control_renews_the_floor(desk):
    assert "its differences are kept as a noise floor" in section(render_plan(plan_of(desk)))
    short = desk.answer(blocks=9, seconds=1).study.plan
    assert "are kept as" not in section(render_plan(short))


def test_many_environments_share_the_level_of_a_headline(desk):
    pair = desk.verdict_answer(
        environments=(desk.environment("a", (("server", "16"),)), desk.environment("b", (("server", "18"),)))
    )
    few = json.loads(plan_json(plan_of(desk, floor(UPDATE, 0.02), answer=pair)))["forecast"]["power"][0]["effects"]
    many = json.loads(plan_json(plan_of(desk, floor(UPDATE, 0.02))))["forecast"]["power"][0]["effects"]
    assert many[1]["probability"] < few[1]["probability"]


def test_a_plan_without_a_floor_waits_for_no_numpy(desk):
    import subprocess

    code = (
        "import sys; import pgstrata.report.planning.plan, pgstrata.app.question; "
        "sys.exit('numpy' in sys.modules or 'sqlite3' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
