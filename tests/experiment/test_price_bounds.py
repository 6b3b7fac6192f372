"""Lists of prices that no file of prices is."""

import pytest

from pgstrata.errors import UsageError
from pgstrata.experiment.prices import parse_prices


@pytest.mark.parametrize("text", [f"prices = {'[' * 20_000}", f"prices = {'9' * 5000}"])
def test_what_python_cannot_read_is_no_traceback(text):
    with pytest.raises(UsageError, match="too many digits, or tables are nested too deeply"):
        parse_prices(text, "p.toml")
