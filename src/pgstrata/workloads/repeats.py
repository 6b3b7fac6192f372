"""Stretches of a script that are repeated, because pgbench's scripts have no loops."""

from __future__ import annotations

import re
from typing import Final

_REPEAT: Final = re.compile(
    r"^-- repeat (?P<name>[a-z]+) from (?P<first>\d+) to (?P<last>\d+)\n(?P<body>.*?)^-- end of repeat\n",
    re.MULTILINE | re.DOTALL,
)


def unroll(text: str) -> str:
    """The text with each stretch written out.

    A stretch stands between `-- repeat NAME from FIRST to LAST` and `-- end of repeat`, lines of their own; @NAME@ is
    the number in it. Stretches do not contain stretches.
    """

    def write_out(stretch: re.Match[str]) -> str:
        numbers = range(int(stretch["first"]), int(stretch["last"]) + 1)
        return "".join(stretch["body"].replace(f"@{stretch['name']}@", str(number)) for number in numbers)

    return _REPEAT.sub(write_out, text)
