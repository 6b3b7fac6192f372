"""What sampling stacks by perf costs: its CPU in the measured window, and throughput with it and without it."""

from __future__ import annotations

import dataclasses
import gzip
import random
import statistics
from collections.abc import Sequence

import numpy as np
from figures import Figure
from observer import SECONDS, one_server

from pgstrata.collectors.perf.sampler import HERTZ, SAMPLES, PerfSampler, parse_folded
from pgstrata.conduct.arm import make_arm
from pgstrata.conduct.rig import Rig
from pgstrata.conduct.run import measure, quiesce, touching, warm
from pgstrata.model.plan import Plan
from pgstrata.ports.server import RunningServer
from pgstrata.ports.steps import finish
from pgstrata.stats.rule import estimate_many

PAIRS = 12


def measure_perf() -> Sequence[Figure]:
    """Randomised pairs of runs on one server, read-only, 2 clients: with stacks sampled and without."""
    with one_server() as up:
        return _pairs(up.plan, up.rig, up.server)


def _pairs(plan: Plan, rig: Rig, server: RunningServer) -> Sequence[Figure]:
    order = random.Random(1)
    first = make_arm(plan, plan.runs[0])
    finish(touching(rig, first, server))
    warm(rig, first, server, plan.design(first.cell.identity))
    quiesce(rig, [first], lambda _: (server,))
    rates: dict[bool, list[float]] = {True: [], False: []}
    cpus: list[float] = []
    samples = 0
    for _ in range(PAIRS):
        for sampled in order.sample((True, False), 2):
            arm = make_arm(plan, plan.runs[0])
            measure(dataclasses.replace(rig, samplers=(PerfSampler(),) if sampled else ()), arm, server)
            rates[sampled].append(rig.driver(arm.environment, arm.cell).parse(arm.files).tps or 0.0)
            if sampled:
                folded = parse_folded(gzip.decompress(arm.files[f"{SAMPLES}.gz"]))
                if folded.lacking:
                    return [Figure(name="perf: CPU in the measured window", value=float("nan"), goal=0.03, unit="CPU",
                                   notes=(folded.lacking,))]  # fmt: skip
                cpus.append(folded.cpu / arm.seconds)
                samples += sum(folded.stacks.values())
    (estimate,) = estimate_many([np.log(np.array(rates[True]) / np.array(rates[False]))])
    assert estimate.interval is not None
    centre, low, high = (100 * (np.exp(end) - 1)
                         for end in (estimate.centre, estimate.interval.low, estimate.interval.high))  # fmt: skip
    note = f"{PAIRS} pairs of {SECONDS} s at {HERTZ} Hz: {centre:+.2f} % [{low:+.2f}, {high:+.2f}], {samples} samples"
    return [
        Figure(name="perf: CPU in the measured window", value=statistics.mean(cpus), goal=0.03, unit="CPU",
               notes=(f"largest of {PAIRS}: {max(cpus):.4f}",)),
        Figure(name="perf: tps with it against without", value=low, goal=-5.0, unit="%", low_is_good=False,
               notes=(note,)),
    ]  # fmt: skip
