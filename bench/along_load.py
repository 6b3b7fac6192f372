"""Differences that begin at a number of clients: how often they are named there, how often none where none is.

Simulated: block differences drawn at random. Real: a script that is slower in one environment while more than so many
sessions are at work, by pauses or by work for the CPU; each in a study of its own.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
from figures import Figure
from observer import Silence

from pgstrata.app.question import load_plan
from pgstrata.app.run import run_experiment
from pgstrata.compare.by_load import find_by_load
from pgstrata.model.answer import LoadFinding
from pgstrata.stats.ordered import find_steps
from pgstrata.store.load import load_study
from pgstrata.store.repository import StudyFolder

STUDIES: Final = 100
LOADS: Final = 8
BLOCKS: Final = 9
# Of the difference of two runs of a cell, in log units, as on a quiet and on a shared machine.
SCATTER: Final = (0.015, 0.03)


def measure_along_load() -> Iterator[Figure]:
    """For two scatters a slowdown of 6 % that begins at a load drawn at random, and none; real ones with REAL=1."""
    for sd in SCATTER:
        rng = np.random.default_rng([7, round(1000 * sd)])
        right = none = 0
        for _ in range(STUDIES):
            place = int(rng.integers(2, LOADS - 1))
            d = rng.normal(0, sd, (BLOCKS, LOADS))
            none += not find_steps(d, draws=999).steps
            d[:, place:] += math.log(0.94)
            right += [step.after for step in find_steps(d, draws=999).steps] == [place]
        name = f"along the load, differences scattering by {100 * sd:g} %"
        notes = [f"{STUDIES} studies of {BLOCKS} blocks and {LOADS} numbers of clients; 6 % slower from one of them on"]
        yield Figure(name=f"{name}: named at its step", value=right, goal=90, unit="%", low_is_good=False, notes=notes)
        yield Figure(name=f"{name}: none found where none is", value=none, goal=95, unit="%", low_is_good=False)
    if os.environ.get("REAL"):
        yield _measure_real()


# ------------------------------------------------------------------------------------------------ real

_SESSIONS: Final = "FROM pg_stat_activity WHERE backend_type = 'client backend' AND datname = current_database()"
# Both environments count sessions and have the same plan, so that nothing but the step tells them apart.
_SLOW: Final = f":slow * ((SELECT count(*) {_SESSIONS}) > 6)::int"
SCRIPTS: Final = {
    "pauses": f"SELECT pg_sleep(0.01 + 0.0007 * {_SLOW});\n",
    "CPU": f"SELECT sum(sqrt(i)) FROM generate_series(1, 5000 + 750 * {_SLOW}) AS i;\n",
}
CLIENTS: Final = (1, 2, 4, 8, 16)
FIRST_SLOW: Final = 8
EXPERIMENT: Final = """
question = "From how many clients on is it slower?"
blocks = {blocks}
diagnosis = false
baseline = {{ "options.slow" = 0 }}
[factors]
"options.slow" = [0, 1]
[common]
server = "embedded"
[[cells]]
scripts = [{{ file = "script.sql" }}]
scale = 1
clients = {clients}
run = "4s"
warmup = "1s"
"""
REAL_BLOCKS: Final = 10


def _measure_real() -> Figure:
    """Studies lie in KEEP; the same call goes on where it was interrupted."""
    root = Path(os.environ.get("KEEP") or Path(__file__).parent / "work" / "along-load")
    found = {kind: _study(root / kind.lower(), script) for kind, script in SCRIPTS.items()}
    right = [kind for kind, finding in found.items() if _begins(finding) == FIRST_SLOW]
    notes = [f"by {kind}: {_tell(finding)}" for kind, finding in found.items()]
    return Figure(
        name="along the load, real servers: slower from 8 clients on, and named there",
        value=len(right), goal=len(SCRIPTS), unit=f"of {len(SCRIPTS)}", low_is_good=False, notes=notes,
    )  # fmt: skip


def _study(folder: Path, script: str) -> LoadFinding:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "script.sql").write_text(script)
    file = folder / "crossing.toml"
    file.write_text(EXPERIMENT.format(blocks=REAL_BLOCKS, clients=list(CLIENTS)))
    study = StudyFolder(folder / "study")
    run_experiment(replace(load_plan(file), floors={}), study, Silence(), stop_early=False)
    loaded = load_study(folder / "study", series=True)
    (finding,) = [each for each in find_by_load(loaded.plan, loaded.runs) if each.ranges]
    return finding


def _begins(finding: LoadFinding) -> int:
    """The first load of the only step; 0 where there is none or another number of them."""
    return finding.ranges[1].first if len(finding.ranges) == 2 else 0


def _tell(finding: LoadFinding) -> str:
    ranges = [
        f"{each.first} to {each.last} clients {100 * ((each.effect or math.nan) - 1):+.1f} % ({each.verdict})"
        for each in finding.ranges
    ]
    return f"{', '.join(ranges)}, {finding.blocks} blocks, p = {finding.p:.2g}"
