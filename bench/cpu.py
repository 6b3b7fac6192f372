"""Differences by the ratio of server to client CPU: how often it is wrong, and what it finds beside throughput.

Differences of blocks are drawn with normal noise and outliers, or from the recorded A/A series with labels drawn anew;
the rule is the one of `compare.cpu`. Of every effect the ratio is given as much as throughput. In a kept study with
known further work the ratio rose by 28 % and throughput fell by 19 %; where client CPU rises too, the ratio has less.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np
from figures import Figure
from noise.metrics import RATIO, metric_logs
from noise.recorded import Floats, all_pairs, load_runs
from noise.redraw import choose_blocks, redraw

from pgstrata.compare.cpu import rule_by_cpu
from pgstrata.model.answer import Verdict
from pgstrata.model.plan import HORIZON
from pgstrata.stats.boundaries import ALPHA_CPU
from pgstrata.stats.family import DifferenceSeries, decide_families
from pgstrata.stats.rule import Rule, decide_many

SEED = 20261124
FALSE = 10_000
FAMILIES = 3000
POWER = 1000
OUTLIERS = 0.06
EFFECTS = (0.01, 0.02, 0.05)
LEVELS = (0.045, 0.02, 0.01, 0.005)
SOON = 24
# SD of D of throughput and of the ratio: beside other work with sessions placed freely, and little other work.
MACHINES = {"beside other work": (0.165, 0.038), "quiet": (0.068, 0.017)}
THROUGHPUT = Rule(delta=math.log(1.03))
# Shares of ten thousand are known to a tenth of a percent; the level itself is exact.
GOAL = 100 * ALPHA_CPU + 0.25
DIFFERENT = frozenset({Verdict.BETTER, Verdict.WORSE, Verdict.NEGLIGIBLE})


def measure_cpu() -> Sequence[Figure]:
    """False findings, drawn and recorded, and the power beside that of throughput."""
    rng = np.random.default_rng(SEED)
    return [*_false(rng), *_recorded(rng), *_power(rng)]


def _draw(rng: np.random.Generator, sd: float, shape: tuple[int, ...]) -> Floats:
    """Normal noise; outliers lie two to six SD away, on either side."""
    far = rng.choice([-1.0, 1.0], shape) * rng.uniform(2, 6, shape) * sd
    return np.where(rng.random(shape) < OUTLIERS, far, rng.normal(0, sd, shape))


def _found(d: Floats, rule: Rule) -> Floats:
    """After how many blocks each comparison came out different; infinite for never."""
    decisions = decide_many(list(d), [rule] * len(d))
    return np.array([each.n if each.verdict in DIFFERENT else math.inf for each in decisions])


def _share(found: Floats, blocks: float = HORIZON) -> float:
    return 100 * float(np.mean(found <= blocks))


def _false(rng: np.random.Generator) -> Sequence[Figure]:
    alone = _share(_found(_draw(rng, 0.038, (FALSE, HORIZON)), rule_by_cpu(HORIZON)))
    runs = _draw(rng, 0.038 / math.sqrt(2), (4, FAMILIES, HORIZON))
    numbers = tuple(range(1, HORIZON + 1))
    families = [
        [DifferenceSeries(blocks=numbers, d=arm[place] - runs[0, place]) for arm in runs[1:]]
        for place in range(FAMILIES)
    ]
    decided = decide_families(families, [[rule_by_cpu(HORIZON)] * 3] * FAMILIES)
    any_of_three = 100 * float(np.mean([any(each.verdict in DIFFERENT for each in family) for family in decided]))
    return [
        Figure(name="CPU ratio: false, one environment", value=alone, goal=GOAL, unit="%"),
        Figure(name="CPU ratio: any false of three", value=any_of_three, goal=GOAL, unit="%"),
    ]


def _recorded(rng: np.random.Generator) -> Sequence[Figure]:
    runs, figures = load_runs(), []
    for pairs in all_pairs(runs):
        both = [pairs.differences(metric_logs(runs, metric)) for metric in ("tps", RATIO)]
        blocks = choose_blocks(both[0].size)
        tps, ratio = (redraw(rng, d, POWER, blocks) for d in both)
        rules = (replace(THROUGHPUT, last=blocks), rule_by_cpu(blocks))
        found = [
            f"{effect:.0%} found in {blocks} blocks: throughput "
            + " %, ratio ".join(f"{_share(_found(d + math.log1p(effect), rule)):.0f}"
                                for d, rule in zip((tps, ratio), rules, strict=True)) + " %"
            for effect in EFFECTS
        ]  # fmt: skip
        spread = "SD of D: throughput {:.1f} %, ratio {:.1f} %".format(*(100 * float(np.std(d)) for d in both))
        name = f"CPU ratio, recorded {pairs.cell} {pairs.run_seconds} s: false"
        value = _share(_found(redraw(rng, both[1], FALSE // 2, blocks), rules[1]))
        figures.append(Figure(name=name, value=value, goal=GOAL, unit="%", notes=(spread, *found)))
    return figures


def _power(rng: np.random.Generator) -> Sequence[Figure]:
    figures = []
    for name, (tps, ratio) in MACHINES.items():
        drawn = {"throughput": _draw(rng, tps, (POWER, HORIZON)), "ratio": _draw(rng, ratio, (POWER, HORIZON))}
        cases = [("throughput", THROUGHPUT), *(("ratio", replace(rule_by_cpu(HORIZON), alpha=a)) for a in LEVELS)]
        found = {
            (what, rule.alpha, effect): _found(drawn[what] + math.log1p(effect), rule)
            for (what, rule), effect in product(cases, EFFECTS)
        }
        notes = [
            f"{what} at {rule.alpha:g}: "
            + ", ".join(
                f"{effect:.0%} in {_share(found[what, rule.alpha, effect], SOON):.0f} % by {SOON} blocks, "
                f"{_share(found[what, rule.alpha, effect]):.0f} % by {HORIZON}"
                for effect in EFFECTS
            )
            for what, rule in cases
        ]
        soon = _share(found["ratio", ALPHA_CPU, EFFECTS[-1]], SOON)
        title = f"CPU ratio, {name}: 5 % found in {SOON} blocks"
        figures.append(Figure(name=title, value=soon, goal=80, unit="%", low_is_good=False, notes=notes))
    return figures
