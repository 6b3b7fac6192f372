"""Which study passes a gate, and the reason that is given."""

from __future__ import annotations

import dataclasses
import json

import pytest

from pgstrata.compare.gate import Gate, GateReason
from pgstrata.model.answer import Verdict
from pgstrata.report.commands.gate import gate_json, render_gate, say_reason

FROZEN = ("tps", 0.03)


def make_gate(desk, *comparisons, frozen=FROZEN, missing=None):
    return Gate(answer=desk.verdict_answer(*comparisons), frozen=frozen, missing=missing)


def compare(desk, verdict, environment="pg18", **more):
    return desk.comparison(environment=environment, verdict=verdict, **more)


@pytest.mark.parametrize(
    ("verdicts", "code", "reason"),
    [
        ((Verdict.BETTER,), 0, "nothing is worse"),
        ((Verdict.EQUIVALENT, Verdict.NEGLIGIBLE), 0, "nothing is worse"),
        ((Verdict.WORSE, Verdict.INCONCLUSIVE), 1, "18 (worse: slower)"),
        ((Verdict.COLLAPSED, Verdict.BETTER), 1, "18 (collapsed)"),
        ((Verdict.BETTER, Verdict.INCONCLUSIVE), 3, "18 (commit_delay = 100) (cannot tell)"),
        ((Verdict.INSUFFICIENT,), 3, "18 (too early)"),
        ((Verdict.UNSTABLE,), 3, "18 (unstable)"),
        ((), 3, "there is nothing to compare"),
    ],
)
def test_the_exit_code_follows_the_headlines(desk, verdicts, code, reason):
    items = [compare(desk, verdict, name) for verdict, name in zip(verdicts, ("pg18", "pg18-async"), strict=False)]
    gate = make_gate(desk, *items)
    assert (gate.code, say_reason(gate)) == (code, reason)
    lines = render_gate(gate).splitlines()
    assert lines[-1] == f"exit code {code}: {reason}"
    assert len(lines) == len(verdicts) + 1


@pytest.mark.parametrize("verdict", [Verdict.BETTER, Verdict.WORSE])
@pytest.mark.parametrize("asked", [Verdict.BETTER, Verdict.WORSE])
def test_nothing_passes_beside_a_control_that_differs(desk, verdict, asked):
    control = compare(desk, verdict, "pg16-control", control=True)
    gate = make_gate(desk, compare(desk, asked), control)
    assert gate.code == (1 if asked is Verdict.WORSE else 3)
    assert gate.reason is GateReason.CONTROL_DIFFERS
    first, second, *_ = render_gate(gate).splitlines()
    assert first == f"{say_reason(gate)}."
    assert second.startswith("18 is ")


def test_a_calm_control_is_not_asked_about(desk):
    control = compare(desk, Verdict.INSUFFICIENT, "pg16-control", control=True)
    assert make_gate(desk, compare(desk, Verdict.BETTER), control).code == 0


@pytest.mark.parametrize(("verdict", "code"), [(Verdict.BETTER, 3), (Verdict.WORSE, 1), (Verdict.INCONCLUSIVE, 3)])
@pytest.mark.parametrize("frozen", [("tps", 0.05), ("latency_p99", 0.03)])
def test_nothing_passes_by_another_metric_or_threshold_than_the_plans(desk, verdict, code, frozen):
    gate = make_gate(desk, compare(desk, verdict), frozen=frozen)
    assert gate.code == code
    lines = render_gate(gate).splitlines()
    assert lines[0].startswith("exploratory: 18 ")
    assert "exploratory: you asked for throughput at 3 %, but the plan fixed " in lines[1]
    if verdict is Verdict.BETTER:
        assert say_reason(gate) == "nothing is worse, but only the metric and the threshold of the plan can pass"


def test_an_incomplete_study_says_so(desk):
    text = render_gate(make_gate(desk, compare(desk, Verdict.INSUFFICIENT), missing=(5, 12)))
    assert "\nincomplete: 5 of 12 planned blocks; `pgstrata run FILE --study STUDY` goes on\nexit code 3: " in text


def test_over_several_cells_the_headline_decides_and_not_a_cell(desk):
    cells = [
        compare(desk, Verdict.WORSE, cell=f"{name}-s10-c2", exploratory=True)
        for name in ("simple-update", "select-only")
    ]
    answer = desk.answer()
    gate = Gate(
        answer=dataclasses.replace(answer, comparisons=(compare(desk, Verdict.EQUIVALENT, cell="all"), *cells)),
        frozen=FROZEN,
    )
    assert (gate.code, len(gate.headlines)) == (0, 1)


def test_the_document_holds_headlines_and_the_reason(desk):
    control = compare(desk, Verdict.EQUIVALENT, "pg16-control", control=True)
    document = json.loads(gate_json(make_gate(desk, compare(desk, Verdict.WORSE), control, missing=(5, 12))))
    assert [item["verdict"] for item in document["comparisons"]] == ["worse"]
    assert document["gate"] == {
        "exit_code": 1,
        "reason": "18 (worse: slower)",
        "exploratory": False,
        "reason_code": "worse",
        "frozen": {"metric": "tps", "threshold": 0.03},
        "complete": False,
    }
