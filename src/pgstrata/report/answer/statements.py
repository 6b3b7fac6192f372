"""The statements of a cell with their latencies, where the cell asks for a profile."""

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

from pgstrata.model.answer import Study
from pgstrata.model.runs import RunRecord
from pgstrata.report.sentences.names import count
from pgstrata.sources.runs import may_enter

PROFILE_NOTE = (
    "median latency, and difference from the baseline as the median over the blocks. There is no interval: "
    "it tells where to look and decides nothing."
)
# Drivers count whole microseconds: of less than this a difference would be made of rounding.
_LEAST_SECONDS = 10e-6
# The text of a statement, and how often it stood in the scripts before.
_Key = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementRow:
    """One statement: for each environment of the experiment the median latency over its usable runs, in seconds.

    `changes` are the medians over the blocks of latency / latency of the baseline; None where there is nothing to
    compare. They have no interval: they tell where to look and decide nothing.
    """

    text: str
    seconds: tuple[float | None, ...]
    changes: tuple[float | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Statements that take long enough to be compared, and how many are left out because they do not."""

    rows: tuple[StatementRow, ...]
    left_out: int

    @property
    def note(self) -> str:
        """What the figures are, and what is left out."""
        if not self.left_out:
            return PROFILE_NOTE
        return f"{PROFILE_NOTE} Left out: {count(self.left_out, 'command')} of less than {_LEAST_SECONDS * 1e6:.0f} µs."


def make_profile(study: Study, cell: str) -> Profile:
    """The statements of a cell that are worth showing; no rows without a profile."""
    found = profile_statements(study, cell)
    rows = tuple(row for row in found if any(item is not None and item >= _LEAST_SECONDS for item in row.seconds))
    return Profile(rows=rows, left_out=len(found) - len(rows))


def profile_statements(study: Study, cell: str) -> tuple[StatementRow, ...]:
    """All statements of a cell in the order of the scripts; empty without a profile."""
    experiment = study.plan.experiment
    found: dict[_Key, dict[str, dict[int, float]]] = {}
    for run in study.runs:
        if run.cell == cell and may_enter(run):
            for key, seconds in _latencies(run).items():
                found.setdefault(key, defaultdict(dict))[run.environment][run.block] = seconds
    names = [environment.name for environment in experiment.environments]
    return tuple(
        StatementRow(
            text=text,
            seconds=tuple(_median(list(blocks.get(name, {}).values())) for name in names),
            changes=tuple(_change(blocks, name, experiment.baseline) for name in names),
        )
        for (text, _), blocks in found.items()
    )


def _latencies(run: RunRecord) -> dict[_Key, float]:
    """A statement that stands in the scripts several times is told apart by its place."""
    seen: dict[str, int] = defaultdict(int)
    found = {}
    for item in run.statements:
        if math.isfinite(item.seconds):
            found[item.text, seen[item.text]] = item.seconds
        seen[item.text] += 1
    return found


def _change(blocks: Mapping[str, Mapping[int, float]], name: str, baseline: str) -> float | None:
    own, base = blocks.get(name, {}), blocks.get(baseline, {})
    if name == baseline:
        return None
    return _median([own[block] / base[block] for block in own.keys() & base.keys() if base[block] >= _LEAST_SECONDS])


def _median(values: list[float]) -> float | None:
    return median(values) if values else None
