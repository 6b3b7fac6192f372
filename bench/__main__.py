"""`make bench`: figures of pgstrata itself, measured side by side; `ONLY=name` runs one. It never fails a build."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from figures import Benchmark, run_benchmarks
from large_study import measure_large_study
from observer import measure_dead_time, measure_observer
from reset import measure_reset
from startup import measure_startup
from verdicts import measure_verdicts

BENCHMARKS: dict[str, Benchmark] = {
    "startup": measure_startup,
    "large-study": measure_large_study,
    "reset": measure_reset,
    "dead-time": measure_dead_time,
    "observer": measure_observer,
    "verdicts": measure_verdicts,
}

sys.exit(run_benchmarks(BENCHMARKS, os.environ.get("ONLY"), Path(__file__).parent / "results.json"))
