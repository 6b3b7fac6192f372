"""What neighbours of runs do to verdicts, and whether to leave such runs out: simulated under the sequential rule.

    python bench/neighbours.py [COMPARISONS]

Each comparison has 24 blocks of two runs in random order: run CV of 1 to 3 %, 3 % of the runs fall by 20 to 60 %. A
neighbour comes with a probability per run, stays for some runs one after the other, and costs a share of throughput.
"""

from __future__ import annotations

import sys
from itertools import product

import numpy as np
import numpy.typing as npt

from pgstrata.model.answer import Verdict
from pgstrata.stats.rule import Rule, decide_many

BLOCKS = 24
DIFFERENT = {Verdict.BETTER, Verdict.WORSE, Verdict.NEGLIGIBLE}
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


def draw(source: np.random.Generator, effect: float, often: float, loss: float, stay: int) -> tuple[Floats, Flags]:
    """Differences of the blocks, and which of them have no run beside a neighbour."""
    runs = source.normal(0, source.uniform(0.01, 0.03), (BLOCKS, 2))
    falls = source.random((BLOCKS, 2)) < 0.03
    runs += np.where(falls, np.log(source.uniform(0.4, 0.8, (BLOCKS, 2))), 0)
    beside = np.zeros(2 * BLOCKS, dtype=bool)
    for start in np.flatnonzero(source.random(2 * BLOCKS) < often / stay):
        beside[start : start + stay] = True
    turned = source.random(BLOCKS) < 0.5
    pairs = np.where(turned[:, None], beside.reshape(BLOCKS, 2), beside.reshape(BLOCKS, 2)[:, ::-1])
    runs += pairs * np.log1p(-loss)
    return np.asarray(runs[:, 0] - runs[:, 1] + np.log1p(effect), dtype=np.float64), np.asarray(
        ~pairs.any(axis=1), dtype=np.bool_
    )


def found(
    source: np.random.Generator, count: int, effect: float, kind: tuple[int, float, float]
) -> tuple[float, float]:
    """Share of comparisons that come out different, with all runs in and without those beside a neighbour."""
    stay, often, loss = kind
    drawn = [draw(source, effect, often, loss, stay) for _ in range(count)]
    rules = [Rule(delta=float(np.log(1.03)))] * count
    kept = decide_many([d for d, _ in drawn], rules)
    left_out = decide_many([d[alone] for d, alone in drawn], rules)
    shares = [sum(decision.verdict in DIFFERENT for decision in decisions) / count for decisions in (kept, left_out)]
    return shares[0], shares[1]


def main(count: int) -> None:
    source = np.random.default_rng(7)
    print("stays  often  costs | false: kept  left out | 5 % found: kept  left out")
    for kind in product((1, 4), (0.05, 0.10, 0.20), (0.05, 0.10, 0.20, 0.40)):
        false, power = found(source, count, 0.0, kind), found(source, count, -0.05, kind)
        print(
            f"{kind[0]:5} {kind[1]:6.0%} {kind[2]:6.0%} | {false[0]:11.1%} {false[1]:9.1%} | "
            f"{power[0]:15.1%} {power[1]:9.1%}",
            flush=True,
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
