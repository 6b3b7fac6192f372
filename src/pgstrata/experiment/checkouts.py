"""A checkout of a program in Lua that a cell names: which of its files run, and whether they can be run here.

The texts become part of the plan, so that a study goes on with the files that it began with.
"""

import re
from typing import Final

from pgstrata.experiment.findings import Findings
from pgstrata.experiment.keys import Path
from pgstrata.experiment.stacks import StackReader
from pgstrata.model.experiment import Script

_REQUIRED: Final = re.compile(r"""^[^-\n]*\brequire[ \t(]+["']([\w-]+)["']""", re.MULTILINE)
_OF_LUA: Final = frozenset(
    ["bit", "coroutine", "debug", "ffi", "io", "jit", "math", "os", "package", "string", "table"]
)
_OF_SYSBENCH: Final = "oltp_"
_MOST_FILES: Final = 50
# Options of its command line that pgstrata gives, and the driver that it must know.
_NEEDED: Final = {
    "scale": re.compile(r"^\s*scale\s*=", re.MULTILINE),
    "tables": re.compile(r"^\s*tables\s*=", re.MULTILINE),
    "PostgreSQL": re.compile("pgsql"),
}


def read_checkout(folder: str, first: str, place: Path, reader: StackReader) -> tuple[Script, ...]:
    """The file `first` of a folder and all that it requires from there, in the order in which they are met.

    What is missing, or cannot be run, is noted at `place`.
    """
    found: dict[str, str] = {}
    waiting = [first]
    while waiting and len(found) < _MOST_FILES:
        name = waiting.pop(0)
        text = reader.read_text(f"{folder.rstrip('/')}/{name}", place, runs=True)
        if text is None:
            return ()
        found[name] = text
        waiting += (each for each in _required(text) if each not in {*found, *waiting})
    _check(found, folder, place, reader.findings)
    return tuple(Script(file=name, text=text) for name, text in found.items())


def _required(text: str) -> list[str]:
    names = dict.fromkeys(_REQUIRED.findall(text))
    return [f"{name}.lua" for name in names if name not in _OF_LUA and not name.startswith(_OF_SYSBENCH)]


def _check(found: dict[str, str], folder: str, place: Path, findings: Findings) -> None:
    missing = [what for what, pattern in _NEEDED.items() if not any(map(pattern.search, found.values()))]
    if missing:
        lacking = [f"the option --{each}" if each.islower() else f"support for {each}" for each in missing]
        findings.add(
            place,
            f"the files of {folder!r} lack {', '.join(lacking)}",
            "name a checkout of https://github.com/Percona-Lab/sysbench-tpcc of 2020 or later",
        )
