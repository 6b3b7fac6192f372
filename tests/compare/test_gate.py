"""Which study passes a gate, and for which reason."""

import pytest

from pgstrata.compare.gate import Gate, GateReason, find_missing
from pgstrata.compare.headlines import doubt_equivalences, faulty_controls
from pgstrata.model.answer import ALL_CELLS, Answer, Comparison, Verdict
from pgstrata.model.doubts import CountedDoubt
from pgstrata.model.experiment import ControlKind
from pgstrata.model.server import Fingerprint
from pgstrata.model.study import Study
from studies import CELL, cell_of, make_environment, make_plan

FROZEN = ("tps", 0.03)
CONTROL = "pg16-control"


def make_answer(*comparisons, clients=(4,)):
    environments = (
        make_environment("pg16"),
        make_environment("pg18", "18"),
        make_environment("pg17", "17"),
        make_environment(CONTROL, control=ControlKind.SAME),
    )
    facts = Fingerprint(facts={})
    study = Study(
        name="gate",
        plan=make_plan(environments, clients=clients, blocks=12),
        runs=(),
        host=facts,
        client=facts,
        environments={},
        created="2026-01-01T00:00:00+00:00",
        version="0.1.0",
    )
    return Answer(study=study, comparisons=comparisons, warnings=())


def compare(verdict, environment="pg18", **changes):
    values = {
        "cell": CELL,
        "metric": "tps",
        "effect": None,
        "interval": None,
        "equivalence_interval": None,
        "confidence": 0.955,
        "blocks": 9,
        "planned_blocks": 12,
        "runs": 18,
        "invalid": 0,
        "value": None,
        "baseline_value": None,
        "exploratory": False,
        "control": environment == CONTROL,
    }
    return Comparison(environment=environment, verdict=verdict, **{**values, **changes})


def judge(*comparisons, frozen=FROZEN, clients=(4,)):
    return Gate(answer=make_answer(*comparisons, clients=clients), frozen=frozen)


@pytest.mark.parametrize(
    ("verdicts", "code", "reason", "decisive"),
    [
        ((Verdict.BETTER,), 0, GateReason.PASSED, []),
        ((Verdict.EQUIVALENT, Verdict.NEGLIGIBLE), 0, GateReason.PASSED, []),
        ((Verdict.WORSE, Verdict.INCONCLUSIVE), 1, GateReason.WORSE, ["pg18"]),
        ((Verdict.COLLAPSED, Verdict.BETTER), 1, GateReason.WORSE, ["pg18"]),
        ((Verdict.BETTER, Verdict.INCONCLUSIVE), 3, GateReason.UNDECIDED, ["pg17"]),
        ((Verdict.INSUFFICIENT,), 3, GateReason.UNDECIDED, ["pg18"]),
        ((Verdict.UNSTABLE,), 3, GateReason.UNDECIDED, ["pg18"]),
        ((), 3, GateReason.NOTHING_TO_COMPARE, []),
    ],
)
def test_the_exit_code_follows_the_headlines(verdicts, code, reason, decisive):
    gate = judge(*(compare(verdict, name) for verdict, name in zip(verdicts, ("pg18", "pg17"), strict=False)))
    assert (gate.code, gate.reason) == (code, reason)
    assert [item.environment for item in gate.deciding] == decisive


@pytest.mark.parametrize("verdict", [Verdict.BETTER, Verdict.WORSE, Verdict.COLLAPSED, Verdict.UNSTABLE])
@pytest.mark.parametrize(("asked", "code"), [(Verdict.BETTER, 3), (Verdict.WORSE, 1), (Verdict.INCONCLUSIVE, 3)])
def test_nothing_passes_beside_a_control_that_differs(verdict, asked, code):
    control = compare(verdict, CONTROL)
    gate = judge(compare(asked), control)
    assert (gate.code, gate.reason, faulty_controls(gate.answer)) == (code, GateReason.CONTROL_DIFFERS, (control,))


@pytest.mark.parametrize(
    "verdict", [Verdict.INSUFFICIENT, Verdict.INCONCLUSIVE, Verdict.EQUIVALENT, Verdict.NEGLIGIBLE]
)
def test_a_calm_control_is_not_asked_about(verdict):
    gate = judge(compare(Verdict.BETTER), compare(verdict, CONTROL))
    assert (gate.code, faulty_controls(gate.answer), len(gate.headlines)) == (0, (), 1)


@pytest.mark.parametrize(("adjusted_p", "code"), [(0.01, 3), (0.2, 0), (None, 3)])
def test_a_single_cell_of_a_control_alarms_only_beyond_chance(adjusted_p, code):
    cell = compare(Verdict.WORSE, CONTROL, exploratory=True, adjusted_p=adjusted_p)
    heads = compare(Verdict.BETTER, cell=ALL_CELLS), compare(Verdict.EQUIVALENT, CONTROL, cell=ALL_CELLS)
    gate = judge(*heads, cell, clients=(4, 8))
    assert (gate.code, faulty_controls(gate.answer)) == (code, (cell,) if code else ())


def test_cells_under_a_headline_of_a_control_that_differs_are_not_alarms_of_their_own():
    cell = compare(Verdict.WORSE, CONTROL, exploratory=True, adjusted_p=0.01)
    head = compare(Verdict.WORSE, CONTROL, cell=ALL_CELLS)
    assert faulty_controls(make_answer(head, cell, clients=(4, 8))) == (head,)


@pytest.mark.parametrize(
    ("verdict", "code", "reason"),
    [
        (Verdict.BETTER, 3, GateReason.EXPLORATORY),
        (Verdict.WORSE, 1, GateReason.WORSE),
        (Verdict.INCONCLUSIVE, 3, GateReason.UNDECIDED),
    ],
)
@pytest.mark.parametrize("frozen", [("tps", 0.05), ("latency_p99", 0.03)])
def test_nothing_passes_by_another_metric_or_threshold_than_the_plans(verdict, code, reason, frozen):
    gate = judge(compare(verdict), frozen=frozen)
    assert (gate.code, gate.reason, gate.exploratory) == (code, reason, True)


def test_over_several_cells_the_headline_decides_and_not_a_cell():
    cells = [compare(Verdict.WORSE, cell=cell_of(clients), exploratory=True) for clients in (4, 8)]
    gate = judge(compare(Verdict.EQUIVALENT, cell=ALL_CELLS), *cells, clients=(4, 8))
    assert (gate.code, len(gate.headlines)) == (0, 1)


@pytest.mark.parametrize(("verdict", "missing"), [(Verdict.INSUFFICIENT, (0, 12)), (Verdict.BETTER, None)])
def test_a_study_is_incomplete_while_blocks_are_missing_and_a_headline_is_open(verdict, missing):
    assert find_missing(make_answer(compare(verdict))) == missing


def test_two_headlines_without_a_difference_say_that_their_number_is_not_corrected_for():
    same = [compare(Verdict.EQUIVALENT, name) for name in ("pg18", "pg17")]
    assert doubt_equivalences(same) == (CountedDoubt(code="equivalences_uncorrected", number=2, of=2),)
    assert not doubt_equivalences([same[0], compare(Verdict.BETTER, "pg17"), compare(Verdict.EQUIVALENT, CONTROL)])
    assert not doubt_equivalences([same[0], compare(Verdict.EQUIVALENT, "pg17", exploratory=True)])
