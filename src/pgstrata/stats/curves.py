"""Curves over few points: the shape-preserving interpolant, and what the other points leave open for each of them."""

from __future__ import annotations

from typing import Final

import numpy as np

from pgstrata.stats.ranks import FloatArray

_LINE: Final = 2


def chord_residuals(x: FloatArray, y: FloatArray) -> FloatArray:
    """What each inner point exceeds the line through its two neighbours by: shape (..., points - 2)."""
    share = (x[1:-1] - x[:-2]) / (x[2:] - x[:-2])
    return np.asarray(y[..., 1:-1] - (1 - share) * y[..., :-2] - share * y[..., 2:], dtype=np.float64)


def band_at(x: FloatArray, y: FloatArray, point: int) -> tuple[FloatArray, FloatArray]:
    """Lower and upper end of what the other points leave open for one inner point, shape (...) each.

    Throughput over clients rises along a line and bends where something is used up. The interpolant through the other
    points cannot know where, and may be wrong by a tenth if they lie wide apart; but a curve that bends one way only
    lies between the line through its neighbours and the lines through the two points on either side (the nearer of
    those, if they lie on one side). The band holds these and the interpolant.

    Args:
        x: places, ascending, shape (points,), at least three.
        y: values, shape (..., points).
        point: place of the point, not the first or the last.
    """
    others, at = np.delete(x, point), float(x[point])
    rest = np.delete(y, point, axis=-1)
    smooth = pchip(others, rest, at)
    chord = _line(others, rest, point - 1, at)
    open_to = [smooth, chord]
    if _LINE <= point < x.size - _LINE:
        left, right = _line(others, rest, point - 2, at) - chord, _line(others, rest, point, at) - chord
        nearer = np.where(np.abs(left) < np.abs(right), left, right)
        open_to.append(chord + np.where(left * right > 0, nearer, 0.0))
    return np.min(open_to, axis=0), np.max(open_to, axis=0)


def _line(x: FloatArray, y: FloatArray, first: int, at: float) -> FloatArray:
    """The line through a point and the next one, at one place."""
    share = (at - x[first]) / (x[first + 1] - x[first])
    return np.asarray((1 - share) * y[..., first] + share * y[..., first + 1], dtype=np.float64)


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
    product = before * after
    monotone = product > 0
    # multiplied out, so that a slope close to zero overflows nothing
    weighed = np.where(monotone, w_before * after + w_after * before, 1.0)
    inner = np.where(monotone, (w_before + w_after) * product / weighed, 0.0)
    first = _end(h[0], h[1], slopes[..., 0], slopes[..., 1])
    last = _end(h[-1], h[-2], slopes[..., -1], slopes[..., -2])
    return np.concatenate([first[..., np.newaxis], inner, last[..., np.newaxis]], axis=-1)


def _end(h: float, h_next: float, slope: FloatArray, slope_next: FloatArray) -> FloatArray:
    """The one-sided three-point derivative, held back where it would overshoot."""
    derivative = ((2 * h + h_next) * slope - h * slope_next) / (h + h_next)
    turned = np.sign(derivative) != np.sign(slope)
    steep = (np.sign(slope) != np.sign(slope_next)) & (np.abs(derivative) > 3 * np.abs(slope))
    return np.asarray(np.where(turned, 0.0, np.where(steep, 3 * slope, derivative)), dtype=np.float64)
