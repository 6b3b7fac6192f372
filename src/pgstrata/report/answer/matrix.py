"""All effects of a study in one matrix: environments by cells, those over all cells together first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from pgstrata.compare.headlines import DIFFERENT, primary_comparisons
from pgstrata.model.answer import ALL_CELLS, Answer, Comparison, Verdict
from pgstrata.model.metrics import METRICS
from pgstrata.report.blocks.model import Effect, Matrix
from pgstrata.report.sentences.names import name_environment, name_where
from pgstrata.report.sentences.verdicts import decisive_interval, name_baseline, render_interval, verdict_label
from pgstrata.units import render_percent_change

_DEPTHS: Final = (0.05, 0.15, 0.40)
"""Changes from which on a field is one shade deeper; the first shade begins with the threshold."""
_FEWEST: Final = 2
_MOST_IN_A_ROW: Final = 6
"""Environments with a single effect each that stand beside each other."""
_SHADED: Final = DIFFERENT | {Verdict.COLLAPSED}


def effects_matrix(answer: Answer) -> Matrix | None:
    """The matrix; None where there is but one effect, which a sentence tells as well."""
    comparisons = primary_comparisons(answer)
    return make_matrix(answer, comparisons) if len(comparisons) >= _FEWEST else None


def make_matrix(answer: Answer, comparisons: Sequence[Comparison]) -> Matrix:
    """The matrix of some comparisons of a study.

    The more numerous of environments and cells are the rows, so that the matrix is high rather than wide.
    """
    experiment = answer.study.plan.experiment
    found = {(item.environment, item.cell): item for item in comparisons}
    environments = [each for each in experiment.environments if any(name == each.name for name, _ in found)]
    cells = list(dict.fromkeys(cell for _, cell in found))
    cells.sort(key=[ALL_CELLS, *(cell.identity for cell in experiment.cells)].index)
    names = _shorten([name_environment(each, experiment) for each in environments], name_baseline(experiment))
    places = tuple(name_where(cell, experiment) for cell in cells)
    fields = tuple(
        tuple(make_field(found.get((each.name, cell)), experiment.threshold) for cell in cells) for each in environments
    )
    metric = METRICS[experiment.metric].title
    title = f"Difference in {metric} from {name_baseline(experiment)}"
    if len(cells) <= len(environments) and not (len(cells) == 1 and len(environments) <= _MOST_IN_A_ROW):
        controls = frozenset(place for place, each in enumerate(environments) if each.control is not None)
        return Matrix(title=title, corner="environment", rows=names, columns=places, effects=fields, soft=controls)
    turned = tuple(zip(*fields, strict=True))
    return Matrix(title=title, corner="workload", rows=places, columns=names, effects=turned)


def _shorten(names: Sequence[str], baseline: str) -> tuple[str, ...]:
    """Without what all of them and the baseline begin with, such as `shared_buffers = `."""
    factor, equals, _ = baseline.partition(" = ")
    prefix = f"{factor}{equals}"
    alike = equals and " (" not in factor and all(name.startswith(prefix) for name in names)
    return tuple(name.removeprefix(prefix) if alike else name for name in names)


def make_field(comparison: Comparison | None, threshold: float) -> Effect | None:
    """One field; None where nothing was compared."""
    if comparison is None:
        return None
    shaded = comparison.verdict in _SHADED and comparison.effect is not None
    return Effect(
        change="" if comparison.effect is None else render_percent_change(comparison.effect),
        interval=render_interval(decisive_interval(comparison)),
        verdict=comparison.verdict.value,
        label=verdict_label(comparison),
        depth=depth(comparison.effect, threshold) if shaded else 0,
    )


def depth(effect: float | None, threshold: float) -> int:
    """How large a change is, from 0 (within the threshold) to 4; halves are as large as doubles."""
    if effect is None or effect <= 0:
        return len(_DEPTHS) + 1
    size = math.exp(abs(math.log(effect))) - 1
    return sum(size >= limit for limit in (threshold, *_DEPTHS))
