"""Pure: the output of pg_test_fsync and of pg_test_timing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from pgstrata.errors import ParseError

FSYNC: Final = "pg_test_fsync"
TIMING: Final = "pg_test_timing"

_ONE_WRITE: Final = re.compile(
    r"^Compare file sync methods using one \S+ write:\n(?P<table>.*?)(?:\n\s*\n|\Z)", re.MULTILINE | re.DOTALL
)
_METHOD: Final = re.compile(
    r"^\s+(?P<method>[a-z_]+)\s+(?P<rate>\d+(?:\.\d+)?) ops/sec\s+\d+ usecs/op\s*$", re.MULTILINE
)
# "Per loop … ns" up to 18 ("nsec" up to 9.6), "Average loop … ns" from 19 on; there other clocks follow the system's.
_LOOP: Final = re.compile(
    r"^(?:Per|Average) loop time including overhead: (?P<time>\d+(?:\.\d+)?) ns(?:ec)?\s*$", re.MULTILINE
)


def parse_fsync(output: str) -> Mapping[str, float]:
    """Seconds per write and flush of 8 kB by method (fdatasync, open_datasync, ...), in the order of the output.

    The rate is read and not the time beside it, which is rounded to microseconds. Methods that the system lacks (n/a)
    or that were not reached are left out: the program may have been stopped after its first table.

    Raises:
        ParseError: there is no such table, or no method in it.
    """
    found = _ONE_WRITE.search(output)
    rates = {row["method"]: float(row["rate"]) for row in _METHOD.finditer(found["table"])} if found else {}
    costs = {method: 1 / rate for method, rate in rates.items() if rate > 0}
    if not costs:
        raise ParseError(f"no method with its rate: {_first_line(output)!r}", where=FSYNC)
    return costs


def parse_timing(output: str) -> float:
    """Seconds that a look at the system's clock takes, the loop around it included.

    Raises:
        ParseError: the line with the time is missing; the message has the first line instead.
    """
    found = _LOOP.search(output)
    if found is None:
        raise ParseError(f"no time per loop: {_first_line(output)!r}", where=TIMING)
    return float(found["time"]) * 1e-9


def _first_line(output: str) -> str:
    return output.strip().partition("\n")[0][:200]
