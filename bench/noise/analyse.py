"""The noise of the recorded series beside what was assumed, and what adjusting would gain, as tables in Markdown:

    PYTHONPATH=bench .venv/bin/python -m noise.analyse

docs/noise.md is made of them. Intervals in brackets are 95 % of a bootstrap: blocks drawn with replacement, or, for the
parts of `structure`, the fitted model drawn again at the moments of the recording.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from noise import metrics, within
from noise.recorded import CELLS, LENGTHS, Pairs, Runs, all_pairs, dead_seconds, find_pairs, load_runs
from noise.simulate import draw_logs
from noise.structure import FALLEN, PARTS, Structure, fit_cell, fit_structure, judge_runs, variogram
from noise.tables import (
    between_sd,
    bootstrap,
    kurtosis,
    mean,
    print_table,
    rms,
    robust_sd,
    run_sd,
    tail_ratio,
    with_interval,
)

from pgstrata.model.plan import HORIZON
from pgstrata.model.thresholds import DEFAULT_THRESHOLD
from pgstrata.stats.floor import noise_floor
from pgstrata.stats.power import smallest_effect

SEED = 20261121
REFITS = 200
IMPLIED = (2, 4, 8, 15, 30, 60, 120)
WINDOWS = ((0, 1), (1, 2), (0, 2), (2, 4), (4, 6), (6, 8), (0, 4), (4, 8), (2, 8), (0, 8))
# Warm-up, in seconds beyond the one of the recording, that is tried beside none.
SKIP = 4.0
TIMES = ("memory", "settling")
STEP_RUNS = 12


def main() -> None:
    """All tables, one after the other."""
    runs = load_runs()
    rng = np.random.default_rng(SEED)
    print_spread(runs, rng)
    print_seconds(runs, rng)
    print_windows(runs, rng)
    print_lengths(runs, print_structure(runs, rng))
    print_outliers(runs, rng)
    print_steps(runs)
    metrics.print_metrics(runs, rng)
    metrics.print_headlines(runs, rng)
    metrics.print_adjustments(runs, rng)
    metrics.print_verdicts(runs, rng)


def name(pairs: Pairs) -> str:
    return f"{pairs.cell}, {pairs.run_seconds} s"


def print_spread(runs: Runs, rng: np.random.Generator) -> None:
    """Differences of two equal runs of a block, and what blocks differ by."""
    rows = []
    for pairs in all_pairs(runs):
        logs = runs.logs("tps")
        d, means = pairs.differences(logs), pairs.means(logs)
        texts = [bootstrap(rng, statistic, d) for statistic in (rms, noise_floor, run_sd, mean)]
        rows.append((name(pairs), str(d.size), *texts, bootstrap(rng, between_sd, d, means)))
    head = ("cell, run", "blocks", "SD of D, %", "s0, %", "a run within its block, %", "mean D, %", "between blocks, %")
    print_table("Two equal runs of a block (D: later against earlier)", head, rows)


def print_seconds(runs: Runs, rng: np.random.Generator) -> None:
    """The assumed form of the model, from runs of 8 s."""
    rows = []
    for cell in CELLS:
        whole = within.block_seconds(runs, find_pairs(runs, cell, max(LENGTHS)))
        for begin in (0, 2):
            blocks = whole[:, :, begin:]
            phi = bootstrap(rng, within.phi, blocks, scale=1)
            others = (within.second_sd, within.left_to_run, within.neighbours_sd)
            rows.append((cell, f"from {begin} s", phi, *(bootstrap(rng, statistic, blocks) for statistic in others)))
    head = ("cell", "seconds", "phi", "SD of a second, %", "a run beyond its seconds, %", "neighbouring seconds, %")
    print_table("Seconds of runs of 8 s (assumed: phi 0.6, second 4 %, run 1-3 %)", head, rows)


def print_windows(runs: Runs, rng: np.random.Generator) -> None:
    """SD of D of stretches of the runs: how fast a run settles, and what a longer one gains."""
    rows = []
    for pairs in all_pairs(runs):
        blocks = within.block_seconds(runs, pairs)
        for begin, end in WINDOWS:
            if end <= pairs.run_seconds:
                d = within.window_differences(blocks, begin, end)
                texts = [bootstrap(rng, statistic, d) for statistic in (rms, noise_floor)]
                rows.append((name(pairs), f"{begin} to {end}", *texts))
    print_table("Stretches of runs", ("cell, run", "seconds", "SD of D, %", "s0, %"), rows)


def print_structure(runs: Runs, rng: np.random.Generator) -> dict[str, Structure]:
    """The parts of the noise, each with the interval that drawing the model again gives."""
    rows, found = [], {}
    for cell in CELLS:
        structure, seconds = fit_cell(runs, cell, rng)
        found[cell] = structure
        again = [
            fit_structure(seconds, variogram(seconds, logs)) for logs in draw_logs(rng, structure, seconds, REFITS)
        ]
        parts = [_part(structure, again, part) for part in (*PARTS, *TIMES)]
        rows.append((cell, *parts, f"{100 * structure.fallen:.2g}"))
    head = ("cell", *(f"{part}, {'s' if part in TIMES else '%'}" for part in (*PARTS, *TIMES)), "fallen runs, %")
    print_table("Parts of the noise (walk: per square root of a minute)", head, rows)
    return found


def _part(structure: Structure, again: Sequence[Structure], part: str) -> str:
    low, high = np.percentile([getattr(each, part) for each in again], (2.5, 97.5))
    return with_interval(getattr(structure, part), float(low), float(high), 1 if part in TIMES else 100)


def print_lengths(runs: Runs, structures: Mapping[str, Structure]) -> None:
    """What the model implies for runs of other lengths, as recorded and with a longer warm-up."""
    dead = dead_seconds(runs, LENGTHS[0])
    rows = []
    for cell in CELLS:
        for length in IMPLIED:
            texts = [text for skip in (0.0, SKIP) for text in _prospects(structures[cell], length, dead, skip)]
            rows.append((cell, f"{length}", *texts))
    seen = f"visible in {HORIZON} blocks, %"
    head = ("SD of D, %", seen, "blocks for 5 %", "minutes for 5 %", "error after an hour, %")
    more = [f"{each}, {SKIP:g} s more warm-up" for each in head]
    print_table(f"Run length by the model, {dead:.1f} s between runs", ("cell", "run, s", *head, *more), rows)


_DELTA: Final = math.log1p(DEFAULT_THRESHOLD)
_WANTED: Final = 0.05


def _prospects(structure: Structure, length: int, dead: float, skip: float) -> Sequence[str]:
    sd, slot = structure.block_sd(length, dead, skip), length + dead + skip
    seen = [smallest_effect(sd, _DELTA, n) for n in range(1, HORIZON + 1)]
    blocks = next((n for n, effect in enumerate(seen, 1) if effect is not None and effect <= _WANTED), None)
    return (
        f"{100 * sd:.3g}",
        f"{100 * seen[-1]:.2g}" if seen[-1] is not None else "-",
        str(blocks or f"> {HORIZON}"),
        f"{blocks * 2 * slot / 60:.1f}" if blocks else "-",
        f"{100 * sd * math.sqrt(2 * slot / 3600):.2g}",
    )


def print_outliers(runs: Runs, rng: np.random.Generator) -> None:
    """Runs against the median of their neighbours, and the tails of D."""
    rows = []
    for pairs in all_pairs(runs):
        residuals = judge_runs(runs, pairs.cell, pairs.run_seconds)
        scale = robust_sd(residuals)
        d = pairs.differences(runs.logs("tps"))
        shares = (residuals < -FALLEN * scale, residuals > FALLEN * scale, residuals < math.log(0.8))
        rows.append(
            (
                name(pairs),
                f"{100 * scale:.3g}",
                *(bootstrap(rng, mean, share.astype(np.float64)) for share in shares),
                f"{100 * np.expm1(residuals.min()):.0f} to {100 * np.expm1(residuals.max()):+.0f}",
                bootstrap(rng, kurtosis, d, scale=1),
                bootstrap(rng, tail_ratio, d, scale=1),
            )
        )
    head = ("cell, run", "SD beside neighbours, %", f"{FALLEN:g} SD below, %", f"{FALLEN:g} SD above, %",
            "20 % below, %", "extremes, %", "kurtosis of D", "SD of D / s0")  # fmt: skip
    print_table("Outliers (assumed: 2-5 % of the runs fall by 20-60 %)", head, rows)


def print_steps(runs: Runs) -> None:
    """Level by series, and the largest difference of medians before and after a moment."""
    rows = []
    for cell in CELLS:
        here = np.flatnonzero(runs.cell == cell)
        y, minutes, series = runs.logs("tps")[here], runs.columns["started"][here] / 60, runs.columns["series"][here]
        levels = [float(np.exp(np.median(y[series == one]))) for one in np.unique(series)]
        moments = range(STEP_RUNS, y.size - STEP_RUNS + 1)
        steps = np.array([np.median(y[k : k + STEP_RUNS]) - np.median(y[k - STEP_RUNS : k]) for k in moments])
        worst = int(np.argmax(np.abs(steps)))
        step = f"{100 * np.expm1(steps[worst]):+.0f} at {minutes[worst + STEP_RUNS]:.0f} min"
        rows.append((cell, ", ".join(f"{level:,.0f}" for level in levels), step, f"{100 * robust_sd(steps):.2g}"))
    head = ("cell", "median tps by series", f"largest step over {STEP_RUNS} runs, %", "SD of such steps, %")
    print_table("Drift and steps (assumed: 0.15 % per sqrt minute, a step of 3 % every two hours)", head, rows)


if __name__ == "__main__":
    main()
