"""Axes of charts that are drawn here: values to pixels, and which of them have a number beside them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from pgstrata.units import render_digits

_STEPS: Final = (1, 2, 2.5, 5, 10)
_RATIOS: Final = (0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 0.7, 0.85, 1, 1.2, 1.5, 2, 3, 5, 10, 30, 100, 300, 1000)
"""Changes of -99 % to +99,900 % that have a number on an axis of ratios that reaches far."""
_FAR: Final = 1.8
"""From this ratio of its ends on, an axis of ratios has those numbers, else even steps in percent."""
_LOG_DIGITS: Final = (1, 2, 5)
_MOST_APART: Final = 4.0
_UNITS: Final = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
_SECONDS: Final = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600)
_MOST_SECONDS: Final = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """From the values `low` and `high` to the pixels `start` and `end`; `log` where the same ratio is the same way."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def at(self, value: float) -> float:
        """The pixel of a value; values beyond an end are drawn at that end."""
        value = min(max(value, self.low), self.high)
        if self.log:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A place on an axis and its text."""

    value: float
    text: str


def short_number(value: float) -> str:
    """A number for an axis with three digits at most: 12.5k, 0.25, 1.2M."""
    shown = float(f"{value:.3g}")
    size, unit = next((each for each in _UNITS if abs(shown) >= each[0]), (1.0, ""))
    return f"{render_digits(shown / size)}{unit}"


def exact_number(value: float) -> str:
    """A round number for an axis that covers little, with all its digits: 12.45k, 3.125k."""
    size, unit = next((each for each in _UNITS if abs(value) >= each[0]), (1.0, ""))
    return f"{render_digits(value / size, 10)}{unit}"


def signed_number(value: float) -> str:
    """A difference on an axis: +1,000, +3, 0, -3."""
    value = round(value, 2) + 0.0
    return "0" if value == 0 else f"{value:+,.4g}" if abs(value) < 1000 else f"{value:+,.0f}"  # noqa: PLR2004


def step_between(low: float, high: float, most: int) -> float:
    """The smallest of 1, 2, 2.5 or 5 times a power of ten that divides the stretch into at most so many parts."""
    rough = (high - low) / most
    size = 10.0 ** math.floor(math.log10(rough))
    return next(size * digit for digit in _STEPS if size * digit >= rough * (1 - 1e-9))


def even_ticks(low: float, high: float, most: int = 4) -> tuple[Tick, ...]:
    """Round numbers at equal distances between two ends."""
    step = step_between(low, high, most)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return tuple(Tick(value=place * step, text=short_number(place * step)) for place in range(first, last + 1))


def log_ticks(low: float, high: float, most: int = 5) -> tuple[Tick, ...]:
    """1, 2 and 5 times powers of ten, powers alone over many decades, or even steps within less than one."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for digits in (_LOG_DIGITS, _LOG_DIGITS[:1]):
        found = [digit * 10.0**power for power in powers for digit in digits]
        inside = [value for value in found if low <= value <= high]
        if len(inside) <= most:
            break
    if len(inside) <= 1:
        return even_ticks(low, high, most)
    every = math.ceil(len(inside) / most)
    return tuple(Tick(value=value, text=short_number(value)) for value in inside[::every])


def choose_seconds(last: float) -> list[int]:
    """Whole seconds for the ticks of an axis, few enough that their labels stand apart."""
    step = next((step for step in _SECONDS if last / step <= _MOST_SECONDS), math.ceil(last / _MOST_SECONDS))
    return list(range(0, math.floor(last) + 1, step))


def change_ticks(low: float, high: float, most: int = 5) -> tuple[Tick, ...]:
    """Changes in percent on an axis of ratios, always with none among them."""
    if high / low > _FAR:
        inside = _spread_out([ratio for ratio in _RATIOS if low <= ratio <= high], math.log(high / low) / (most + 1))
    else:
        inside = [1 + each.value / 100 for each in even_ticks(100 * (low - 1), 100 * (high - 1), most)]
    return tuple(Tick(value=ratio, text=signed_number(100 * (ratio - 1))) for ratio in inside)


def _spread_out(ratios: Sequence[float], apart: float) -> list[float]:
    """Those that lie at least so far apart by their logarithms, from 1 on outwards."""
    kept = [1.0]
    for ratio in sorted(ratios, key=lambda each: abs(math.log(each))):
        if all(abs(math.log(ratio / other)) >= apart for other in kept):
            kept.append(ratio)
    return sorted(kept)


def are_far_apart(tops: Sequence[float]) -> bool:
    """Whether the lowest of these would be flat on a scale that reaches to the highest."""
    return max(tops) > _MOST_APART * min(tops)


def value_scale(values: Iterable[float], *, top: float, bottom: float, far_apart: bool) -> Scale:
    """From zero, or logarithmic where one curve would flatten another; `top` and `bottom` in pixels."""
    found = list(values)
    high = max(found)
    if far_apart and min(found) > 0:
        return Scale(low=min(found) / 1.08, high=high * 1.08, start=bottom, end=top, log=True)
    return Scale(low=min(0.0, *found), high=high * 1.06 if high > 0 else 1.0, start=bottom, end=top)


def change_scale(
    effects: Sequence[float], ends: Sequence[float], *, threshold: float, top: float, bottom: float
) -> Scale:
    """Of ratios: all effects and the threshold, and of the ends of intervals what does not squeeze those.

    The scale is logarithmic, so that twice and half lie equally far from one.
    """
    near = [math.log(each) for each in (*effects, 1 - threshold, 1 + threshold) if each > 0]
    low, high = min(near), max(near)
    room = high - low
    beyond = [math.log(each) for each in ends if each > 0 and math.isfinite(each)]
    low = min([low - 0.08 * room, *(each for each in beyond if each >= low - room)])
    high = max([high + 0.08 * room, *(each for each in beyond if each <= high + room)])
    return Scale(low=math.exp(low), high=math.exp(high), start=bottom, end=top, log=True)
