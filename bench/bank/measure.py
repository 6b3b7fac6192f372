"""A bank of real visits, from which come the shares of right verdicts in given minutes.

    ONLY=bank make bench                                          evaluate the visits that are kept
    MINUTES=30 SIDES=quiet,busy ONLY=bank make bench              measure that long first; give it again to go on.
                                                                  What has the fewest visits comes first
    MINUTES=30 SIDES=quiet CLIENTS=2 KINDS=equal,5 DESIGNS=paired WORKLOADS=select-only ONLY=bank make bench
    VISITS=10 ...                                                 until each kind has so many, instead of the planned
    STUDIES=3 ...                                                 first three whole studies of each question, which
                                                                  stop when they are decided

Studies lie in the folder KEEP, by default bench/work/bank. Each visit is a line in bench/bank/data as soon as it has
ended, so that an interrupted call loses the one in flight. Nothing else
may run beside `quiet` and `busy`, which brings a loop of its own; `SIDES=shared` is for a machine on which others work.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from bank.components import Scatter
from bank.conditions import (
    CLIENTS,
    DESIGNS,
    KINDS,
    PLANNED_SIDES,
    SIDES,
    WORKLOADS,
    Condition,
    Task,
    other_environment,
    wanted_visits,
)
from bank.page import place_of, write_page
from bank.record import Bank, record
from bank.replay import INSIDE, Draws
from bank.rows import Row, load_bank, rows_of, scatters
from bank.studies import STUDIES, load_studies, record_studies
from bank.visits import DATA
from figures import Figure, commit_of_source

from pgstrata.errors import HostNotFitError

WORK_FOLDER = Path(__file__).parents[1] / "work" / "bank"


def measure_bank() -> Iterator[Figure]:
    """Measure for MINUTES, then evaluate all visits there are; the page of the documentation is written anew."""
    if seconds := 60 * float(os.environ.get("MINUTES") or 0):
        tasks = chosen_tasks()
        try:
            _measure(tasks, seconds)
        except HostNotFitError as error:
            print(f"    nothing more is measured: {error}", flush=True)
    bank = load_bank(DATA)
    rows, scatter = [], scatters(bank)
    for row in rows_of(bank, Draws()):
        rows.append(row)
        yield from _share_figures(row)
    yield from _ratios(scatter)
    write_page(bank, rows, scatter, load_studies(STUDIES))


def _measure(tasks: Sequence[Task], seconds: float) -> None:
    """Whole studies if they are asked for, then visits.

    Raises:
        HostNotFitError: something else is being measured on this host, or it was left changed.
        InterruptedByUserError: Ctrl-C.
    """
    until = time.monotonic() + seconds
    if number := int(os.environ.get("STUDIES") or 0):
        record_studies(STUDIES, tasks, number, seconds)
    record(open_bank(), tasks, until - time.monotonic())


def _share_figures(row: Row) -> Iterator[Figure]:
    """None for what has too few visits for any verdict."""
    found = row.found
    if found is None or (row.minutes is None and row.condition.side != "shared" and row.limit is None):
        return
    goal = "no goal of minutes" if row.minutes is None else f"{row.minutes:g} min"
    sizes = f"{goal}; {row.visits} visits, as recorded {found.in_order:.0f} %, median {found.whole.minutes:.1f} min"
    name = f"bank: {row.question.name}, {place_of(row.condition)}, {row.condition.design}"
    shares = (
        f"right {found.right} %, wrong {found.whole.wrong:.0f} %, not decided {found.whole.undecided:.0f} %, "
        f"truth inside {found.covered} %"
    )
    notes = [sizes, shares, *([row.state] if row.state else ())]
    yield Figure(name=f"{name}: right", value=found.right.value, goal=INSIDE, unit="%", low_is_good=False, notes=notes)
    yield Figure(name=f"{name}: covered", value=found.covered.value, goal=INSIDE, unit="%", low_is_good=False)
    if row.limit is not None:
        effect = float(row.question.kind)
        yield Figure(name=f"{name}: detection limit", value=row.limit, goal=effect, unit="%")


def _ratios(scatter: Mapping[Condition, Scatter]) -> Iterator[Figure]:
    """SD of D, paired to free, wherever both were measured."""
    for condition, paired in scatter.items():
        free = scatter.get(replace(condition, design="free"))
        if condition.design == "paired" and free is not None:
            notes = [
                f"{design}: SD of D {each.spread.value:.1f} % [{each.spread.low:.1f}, {each.spread.high:.1f}], robust "
                f"{each.robust:.1f}, between rounds {each.between_rounds:.1f}, lasting {each.lasting.value:.1f}, "
                f"{each.visits} visits"
                for design, each in (("free", free), ("paired", paired))
            ]
            value = paired.spread.value / free.spread.value
            yield Figure(name=f"bank: SD paired / free, {place_of(condition)}", value=value, goal=1.0, notes=notes)


def open_bank() -> Bank:
    """The bank that KEEP names."""
    return Bank(folder=Path(os.environ.get("KEEP") or WORK_FOLDER), data=DATA, commit=commit_of_source())


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
        if wanted and other_environment(condition, kind) is not None:
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
