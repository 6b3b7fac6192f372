"""Rates that a study chose as shares of the slowest environment's maximum, and how its fingerprints keep them."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from pgstrata.model.experiment import Cell

RATES: Final = "rates"
"""Name under which a study keeps transactions per second by identity of the cell."""
MAXIMA: Final = "maxima"
"""Name under which a study keeps the maxima, by `maximum_key`."""


def maximum_key(environment: str, cell: Cell) -> str:
    """The name of an environment's maximum: cells that differ only in their rates share one."""
    return f"{environment}/{replace(cell, rate_share=None).identity}"
