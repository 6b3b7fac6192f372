"""Reads a list of prices from a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pgstrata.errors import UsageError
from pgstrata.experiment.prices import parse_prices
from pgstrata.model import sizes
from pgstrata.model.price import Price
from pgstrata.system.reading import read_regular


def read_price_list(file: Path) -> Mapping[str, Price]:
    """Prices by the name of their host or environment; UsageError if the file cannot be read or one is not valid."""
    try:
        text = read_regular(file, most=sizes.EXPERIMENT_FILE).decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UsageError(
            f"the prices cannot be read: {reason}", where=str(file), remedy="name a regular file of UTF-8 text"
        ) from None
    return parse_prices(text, str(file))
