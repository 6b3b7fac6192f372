"""The rate that each environment sustains by itself, from its usable runs."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from pgstrata.compare.sustained import find_sustained_rates
from pgstrata.model.objective import Objective
from pgstrata.model.runs import RunStatus, Validity
from studies import BASE, OTHER, make_plan, make_run

OBJECTIVE = Objective(of="p99", limit=0.02)


def study_of(rates):
    plan = make_plan()
    cells = tuple(replace(cell, objective=OBJECTIVE) for cell in plan.experiment.cells)
    plan = replace(plan, experiment=replace(plan.experiment, cells=cells))
    runs = [
        replace(make_run(name, block, sustained_rate=rate), cell=cells[0].identity)
        for name, values in rates.items()
        for block, rate in enumerate(values, 1)
    ]
    return SimpleNamespace(plan=plan, runs=tuple(runs))


def test_each_environment_has_a_rate_with_an_interval_from_its_runs():
    found = {
        item.environment: item for item in find_sustained_rates(study_of({BASE: [990, 1000, 1010], OTHER: [700] * 2}))
    }
    assert found[BASE].value == pytest.approx(1000, rel=0.01)
    assert found[BASE].interval.low < 990
    assert found[BASE].interval.high > 1010
    assert (found[BASE].runs, found[BASE].confidence) == (3, 0.95)
    assert (found[OTHER].runs, found[OTHER].value, found[OTHER].interval) == (2, None, None)


def test_runs_that_may_not_enter_do_not_count():
    study = study_of({BASE: [990, 1000, 1010, 5, 6]})
    *usable, invalid, collapsed = study.runs
    runs = (*usable, replace(invalid, validity=Validity.INVALID), replace(collapsed, status=RunStatus.COLLAPSED))
    (found, _) = find_sustained_rates(SimpleNamespace(plan=study.plan, runs=runs))
    assert found.runs == 3


def test_cells_without_an_objective_have_none():
    assert find_sustained_rates(SimpleNamespace(plan=make_plan(), runs=())) == ()


def test_a_rate_that_is_none_is_not_among_them():
    (found, _) = find_sustained_rates(study_of({BASE: [990, 1000, 1010, 0.0, -3.0]}))
    assert found.runs == 3
