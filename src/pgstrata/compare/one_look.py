"""The rule on what others measured: one look at all there is, or one after each block where the reader says so."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

import numpy as np

from pgstrata.compare.factors.axes import FEWEST_LEVELS, find_listed_axes
from pgstrata.compare.first_values import doubt_first_values
from pgstrata.compare.headlines import doubt_equivalences
from pgstrata.compare.import_doubts import doubt_comparison, doubt_import, doubt_repeats
from pgstrata.compare.import_times import doubt_times
from pgstrata.compare.pairing.arms import Arms, sort_observations
from pgstrata.compare.pairing.pairs import Pairing, over_cells, pair_cells, pair_loose
from pgstrata.compare.verdicts.comparisons import adjust, find, to_comparison
from pgstrata.compare.verdicts.judging import Judged, make_rule
from pgstrata.errors import UsageError
from pgstrata.model.answer import Comparison, OrderedAxis, Verdict
from pgstrata.model.doubts import DependentValues, Doubt
from pgstrata.model.levels import order_by_number
from pgstrata.model.metrics import METRICS
from pgstrata.model.observation import Observation
from pgstrata.model.plan import HORIZON
from pgstrata.model.price import Price, Worth
from pgstrata.model.question import Question
from pgstrata.sources.table import ResultTable
from pgstrata.stats.boundaries import ALPHA
from pgstrata.stats.dependence import follow_each_other, neighbour_correlation
from pgstrata.stats.family import DifferenceSeries, decide_family, step_down
from pgstrata.stats.rule import Decision, Rule, decide_many, decide_once
from pgstrata.stats.unpaired import decide_unpaired
from pgstrata.units import Direction

_MOST_COMPARISONS: Final = 5000
_MOST_ORDERED_ROWS: Final = 20_000
_MOST_NAMED: Final = 10
_BASELINES: Final = re.compile(
    r"base(line)?|before|control|default|main|master|old|original|previous|ref(erence)?|stock|unpatched|vanilla"
)


class BaselineFrom(StrEnum):
    """Why an environment is the baseline."""

    READER = "reader"
    NAME = "name"
    NUMBER = "number"
    ORDER = "order"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportTerms:
    """What the reader of a table says of it; None where nothing was said. `threshold` is a ratio (0.03)."""

    threshold: float = 0.03
    baseline: str | None = None
    metric: str | None = None
    lower_is_better: bool = False
    ordered: bool = False
    """Whether the environments are levels of one ordered axis, in the order in which they first appear."""
    sequential: bool = False
    """Whether the reader looks after each new block until a difference shows; else this look is the only one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportAnswer:
    """The comparisons of a table: headlines, which decide, then the cells behind headlines over several.

    `cells` is empty where the table has no such column. The cell of a comparison is `ALL_CELLS` for what holds of the
    whole file: the headline over several cells, or a file without cells. `sequential`: as `ImportTerms`.
    """

    source: str
    question: Question
    baseline_from: BaselineFrom
    cells: tuple[str, ...]
    comparisons: tuple[Comparison, ...]
    warnings: tuple[Doubt, ...]
    levels: tuple[str, ...] = ()
    """All environments in the order of the file, where that was asked for."""
    sequential: bool = False
    axes: tuple[OrderedAxis, ...] = ()
    """Steps along the environments in the order of the file, over all cells first; none unless asked for."""
    observations: tuple[Observation, ...] = ()
    """The observations that were compared, in the order of the file."""
    worth: Worth | None = None
    """Costs and values for the money, if prices are given."""
    prices: Mapping[str, Price] = field(default_factory=dict)

    @property
    def paired(self) -> bool:
        """Whether the table has blocks."""
        return self.question.blocks > 0

    @property
    def headlines(self) -> tuple[Comparison, ...]:
        """The comparisons that decide."""
        return tuple(item for item in self.comparisons if not item.exploratory)

    @property
    def explored(self) -> tuple[Comparison, ...]:
        """The cells behind headlines over several."""
        return tuple(item for item in self.comparisons if item.exploratory)


