"""Runs and the ceiling of `select 1` that they were judged by: one that a run exceeded says nothing of any other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from pgstrata.model.guards import Force, force_of
from pgstrata.model.reasons import Reason
from pgstrata.model.runs import RunRecord, Validity

NEAR_CEILING: Final = "near_ceiling"
ABOVE_CEILING: Final = "above_ceiling"


def drop_wrong_ceilings(runs: Iterable[RunRecord]) -> tuple[RunRecord, ...]:
    """The runs without what a ceiling says of them that one of them exceeded.

    A run is judged by its own evidence, which holds the ceiling that was known then; that it was wrong may show in a
    later run only. Of runs that version 0.1 judged, those above their ceiling count too.
    """
    found = tuple(runs)
    wrong = {reason.of for run in found for reason in run.reasons if _exceeds(reason)}
    return tuple(_without(run, wrong) for run in found) if wrong else found


def _exceeds(reason: Reason) -> bool:
    return reason.code in {NEAR_CEILING, ABOVE_CEILING} and reason.value > reason.of > 0


def _without(run: RunRecord, wrong: set[float]) -> RunRecord:
    reasons = tuple(
        replace(reason, code=ABOVE_CEILING) if _exceeds(reason) else reason
        for reason in run.reasons
        if _exceeds(reason) or reason.code != NEAR_CEILING or reason.of not in wrong
    )
    if reasons == run.reasons:
        return run
    doubted = any(force_of(reason.code) is Force.SUSPECT for reason in reasons)
    validity = Validity.VALID if run.validity is Validity.SUSPECT and not doubted else run.validity
    return replace(run, reasons=reasons, validity=validity)
