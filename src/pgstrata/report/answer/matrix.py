"""Effects in matrices: all of a study, environments by cells; those of a projection with its values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from pgstrata.compare.headlines import DIFFERENT, primary_comparisons
from pgstrata.model.answer import ALL_CELLS, Answer, Comparison, Verdict
from pgstrata.model.metrics import METRICS
from pgstrata.report.answer.environment_rows import render_measurement
from pgstrata.report.blocks.model import Effect, Matrix, begin
from pgstrata.report.projections.design import group_cells, say_fixed, short_names
from pgstrata.report.projections.estimates import Figures
from pgstrata.report.projections.model import CLIENTS, Place, Projection
from pgstrata.report.sentences.names import name_environment, name_where
from pgstrata.report.sentences.verdicts import name_baseline, render_interval, shown_interval, verdict_label
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


def groups_matrix(answer: Answer) -> Matrix | None:
    """Environments by workload and size of data, over all numbers of clients; None with a single such group.

    A field has the lowest and the highest difference, and how many of its cells are decided which way.
    """
    experiment = answer.study.plan.experiment
    groups = group_cells(experiment, CLIENTS)
    found = {(item.environment, item.cell): item for item in primary_comparisons(answer)}
    compared = [each for each in experiment.environments if any(name == each.name for name, _ in found)]
    if len(groups) < _FEWEST or len(groups) == len(experiment.cells) or not compared:
        return None
    names = short_names(experiment)
    fields = tuple(
        tuple(_group_field([found.get((each.name, cell.identity)) for cell in cells]) for cells in groups)
        for each in compared
    )
    return Matrix(
        title="Lowest and highest difference over all numbers of clients",
        corner="environment",
        rows=tuple(names[each.name] for each in compared),
        columns=tuple(say_fixed(cells[0], CLIENTS) for cells in groups),
        effects=fields,
        soft=frozenset(place for place, each in enumerate(compared) if each.control is not None),
    )


def _group_field(comparisons: Sequence[Comparison | None]) -> Effect | None:
    """Shaded where all cells are decided the same way."""
    known = [item for item in comparisons if item is not None and item.effect is not None]
    if not known:
        return None
    effects = sorted(item.effect for item in known if item.effect is not None)
    low, high = (render_percent_change(effect) for effect in (effects[0], effects[-1]))
    decided = Counter(verdict_label(item) for item in known if item.verdict in DIFFERENT)
    counted = ", ".join(f"{number} {label}" for label, number in decided.items()) or "none decided"
    verdicts = {item.verdict for item in known if item.verdict in DIFFERENT}
    alike = len(verdicts) == 1 and sum(decided.values()) == len(known)
    return Effect(
        change=high if low == high else f"{low.removesuffix(' %')} to {high}",
        interval=f"{counted} of {len(known)}",
        verdict=verdicts.pop().value if alike else "",
        label=counted,
        depth=1 if alike else 0,
    )


def values_matrix(projection: Projection, figures: Figures, threshold: float) -> Matrix:
    """Medians and differences from the baseline: a row for each curve of a projection, a column for each level."""
    fields = tuple(
        tuple(_value_field(place, figures, threshold) for place in curve.places) for curve in projection.curves
    )
    title = f"{begin(METRICS[figures.metric].title)} and difference: {projection.fixed}, by {projection.axis}"
    rows = tuple(curve.name for curve in projection.curves)
    return Matrix(title=title, corner=projection.series, rows=rows, columns=projection.levels, effects=fields)


def _value_field(place: Place | None, figures: Figures, threshold: float) -> Effect | None:
    if place is None or place not in figures.values:
        return None
    value = render_measurement(figures.values[place].value, figures.metric)
    field = make_field(figures.differences.get(place), threshold)
    if field is None:
        return Effect(change=value, interval="baseline", verdict="baseline", label="baseline")
    return replace(field, change=value, interval=field.change or field.label)


def _shorten(names: Sequence[str], baseline: str) -> tuple[str, ...]:
    """Without what all of them and the baseline begin with, such as `shared_buffers = `."""
    factor, equals, _ = baseline.partition(" = ")
    prefix = f"{factor}{equals}"
    alike = equals and " (" not in factor and all(name.startswith(prefix) for name in names)
    return tuple(name.removeprefix(prefix) if alike else name for name in names)


def make_field(comparison: Comparison | None, threshold: float, label: str = "") -> Effect | None:
    """One field; None where nothing was compared. `label` is the verdict in words, by default those of the metric."""
    if comparison is None:
        return None
    shaded = comparison.verdict in _SHADED and comparison.effect is not None
    return Effect(
        change="" if comparison.effect is None else render_percent_change(comparison.effect),
        interval=render_interval(shown_interval(comparison)),
        verdict=comparison.verdict.value,
        label=label or verdict_label(comparison),
        depth=depth(comparison.effect, threshold) if shaded else 0,
    )


def depth(effect: float | None, threshold: float) -> int:
    """How large a change is, from 0 (within the threshold) to 4; halves are as large as doubles."""
    if effect is None or effect <= 0:
        return len(_DEPTHS) + 1
    size = max(effect, 1 / effect) - 1
    return sum(size >= limit for limit in (threshold, *_DEPTHS))
