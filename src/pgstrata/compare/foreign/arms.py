"""Rows as the two arms of a comparison: pairs by block, or two heaps where there are no blocks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pgstrata.compare.foreign.table import Row
from pgstrata.stats.ranks import FloatArray

Place = tuple[str, str]
"""An environment and a cell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """One environment and the baseline in the blocks in which both have every cell.

    `values` and `base_values` have shape (blocks, cells); `lacks` says of each block that is left out, in the order of
    the file, what it has no row of. `rows` are those of both arms in these cells, used or not.
    """

    environment: str
    baseline: str
    cells: tuple[str, ...]
    blocks: tuple[str, ...]
    values: FloatArray
    base_values: FloatArray
    lacks: Mapping[str, tuple[str, ...]]
    rows: int

    def differences(self, sign: float) -> FloatArray:
        """D of each block, shape (blocks,): the mean over the cells, so that its ratio is their geometric mean."""
        d = sign * (np.log(self.values) - np.log(self.base_values))
        return np.asarray(d.mean(axis=1), dtype=np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Heaps:
    """One environment and the baseline in one cell, without any order: shapes (n,) and (m,)."""

    environment: str
    baseline: str
    cell: str
    values: FloatArray
    base_values: FloatArray


def sort_by_block(rows: Sequence[Row]) -> dict[Place, dict[str, float]]:
    """Values by environment and cell, then by block; each block is there once (`table` sees to it)."""
    found: dict[Place, dict[str, float]] = defaultdict(dict)
    for row in rows:
        found[row.environment, row.cell][row.block] = row.value
    return found


def sort_by_place(rows: Sequence[Row]) -> dict[Place, FloatArray]:
    """Values by environment and cell, in the order of the file."""
    found: dict[Place, list[float]] = defaultdict(list)
    for row in rows:
        found[row.environment, row.cell].append(row.value)
    return {place: np.array(values, dtype=np.float64) for place, values in found.items()}


def pair_blocks(
    places: Mapping[Place, Mapping[str, float]],
    environment: str,
    baseline: str,
    cells: Sequence[str],
    order: Sequence[str],
) -> Pairs:
    """The pairs of one environment in all the cells at once.

    Args:
        places: values by environment and cell, then by block.
        environment: what is compared.
        baseline: what it is compared with.
        cells: one, or those whose geometric mean is compared.
        order: all blocks in the order of the file.
    """
    arms = {name: [places.get((name, cell), {}) for cell in cells] for name in (environment, baseline)}
    used, lacks = [], {}
    for block in order:
        missing = {name: [cell for cell, values in zip(cells, arm, strict=True) if block not in values]
                   for name, arm in arms.items()}  # fmt: skip
        if not any(missing.values()):
            used.append(block)
        elif any(len(absent) < len(cells) for absent in missing.values()):
            lacks[block] = _say_missing(missing, len(cells))
    values, base_values = (
        np.array([[values[block] for values in arms[name]] for block in used], dtype=np.float64).reshape(
            len(used), len(cells)
        )
        for name in (environment, baseline)
    )
    return Pairs(
        environment=environment, baseline=baseline, cells=tuple(cells), blocks=tuple(used), values=values,
        base_values=base_values, lacks=lacks, rows=sum(len(values) for arm in arms.values() for values in arm),
    )  # fmt: skip


def _say_missing(missing: Mapping[str, Sequence[str]], cells: int) -> tuple[str, ...]:
    """patched, or patched on large and patched on small, where an arm is there in other cells."""
    said: list[str] = []
    for name, absent in missing.items():
        said += [name] if len(absent) == cells else [f"{name} on {cell}" for cell in absent]
    return tuple(said)


def heap_values(places: Mapping[Place, FloatArray], environment: str, baseline: str, cell: str) -> Heaps:
    """All values of either arm in one cell."""
    nothing = np.empty(0)
    return Heaps(
        environment=environment,
        baseline=baseline,
        cell=cell,
        values=places.get((environment, cell), nothing),
        base_values=places.get((baseline, cell), nothing),
    )


def middle_value(values: FloatArray) -> float | None:
    """The median over the blocks of the geometric mean over the cells, shape (blocks, cells); None without blocks."""
    if not values.size:
        return None
    means = values[:, 0] if values.shape[1] == 1 else np.exp(np.log(values).mean(axis=1))
    means = np.sort(means)
    low, high = float(means[(means.size - 1) // 2]), float(means[means.size // 2])
    # not (low + high) / 2, which may be more than a float holds
    return low + (high - low) / 2
