"""What a comparison took: the machine time that was spent on its two environments until the verdict fell."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pgstrata.model.answer import ALL_CELLS, Comparison, Study
from pgstrata.model.experiment import Experiment
from pgstrata.model.runs import RunRecord
from pgstrata.sources.runs import may_enter


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """The runs of a study by environment and cell."""

    experiment: Experiment
    runs: Mapping[tuple[str, str], Sequence[RunRecord]]

    def seconds(self, comparison: Comparison) -> float | None:
        """Seconds measured and spent around it, in both environments, up to the last block looked at; None without.

        Other environments of the same blocks are not counted, nor is what was prepared before the first block.
        """
        arms = [
            [run for cell in self._cells(comparison) for run in self.runs.get((name, cell), ())]
            for name in (comparison.environment, comparison.reference or self.experiment.baseline)
        ]
        last = self._last_block(comparison, arms)
        spent = [
            run.measured_seconds + sum(run.dead_time.values())
            for arm in arms
            for run in arm
            if last is None or run.block <= last
        ]
        return sum(spent) or None

    def _cells(self, comparison: Comparison) -> list[str]:
        if comparison.cell != ALL_CELLS:
            return [comparison.cell]
        return [cell.identity for cell in self.experiment.cells]

    def _last_block(self, comparison: Comparison, arms: Sequence[Sequence[RunRecord]]) -> int | None:
        """The number of the block that the verdict fell after, or the last one looked at."""
        own, base = ({run.block for run in arm if may_enter(run)} for arm in arms)
        usable = sorted(own & base)
        looked_at = comparison.decided_at or comparison.blocks
        return usable[looked_at - 1] if 0 < looked_at <= len(usable) else None


def measure_effort(study: Study) -> Effort:
    """Made once for all comparisons of a study."""
    runs: dict[tuple[str, str], list[RunRecord]] = {}
    for run in study.runs:
        runs.setdefault((run.environment, run.cell), []).append(run)
    return Effort(experiment=study.plan.experiment, runs=runs)
