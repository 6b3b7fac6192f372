"""The recorded A/A series as arrays: runs, and the pairs of equal runs that its blocks hold."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

RUNS = Path(__file__).with_name("runs.csv.gz")
CELLS = ("select-only", "simple-update")
LENGTHS = (2, 8)
# A second that no report covers is made from the total if at least so much of it was measured.
_LEAST_REST = 0.5
_TEXTS = frozenset({"arm", "cell", "validity", "tps_by_second"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """All runs in the order of recording; every column has the shape (runs,).

    `columns` are the numbers of the file by name, NaN where a run has none. `seconds` holds ln of the throughput of
    each second of each run. `previous` is the place of the run before in the same series, -1 for the first.
    """

    cell: npt.NDArray[np.str_]
    control: Bools
    valid: Bools
    columns: Mapping[str, Floats]
    seconds: tuple[Floats, ...]
    previous: Ints

    def logs(self, name: str) -> Floats:
        """ln of a column; NaN where it is not above zero."""
        values = self.columns[name]
        return np.log(np.where(values > 0, values, np.nan))


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """The blocks of one cell and run length in the order of recording.

    `rows` are places in `Runs` of the earlier and the later run of each block, shape (blocks, 2); `series` and
    `started` (seconds since the first run of all) have the shape (blocks,).
    """

    cell: str
    run_seconds: int
    rows: Ints
    series: Ints
    started: Floats

    def differences(self, values: Floats) -> Floats:
        """Later minus earlier, shape (blocks,), of values by run. Which arm came first was drawn at random."""
        of_pairs = values[self.rows]
        return np.asarray(of_pairs[:, 1] - of_pairs[:, 0], dtype=np.float64)

    def means(self, values: Floats) -> Floats:
        """Mean of both runs of each block."""
        return np.asarray(values[self.rows].mean(axis=1), dtype=np.float64)


def load_runs(file: Path = RUNS) -> Runs:
    """The data file: every run, whatever pgstrata thought of it."""
    rows = list(csv.DictReader(io.StringIO(gzip.decompress(file.read_bytes()).decode())))
    numbers = [name for name in rows[0] if name not in _TEXTS]
    columns = {name: np.array([float(row[name] or "nan") for row in rows]) for name in numbers}
    same = np.diff(columns["series"], prepend=-1.0) == 0
    return Runs(
        cell=np.array([row["cell"] for row in rows]),
        control=np.array([row["arm"] == "control" for row in rows]),
        valid=np.array([row["validity"] != "invalid" and float(row["tps"] or 0) > 0 for row in rows]),
        columns=columns,
        seconds=tuple(_seconds(row) for row in rows),
        previous=np.where(same, np.arange(len(rows)) - 1, -1),
    )


def _seconds(row: Mapping[str, str]) -> Floats:
    values = [float(value) for value in row["tps_by_second"].split()]
    length, tps = float(row["run_seconds"]), float(row["tps"])
    rest = length - len(values)
    if _LEAST_REST <= rest <= 1:
        values.append((tps * length - sum(values)) / rest)
    return np.asarray(np.log(np.maximum(values[: round(length)], 1e-9)), dtype=np.float64)


def find_pairs(runs: Runs, cell: str, run_seconds: int) -> Pairs:
    """Blocks that have a valid run of both arms in that cell, at that run length."""
    here = np.flatnonzero((runs.cell == cell) & (runs.columns["run_seconds"] == run_seconds))
    found: dict[tuple[int, int], list[int]] = {}
    for place in here.tolist():
        if runs.valid[place]:
            found.setdefault((int(runs.columns["series"][place]), int(runs.columns["block"][place])), []).append(place)
    rows = np.array([places for places in found.values() if len(places) == 2], dtype=np.int64)
    return Pairs(
        cell=cell,
        run_seconds=run_seconds,
        rows=rows,
        series=runs.columns["series"][rows[:, 0]].astype(np.int64),
        started=runs.columns["started"][rows[:, 0]],
    )


def all_pairs(runs: Runs) -> tuple[Pairs, ...]:
    """Every cell at every run length."""
    return tuple(find_pairs(runs, cell, length) for length in LENGTHS for cell in CELLS)


def dead_seconds(runs: Runs, run_seconds: int) -> float:
    """Seconds between the end of a run and the start of the next one, as a median."""
    here = np.flatnonzero((runs.columns["run_seconds"] == run_seconds) & (runs.previous >= 0))
    started = runs.columns["started"]
    return float(np.median(started[here] - started[runs.previous[here]])) - run_seconds
