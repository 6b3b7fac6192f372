"""Exports all measurements of a study, or of a table, to one file for other tools."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from pgstrata.app.decide import read_table
from pgstrata.app.new_files import name_after, write_new
from pgstrata.app.parquet import require_pyarrow
from pgstrata.errors import UsageError
from pgstrata.model.metrics import COMPARED_SERIES, METRICS, TPS
from pgstrata.model.observation import Observation, Repeats
from pgstrata.model.runs import Validity
from pgstrata.model.study import Study
from pgstrata.sources.runs import observe_runs
from pgstrata.sources.table import parse_metrics
from pgstrata.sources.tidy import render_history, render_observations, tidy_columns, tidy_rows
from pgstrata.store.repository import StudyFolder

_SUFFIXES: Final = {"csv": ".csv", "otava": "-otava.csv", "parquet": ".parquet"}
_NUMBERS: Final = frozenset({"value", "seconds", "opening"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """The file that was written, with the numbers of its rows and of its runs."""

    output: Path
    rows: int
    observations: int


def export_results(source: Path, form: str, output: Path | None) -> Exported:
    """Write measurements to a new file.

    For a run in slices, `tps` is the median of its rounds, as in comparisons; failed and collapsed runs are invalid.

    Raises:
        UsageError: there is no such format, nothing to export, or pyarrow is missing.
    """
    if form not in _SUFFIXES:
        remedy = f"choose one of {', '.join(_SUFFIXES)}"
        raise UsageError(f"{form!r} is not a format", where="--format", remedy=remedy)
    target = output or Path(f"{name_after(source).partition('.')[0]}-export{_SUFFIXES[form]}")
    observations, repeats = _observe(source)
    if not any(each.measurements for each in observations):
        raise UsageError("there are no measurements to export", where=str(source), remedy="measure a block first")
    if form == "parquet":
        content = _to_parquet(observations, repeats)
    elif form == "otava":
        content = _to_history(observations, source).encode("utf-8", "replace")
    else:
        content = render_observations(observations, repeats).encode("utf-8", "replace")
    write_new(target, content)
    # the header, and nothing that takes several lines
    rows = content.count(b"\n") - 1 if form == "otava" else sum(len(each.measurements) for each in observations)
    return Exported(output=target, rows=rows, observations=len({each.provenance for each in observations}))


def _observe(source: Path) -> tuple[Sequence[Observation], Repeats | None]:
    if source.is_dir():
        return tuple(_of_study(StudyFolder(source).load(series=COMPARED_SERIES))), Repeats.IN_TURNS
    if str(source) != "-" and not os.path.lexists(source):
        remedy = "give a file of results, or a folder of a study or archive; `pgstrata list` finds those"
        raise UsageError("there is no such file or folder", where=str(source), remedy=remedy)
    text, name = read_table(source)
    tables = parse_metrics(text, name)
    return tuple(each for table in tables for each in table.observations), tables[0].repeats


def _of_study(study: Study) -> Iterator[Observation]:
    experiment = study.plan.experiment
    levels = {each.name: {level.factor: level.value for level in each.levels} for each in experiment.environments}
    cells = {each.identity: {"workload": each.workload, "scale": str(each.scale), "clients": str(each.clients)}
             for each in experiment.cells}  # fmt: skip
    for each in observe_runs(study.runs, frozenset(METRICS)):
        measured = dict(each.measurements)
        rounds = [value for value in each.rounds or () if value > 0]
        if rounds:
            measured[TPS.name] = float(np.median(rounds))
        yield replace(
            each,
            measurements={name: value for name, value in measured.items() if value > 0},
            validity=Validity.INVALID if each.collapsed else each.validity,
            dimensions={**levels.get(each.target, {}), **cells.get(each.cell, {})},
        )


def _to_history(observations: Sequence[Observation], source: Path) -> str:
    valid = [each for each in observations if each.validity is not Validity.INVALID]
    try:
        return render_history(valid)
    except ValueError as error:
        raise UsageError(
            f"a history needs the time of each measurement, but {error} has none",
            where=str(source),
            remedy="add a column started to the table, or export CSV",
        ) from None


def _to_parquet(observations: Sequence[Observation], repeats: Repeats | None) -> bytes:
    pa, parquet = require_pyarrow()
    rows = list(tidy_rows(observations, repeats))
    columns = {}
    for name in tidy_columns(observations, repeats):
        kind = pa.float64() if name in _NUMBERS else pa.string()
        columns[name] = pa.array([row.get(name) for row in rows], type=kind)
    stream = io.BytesIO()
    parquet.write_table(pa.table(columns), stream)
    return stream.getvalue()
