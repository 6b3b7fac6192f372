"""A switch of environments: what changing the host for a run takes, with its undoing, the server's start and a look."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from figures import Figure
from observer import Silence

from pgstrata import __version__
from pgstrata.app.machine import open_machine
from pgstrata.app.question import load_plan
from pgstrata.app.wiring import make_rig
from pgstrata.conduct.arm import make_arm
from pgstrata.conduct.observe import assert_levels
from pgstrata.conduct.prepare import layers_undone, prepare_layers
from pgstrata.conduct.rig import Rig
from pgstrata.conduct.targets import targets_entered
from pgstrata.model.plan import Plan
from pgstrata.store.study import StudyStore

ROUNDS = 10
EXPERIMENT = """
interleave = "runs"
blocks = 1
[[environments]]
name = "changed"
pages = "2MB"
thp = "always"
cpu.quota = "150 %"
cpu.server = "0"
sysctl.vm.swappiness = 5
[[environments]]
name = "plain"
[common]
server = "embedded"
settings.shared_buffers = "128MB"
[[cells]]
workload = "select-only"
scale = 1
clients = 1
run = "1s"
"""


def measure_switch() -> Sequence[Figure]:
    """Both environments in turns; clone and stop apart. Needs root."""
    if os.geteuid() != 0:
        print("    no figure: changing a host needs root")
        return []
    with tempfile.TemporaryDirectory() as name, open_machine(print) as machine:
        file = Path(name) / "experiment.toml"
        file.write_text(EXPERIMENT)
        plan = load_plan(file)
        with StudyStore.create(Path(name) / "study", plan, __version__) as store:
            rig = make_rig(plan, machine, store, Silence(), name)
            return _measure(plan, rig)


def _measure(plan: Plan, rig: Rig) -> Sequence[Figure]:
    switches: dict[str, list[float]] = {"changed": [], "plain": []}
    looks: list[float] = []
    for number in range(ROUNDS + 1):
        for environment, seconds in switches.items():
            with targets_entered(rig, plan.experiment.environments):
                took, look = _switch(plan, rig, environment)
            # the first of each is slower than the rest
            if number:
                seconds.append(took)
                looks.append(look)
    changed, plain = (statistics.median(switches[name]) for name in ("changed", "plain"))
    note = (
        f"pages, THP, affinity, quota and a sysctl, medians of {ROUNDS}; the same start without layers: {plain:.2f} s"
    )
    return [
        Figure(name="switch of environments: prepare, start, observe, undo", value=changed, goal=2.0, unit="s",
               notes=(note,)),
        Figure(name="switch of environments: observe", value=statistics.median(looks), goal=0.1, unit="s",
               notes=(f"largest of {len(looks)}: {max(looks):.3f} s",)),
    ]  # fmt: skip


def _switch(plan: Plan, rig: Rig, environment: str) -> tuple[float, float]:
    """Seconds of the switch without clone and stop, and of the observation in it."""
    planned = next(run for run in plan.runs if run.environment == environment)
    arm = make_arm(plan, planned)
    supply = rig.supply(arm.environment)
    dataset = supply.datasets.ensure(arm.environment, supply.build, arm.cell)
    begun = time.monotonic()
    apart = 0.0
    with layers_undone(rig, [arm.environment]):
        launch = prepare_layers(rig, arm, supply, dataset)
        cloning = time.monotonic()
        clone = supply.datasets.clone(dataset, "switch", launch.data)
        apart += time.monotonic() - cloning
        server = supply.control.start(arm.environment, supply.build, clone, launch)
        looking = time.monotonic()
        assert_levels(rig, arm, server)
        look = time.monotonic() - looking
        stopping = time.monotonic()
        supply.control.stop(server)
        supply.datasets.discard(clone)
        apart += time.monotonic() - stopping
    return time.monotonic() - begun - apart, look
