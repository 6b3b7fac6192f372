"""Optional columns of a table of results: time, length, validity, provenance, dimensions. Pure.

A user's own table may have columns of these names that mean something else. So a column is used only if all of its
fields can be read; otherwise it is one of the dimensions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from pgstrata.model.observation import Observation, Repeats, TimeSpan
from pgstrata.model.runs import Validity
from pgstrata.sources.moments import parse_moment, render_moment

FURTHER: Final = ("started", "seconds", "validity", "opening", "repeats", "source")
"""Start and length of the measurement, its validity, the first fifth of the run relative to the rest, how repeats were
measured, and the source file."""

_Value = TypeVar("_Value")
Rows = Sequence[Mapping[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Further:
    """Observations completed from optional columns; `ignored` are columns that are neither used nor explained.

    A column is explained if the environment and cell of a row determine its value.
    """

    observations: tuple[Observation, ...]
    repeats: Repeats | None
    ignored: tuple[str, ...]


def add_further(observations: Sequence[Observation], rows: Rows, names: Sequence[str]) -> Further:
    """Complete observations by optional columns.

    Args:
        observations: one for each row.
        rows: fields of the optional columns, by the name of the column.
        names: names of these columns, in the order of the table.
    """
    called = {name: next((each for each in names if each.casefold() == name), name) for name in FURTHER}
    starts = _read(rows, called["started"], _to_moment)
    lengths = _read(rows, called["seconds"], _to_seconds)
    validities = _read(rows, called["validity"], Validity)
    openings = _read(rows, called["opening"], _to_share)
    said = {each for each in _read(rows, called["repeats"], Repeats) or () if each}
    repeats = said.pop() if len(said) == 1 else None
    read = {"started": starts, "seconds": starts and lengths, "validity": validities, "opening": openings,
            "repeats": repeats, "source": repeats}  # fmt: skip
    used = {called[name] for name, found in read.items() if found}
    dimensions = tuple(name for name in names if name not in used)
    found = []
    for place, (each, row) in enumerate(zip(observations, rows, strict=True)):
        start = starts[place] if starts else None
        seconds = (lengths[place] if lengths else None) or 0.0
        found.append(
            replace(
                each,
                span=TimeSpan(started=start, seconds=seconds) if start else None,
                validity=(validities[place] if validities else None) or Validity.VALID,
                opening=openings[place] if openings else None,
                provenance=(repeats and row.get(called["source"])) or each.provenance,
                dimensions={name: row[name] for name in dimensions if row[name]},
            )
        )
    # whoever imported the others chose environment and cell among them
    ignored = () if repeats else _find_unused(found, dimensions)
    return Further(observations=tuple(found), repeats=repeats, ignored=ignored)


def _read(rows: Rows, name: str, read: Callable[[str], _Value]) -> list[_Value | None] | None:
    """The values of a column, None for each empty field; None if there is no such column, or a field cannot be read."""
    texts = [row.get(name, "") for row in rows]
    if not any(texts):
        return None
    try:
        return [read(text) if text else None for text in texts]
    except ValueError:
        return None


def _to_moment(text: str) -> str:
    moment = parse_moment(text)
    if moment is None:
        raise ValueError(text)
    return render_moment(moment)


def _to_seconds(text: str) -> float:
    seconds = float(text)
    if not 0 <= seconds < math.inf:
        raise ValueError(text)
    return seconds


def _to_share(text: str) -> float:
    share = float(text)
    if not -1 <= share < math.inf:
        raise ValueError(text)
    return share


def _find_unused(observations: Sequence[Observation], names: Sequence[str]) -> tuple[str, ...]:
    """Columns with values that do not follow from the environment and the cell of a row."""
    unused = []
    for name in names:
        levels: dict[tuple[str, str], set[str]] = {}
        untold = False
        for each in observations:
            level = each.dimensions.get(name, "")
            levels.setdefault((each.target, each.cell), set()).add(level)
            untold = untold or not (level and f" {level} " in f" {each.target} {each.cell.replace('=', ' ')} ")
        repeated = len(levels) < len(observations)
        if untold and not (repeated and all(len(found) == 1 for found in levels.values())):
            unused.append(name)
    return tuple(unused)
