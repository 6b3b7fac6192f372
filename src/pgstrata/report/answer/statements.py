"""The statements of a cell with their latencies, where the cell has a profile."""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import Final

from pgstrata.compare.statements import LEAST_SECONDS, latencies_of
from pgstrata.compare.verdicts.judging import threshold_of
from pgstrata.model.answer import Answer, StatementShift
from pgstrata.model.runs import name_of_statement
from pgstrata.report.sentences.names import count
from pgstrata.report.sentences.verdicts import render_threshold
from pgstrata.sources.runs import may_enter

_NOTE: Final = (
    "Median latency, and by how much it differs from the baseline, block by block, against a threshold of {}. The "
    "statements of an environment share its error probability: each verdict allows for their number."
)
# The text of a statement, and how often it stood in the scripts before.
_Key = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementRow:
    """One statement: for each environment of the experiment its median latency in seconds, and its verdict if any."""

    text: str
    seconds: tuple[float | None, ...]
    shifts: tuple[StatementShift | None, ...]

    @property
    def title(self) -> str:
        """Its name, or its text where it has none."""
        return name_of_statement(self.text) or self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Statements that take long enough to be compared, and how many are left out because they do not."""

    rows: tuple[StatementRow, ...]
    left_out: int
    threshold: float

    @property
    def note(self) -> str:
        """What the figures are, and what is left out."""
        note = _NOTE.format(render_threshold(self.threshold))
        if not self.left_out:
            return note
        return f"{note} Left out: {count(self.left_out, 'command')} of less than {LEAST_SECONDS * 1e6:.0f} µs."


def make_profile(answer: Answer, cell: str) -> Profile:
    """The statements of a cell that are worth showing, in the order of the scripts; no rows without a profile."""
    found = _rows(answer, cell)
    rows = tuple(row for row in found if any(item is not None and item >= LEAST_SECONDS for item in row.seconds))
    threshold = threshold_of(answer.study.plan.experiment, "latency_mean")
    return Profile(rows=rows, left_out=len(found) - len(rows), threshold=threshold)


def _rows(answer: Answer, cell: str) -> tuple[StatementRow, ...]:
    latencies: dict[_Key, dict[str, list[float]]] = {}
    for run in answer.study.runs:
        if run.cell == cell and may_enter(run):
            for key, seconds in latencies_of(run).items():
                latencies.setdefault(key, {}).setdefault(run.environment, []).append(seconds)
    shifts = {
        (shift.environment, shift.statement, shift.number): shift
        for shift in answer.statement_shifts
        if shift.cell == cell
    }
    names = [environment.name for environment in answer.study.plan.experiment.environments]
    return tuple(
        StatementRow(
            text=key[0],
            seconds=tuple(_median(of_key, name) for name in names),
            shifts=tuple(shifts.get((name, *key)) for name in names),
        )
        for key, of_key in latencies.items()
    )


def _median(latencies: Mapping[str, list[float]], name: str) -> float | None:
    return median(latencies[name]) if name in latencies else None
