"""How often runs and curves are called anomalies by chance, and how often truly; and verdicts where starts differ."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from figures import Figure
from machine_noise import DEFAULT, STRESS, Floats, NoiseModel, draw_blocks, draw_machines

from pgstrata.compare.pairing.arms import Arm
from pgstrata.compare.pairing.pairs import Pairing
from pgstrata.compare.verdicts.comparisons import find
from pgstrata.compare.verdicts.doubts import Finding
from pgstrata.compare.verdicts.judging import judge_each
from pgstrata.model.answer import Verdict
from pgstrata.model.plan import HORIZON
from pgstrata.model.question import Question
from pgstrata.stats.anomaly import find_kinks, find_modes, judge_stability
from pgstrata.stats.floor import noise_floor
from pgstrata.units import Direction

SEED = 20260401
MACHINES = 3000
CURVES = 2000
BLOCKS = 16
CURVE_BLOCKS = 7
KINK = 0.10
# Clients at which the curves bend.
KNEES = (3.0, 20.0)
MODES, EFFECT = math.log(1.1), 0.05
CALM = NoiseModel(outliers=(0.0, 0.0))
QUIET = NoiseModel(run_cv=(0.003, 0.01), second_cv=0.01)
NO_DRIFT = NoiseModel(walk=0.0, step=0.0)
DENSE = np.array([1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 78, 96, 128], dtype=np.float64)
_QUESTION = Question(
    metric="tps", direction=Direction.HIGHER, threshold=0.03, baseline="base", environments=("new",), cells=("c",),
    blocks=HORIZON,
)  # fmt: skip
SPARSE = np.array([1, 2, 4, 8, 16, 32, 64, 128], dtype=np.float64)


def measure_anomalies() -> Sequence[Figure]:
    """Runs, modes, verdicts on two modes, and curves."""
    return [*_runs(), *_modes(), *measure_start_modes(), *_curves()]


def _runs() -> Sequence[Figure]:
    figures = []
    for name, model, goal in (("no outliers", CALM, 1.0), ("no drift", NO_DRIFT, 5.0), ("default", DEFAULT, 6.0)):
        flagged, unstable, modes = _judge_runs(model)
        note = f"called unstable or bimodal {unstable:.2f} % of environments, of these by modes {modes:.2f} %"
        figures.append(
            Figure(name=f"anomalies: runs flagged, {name}", value=flagged, goal=goal, unit="%", notes=(note,))
        )
    unstable = _judge_runs(STRESS["20 % outliers"])[1]
    calm = _judge_runs(CALM)[1]
    return [
        *figures,
        Figure(name="anomalies: unstable without outliers", value=calm, goal=1.0, unit="%"),
        Figure(name="anomalies: unstable, 20 % outliers", value=unstable, goal=25.0, unit="%", low_is_good=False,
               notes=("a fifth is the limit itself",)),
    ]  # fmt: skip


def _judge_runs(model: NoiseModel) -> tuple[float, float, float]:
    """Percent of runs flagged, of environments unstable, of environments with two modes."""
    rng = np.random.default_rng([SEED, 1])
    machines = draw_machines(rng, model, MACHINES)
    floors = [noise_floor(row) for row in np.subtract(*draw_blocks(rng, machines, 24))]
    logs = draw_blocks(rng, machines, BLOCKS)[0]
    found = [judge_stability(row, s0) for row, s0 in zip(logs, floors, strict=True)]
    return (
        100 * sum(len(one.anomalies) for one in found) / sum(one.judged for one in found),
        100 * float(np.mean([one.is_unstable for one in found])),
        100 * float(np.mean([one.modes is not None for one in found])),
    )


def _modes() -> Sequence[Figure]:
    """Two speeds 20 % apart, the slower one in 30 % of the runs; and false modes where any distance would matter."""
    rng = np.random.default_rng([SEED, 2])
    slower = math.log(0.8) * (rng.random((MACHINES, BLOCKS)) < 0.3)
    logs = draw_blocks(rng, draw_machines(rng, DEFAULT, MACHINES), BLOCKS)[0]
    found = float(np.mean([find_modes(row) is not None for row in logs + slower]))
    figures = [
        Figure(name="anomalies: two speeds 20 % apart", value=100 * found, goal=70.0, unit="%", low_is_good=False)
    ]
    for name, noise in (("normal", rng.normal(size=(MACHINES, BLOCKS))), ("t3", rng.standard_t(3, (MACHINES, BLOCKS)))):
        wrong = 100 * float(np.mean([find_modes(row) is not None for row in noise]))
        figures.append(Figure(name=f"anomalies: false modes, {name} noise", value=wrong, goal=1.5, unit="%"))
    return figures


# ------------------------------------------------------------------------------------------------ two start modes


def measure_start_modes() -> Sequence[Figure]:
    """The whole rule on quiet machines where each start takes one of two modes 10 % apart, and the effect is 5 %."""
    figures = []
    for name, arms in (("of one environment", 1), ("of both", 2)):
        found = _judge_modes(arms)
        effect = math.log1p(EFFECT)
        told = [each.instability is not None for each in found]
        silent = [each.verdict is Verdict.UNSTABLE for each in found]
        right = [each.verdict is Verdict.BETTER for each in found]
        spans = [each.estimate.interval for each in found if each.estimate and each.estimate.interval]
        covered = [span.low <= effect <= span.high for span in spans]
        note = (
            f"no answer {100 * float(np.mean(silent)):.1f} % (where the doubt was the verdict "
            f"{100 * float(np.mean(told)):.1f}); blocks {np.mean([each.decision.n for each in found]):.1f}"
        )
        figures += [
            Figure(name=f"start modes {name}: 5 % found", value=100 * float(np.mean(right)), goal=90.0, unit="%",
                   low_is_good=False, notes=(note,)),
            Figure(name=f"start modes {name}: covered", value=100 * float(np.mean(covered)), goal=95.5, unit="%",
                   low_is_good=False),
        ]  # fmt: skip
    return figures


def _judge_modes(arms: int) -> Sequence[Finding]:
    """Findings of comparisons with up to `HORIZON` blocks; the effect is that of the middle between the modes."""
    rng = np.random.default_rng([SEED, 4, arms])
    logs = np.array(draw_blocks(rng, draw_machines(rng, QUIET, MACHINES), HORIZON))
    logs[0] += math.log1p(EFFECT)
    logs[:arms] += MODES * (rng.random(logs[:arms].shape) - 0.5 > 0) - MODES / 2
    pairings = [
        Pairing(
            question=_QUESTION, environment="new", cell="c", arm=Arm(name="new"), base=Arm(name="base"),
            blocks=tuple(range(1, HORIZON + 1)), differences=new - base, values=np.exp(new), base_values=np.exp(base),
            levels=np.exp(new), base_levels=np.exp(base),
        )
        for new, base in zip(*logs, strict=True)
    ]  # fmt: skip
    return [find(judged, over=True) for judged in judge_each(pairings)]


# ------------------------------------------------------------------------------------------------ curves


def _true_curve(clients: Floats, knee: float) -> Floats:
    """ln of throughput: nearly linear up to the knee, then nearly flat, then falling a little."""
    return np.asarray(-np.log((1 / clients**4 + 1 / knee**4) ** 0.25) - 0.0003 * clients, dtype=np.float64)


def _draw_curves(rng: np.random.Generator, clients: Floats, knees: Floats, blocks: int = CURVE_BLOCKS) -> Floats:
    """Logarithms by curve, block and point; points are measured in random order within a block."""
    machines = draw_machines(rng, DEFAULT, knees.size)
    runs = np.moveaxis(draw_blocks(rng, machines, blocks, clients.size), 0, -1)
    curves = np.array([_true_curve(clients, knee) for knee in knees])
    return np.asarray(runs + curves[:, np.newaxis, :], dtype=np.float64)


def _curves() -> Sequence[Figure]:
    figures = []
    for name, clients, goal in (("14 points", DENSE, 80.0), ("8 points", SPARSE, 50.0)):
        rng = np.random.default_rng([SEED, 3, clients.size])
        curves = _draw_curves(rng, clients, rng.uniform(*KNEES, CURVES))
        wrong = float(np.mean([bool(find_kinks(clients, logs)) for logs in curves]))
        places = rng.integers(1, clients.size - 1, CURVES)
        found = [[kink.place for kink in find_kinks(clients, logs)] for logs in _dent(curves, places)]
        hits = float(np.mean([place in kinks for place, kinks in zip(places, found, strict=True)]))
        beside = float(
            np.mean([any(kink != place for kink in kinks) for place, kinks in zip(places, found, strict=True)])
        )
        figures += [
            Figure(name=f"anomalies: false kink per curve, {name}", value=100 * wrong, goal=5.0, unit="%"),
            Figure(name=f"anomalies: 10 % dent found, {name}", value=100 * hits, goal=goal, unit="%", low_is_good=False,
                   notes=(f"another point accused with or instead of it in {100 * beside:.1f} %",)),
        ]  # fmt: skip
    return figures


def _dent(curves: Floats, places: npt.NDArray[np.int64]) -> Floats:
    dented = curves.copy()
    dented[np.arange(len(curves)), :, places] += math.log1p(-KINK)
    return dented
