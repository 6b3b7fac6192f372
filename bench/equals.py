"""Equal loads on real servers: how often a difference is found where there is none, in visits that are re-drawn."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence

import numpy as np
from figures import Figure
from live import EQUALITY_PERCENT, Question, by_block, measure, visit_difference
from machine_noise import Floats

from pgstrata.model.answer import Verdict
from pgstrata.stats.rule import Rule, decide_many

EQUALS = 4
BLOCKS = 20
# Pairs of equal environments in the same block, from which all is re-drawn.
PAIRS = 100
REDRAWN = 5000


def measure_live_equal() -> Sequence[Figure]:
    return _measure("select-only")


def measure_live_equal_writing() -> Sequence[Figure]:
    return _measure("simple-update")


def _measure(workload: str) -> Sequence[Figure]:
    """Equal loads: visits re-drawn into comparisons; how often a difference is found."""
    arms = {f"equal{number}": 0 for number in range(1, EQUALS)}
    question = Question(arms=arms, workload=workload, blocks=BLOCKS, interleave="slices")
    _, runs, seconds = measure(question, stop_early=False)
    blocks = [block for block in by_block(runs).values() if len(block) == EQUALS]
    source = np.random.default_rng(1)
    visits = [list(block.values()) for block in blocks]
    differences = [[visit_difference(a, b) for a, b in itertools.permutations(visit, 2)] for visit in visits]
    samples = []
    for _ in range(REDRAWN):
        order = source.permutation(len(differences))
        samples.append(np.array([source.choice(differences[place]) for place in order]))
    names = itertools.combinations(("plain", *arms), 2)
    own = [np.array([visit_difference(block[one], block[other]) for block in blocks]) for one, other in names]
    spread = 100 * statistics.stdev(d for visit in differences for d in visit)
    pairs = len(visits) * math.comb(EQUALS, 2)
    note = (
        f"{len(visits)} visits of {EQUALS} equal environments in {seconds / 60:.1f} min: {pairs} A/A pairs, SD of a "
        f"visit's D {spread:.2f} %, re-drawn into {REDRAWN} comparisons; not re-drawn "
        f"{round(_false_share(own) / 100 * len(own))} of {len(own)} differ"
    )
    return [
        Figure(
            name=f"live: false verdicts among equals, {workload}", value=_false_share(samples), goal=5.0, unit="%",
            notes=(note,),
        ),
        Figure(name=f"live: A/A pairs re-drawn, {workload}", value=pairs, goal=PAIRS, low_is_good=False),
    ]  # fmt: skip


def _false_share(samples: Sequence[Floats]) -> float:
    """Percent of comparisons of equals in which a difference is found."""
    decisions = decide_many(samples, [Rule(delta=math.log1p(EQUALITY_PERCENT / 100))] * len(samples))
    found = {Verdict.BETTER, Verdict.WORSE, Verdict.NEGLIGIBLE}
    return 100 * float(np.mean([each.verdict in found for each in decisions]))
