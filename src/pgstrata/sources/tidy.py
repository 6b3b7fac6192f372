"""Observations as a CSV table, which `pgstrata decide` and other programs can read. Pure."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import Final

from pgstrata.model.answer import ALL_CELLS
from pgstrata.model.observation import Observation, Repeats
from pgstrata.sources.further import FURTHER

_FIRST: Final = ("environment", "cell", "metric", "value")
_TIMES: Final = ("started", "seconds")
_RESERVED: Final = frozenset({"block", *_FIRST, *FURTHER})


def render_observations(observations: Sequence[Observation], repeats: Repeats | None) -> str:
    """CSV with a header: one row for each measurement; columns that would be empty are left out."""
    rows = list(tidy_rows(observations, repeats))
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, fieldnames=tidy_columns(observations, repeats), lineterminator="\n", restval="")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def tidy_columns(observations: Sequence[Observation], repeats: Repeats | None) -> tuple[str, ...]:
    """Names of the columns, in their order; a dimension with the name of another column gets the suffix (dimension)."""
    names = dict.fromkeys(dimension_column(name) for each in observations for name in each.dimensions)
    return (
        *(("block",) if any(each.key is not None for each in observations) else ()),
        *_FIRST,
        *(_TIMES if any(each.span is not None for each in observations) else ()),
        "validity",
        *(("opening",) if any(each.opening is not None for each in observations) else ()),
        *(("repeats",) if repeats is not None else ()),
        *names,
        "source",
    )


def render_history(observations: Sequence[Observation]) -> str:
    """CSV in Otava's format: a row for each environment and turn, by time; a column for each metric (of each cell).

    The columns up to `block` are time and attributes. If there are several cells, the columns of metrics begin with the
    cell. A missing measurement is an empty field.

    Raises:
        ValueError: an observation has no time stamp.
    """
    cells = tuple(dict.fromkeys(each.cell for each in observations))
    columns: dict[str, None] = {}
    lines: dict[tuple[str, str], dict[str, str | float]] = {}
    seen: dict[tuple[str, str, str], int] = {}
    for each in observations:
        if each.span is None:
            raise ValueError(each.provenance)
        for metric, value in each.measurements.items():
            nth = seen[each.target, each.cell, metric] = seen.get((each.target, each.cell, metric), 0) + 1
            turn = each.key.label if each.key is not None else str(nth)
            line = lines.setdefault((each.target, turn), {"environment": each.target, "block": turn})
            line["time"] = min(str(line.get("time", each.span.started)), each.span.started)
            column = f"{each.cell}: {metric}" if len(cells) > 1 else metric
            columns[column] = None
            line[column] = value
    text = io.StringIO(newline="")
    names = ("time", "environment", "block", *columns)
    writer = csv.DictWriter(text, fieldnames=names, lineterminator="\n", restval="")
    writer.writeheader()
    writer.writerows(sorted(lines.values(), key=lambda line: str(line["time"])))
    return text.getvalue()


def dimension_column(name: str) -> str:
    """The column of a dimension."""
    return f"{name} (dimension)" if name.casefold() in _RESERVED else name


def tidy_rows(observations: Sequence[Observation], repeats: Repeats | None) -> Iterator[dict[str, str | float]]:
    """One row for each measurement, without empty fields. Values have all their digits."""
    for each in observations:
        row: dict[str, str | float] = {"environment": each.target, "cell": each.cell or ALL_CELLS}
        if each.key is not None:
            row["block"] = each.key.label
        if each.span is not None:
            row |= {"started": each.span.started, "seconds": each.span.seconds}
        if each.opening is not None:
            row["opening"] = round(each.opening, 6)
        if repeats is not None:
            row["repeats"] = repeats
        row |= {"validity": each.validity, "source": each.provenance}
        row |= {dimension_column(name): level for name, level in each.dimensions.items()}
        for metric, value in each.measurements.items():
            yield {**row, "metric": metric, "value": value}
