"""What background load does to verdicts, and what leaving such runs out would do: simulated under the sequential rule.

    python bench/background_load.py [COMPARISONS]

Each comparison has up to 60 blocks of two runs in random order: run CV of 1 to 3 %, 3 % of the runs fall by 20 to
60 %. Other work comes with a probability per run, stays for some runs one after the other, and costs a share of
throughput.
"""

from __future__ import annotations

import sys
from itertools import product

import numpy as np
import numpy.typing as npt
from figures import Figure

from pgstrata.model.answer import Verdict
from pgstrata.model.plan import HORIZON
from pgstrata.stats.rule import Rule, decide_many

BLOCKS = HORIZON
COMPARISONS = 2000
# Background load of the arm that is twice as fast: what it costs, and in how many blocks it is unequal.
LOSS, SEVEN_OF_NINE, HALF = float(np.log(0.8)), 7 / 9, 0.5
# Runs in a row beside other work, their share, and what it costs them.
WORST = ((1, 0.20, 0.40), (4, 0.20, 0.40), (48, 0.20, 0.40), (4, 0.10, 0.20))
DIFFERENT = {Verdict.BETTER, Verdict.WORSE, Verdict.NEGLIGIBLE}
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


def draw(
    source: np.random.Generator, effect: float, often: float, loss: float, stay: int
) -> tuple[Floats, Flags, Flags]:
    """Differences of the blocks; those without a run beside other work; those with none or with both beside it."""
    runs = source.normal(0, source.uniform(0.01, 0.03), (BLOCKS, 2))
    falls = source.random((BLOCKS, 2)) < 0.03
    runs += np.where(falls, np.log(source.uniform(0.4, 0.8, (BLOCKS, 2))), 0)
    beside = np.zeros(2 * BLOCKS, dtype=bool)
    for start in np.flatnonzero(source.random(2 * BLOCKS) < often / stay):
        beside[start : start + stay] = True
    turned = source.random(BLOCKS) < 0.5
    pairs = np.where(turned[:, None], beside.reshape(BLOCKS, 2), beside.reshape(BLOCKS, 2)[:, ::-1])
    runs += pairs * np.log1p(-loss)
    d = np.asarray(runs[:, 0] - runs[:, 1] + np.log1p(effect), dtype=np.float64)
    alone = np.asarray(~pairs.any(axis=1), dtype=np.bool_)
    return d, alone, np.asarray(pairs[:, 0] == pairs[:, 1], dtype=np.bool_)


def find(source: np.random.Generator, count: int, effect: float, kind: tuple[int, float, float]) -> list[float]:
    """Shares of comparisons that come out different: with all blocks, without any background load, with equal one."""
    stay, often, loss = kind
    drawn = [draw(source, effect, often, loss, stay) for _ in range(count)]
    rules = [Rule(delta=float(np.log(1.03)))] * count
    samples = (
        [d for d, _, _ in drawn],
        [d[alone] for d, alone, _ in drawn],
        [d[equal] for d, _, equal in drawn],
    )
    decisions = [decide_many(sample, rules) for sample in samples]
    return [sum(decision.verdict in DIFFERENT for decision in made) / count for made in decisions]


def measure_background_load() -> list[Figure]:
    """The costliest kinds of background load under the rule, which counts all blocks; and what leaving out would do."""
    source = np.random.default_rng(7)
    notes, false, found = [], 0.0, 100.0
    for kind in WORST:
        rows = [[100 * share for share in find(source, COMPARISONS, effect, kind)] for effect in (0.0, -0.05)]
        (our_false, _, other_false), (our_found, _, other_found) = rows
        false, found = max(false, our_false), min(found, our_found)
        notes.append(
            f"{kind[1]:.0%} of the runs, {kind[0]} in a row, {kind[2]:.0%} slower: false {our_false:.1f} % (with equal "
            f"load only {other_false:.1f}), 5 % found in {our_found:.0f} % (with equal load only {other_found:.0f})"
        )
    kept, left = lead(source, COMPARISONS)
    return [
        Figure(name="background load: worst false verdicts", value=false, goal=5.0, unit="%", notes=notes),
        Figure(name="background load: 5 % found at least in", value=found, goal=80.0, unit="%", low_is_good=False),
        Figure(name="background load: twice as fast, 9 blocks", value=100 * kept, goal=90.0, unit="%",
               low_is_good=False, notes=(f"found; without the blocks of unequal load {100 * left:.0f} %",)),
    ]  # fmt: skip


def lead(source: np.random.Generator, count: int) -> tuple[float, float]:
    """Shares in which an arm twice as fast is found in nine blocks: with all of them, without those of unequal load.

    How much CPU others get depends on what an arm leaves to them: background load differs in seven blocks of nine, and
    costs either arm 20 %.
    """
    unequal = source.random((count, 9)) < SEVEN_OF_NINE
    strike = np.where(source.random((count, 9)) < HALF, LOSS, -LOSS)
    samples = np.log(2) + source.normal(0, 0.05, (count, 9)) + unequal * strike
    rules = [Rule(delta=float(np.log(1.03)))] * count
    both = (list(samples), [d[~differs] for d, differs in zip(samples, unequal, strict=True)])
    kept, left = (sum(each.verdict is Verdict.BETTER for each in decide_many(part, rules)) / count for part in both)
    return kept, left


def main(count: int) -> None:
    source = np.random.default_rng(7)
    print("              |  false verdicts of blocks    |  an effect of 5 % found in blocks")
    print("stay often cost|   all  without  with equal  |   all  without  with equal load")
    for kind in product((1, 4, 48), (0.05, 0.10, 0.20), (0.05, 0.10, 0.20, 0.40)):
        rows = [" ".join(f"{share:8.1%}" for share in find(source, count, effect, kind)) for effect in (0.0, -0.05)]
        print(f"{kind[0]:4} {kind[1]:5.0%} {kind[2]:4.0%} | {rows[0]}  | {rows[1]}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
