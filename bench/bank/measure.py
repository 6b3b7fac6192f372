"""A bank of real visits, from which come the shares of right verdicts in given minutes.

    ONLY=bank make bench                                          evaluate the visits that are kept
    MINUTES=30 SIDES=quiet,busy ONLY=bank make bench              measure that long first; give it again to go on
    MINUTES=30 SIDES=quiet CLIENTS=2 KINDS=equal,5 DESIGNS=paired WORKLOADS=select-only ONLY=bank make bench
    VISITS=10 ...                                                 until each kind has so many, instead of the planned

Studies lie in the folder KEEP, by default bench/work/bank; the visits, one line each, in bench/bank/data. Nothing else
may run beside `quiet` and `busy`, which brings a loop of its own; `SIDES=shared` is for a machine on which others work.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from bank.conditions import CLIENTS, DESIGNS, KINDS, PLANNED_SIDES, SIDES, WORKLOADS, Condition, Task, wanted_visits
from bank.record import Bank, record
from bank.visits import DATA
from figures import Figure, current_commit

WORK_FOLDER = Path(__file__).parents[1] / "work" / "bank"


def measure_bank() -> Iterator[Figure]:
    """Measure for MINUTES, then evaluate all visits there are; the page of the documentation is written anew."""
    if seconds := 60 * float(os.environ.get("MINUTES") or 0):
        record(open_bank(), chosen_tasks(), seconds)
    yield from ()


def open_bank() -> Bank:
    """The bank that KEEP names."""
    commit = current_commit() or "unknown"
    short = commit[:8] + ("-dirty" if commit.endswith("-dirty") else "")
    return Bank(folder=Path(os.environ.get("KEEP") or WORK_FOLDER), data=DATA, commit=short)


def chosen_tasks() -> Sequence[Task]:
    """What the environment names of all that is planned; with VISITS also what is not."""
    workloads, designs, kinds = _chosen("WORKLOADS", WORKLOADS), _chosen("DESIGNS", DESIGNS), _chosen("KINDS", KINDS)
    sides = _chosen("SIDES", SIDES) if os.environ.get("SIDES") else PLANNED_SIDES
    clients = [int(word) for word in _chosen("CLIENTS", [str(number) for number in CLIENTS])]
    visits = int(os.environ.get("VISITS") or 0)
    tasks = []
    for workload, number, design, side, kind in itertools.product(workloads, clients, designs, sides, kinds):
        condition = Condition(workload=workload, clients=number, design=design, side=side)
        wanted = visits or wanted_visits(condition, kind)
        if wanted and workload in KINDS[kind]:
            tasks.append(Task(condition=condition, kind=kind, visits=wanted))
    return tasks


def _chosen(name: str, known: Collection[str]) -> Sequence[str]:
    """Words of an environment variable, or all.

    Raises:
        SystemExit: one of them is unknown.
    """
    words = [word.strip() for word in (os.environ.get(name) or "").split(",") if word.strip()]
    if unknown := [word for word in words if word not in known]:
        raise SystemExit(f"{name}: there is no {', '.join(unknown)}: {', '.join(known)}")
    return words or tuple(known)
