"""How contributions to a difference are named, and with which unit and digits they are said."""

from __future__ import annotations

from typing import Final

from pgstrata.model.attribution import Contribution, Part, ValueInterval

PART_NAMES: Final = {
    Part.CLIENT: "client and network",
    Part.CPU: "CPU",
    Part.QUEUE: "run queue",
    Part.RUNNING: "CPU and run queue",
    Part.WAIT: "other waits",
    Part.REST: "rest: off the CPU, no event",
    Part.CONNECT: "connecting",
}
_QUERY_WIDTH: Final = 44
_LOPSIDED: Final = 0.05
"""Of half an interval, by which what is said may be beside its middle."""
_UNITS: Final = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))


def name_part(item: Contribution) -> str:
    """IO/WalSync, CPU, client and network. Names of events come from the server."""
    if item.part is None:
        return "all"
    return _readable(item.event) or PART_NAMES[item.part]


def name_row(item: Contribution) -> str:
    """IO/WalSync in END; Lock/transactionid in UPDATE t, behind UPDATE t; rest in END, in the kernel's do_select.

    Of other processes than sessions: checkpointer: IO/DataFileSync.
    """
    if item.process:
        return f"{_readable(item.process)}: {name_part(item)}"
    name = f"{name_part(item)} in {name_query(item.query)}" if item.query else name_part(item)
    if item.place:
        return f"{name}, in the kernel's {_readable(item.place)}"
    return f"{name}, behind {name_query(item.blocker)}" if item.query and item.blocker else name


def name_query(text: str, width: int = _QUERY_WIDTH) -> str:
    """A statement in one line of so many characters; what cannot be printed is a question mark."""
    line = _readable(text).rstrip("; ")
    return line if len(line) <= width else f"{line[: width - 3].rstrip()}..."


def _readable(text: str) -> str:
    """In one line, with a question mark for what cannot be printed."""
    return " ".join("".join(mark if mark.isprintable() or mark.isspace() else "?" for mark in text).split())


def choose_unit(seconds: float) -> tuple[float, str]:
    """Seconds in a unit in which a time is readable, and its name."""
    return next(((size, name) for size, name in _UNITS if abs(seconds) >= size), _UNITS[-1])


def half_of(span: ValueInterval | None) -> float:
    """What stands behind the ±."""
    return 0.0 if span is None else (span.high - span.low) / 2


def render_half(item: Contribution, size: float, digits: int) -> str:
    """0.17; where what is said is not the middle of its interval, -0.11 +0.24; in a unit of `size` seconds."""
    half = half_of(item.interval) / size
    if item.interval is None or not is_lopsided(item):
        return f"{half:.{digits}f}"
    low, high = (item.interval.low - item.difference) / size, (item.interval.high - item.difference) / size
    return f"{low:+.{digits}f} {high:+.{digits}f}"


def is_lopsided(item: Contribution) -> bool:
    """Whether the interval reaches farther to one side, as where a value is known between bounds only."""
    if item.interval is None:
        return False
    middle = (item.interval.high + item.interval.low) / 2
    return abs(middle - item.difference) > _LOPSIDED * half_of(item.interval)


def choose_decimals(half: float) -> int:
    """Digits behind the point that so wide an interval leaves a meaning: at most two."""
    return 0 if half >= 0.95 or half == 0 else 1 if half >= 0.095 else 2  # noqa: PLR2004


def render_change(item: Contribution, size: float) -> str:
    """-310 ± 20, or -310 [-370, -300], in a unit of `size` seconds."""
    half = half_of(item.interval) / size
    digits = choose_decimals(half)
    change = render_signed(item.difference / size, digits)
    if item.interval is None or not is_lopsided(item):
        return f"{change} ± {half:.{digits}f}"
    low, high = (render_signed(bound / size, digits) for bound in (item.interval.low, item.interval.high))
    return f"{change} [{low}, {high}]"


def render_signed(value: float, digits: int) -> str:
    """A change with its sign; nothing has none."""
    text = f"{value:+.{digits}f}"
    return text if float(text) else text[1:]
