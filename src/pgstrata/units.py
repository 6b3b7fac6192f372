"""Units and directions of numbers, and the text forms that users read and write.

Base units inside (seconds, bytes, 1/s); scaling happens here, for display only.
Nothing about metrics, plans or statistics belongs here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from enum import StrEnum


class Direction(StrEnum):
    """Which way is better."""

    HIGHER = "higher"
    LOWER = "lower"

    @property
    def sign(self) -> float:
        """Turns ln(value / baseline value) so that above zero is better."""
        return 1.0 if self is Direction.HIGHER else -1.0


class Unit(StrEnum):
    """Base units of measurements."""

    PER_SECOND = "1/s"
    PER_MINUTE = "1/min"
    PER_HOUR = "1/h"
    SECONDS = "s"
    BYTES = "B"
    BYTES_PER_SECOND = "B/s"
    BYTES_PER_TRANSACTION = "B/tx"
    SECONDS_PER_TRANSACTION = "s/tx"
    PER_TRANSACTION = "1/tx"
    CPUS = "CPU"
    RATIO = "ratio"
    COUNT = "count"


_SECONDS = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_BYTES = {"B": 1, "kB": 1024, "KB": 1024, "MB": 1024**2, "GB": 1024**3, "TB": 1024**4}
_QUANTITY = re.compile(r"^\s*(?P<number>[+-]?\d+(?:\.\d+)?)\s*(?P<unit>[A-Za-zµ%]*)\s*$")


def parse_duration(text: str) -> float:
    """Seconds from texts such as "60s", "10m", "1h30m", "90 s".

    Raises:
        ValueError: the text is not a duration.
    """
    rest = text.strip()
    total = 0.0
    if not rest:
        raise ValueError("an empty duration")
    pattern = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(us|µs|ms|min|s|m|h|d)")
    while rest:
        match = pattern.match(rest)
        if match is None:
            raise ValueError(f"{text!r} is not a duration such as 60s, 10m or 1h30m")
        total += float(match.group(1)) * _SECONDS[match.group(2)]
        rest = rest[match.end() :].strip()
    return _finite(total, text)


def parse_bytes(text: str) -> int:
    """Bytes from texts such as "512MB", "8kB", "1 GB" (PostgreSQL's units: 1024-based).

    Raises:
        ValueError: the text is not a size.
    """
    match = _QUANTITY.match(text)
    if match is None or match.group("unit") not in _BYTES:
        raise ValueError(f"{text!r} is not a size such as 512MB, 8kB or 4GB")
    return round(_finite(float(match.group("number")) * _BYTES[match.group("unit")], text))


def parse_setting_bytes(text: str, unit: int) -> int:
    """Bytes of a size among PostgreSQL's settings: "4GB", or a number that counts in the setting's own unit (bytes).

    Raises:
        ValueError: the text is not a size.
    """
    return int(text) * unit if text.strip().isdecimal() else parse_bytes(text)


def parse_ratio(text: str) -> float:
    """A ratio from texts such as "3 %" or "0.03".

    Raises:
        ValueError: the text is not a ratio.
    """
    match = _QUANTITY.match(text)
    if match is None or match.group("unit") not in {"", "%"}:
        raise ValueError(f"{text!r} is not a ratio such as 3 % or 0.03")
    number = _finite(float(match.group("number")), text)
    return number / 100 if match.group("unit") == "%" else number


def _finite(number: float, text: str) -> float:
    if not math.isfinite(number):
        raise ValueError(f"{text[:20]!r} is too large")
    return number


def render_count(number: int, noun: str) -> str:
    """3 blocks, 1 block."""
    return f"{number} {noun}" if number == 1 else f"{number:,} {noun}s"


def render_names(names: Sequence[str], most: int) -> str:
    """a, b and 3 more: at most so many names, and how many are left out."""
    left = len(names) - most
    return ", ".join(names[:most]) + (f" and {left:,} more" if left > 0 else "")


def render_bytes(value: float) -> str:
    """A size with at most three significant digits: 1.4 GB; a mean below 1 with one, and below 0.05 as 0 B."""
    if abs(value) < 1:
        return f"{round(value, 1) + 0.0:g} B"
    for unit in ("B", "kB", "MB", "GB"):
        if abs(value) < 1024:  # noqa: PLR2004 - the step between PostgreSQL's units
            return f"{render_digits(value)} {unit}"
        value /= 1024
    return f"{render_digits(value)} TB"


def render_duration(value: float) -> str:
    """A duration for people: 12 µs, 3.4 ms, 7.1 s, 4 min 10 s, 2 h 5 min."""
    magnitude = abs(value)
    if magnitude < 60:  # noqa: PLR2004 - seconds in a minute
        return _short_duration(value, magnitude)
    seconds = round(value)
    if magnitude < 3600:  # noqa: PLR2004 - seconds in an hour
        return f"{seconds // 60} min {seconds % 60} s" if seconds % 60 else f"{seconds // 60} min"
    minutes = round(value / 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes % 60 else f"{minutes // 60} h"


def render_share(share: float) -> str:
    """A share in percent with two digits: 0.6 %, 38 %, 100 %; next to nothing as < 0.01 %."""
    percent = 100 * share
    return "< 0.01 %" if 0 < percent < 0.01 else f"{render_digits(percent, 2)} %"  # noqa: PLR2004


def count_digits(value: float) -> int:
    """Significant digits of a number as it was written, without zeros at either end."""
    return len(f"{value:.15g}".lstrip("-").partition("e")[0].replace(".", "").strip("0"))


def render_digits(value: float, digits: int = 3) -> str:
    """At least so many significant digits, without an exponent from 1e-9 to 1e15: 0.00012, 1.2, 57, 1234."""
    if not 1e-9 <= abs(value) < 1e15:  # noqa: PLR2004 - as many zeros as can be counted; nothing and NaN, too
        return f"{value + 0.0:.{digits}g}"
    # of the rounded value: 9.996 is 10.0, with a digit fewer behind the point
    size = math.floor(math.log10(abs(float(f"{value:.{digits}g}"))))
    text = f"{value:.{max(0, digits - 1 - size)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def render_rate(value: float) -> str:
    """A number with at least three digits: 1,234, 56.7, 0.012."""
    return f"{value:,.0f}" if abs(value) >= 100 else render_digits(value)  # noqa: PLR2004 - three digits


def shorten(text: str, most: int) -> str:
    """At most so many characters; where some are left out, `...` stands at the end."""
    return text if len(text) <= most else f"{text[: most - 3].rstrip()}..."


def printable(text: str) -> str:
    """A stranger's text, in which nothing is left that a terminal would obey; U+FFFD stands for it."""
    return text if text.isprintable() else "".join(mark if mark.isprintable() else "\ufffd" for mark in text)


def render_apart(values: Sequence[str], longest: int, context: int) -> list[str]:
    """Values beside each other, cut to `longest`; long ones from `context` before the place where they part."""
    first, last = min(values), max(values)
    alike = next((place for place, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    start = max(0, alike - context) if any(len(value) > longest for value in values) else 0
    return [
        f"{'...' if start else ''}{value[start : start + longest]}{'...' if len(value) > start + longest else ''}"
        if value
        else "(empty)"
        for value in values
    ]


def _short_duration(value: float, magnitude: float) -> str:
    if magnitude == 0:
        return "0 s"
    for scale, unit in ((1.0, "s"), (1e-3, "ms")):
        if magnitude >= scale:
            return f"{render_digits(value / scale)} {unit}"
    return f"{render_digits(value / 1e-6)} µs"


def render_percent_change(ratio: float) -> str:
    """A ratio as a signed change: 1.042 -> +4.2 %; more digits where the change is small."""
    change = (ratio - 1) * 100
    digits = 1 if abs(change) < 100 else 0  # noqa: PLR2004 - three digits are enough
    text = f"{change:+.{digits}f}"
    if float(text) == 0:
        text = text.replace("-", "±").replace("+", "±")
    return f"{text} %"


def render_value(value: float, unit: Unit) -> str:
    """A number with its unit, scaled for reading."""
    if math.isnan(value):
        return "n/a"
    match unit:
        case Unit.PER_SECOND | Unit.PER_MINUTE | Unit.PER_HOUR:
            per = unit.value.removeprefix("1")
            return f"{render_rate(value)}{per}"
        case Unit.SECONDS:
            return render_duration(value)
        case Unit.SECONDS_PER_TRANSACTION:
            return f"{render_duration(value)}/tx"
        case Unit.BYTES:
            return render_bytes(value)
        case Unit.BYTES_PER_SECOND:
            return f"{render_bytes(value)}/s"
        case Unit.BYTES_PER_TRANSACTION:
            return f"{render_bytes(value)}/tx"
        case Unit.PER_TRANSACTION:
            return f"{render_digits(value)}/tx"
        case Unit.CPUS:
            return f"{value:.2f} CPU"
        case Unit.RATIO:
            return f"{value * 100:.1f} %"
        case Unit.COUNT:
            return f"{value:,.0f}"
