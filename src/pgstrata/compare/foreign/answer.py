"""What is asked of a table of results, and what comes out."""

from __future__ import annotations

from dataclasses import dataclass

from pgstrata.model.answer import Comparison, OrderedAxis, ResultWarning
from pgstrata.units import Direction


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignQuestion:
    """What the reader of a table says of it; None where nothing was said. `threshold` is a ratio (0.03)."""

    threshold: float = 0.03
    baseline: str | None = None
    metric: str | None = None
    lower_is_better: bool = False
    ordered: bool = False
    """Whether the environments are levels of one ordered axis, in the order in which they first appear."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A comparison with the number of values of either arm that it rests on.

    The comparison's cell is the name of a cell, or `ALL_CELLS` for what holds of the whole file: the headline over
    several cells, or a file without cells. Its runs are the rows of both arms, its blocks 0 where it is not paired.
    """

    comparison: Comparison
    values: int
    base_values: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignAnswer:
    """The comparisons of a table.

    `environments` are without the baseline, which is the first of the table unless it was named; `cells` is empty where
    the table has no such column. `blocks` are those of the table, 0 where it has no such column: then it is not
    `paired`. `headlines` decide, `explored` are the cells behind headlines over several.
    """

    source: str
    metric: str
    direction: Direction
    threshold: float
    baseline: str
    baseline_named: bool
    environments: tuple[str, ...]
    cells: tuple[str, ...]
    paired: bool
    blocks: int
    headlines: tuple[Finding, ...]
    explored: tuple[Finding, ...]
    warnings: tuple[ResultWarning, ...]
    levels: tuple[str, ...] = ()
    """All environments in the order of the file, where that was asked for."""
    axes: tuple[OrderedAxis, ...] = ()
    """Steps along the environments in the order of the file, over all cells first; none unless asked for."""
