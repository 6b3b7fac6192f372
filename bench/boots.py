"""Boots as whole plots: how often a kernel is called faster or slower that is not, simulated, by the production rule.

Each block boots each kernel once, in random order, and measures two sizes of memory pages in two cells in each of these
boots. A boot has a level of its own, which all its runs share. Beside it stands what published series do: each kernel
is booted once, and runs in that boot are its repetitions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from figures import Figure
from machine_noise import Floats

from pgstrata.model.answer import Verdict
from pgstrata.model.plan import HORIZON
from pgstrata.stats.contrasts import make_contrasts
from pgstrata.stats.rule import Decision, Rule, decide_many

STUDIES = 2000
# SD of ln throughput: of a boot, and of a run within it.
OF_BOOTS = (0.01, 0.03)
OF_RUNS = 0.03
THRESHOLD = math.log1p(0.03)
SEED = 20261126
_CELLS = 2
_DIFFERENT = frozenset({Verdict.BETTER, Verdict.WORSE, Verdict.NEGLIGIBLE})
_NAMES = {
    "6.1-4kB": ("6.1", "4kB"),
    "6.1-2MB": ("6.1", "2MB"),
    "6.12-4kB": ("6.12", "4kB"),
    "6.12-2MB": ("6.12", "2MB"),
}


def measure_boots() -> Iterator[Figure]:
    """Shares of false differences among equal kernels, and of right verdicts where one is 5 % slower."""
    for spread in OF_BOOTS:
        rng = np.random.default_rng([SEED, round(1000 * spread)])
        equal = [_study(rng, spread, 0.0) for _ in range(STUDIES)]
        slower = [_study(rng, spread, math.log(0.95)) for _ in range(STUDIES // 4)]
        where = f"boots {100 * spread:g} %, runs {100 * OF_RUNS:g} %"
        one = _decide([_one_cell(study) for study in equal])
        once = _decide([_booted_once(rng, spread) for _ in range(STUDIES)])
        yield Figure(
            name=f"boots: false, one cell, {where}", value=_share(one), goal=5.0, unit="%",
            notes=(f"a series that boots each kernel once, by the same rule: {_share(once):.1f} %",),
        )  # fmt: skip
        effect = _decide([_main_effect(study, "kernel") for study in equal])
        yield Figure(name=f"boots: false, main effect of the kernel, {where}", value=_share(effect), goal=5.0, unit="%")
        within = _decide([_main_effect(study, "pages") for study in equal])
        yield Figure(name=f"boots: false, main effect of pages, {where}", value=_share(within), goal=5.0, unit="%")
        found = _decide([_one_cell(study) for study in slower])
        blocks = [decision.n for decision in found if decision.verdict in _DIFFERENT]
        yield Figure(
            name=f"boots: 5 % slower found, {where}", value=_share(found), goal=95.0, unit="%", low_is_good=False,
            notes=(f"{float(np.median(blocks)) if blocks else math.nan:.0f} blocks in the median, {HORIZON} at most",),
        )  # fmt: skip


def _study(rng: np.random.Generator, of_boots: float, effect: float) -> dict[str, Floats]:
    """ln throughput by environment, shape (blocks, cells)."""
    boots = {kernel: rng.normal(0, of_boots, HORIZON) for kernel in ("6.1", "6.12")}
    return {
        name: boots[kernel][:, None] + rng.normal(0, OF_RUNS, (HORIZON, _CELLS)) + (effect if kernel == "6.12" else 0.0)
        for name, (kernel, _) in _NAMES.items()
    }


def _one_cell(study: dict[str, Floats]) -> Floats:
    return np.asarray(study["6.12-4kB"][:, 0] - study["6.1-4kB"][:, 0])


def _main_effect(study: dict[str, Floats], factor: str) -> Floats:
    """By the production code, over both cells."""
    levels = {name: {"kernel": kernel, "pages": pages} for name, (kernel, pages) in _NAMES.items()}
    logs = {name: dict(enumerate(values.mean(axis=1).tolist(), start=1)) for name, values in study.items()}
    found = make_contrasts(levels, logs, baseline="6.1-4kB")
    return np.asarray(
        next(each for each in found if not each.is_interaction and each.changes[0].factor == factor).series.d
    )


def _booted_once(rng: np.random.Generator, of_boots: float) -> Floats:
    """Pairs of runs within one boot of each kernel."""
    lasting = rng.normal(0, of_boots * math.sqrt(2))
    return np.asarray(lasting + rng.normal(0, OF_RUNS * math.sqrt(2), HORIZON))


def _decide(samples: Sequence[Floats]) -> Sequence[Decision]:
    return decide_many(samples, [Rule(delta=THRESHOLD)] * len(samples))


def _share(decisions: Sequence[Decision]) -> float:
    """Percent in which a difference was found."""
    return 100 * float(np.mean([decision.verdict in _DIFFERENT for decision in decisions]))