def decide_import(table: ResultTable, terms: ImportTerms) -> ImportAnswer:
    """Every environment of a table against the baseline.

    With blocks: differences within blocks, the headline of an environment over the geometric mean of all cells, the
    cells behind it exploratory. Without blocks the unpaired form, each cell a headline of its own, because nothing ties
    a run in one cell to a run in another. Headlines share the error probability (`step_down`). Steps along ordered
    environments are told beside them and change none of them.

    Raises:
        UsageError: there is no such baseline, none was named and no name tells, nothing to compare with it, too much of
            it, too few levels of an ordered axis, too many blocks to look after each, or the direction asked for
            contradicts the metric's own.
    """
    names = tuple(dict.fromkeys(each.target for each in table.observations))
    _refuse_single(names, table.source)
    baseline, chosen = _choose_baseline(names, terms, table.source)
    question = _ask(table, terms, names, baseline)
    _refuse_many(question, table.source)
    if terms.sequential:
        _refuse_looks(question, table.source)
    if terms.ordered:
        _refuse_axis(names, len(table.observations), table.source)
    observations, dependent = _count_series_once(table)
    arms = sort_observations(observations)
    comparisons = (
        _decide_paired(question, arms, table, sequential=terms.sequential)
        if question.blocks
        else _decide_unpaired(question, arms)
    )
    levels = names if terms.ordered else ()
    return ImportAnswer(
        source=table.source,
        question=question,
        baseline_from=chosen,
        cells=question.cells if "cell" in table.columns else (),
        comparisons=comparisons,
        warnings=(
            *doubt_import(question, ignored=table.ignored, ordered=levels, dependent=dependent, repeats=table.repeats),
            *doubt_repeats(question, table.observations),
            *doubt_times(question, observations),
            *doubt_first_values(question, arms, dependent.environments if dependent is not None else ()),
            *doubt_equivalences(comparisons),
        ),
        sequential=terms.sequential,
        levels=levels,
        axes=_leave_out_dependent(find_listed_axes(question, arms, levels), comparisons) if levels else (),
        observations=tuple(observations),
    )


# ------------------------------------------------------------------------------------------------ the question


def _refuse_single(names: Sequence[str], source: str) -> None:
    if len(names) == 1:
        raise UsageError(
            f"{names[0]} is the only environment: there is nothing to compare it with",
            where=source,
            remedy="add the rows of another one",
        )


def _choose_baseline(names: Sequence[str], terms: ImportTerms, source: str) -> tuple[str, BaselineFrom]:
    """The one that the reader names, else that whose name says so; its place among the rows says nothing.

    In data in random order the first row would be a coin's toss, and with it the sign of every difference.
    """
    known = ", ".join(names[:_MOST_NAMED]) + (", ..." if len(names) > _MOST_NAMED else "")
    if terms.baseline is not None:
        if terms.baseline not in names:
            raise UsageError(
                f"{source} has no environment {terms.baseline!r}",
                where="--baseline",
                remedy=f"choose one of {known}",
            )
        return terms.baseline, BaselineFrom.READER
    if terms.ordered:
        return names[0], BaselineFrom.ORDER
    called = [name for name in names if _BASELINES.fullmatch(name.casefold())]
    if len(called) == 1:
        return called[0], BaselineFrom.NAME
    if by_number := order_by_number(names):
        return by_number[0], BaselineFrom.NUMBER
    raise UsageError(
        "nothing says which environment the others are to be compared with",
        where=source,
        remedy=f"name it, such as --baseline {shlex.quote(names[0])}; there are {known}",
    )


