"""CPU of starting up, as a ratio to importing typer and rich in the same environment."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from figures import Figure

ROUNDS = 25
ROOT = Path(__file__).parent.parent


def cpu_of(argv: Sequence[str], output: Path = Path(os.devnull)) -> float:
    """User and system CPU seconds of one command, which prints into a file.

    Python may keep what it has compiled, as it does for users: its second call compiles nothing.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with output.open("wb") as stream:
        child = subprocess.Popen(argv, stdout=stream, stderr=subprocess.PIPE, cwd=ROOT, env=environment)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise RuntimeError(f"{argv} ended with {child.returncode}")
    if child.stderr:
        child.stderr.close()
    return used.ru_utime + used.ru_stime


def measure_startup() -> Sequence[Figure]:
    """Medians of alternated rounds."""
    base = (sys.executable, "-c", "import typer, rich")
    commands = {
        "help": (sys.executable, "-m", "pgstrata", "--help"),
        "plan": (sys.executable, "-m", "pgstrata", "plan", "examples/demo.toml"),
    }
    goals = {"help": 1.3, "plan": 4.0}
    ratios: dict[str, list[float]] = {name: [] for name in commands}
    for command in (base, *commands.values()):
        cpu_of(command)
    for _ in range(ROUNDS):
        reference = cpu_of(base)
        for name, command in commands.items():
            ratios[name].append(cpu_of(command) / reference)
    return [
        Figure(name=f"startup: {name} / import typer, rich", value=statistics.median(found), goal=goals[name])
        for name, found in ratios.items()
    ]
