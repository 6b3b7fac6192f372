"""Other metrics than throughput, and throughput adjusted by covariates: what they leave of the noise, and what the rule
makes of it."""

from __future__ import annotations

import math

import numpy as np
from noise.adjust import ADJUSTMENTS, Touch, adjust
from noise.recorded import CELLS, LENGTHS, Floats, Pairs, Runs, all_pairs, find_pairs
from noise.redraw import choose_blocks, default_threshold, judge, redraw
from noise.tables import bootstrap, floor_ratio, print_table, rms, rms_ratio

from pgstrata.model.plan import HORIZON
from pgstrata.model.thresholds import DEFAULT_THRESHOLD
from pgstrata.stats.floor import noise_floor
from pgstrata.stats.power import smallest_effect

COMPARISONS = 5000
EFFECTS = (0.05, 0.10, 0.20)
RATIO = "server / client CPU"
METRICS = ("tps", "server_cpu_per_tx", "client_cpu_per_tx", RATIO)


def metric_logs(runs: Runs, metric: str) -> Floats:
    """ln of a metric by run."""
    if metric == RATIO:
        return runs.logs("server_cpu_per_tx") - runs.logs("client_cpu_per_tx")
    return runs.logs(metric)


def print_metrics(runs: Runs, rng: np.random.Generator) -> None:
    """CPU per transaction as a metric of its own, and the ratio of server to client."""
    rows = []
    for pairs in all_pairs(runs):
        tps = pairs.differences(runs.logs("tps"))
        for metric in METRICS:
            d = pairs.differences(metric_logs(runs, metric))
            visible = smallest_effect(noise_floor(d), math.log1p(DEFAULT_THRESHOLD), HORIZON)
            texts = [bootstrap(rng, statistic, d) for statistic in (rms, noise_floor)]
            together = f"{correlation(d, tps):.2f}"
            rows.append(
                (_name(pairs), metric, *texts, together, f"{100 * visible:.2g}" if visible is not None else "-")
            )
    head = ("cell, run", "metric", "SD of D, %", "s0, %", "correlation with tps", "visible in 24 blocks, %")
    print_table("Metrics", head, rows)


def _name(pairs: Pairs) -> str:
    return f"{pairs.cell}, {pairs.run_seconds} s"


def print_adjustments(runs: Runs, rng: np.random.Generator) -> None:
    """What adjusting leaves of the SD of D."""
    rows = []
    for pairs in all_pairs(runs):
        plain = pairs.differences(runs.logs("tps"))
        for adjustment in ADJUSTMENTS:
            d, slopes = adjust(runs, pairs, adjustment)
            texts = [bootstrap(rng, statistic, d, plain, scale=1) for statistic in (rms_ratio, floor_ratio)]
            coefficients = ", ".join(f"{slope:.3g}" for slope in np.median(slopes, axis=0))
            rows.append((_name(pairs), adjustment.name, coefficients, *texts, adjustment.touch))
    head = ("cell, run", "tps adjusted by", "coefficients", "SD left", "s0 left", "can the treatment change it?")
    print_table("Adjusted throughput, coefficients from other series", head, rows)


def print_verdicts(runs: Runs, rng: np.random.Generator) -> None:
    """The rule on each metric: false verdicts, and for effects multiplied in the share found and mean blocks."""
    rows = []
    for pairs in all_pairs(runs):
        sources = {metric: pairs.differences(metric_logs(runs, metric)) for metric in METRICS}
        for adjustment in ADJUSTMENTS:
            if adjustment.touch is not Touch.YES:
                sources[f"tps by {adjustment.name}"] = adjust(runs, pairs, adjustment)[0]
        for metric, d in sources.items():
            draws = redraw(rng, d, COMPARISONS, choose_blocks(d.size))
            delta = default_threshold(d)
            equal = judge(draws, 0.0, delta)
            found = [judge(draws, effect, delta) for effect in EFFECTS]
            texts = [f"{each.right:.0f} % in {each.blocks:.1f}" for each in found]
            rows.append((_name(pairs), metric, f"{equal.different:.2f}", f"{equal.blocks:.1f}", *texts))
    head = ("cell, run", "metric", "A/A different, %", "blocks", *(f"{effect:.0%}" for effect in EFFECTS))
    print_table(f"The rule on {COMPARISONS} comparisons each, labels drawn anew", head, rows)


def print_headlines(runs: Runs, rng: np.random.Generator) -> None:
    """Both cells of a visit together: the geometric mean that headlines are judged on."""
    rows = []
    for length in LENGTHS:
        both = [find_pairs(runs, cell, length) for cell in CELLS]
        first, second = (pairs.differences(runs.logs("tps")) for pairs in both)
        assert (both[0].series == both[1].series).all()
        texts = [bootstrap(rng, statistic, (first + second) / 2) for statistic in (rms, noise_floor)]
        rows.append((f"{length} s", *texts, bootstrap(rng, correlation, first, second, scale=1)))
    head = ("run", "SD of D, %", "s0, %", "correlation of D between the cells of a visit")
    print_table("Geometric mean of both cells", head, rows)


def correlation(one: Floats, other: Floats) -> float:
    return float(np.corrcoef(one, other)[0, 1])