def _ask(table: ResultTable, terms: ImportTerms, names: Sequence[str], baseline: str) -> Question:
    return Question(
        metric=table.metric,
        direction=_choose_direction(table.metric, lower_is_better=terms.lower_is_better),
        threshold=terms.threshold,
        baseline=baseline,
        environments=tuple(name for name in names if name != baseline),
        cells=tuple(dict.fromkeys(each.cell for each in table.observations)),
        blocks=len({each.key.number for each in table.observations if each.key is not None}),
        run_seconds=_find_lengths(table.observations),
    )


def _find_lengths(observations: Sequence[Observation]) -> dict[str, float]:
    """The median length of runs in each cell, in seconds; of runs whose opening is known."""
    lengths: dict[str, list[float]] = {}
    for each in observations:
        if each.opening is not None and each.span is not None:
            lengths.setdefault(each.cell, []).append(each.span.seconds)
    return {cell: float(np.median(found)) for cell, found in lengths.items()}


def _choose_direction(metric: str, *, lower_is_better: bool) -> Direction:
    """The direction of a known metric; of others higher values are better unless the reader says otherwise."""
    known = METRICS.get(metric)
    if known is None:
        return Direction.LOWER if lower_is_better else Direction.HIGHER
    if lower_is_better and known.direction is Direction.HIGHER:
        raise UsageError(
            f"{metric} is {known.title}, and higher values of it are better",
            where="--lower-is-better",
            remedy="leave the option out, or rename the metric if it is another quantity",
        )
    return known.direction


def _refuse_many(question: Question, source: str) -> None:
    comparisons = len(question.environments) * len(question.cells)
    if comparisons > _MOST_COMPARISONS:
        raise UsageError(
            f"{comparisons:,} comparisons are too many (environments times cells): at most {_MOST_COMPARISONS:,}",
            where=source,
            remedy="split the file: fewer cells in each",
        )


def _refuse_looks(question: Question, source: str) -> None:
    if not question.blocks:
        raise UsageError(
            "looks after each block need blocks, and there are none",
            where=source,
            remedy="number the blocks in a column block",
        )
    if question.blocks > HORIZON:
        raise UsageError(
            f"looks after each block end at {HORIZON} blocks, and there are {question.blocks:,}",
            where="--sequential",
            remedy="leave the option out if this is the only look",
        )


def _refuse_axis(levels: Sequence[str], rows: int, source: str) -> None:
    if rows > _MOST_ORDERED_ROWS:
        raise UsageError(
            f"{rows:,} rows are too many for an ordered axis: at most {_MOST_ORDERED_ROWS:,}",
            where=source,
            remedy="split the file, or leave --ordered out",
        )
    if len(levels) < FEWEST_LEVELS:
        raise UsageError(
            f"an ordered axis takes {FEWEST_LEVELS} environments or more, and {source} has {len(levels)}: "
            f"{', '.join(levels)}",
            where="--ordered",
            remedy="leave the option out, or add the rows of other levels",
        )


# ------------------------------------------------------------------------------------------------ dependence


def _count_series_once(table: ResultTable) -> tuple[Sequence[Observation], DependentValues | None]:
    """The observations, those without blocks that follow each other as one with their median; and which these are.

    Seconds of one run are no runs: taken as such they gave confident verdicts on a single run of either side.
    """
    series: dict[tuple[str, str], list[Observation]] = {}
    for each in table.observations:
        if each.key is None:
            series.setdefault((each.target, each.cell), []).append(each)
    correlations: dict[str, float] = {}
    kept: list[Observation] = [each for each in table.observations if each.key is not None]
    for (name, _), members in series.items():
        values = np.array([each.measurements[table.metric] for each in members])
        if follow_each_other(np.log(values)):
            correlations[name] = max(correlations.get(name, 0.0), neighbour_correlation(np.log(values)))
            kept.append(replace(members[0], measurements={table.metric: float(np.median(values))}))
        else:
            kept += members
    if not correlations:
        return table.observations, None
    return kept, DependentValues(environments=tuple(correlations), correlation=max(correlations.values()))


