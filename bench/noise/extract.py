"""The data file of a recorded A/A series: a row for each run, without names of hosts, users or paths.

    .venv/bin/python bench/noise/extract.py FOLDER [FILE]

reads the studies FOLDER/series-1, series-2 … that `record.py` left and writes `runs.csv.gz` beside this file, or FILE.
The studies are only read. Columns and units are described in README.md.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from pathlib import Path

from pgstrata.model.runs import RunRecord
from pgstrata.model.study import Study
from pgstrata.store.evidence import load_evidence
from pgstrata.store.load import load_study

METRICS = (
    "tps", "server_cpu_per_tx", "client_cpu_per_tx", "foreign_cpu", "steal_cpu", "pressure_cpu", "pressure_io",
    "pressure_memory", "checkpoints", "autovacuums", "wal_per_tx", "context_switches_per_tx", "disk_written",
)  # fmt: skip
COLUMNS = (
    "series", "run_seconds", "order", "block", "arm", "cell", "started", "validity", *METRICS, "canary_before",
    "canary_after", "dirty_before", "previous_tps", "tps_by_second",
)  # fmt: skip
RUNS = Path(__file__).with_name("runs.csv.gz")
# What the kernel has not yet written back when the run begins.
DIRTY = re.compile(rb"^(?:Dirty|Writeback):\s+(\d+) kB", re.MULTILINE)
CANARY = re.compile(rb"^seconds ([\d.]+)", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One run: `began` in seconds of wall-clock time, `values` by column."""

    series: int
    began: float
    values: dict[str, str] = field(default_factory=dict)


def extract(folder: Path, target: Path) -> int:
    """Write the data file; the number of runs in it."""
    numbers = sorted(int(path.name.partition("-")[2]) for path in folder.glob("series-*") if path.is_dir())
    rows = [row for number in numbers for row in _read_series(folder / f"series-{number}", number)]
    rows.sort(key=lambda row: row.began)
    for order, row in enumerate(rows, start=1):
        row.values["order"] = str(order)
        row.values["started"] = f"{row.began - rows[0].began:.2f}"
    for before, row in pairwise(rows):
        if before.series == row.series:
            row.values["previous_tps"] = before.values["tps"]
    _write(target, (row.values for row in rows))
    return len(rows)


def _read_series(study: Path, number: int) -> Iterator[Row]:
    loaded = load_study(study, series=True)
    for run in loaded.runs:
        values = {
            "series": str(number),
            **_plain_values(loaded, run),
            **{name: _render(run.value(name)) for name in METRICS},
            **_captures(load_evidence(study, run.identity)),
            "tps_by_second": _seconds(run),
        }
        yield Row(series=number, began=datetime.fromisoformat(run.started).timestamp(), values=values)


def _plain_values(study: Study, run: RunRecord) -> dict[str, str]:
    cell = next(cell for cell in study.plan.experiment.cells if cell.identity == run.cell)
    control = study.plan.experiment.environment(run.environment).control is not None
    return {
        "run_seconds": f"{cell.run:g}",
        "block": str(run.block),
        "arm": "control" if control else "baseline",
        "cell": cell.workload,
        "validity": run.validity,
    }


def _captures(evidence: Mapping[str, bytes]) -> dict[str, str]:
    """What no measurement holds: each canary alone, bytes that wait to be written back."""
    waiting = [int(found) for found in DIRTY.findall(evidence.get("procfs.before", b""))]
    return {
        "canary_before": _canary(evidence.get("canary.before", b"")),
        "canary_after": _canary(evidence.get("canary.after", b"")),
        "dirty_before": str(1024 * sum(waiting)) if waiting else "",
    }


def _canary(capture: bytes) -> str:
    found = CANARY.search(capture)
    return found.group(1).decode() if found else ""


def _seconds(run: RunRecord) -> str:
    """Throughput of each second as pgbench reported it; the last one is missing where it ended before its report."""
    values = next((series.values for series in run.series if series.metric == "tps"), ())
    return " ".join(_render(value) for value in values)


def _render(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"


def _write(target: Path, rows: Iterable[Mapping[str, str]]) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    # Without a time in the header the same runs make the same file.
    target.write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))


if __name__ == "__main__":
    file = Path(sys.argv[2]) if len(sys.argv) > 2 else RUNS
    print(f"{file}: {extract(Path(sys.argv[1]), file)} runs")
