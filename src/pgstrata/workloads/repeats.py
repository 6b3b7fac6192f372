"""Repeated sections of a script, because pgbench's scripts have no loops."""

from __future__ import annotations

import re
from typing import Final

_REPEAT: Final = re.compile(
    r"^-- repeat (?P<name>[a-z]+) from (?P<first>\d+) to (?P<last>\d+)\n(?P<body>.*?)^-- end of repeat\n",
    re.MULTILINE | re.DOTALL,
)


def unroll(text: str) -> str:
    """The text with each section written out.

    A section stands between `-- repeat NAME from FIRST to LAST` and `-- end of repeat`, lines of their own; @NAME@ is
    the number in it. Sections do not nest.
    """

    def write_out(section: re.Match[str]) -> str:
        numbers = range(int(section["first"]), int(section["last"]) + 1)
        return "".join(section["body"].replace(f"@{section['name']}@", str(number)) for number in numbers)

    return _REPEAT.sub(write_out, text)
