from __future__ import annotations

import json

from pgstrata.model.answer import Verdict
from pgstrata.report.json_form import answer_json


def test_the_document_has_the_promised_fields(desk):
    document = json.loads(answer_json(desk.answer()))
    assert document["schema"] == 1
    assert {"study", "question", "baseline", "metric", "comparisons", "rig", "floor"} <= set(document)
    assert document["floor"] is None
    assert document["baseline"] == {"name": "pg16", "levels": {"server": "16"}, "control": None}
    assert document["rig"]["host"]["host.kernel"] == "6.1.0-18-amd64"


def test_a_comparison_has_the_promised_fields(desk):
    warning = desk.warning(code="c", text="t")
    (found,) = json.loads(answer_json(desk.verdict_answer(desk.comparison(warnings=(warning,)))))["comparisons"]
    assert found["environment"]["levels"] == {"server": "18"}
    assert found["cell"]["clients"] == 2
    assert (found["metric"], found["direction"], found["verdict"]) == ("tps", "higher", "worse")
    assert (found["effect"], found["interval"], found["confidence"]) == (0.969, [0.958, 0.981], 0.955)
    assert (found["blocks"], found["runs"], found["invalid"], found["exploratory"]) == (9, 18, 1, False)
    assert found["warnings"] == [{"code": "c", "text": "t"}]
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
