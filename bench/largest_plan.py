"""Seconds and memory of `plan` for the largest files that it accepts, and for large ones that it refuses.

.venv/bin/python bench/largest_plan.py
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from figures import Figure

MIB: Final = 1 << 20
MOST_MEMORY: Final = 300.0
"""MB."""
# Stands for a machine on which evidence and data have room; everything else is `pgstrata plan` and `plan --json`.
_PLAN: Final = """\
import sys
from dataclasses import replace
from pathlib import Path
import pgstrata.app.question as question
from pgstrata.errors import UsageError
from pgstrata.report.planning.plan import plan_json, render_plan
here = question.capacity_here()
question.capacity_here = lambda: replace(here, free_disk=10**15, memory=10**13)
try:
    plan = question.load_plan(Path(sys.argv[1]), sure=False)
    print(len(render_plan(plan, "e.toml")), len(plan_json(plan)))
except UsageError as error:
    print(len(str(error)))
print(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")), end="")
"""


def _file(*, environments: int = 2, cells: int = 1, blocks: int = 1, more: str = "", script: str = "") -> str:
    levels = ", ".join(f'"{64 + number}kB"' for number in range(environments))
    asked = f'scripts = [{{ file = "{script}" }}]' if script else 'workload = "select-only"'
    scales = ", ".join(str(number) for number in range(1, max(1, cells // 20) + 1))
    clients = ", ".join(str(number) for number in range(1, min(cells, 20) + 1))
    return (
        f"blocks = {blocks}\n[factors]\nsettings.work_mem = [{levels}]\n{more}"
        f"[[cells]]\n{asked}\nscale = [{scales}]\nclients = [{clients}]\n"
    )


def _fill(line: str) -> str:
    """Lines, each with a number in it, that are 1 MiB together, less the rest of a file."""
    lines: list[str] = []
    size = 0
    while size < MIB - 1000:
        lines.append(line.format(number=len(lines)))
        size += len(lines[-1].encode())
    return "".join(lines)


FILES: Final[Mapping[str, str]] = {
    "50,000 runs in 20 environments": _file(environments=25, cells=100, blocks=20),
    "50,000 runs of 500 environments with images": _file(
        environments=500, cells=100, more='[common]\nstorage.wal = "loop"\nfilesystem = "ext4"\n'
    ),
    "1 MiB of settings, refused": _file(more="[common.settings]\n" + _fill("a{number}.b = 1\n")),
    "1 MiB of connection strings": _file(more="# " + _fill("dsn:postgresql://u:p{number}@h/d ") + "\n"),
    "1 MiB of unknown keys, refused": _file() + _fill("k{number} = 1\n"),
    "1 MiB of levels, refused": '[factors]\n"settings.a.b" = [' + _fill("{number}, ") + "1]\n",
    "16 MiB of scripts": "[factors]\nsettings.work_mem = [1, 2]\n"
    + "".join(f'[[cells]]\nscripts = [{{ file = "{n}.sql" }}]\nscale = 1\nclients = {n}\n' for n in range(1, 5)),
}


def measure_largest_plan() -> Sequence[Figure]:
    """The most CPU seconds and the most MB of all files."""
    seconds, memory = [], []
    with tempfile.TemporaryDirectory() as folder:
        for name in FILES:
            one_seconds, one_memory, said = measure_plan(name, Path(folder))
            seconds.append(one_seconds)
            memory.append(one_memory)
            print(f"{name}: {one_seconds:.1f} s of CPU, {one_memory:.0f} MB, characters shown: {said}")
    return [
        Figure(name="largest plan: most seconds of CPU", value=max(seconds), goal=5.0),
        Figure(name="largest plan: most MB of memory", value=max(memory), goal=MOST_MEMORY),
    ]


def measure_plan(name: str, folder: Path) -> tuple[float, float, str]:
    """Seconds of CPU and MB of memory of `plan` for one of `FILES`, and how many characters it shows."""
    for number in range(1, 5):
        line = f"SELECT \x01{number} /* ä */;\n"
        Path(folder, f"{number}.sql").write_text(line * (4 * MIB // len(line.encode())))
    file = Path(folder, "e.toml")
    file.write_text(FILES[name])
    child = subprocess.Popen((sys.executable, "-c", _PLAN, str(file)), stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    with child.stdout as stream:
        *said, peak = stream.read().splitlines() or [""]
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode or not int(said[0].split()[0]):
        raise RuntimeError(f"{name}: ended with {child.returncode}")
    # Not ru_maxrss: Linux counts there what the process had before exec, a copy of the one that started it.
    return used.ru_utime + used.ru_stime, int(peak.split()[1]) / 1024, said[0]


if __name__ == "__main__":
    for figure in measure_largest_plan():
        print(figure.line())
