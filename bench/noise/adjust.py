"""Throughput adjusted by what was measured beside it, with coefficients that come from other series.

A block difference D of ln tps becomes D - sum of b_k X_k, where X_k is the block difference of a covariate and b_k was
estimated without intercept (labels are random) on the *other* series of that cell and run length.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from noise.recorded import Floats, Pairs, Runs

ROUNDS = 25
# Residuals beyond this many robust SDs count less (Huber 1964).
HUBER = 1.5


class Touch(StrEnum):
    """Whether the treatment could change a covariate, which would then adjust away a part of its effect."""

    NEVER = "no: it is over before the run"
    HARDLY = "by a detour: caches, writing back, waiting"
    YES = "yes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjustment:
    """A set of covariates, and how the most doubtful of them hangs on the treatment."""

    name: str
    covariates: tuple[str, ...]
    touch: Touch


# The run before may be one of the other arm, and carries half of its effect: `previous` is no better than HARDLY.
ADJUSTMENTS = (
    Adjustment(name="canary before", covariates=("canary_before",), touch=Touch.NEVER),
    Adjustment(name="dirty pages before", covariates=("dirty_before",), touch=Touch.NEVER),
    Adjustment(name="place in the visit", covariates=("place",), touch=Touch.NEVER),
    Adjustment(name="steal", covariates=("steal_cpu",), touch=Touch.HARDLY),
    Adjustment(name="foreign CPU", covariates=("foreign_cpu",), touch=Touch.HARDLY),
    Adjustment(name="previous run", covariates=("previous",), touch=Touch.HARDLY),
    Adjustment(name="canary before and after", covariates=("canary_before", "canary_after"), touch=Touch.HARDLY),
    Adjustment(
        name="all above",
        covariates=("canary_before", "canary_after", "dirty_before", "place", "steal_cpu", "foreign_cpu", "previous"),
        touch=Touch.HARDLY,
    ),
    Adjustment(name="client CPU per transaction", covariates=("client_cpu_per_tx",), touch=Touch.HARDLY),
    Adjustment(
        name="client CPU, canaries", covariates=("client_cpu_per_tx", "canary_before", "canary_after"),
        touch=Touch.HARDLY,
    ),
    Adjustment(name="CPU pressure", covariates=("pressure_cpu",), touch=Touch.YES),
    Adjustment(name="I/O pressure", covariates=("pressure_io",), touch=Touch.YES),
    Adjustment(name="context switches per transaction", covariates=("context_switches_per_tx",), touch=Touch.YES),
    Adjustment(name="WAL per transaction", covariates=("wal_per_tx",), touch=Touch.YES),
    Adjustment(name="server CPU per transaction", covariates=("server_cpu_per_tx",), touch=Touch.YES),
)  # fmt: skip
_LOGARITHMIC = frozenset({"canary_before", "canary_after", "client_cpu_per_tx", "server_cpu_per_tx",
                          "context_switches_per_tx", "wal_per_tx"})  # fmt: skip
_BYTES = 1e9


def covariate_values(runs: Runs) -> Mapping[str, Floats]:
    """Covariates by run: logarithms of times and counts, plain shares; 0 where a run has none."""
    values = {name: runs.logs(name) if name in _LOGARITHMIC else column for name, column in runs.columns.items()}
    values["dirty_before"] = runs.columns["dirty_before"] / _BYTES
    values["previous"] = _previous(runs)
    values["place"] = _place(runs)
    return {name: np.nan_to_num(column, nan=0.0) for name, column in values.items()}


def _previous(runs: Runs) -> Floats:
    """ln of the throughput of the run before against the median of its own cell and run length."""
    logs = runs.logs("tps")
    centred = logs.copy()
    for cell in np.unique(runs.cell):
        for length in np.unique(runs.columns["run_seconds"]):
            here = (runs.cell == cell) & (runs.columns["run_seconds"] == length)
            centred[here] -= np.nanmedian(logs[here])
    return np.where(runs.previous >= 0, centred[runs.previous], np.nan)


def _place(runs: Runs) -> Floats:
    """Whether a run is the first one of its visit (0) or the second (1)."""
    before = runs.previous
    same = (runs.control == runs.control[before]) & (runs.columns["block"] == runs.columns["block"][before])
    return np.where((before >= 0) & same, 1.0, 0.0)


def adjust(runs: Runs, pairs: Pairs, adjustment: Adjustment, metric: str = "tps") -> tuple[Floats, Floats]:
    """Adjusted block differences, coefficients by series, shapes (blocks,) and (series, covariates)."""
    values = covariate_values(runs)
    x = np.stack([pairs.differences(values[name]) for name in adjustment.covariates], axis=1)
    d = pairs.differences(runs.logs(metric))
    adjusted, coefficients = np.empty_like(d), []
    for series in np.unique(pairs.series):
        own = pairs.series == series
        slopes = fit_slopes(x[~own], d[~own])
        adjusted[own] = d[own] - x[own] @ slopes
        coefficients.append(slopes)
    return adjusted, np.array(coefficients)


def fit_slopes(x: Floats, d: Floats) -> Floats:
    """Coefficients without intercept by iterated weights (Huber 1964), shape (covariates,).

    A covariate that never varies gets the coefficient 0.
    """
    scale = np.sqrt((x**2).mean(axis=0))
    scale[scale == 0] = math.inf
    weights, slopes = np.ones_like(d), np.zeros(x.shape[1])
    for _ in range(ROUNDS):
        root = np.sqrt(weights)
        slopes = np.linalg.lstsq(x / scale * root[:, np.newaxis], d * root, rcond=None)[0]
        residuals = np.abs(d - x / scale @ slopes)
        width = HUBER * 1.4826 * float(np.median(residuals))
        weights = np.minimum(1.0, width / np.maximum(residuals, 1e-12))
    return np.asarray(slopes / scale, dtype=np.float64)