def _find_dependence(pairing: Pairing) -> DependentValues | None:
    """Whether the differences of blocks follow each other; in the order of the file."""
    if not pairing.paired or not follow_each_other(pairing.sample):
        return None
    names = (pairing.environment, pairing.question.baseline)
    correlation = neighbour_correlation(pairing.sample)
    return DependentValues(environments=names, correlation=correlation, blocks=len(pairing.blocks))


def _leave_out_dependent(axes: Sequence[OrderedAxis], comparisons: Sequence[Comparison]) -> tuple[OrderedAxis, ...]:
    """The axes without those in whose blocks differences follow each other; none if that holds of all cells together.

    Blocks that are the seconds of one run for each level show steps as surely as differences.
    """
    dependent = {item.cell for item in comparisons if any(isinstance(each, DependentValues) for each in item.warnings)}
    if axes and axes[0].cell in dependent:
        return ()
    return tuple(axis for axis in axes if axis.cell not in dependent)


# ------------------------------------------------------------------------------------------------ decisions


def _decide_paired(question: Question, arms: Arms, table: ResultTable, *, sequential: bool) -> tuple[Comparison, ...]:
    """Headlines over all cells, and where there are several each of these, exploratory."""
    labels = {each.key.number: each.key.label for each in table.observations if each.key is not None}
    cells = [pair_cells(arms, question, name) for name in question.environments]
    heads = [over_cells(pairings) for pairings in cells]

    def decide(chosen: Sequence[int], level: float) -> Sequence[Decision]:
        return decide_once([heads[place].sample for place in chosen], [_rule(question, level)] * len(chosen))

    single = [pairing for pairings in cells for pairing in pairings if len(pairings) > 1]
    samples, rules = [pairing.sample for pairing in single], [_rule(question, ALPHA)] * len(single)
    if sequential:
        series = [DifferenceSeries(blocks=head.blocks, d=head.sample) for head in heads]
        led, explored = decide_family(series, [make_rule(question)] * len(heads)), decide_many(samples, rules)
    else:
        led, explored = step_down(len(heads), decide), decide_once(samples, rules)
    return adjust(
        [
            *_compare(heads, led, arms, labels, question.cells),
            *_compare(single, explored, arms, labels, ()),
        ]
    )


def _decide_unpaired(question: Question, arms: Arms) -> tuple[Comparison, ...]:
    """Every environment in every cell, all of them headlines."""
    pairings = [pair_loose(arms, question, name, cell) for name in question.environments for cell in question.cells]
    higher = question.direction is Direction.HIGHER

    def decide(chosen: Sequence[int], level: float) -> list[Decision]:
        rule = _rule(question, level)
        sides = [(pairings[place].values, pairings[place].base_values) for place in chosen]
        return [decide_unpaired(values, base, rule=rule, higher_is_better=higher) for values, base in sides]

    return tuple(_compare(pairings, step_down(len(pairings), decide), arms, {}, question.cells))


def _rule(question: Question, level: float) -> Rule:
    return replace(make_rule(question), alpha=level)


def _compare(
    pairings: Sequence[Pairing],
    decisions: Sequence[Decision],
    arms: Arms,
    labels: Mapping[int, str],
    cells: Sequence[str],
) -> list[Comparison]:
    """Headlines over these cells; without cells each in its own, exploratory."""
    found = []
    for pairing, decision in zip(pairings, decisions, strict=True):
        finding = find(Judged(pairing=pairing, decision=decision, headline=bool(cells)), over=True)
        doubts = tuple(doubt_comparison(finding, arms, labels, cells or (pairing.cell,)))
        if dependence := _find_dependence(pairing):
            finding, doubts = replace(finding, verdict=Verdict.INSUFFICIENT, estimate=None), (dependence,)
        comparison = to_comparison(finding, doubts)
        if dependence:
            comparison = replace(comparison, decided_at=None, repeated_p=None)
        values = (pairing.values.size, pairing.base_values.size)
        found.append(replace(comparison, values=values[0], baseline_values=values[1]))
    return found
