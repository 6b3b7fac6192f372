from __future__ import annotations

import dataclasses
import json

from pgstrata.model.answer import Lane, Verdict
from pgstrata.model.doubts import NamedDoubt
from pgstrata.model.own_data import OwnData
from pgstrata.report.json.answer import answer_json


def test_the_document_has_the_promised_fields(desk):
    document = json.loads(answer_json(desk.answer()))
    assert document["schema"] == 1
    assert {"study", "question", "baseline", "metric", "comparisons", "rig", "floor"} <= set(document)
    assert document["floor"] is None
    assert document["baseline"] == {"name": "pg16", "label": "", "levels": {"server": "16"}, "control": None}
    assert document["rig"]["host"]["host.kernel"] == "6.1.0-18-amd64"


def test_a_comparison_has_the_promised_fields(desk):
    warning = NamedDoubt(code="clock_source", names=("hpet",))
    (found,) = json.loads(answer_json(desk.verdict_answer(desk.comparison(warnings=(warning,)))))["comparisons"]
    assert found["environment"]["levels"] == {"server": "18"}
    assert found["cell"]["clients"] == 2
    assert (found["metric"], found["direction"], found["verdict"]) == ("tps", "higher", "worse")
    assert (found["effect"], found["interval"], found["confidence"]) == (0.969, [0.958, 0.981], 0.955)
    assert (found["blocks"], found["runs"], found["invalid"], found["exploratory"]) == (9, 18, 1, False)
    assert [set(each) for each in found["warnings"]] == [{"code", "text"}]
    assert {"repeated_p", "decided_at"} <= set(found)


def test_where_there_is_no_honest_number_there_is_null(desk):
    comparison = desk.comparison(verdict=Verdict.INSUFFICIENT, effect=None, interval=None, value=float("nan"))
    (found,) = json.loads(answer_json(desk.verdict_answer(comparison)))["comparisons"]
    assert found["effect"] is None
    assert found["interval"] is None
    assert found["value"] is None


def test_the_comparison_over_all_cells_says_all(desk):
    (found,) = json.loads(answer_json(desk.verdict_answer(desk.comparison(cell="all"))))["comparisons"]
    assert found["cell"] == "all"


def test_fields_of_the_decision_are_there(desk):
    comparison = desk.comparison(lane=Lane.ONE_LOOK, decided_at=3, repeated_p=0.01, adjusted_p=0.02, level=0.02)
    (found,) = json.loads(answer_json(desk.verdict_answer(comparison)))["comparisons"]
    assert (found["lane"], found["decided_at"], found["planned_blocks"]) == ("one look", 3, 12)
    assert (found["repeated_p"], found["adjusted_p"], found["level"]) == (0.01, 0.02, 0.02)
    assert (found["reference"], found["control"]) == ("pg16", False)


def test_the_floor_and_what_it_lets_be_seen_are_there(desk):
    answer = desk.floors(desk.verdict_answer(desk.comparison()), desk.floor("simple-update-s10-c2"))
    document = json.loads(answer_json(answer))
    assert document["floor"]["s0"] == 0.008
    assert 0.008 < document["floor"]["smallest_visible_effect"] < 0.2
    assert document["floor"]["measured"] == "2026-01-01T00:00:00+00:00"
    assert document["comparisons"][0]["smallest_visible_effect"] == document["floor"]["smallest_visible_effect"]


def test_designs_and_components_are_there(desk):
    document = json.loads(answer_json(desk.slices(desk.answer())))
    first = document["designs"][0]
    assert (first["interleave"], first["slice_seconds"], first["rounds"]) == ("slices", 0.25, 16)
    assert first["text"] == "16 slices of 250 ms"
    assert {item["environment"] for item in document["scatter"]} == {"pg18", "pg18-async", "pg16-control"}
    assert all(0 < item["sd_rounds"] < 0.05 for item in document["scatter"])


def test_the_shift_function_is_there_by_environment_and_cell(desk):
    shifts = (desk.shift(10), desk.shift(99, interval=None, effect=None), desk.shift(50, environment="pg18-async"))
    document = json.loads(answer_json(dataclasses.replace(desk.answer(), shifts=shifts)))
    assert [(part["environment"], len(part["quantiles"])) for part in document["shift"]] == [
        ("pg18", 2),
        ("pg18-async", 1),
    ]
    first = document["shift"][0]
    assert (first["cell"], first["simultaneous"]) == ("simple-update-s10-c2", True)
    low, high = first["quantiles"]
    assert (low["metric"], low["quantile"], low["threshold"]) == ("latency_p10", 0.1, 0.03)
    assert (low["effect"], low["interval"], low["verdict"], low["blocks"]) == (1.01, [1.001, 1.2], "worse", 9)
    assert (high["effect"], high["interval"]) == (None, None)
    assert json.loads(answer_json(desk.answer()))["shift"] == []


def test_pairs_stand_apart_from_the_comparisons(desk):
    pair = desk.comparison(environment="pg18-async", reference="pg18", exploratory=True, adjusted_p=0.045)
    answer = desk.verdict_answer(desk.comparison())
    document = json.loads(answer_json(dataclasses.replace(answer, pairs=(pair,))))
    (found,) = document["pairs"]
    assert (found["environment"]["name"], found["reference"]) == ("pg18-async", "pg18")
    assert (found["exploratory"], found["adjusted_p"], found["blocks"]) == (True, 0.045, 9)
    assert document["comparisons"] == json.loads(answer_json(answer))["comparisons"]
    assert json.loads(answer_json(answer))["pairs"] == []


def test_effects_and_axes_are_there(desk):
    answer = dataclasses.replace(
        desk.verdict_answer(desk.comparison()), effects=(desk.effect(), desk.interaction()), axes=(desk.axis(),)
    )
    document = json.loads(answer_json(answer))
    main, interaction = document["effects"]
    assert (main["kind"], main["given"], main["interval"]) == ("main", None, [1.02, 1.042])
    assert interaction["given"] == {"factor": "server", "level": "18", "reference": "16"}
    (axis,) = document["axes"]
    size = {"effect": 1.042, "interval": [1.031, 1.053], "verdict": "better"}
    assert axis["steps"][0] == {"before": "16", "after": "18", "beside": None, "p": 0.002, **size}


def test_a_cell_with_data_of_ones_own_has_no_scale(desk):
    own = dataclasses.replace(desk.cell(2), scale=1, data=OwnData(command=("./fill",)))
    for cell, scale in ((desk.cell(2), 10), (own, None)):
        answer = desk.verdict_answer(desk.comparison(cell=cell.identity), cells=(cell,))
        (found,) = json.loads(answer_json(answer))["comparisons"]
        assert found["cell"]["scale"] == scale
