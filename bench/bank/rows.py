"""The rows of the tables: each question in each condition, and the truths and scatters of all visits."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from bank.components import Scatter, scatter_of
from bank.conditions import (
    DESIGNS,
    EQUAL,
    KINDS,
    QUESTIONS,
    SIDES,
    Condition,
    Question,
    for_shares,
    planned_tasks,
    wanted_visits,
)
from bank.replay import FEWEST, INSIDE, Draws, Evaluation, Sample, detection_limit, evaluate
from bank.visits import Visit, load_visits
from live import Known, know

from pgstrata.plan.design import ROUNDS

LEAST_FOR_SCATTER: Final = 3

Visits = Mapping[Condition, Mapping[str, Sequence[Visit]]]
"""By condition and kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A question in a condition; `minutes` is the goal, None without one; `wanted` are the visits of a complete row.

    `visits` are those that shares come from, `fitting` those of them with as many rounds as a study would have: only
    these count, and only these are used once shares can come from them.

    `found` is None while there are too few visits. `limit` is the detection limit in percent, of differences for which
    there is no goal.
    """

    condition: Condition
    question: Question
    minutes: float | None
    wanted: int
    visits: int
    fitting: int
    truth: Known | None
    found: Evaluation | None
    limit: float | None

    @property
    def complete(self) -> bool:
        """Whether there are as many visits as its shares need."""
        return self.fitting >= self.wanted

    @property
    def reached(self) -> bool:
        """Whether the verdict was right in time, and the truth inside, in 95 of 100."""
        found = self.found
        return found is not None and found.right.value >= INSIDE and found.covered.value >= INSIDE

    @property
    def state(self) -> str:
        """Its last column."""
        unfinished = "" if self.complete else f"not complete: {self.fitting} of {self.wanted} visits"
        if short := self.visits - self.fitting:
            unfinished += f"; {short} visits have fewer than the {self.question.rounds} rounds of a study"
        judged = "" if self.found is None or self.minutes is None else "ok" if self.reached else "missed"
        return "; ".join(word for word in (judged, unfinished) if word)


def load_bank(data: Path) -> Visits:
    """All data files of a folder."""
    found: dict[Condition, dict[str, list[Visit]]] = {}
    for file in sorted(data.glob("*.csv")):
        kinds = found.setdefault(Condition.of(file.stem), {})
        for visit in load_visits(file):
            kinds.setdefault(visit.kind, []).append(visit)
    return found


def rows_of(bank: Visits, draws: Draws) -> Iterator[Row]:
    """What has a goal and sessions paired, measured or not; of all others what has visits."""
    planned = {task.condition for task in planned_tasks() if task.condition.design == "paired"}
    for condition in sorted({*bank, *planned}, key=order_of):
        for question in QUESTIONS:
            if question.workload != condition.workload:
                continue
            minutes = question.minutes.get(condition.side)
            visits = bank.get(condition, {}).get(question.kind, ())
            wanted = wanted_visits(condition, question.kind) or for_shares(condition.workload)
            asked = condition in planned and condition.clients in {2, 4} and minutes is not None
            if visits or asked:
                yield _row(condition, question, minutes, wanted, visits, draws)


def _row(
    condition: Condition,
    question: Question,
    minutes: float | None,
    wanted: int,
    visits: Sequence[Visit],
    draws: Draws,
) -> Row:
    rounds = 0 if condition.design == "runs" else question.rounds
    fitting = [visit for visit in visits if len(visit.rounds) >= rounds]
    used = fitting if len(fitting) >= FEWEST else visits
    sample = Sample.of(used, rounds or None)
    found = evaluate(sample, question, minutes, draws)
    limited = found is not None and minutes is None and question.kind != EQUAL
    return Row(
        condition=condition,
        question=question,
        minutes=minutes,
        wanted=wanted,
        visits=len(used),
        fitting=len(fitting),
        truth=truth_of(visits),
        found=found,
        limit=detection_limit(sample, question, draws) if limited else None,
    )


def truth_of(visits: Sequence[Visit]) -> Known | None:
    """What all visits of a kind say, looked at once; None where there is none."""
    return know([visit.tps for visit in visits]) if visits else None


def order_of(condition: Condition) -> tuple[str, int, int, str]:
    """Of tables: by workload, side and clients; paired sessions, then free ones, then runs."""
    design = {"paired": "0", "free": "1", "runs": "2"}[condition.design]
    return condition.workload, SIDES.index(condition.side), condition.clients, design


def scatters(bank: Visits) -> Mapping[Condition, Scatter]:
    """Of conditions with enough visits of equal environments, by the first eight rounds of each."""
    return {
        condition: scatter_of([visit.first(ROUNDS) for visit in bank[condition][EQUAL]])
        for condition in sorted(bank, key=order_of)
        if len(bank[condition].get(EQUAL, ())) >= LEAST_FOR_SCATTER
    }


def truths(bank: Visits) -> Iterator[tuple[Condition, str, Mapping[str, Sequence[Visit]]]]:
    """Visits of each kind by design, with the condition that they have in common otherwise.

    Kinds that are no longer measured come last.
    """
    for place in sorted({replace(each, design="paired") for each in bank}, key=order_of):
        by_design = {design: bank.get(replace(place, design=design), {}) for design in DESIGNS}
        for kind in dict.fromkeys((*KINDS, *(kind for kinds in by_design.values() for kind in kinds))):
            found = {design: kinds[kind] for design, kinds in by_design.items() if kind in kinds}
            if found:
                yield place, kind, found


def background_of(kinds: Mapping[str, Sequence[Visit]]) -> float:
    """Median share of the CPUs that other processes used, in percent."""
    shares = [visit.background for visits in kinds.values() for visit in visits if math.isfinite(visit.background)]
    return 100 * statistics.median(shares) if shares else math.nan
