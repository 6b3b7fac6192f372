"""Order entry in rounds as sysbench-tpcc's (restore, warm up, checkpoint, measure): what must differ, what must not.

    ONLY=order-entry make bench
    KEEP=FOLDER MINUTES=10 ONLY=order-entry make bench

Two warehouses, which fit into memory, as in examples/tpcc.toml, in shorter runs. With KEEP the same call goes on where
it was interrupted.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from figures import Figure
from observer import Silence

from pgstrata.app.question import load_plan
from pgstrata.app.run import run_experiment
from pgstrata.compare import compare_study
from pgstrata.model.answer import Comparison, Verdict
from pgstrata.store.load import load_study
from pgstrata.store.repository import StudyFolder

EXPERIMENT: Final = """
question = "Is order entry slower where each commit waits for others, and not by what it never uses?"
baseline = "as it is"
blocks = 12
controls = ["same"]
diagnosis = false

[[environments]]
name = "as it is"

[[environments]]
name = "delayed commits"
settings.commit_delay = 5000
settings.commit_siblings = 1

[[environments]]
name = "another planner for many tables"
settings.geqo = "off"

[common]
server = "embedded"

[common.settings]
shared_buffers = "1GB"
max_wal_size = "4GB"

[[cells]]
workload = "tpcc"
scale = 2
clients = 4
run = "10s"
warmup = "5s"
"""
# Each commit waits 5 ms beside another transaction; transactions take about as long.
DIFFERENT: Final = "delayed-commits"
DIFFER: Final = (Verdict.WORSE, Verdict.BETTER)


def measure_order_entry() -> Iterator[Figure]:
    """Of the settings that must differ, and of those that must not, how many have the right verdict."""
    folder = Path(os.environ.get("KEEP") or Path(__file__).parent / "work" / "order-entry")
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "order-entry.toml"
    file.write_text(EXPERIMENT)
    minutes = os.environ.get("MINUTES")
    budget = 60 * float(minutes) if minutes else None
    run_experiment(replace(load_plan(file), floors={}), StudyFolder(folder / "study"), Silence(), budget=budget)
    study = load_study(folder / "study", series=True)
    found = [each for each in compare_study(study.plan, study.runs) if each.metric == "tps"]
    different = [each for each in found if each.environment == DIFFERENT]
    equal = [each for each in found if each.environment != DIFFERENT]
    found_out = sum(each.verdict is Verdict.WORSE for each in different)
    left_alone = sum(each.interval is not None and each.verdict not in DIFFER for each in equal)
    yield Figure(
        name="order entry: what must differ is found", value=found_out, goal=len(different),
        unit=f"of {len(different)}", low_is_good=False, notes=[_tell(each) for each in different],
    )  # fmt: skip
    yield Figure(
        name="order entry: what must not differ is not found to", value=left_alone, goal=len(equal),
        unit=f"of {len(equal)}", low_is_good=False, notes=[_tell(each) for each in equal],
    )  # fmt: skip


def _tell(item: Comparison) -> str:
    if item.effect is None or item.interval is None:
        return f"{item.environment}: {item.verdict} after {item.blocks} blocks"
    low, high = (100 * (each - 1) for each in (item.interval.low, item.interval.high))
    return (
        f"{item.environment}: {100 * (item.effect - 1):+.1f} % [{low:+.1f}, {high:+.1f}], {item.verdict} after "
        f"{item.blocks} blocks"
    )
