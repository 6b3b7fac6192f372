"""Curves over few points: the shape-preserving interpolant, and what each point's neighbours predict for it."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from pgstrata.stats.ranks import FloatArray

# A curve without one of its points still has an inner point, and so residuals to judge by.
FEWEST_POINTS: Final = 5
_LINE: Final = 2


def leave_one_out(x: npt.ArrayLike, y: npt.ArrayLike) -> FloatArray:
    """What each inner point exceeds the curve through all other points by.

    Args:
        x: places, ascending, shape (points,).
        y: values, shape (..., points).

    Returns:
        Shape (..., points); nan at both ends, beyond which there is nothing.
    """
    places, values = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    residuals = np.full(values.shape, np.nan)
    for point in range(1, places.size - 1):
        residuals[..., point] = residual_at(places, values, point)
    return residuals


def residual_at(x: npt.ArrayLike, y: npt.ArrayLike, point: int) -> FloatArray:
    """What one inner point exceeds the curve through all other points by: shape (...) for y of shape (..., points).

    With y of shape (blocks, points) these are the differences of a repeat, one per block.
    """
    places, values = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    predicted = pchip(np.delete(places, point), np.delete(values, point, axis=-1), float(places[point]))
    return np.asarray(values[..., point] - predicted, dtype=np.float64)


def pchip(x: FloatArray, y: FloatArray, at: float) -> FloatArray:
    """The piecewise cubic Hermite interpolant that has no extremes of its own (Fritsch & Butland 1984), at one place.

    Args:
        x: places, ascending, shape (points,), at least two.
        y: values, shape (..., points).
        at: within x.

    Returns:
        Shape (...).
    """
    h = np.diff(x)
    slopes = np.diff(y, axis=-1) / h
    derivatives = _derivatives(h, slopes)
    k = int(np.clip(np.searchsorted(x, at, side="right") - 1, 0, h.size - 1))
    t = (at - x[k]) / h[k]
    value = (
        (1 + 2 * t) * (1 - t) ** 2 * y[..., k]
        + t * (1 - t) ** 2 * h[k] * derivatives[..., k]
        + t**2 * (3 - 2 * t) * y[..., k + 1]
        + t**2 * (t - 1) * h[k] * derivatives[..., k + 1]
    )
    return np.asarray(value, dtype=np.float64)


def _derivatives(h: FloatArray, slopes: FloatArray) -> FloatArray:
    """At each point: the weighted harmonic mean of the slopes beside it, zero where they differ in sign."""
    if h.size < _LINE:
        return np.concatenate([slopes, slopes], axis=-1)
    before, after = slopes[..., :-1], slopes[..., 1:]
    w_before, w_after = 2 * h[1:] + h[:-1], h[1:] + 2 * h[:-1]
    monotone = before * after > 0
    harmonic = w_before / np.where(monotone, before, 1.0) + w_after / np.where(monotone, after, 1.0)
    inner = np.where(monotone, (w_before + w_after) / np.where(monotone, harmonic, 1.0), 0.0)
    first = _end(h[0], h[1], slopes[..., 0], slopes[..., 1])
    last = _end(h[-1], h[-2], slopes[..., -1], slopes[..., -2])
    return np.concatenate([first[..., np.newaxis], inner, last[..., np.newaxis]], axis=-1)


def _end(h: float, h_next: float, slope: FloatArray, slope_next: FloatArray) -> FloatArray:
    """The one-sided three-point derivative, held back where it would overshoot."""
    derivative = ((2 * h + h_next) * slope - h * slope_next) / (h + h_next)
    turned = np.sign(derivative) != np.sign(slope)
    steep = (np.sign(slope) != np.sign(slope_next)) & (np.abs(derivative) > 3 * np.abs(slope))
    return np.asarray(np.where(turned, 0.0, np.where(steep, 3 * slope, derivative)), dtype=np.float64)
