"""Sentences on projections of the matrix: what a kind of chart shows, and which charts are not drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pgstrata.report.projections.choice import KindChoice
from pgstrata.report.projections.model import CLIENTS, ENVIRONMENT, SCALE
from pgstrata.report.sentences.names import count, join_names, name_factor

_SERIES: Final = {CLIENTS: "number of clients", SCALE: "scale", ENVIRONMENT: "environment"}


def name_kind(axis: str, series: str) -> str:
    """By kernel, with a line for each number of clients."""
    return f"by {name_factor(axis)}, with a line for each {_SERIES[series]}"


def say_choice(kinds: Sequence[KindChoice]) -> str:
    """Which charts are drawn, and how to get the others; without a full stop."""
    drawn, whole = sum(len(kind.drawn) for kind in kinds), sum(kind.of for kind in kinds)
    if drawn == whole:
        counted = "; ".join([f"{kind.of} {name_kind(kind.axis, kind.series)}" for kind in kinds])
        return f"all {count(whole, 'chart')} of this matrix are drawn: {counted}" if whole > 1 else ""
    parts = "; ".join([f"{len(kind.drawn)} of {kind.of} {name_kind(kind.axis, kind.series)}" for kind in kinds])
    left = list(dict.fromkeys(name_factor(kind.axis) for kind in kinds if len(kind.drawn) < kind.of))
    return (
        f"{drawn} of {whole} charts of this matrix are drawn: {parts}. `pgstrata report STUDY --along {left[0]}` draws "
        f"all by {left[0]}{_say_others(left[1:])}; `pgstrata export STUDY` writes all figures as CSV"
    )


def _say_others(axes: Sequence[str]) -> str:
    return f" (the same with {join_names(axes)})" if axes else ""
