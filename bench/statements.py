"""What pg_stat_statements costs where it is loaded: the same load with and without it, in slices."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from figures import Figure
from observer import Silence

from pgstrata.app.question import load_plan
from pgstrata.app.run import run_experiment
from pgstrata.compare import compare_study
from pgstrata.store.load import load_study
from pgstrata.store.repository import StudyFolder

VISITS = 8
EXPERIMENT = """
question = "What does counting statements cost?"
interleave = "slices"
blocks = {blocks}
baseline = "without"
[common]
server = "embedded"
[[environments]]
name = "without"
[[environments]]
name = "counted"
settings.shared_preload_libraries = "pg_stat_statements"
[[cells]]
workload = "select-only"
scale = 10
clients = 2
"""


def measure_statements() -> Sequence[Figure]:
    """Reading by the key with two clients: the hardest case, because each statement is short."""
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "experiment.toml"
        file.write_text(EXPERIMENT.format(blocks=VISITS))
        plan = load_plan(file)
        run_experiment(plan, StudyFolder(Path(name) / "study"), Silence(), stop_early=False)
        (found,) = compare_study(plan, load_study(Path(name) / "study", series=True).runs, metrics=())
    assert found.interval is not None
    assert found.effect is not None
    low, high = (100 * (bound - 1) for bound in (found.interval.low, found.interval.high))
    note = f"{found.blocks} visits in slices: {100 * (found.effect - 1):+.2f} % [{low:+.2f}, {high:+.2f}]"
    return [
        Figure(name="pg_stat_statements: tps with it loaded", value=low, goal=-10.0, unit="%", low_is_good=False,
               notes=(note,)),
    ]  # fmt: skip
