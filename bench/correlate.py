"""Associations of a live server: false ones in windows of unrelated series, true ones with their lag, and the time.

Windows are simulated as a recorder sees them: sessions are counted ten times in each step, and levels drift. In some of
them demand drives waits, host and throughput alike, each in a way of its own, or jobs start every five minutes.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
from figures import Figure
from machine_noise import Floats

from pgstrata.app.correlate import load_associations
from pgstrata.diagnosis.live.correlate import correlate
from pgstrata.model.archive import HOST_RATES, SERVER_RATES, SessionClass, SessionsLook, Span
from pgstrata.model.association import ArchiveSeries, Associations
from pgstrata.store.archives.schema import ARCHIVE
from pgstrata.store.archives.thinning import Keep
from pgstrata.store.archives.writer import ArchiveWriter

FAMILIES = int(os.environ.get("FAMILIES") or 400)
STEPS = 360
LOOKS = 10
SEED = 20261128
EVENTS = ("LWLock/WALWrite", "LWLock/BufferMapping", "IO/DataFileRead", "Lock/tuple", "Client/ClientRead", "")
RATES = ("commits", *SERVER_RATES[1:9], *HOST_RATES[3:14])
MOST_LAG = 3
EVERY = 30
DAY = 86_400
MONTH = 30 * DAY
BEGIN = 1_795_651_200
SESSIONS = 200
_WAITS = ("", "", "", "", *EVENTS[:5], "LWLock/LockManager", "IO/WalSync", "IPC/BufferIo")


def measure_correlate() -> Iterator[Figure]:
    """Shares of false and of true associations; seconds for a day and a month."""
    kinds = (
        ("drifting", 0.9, 0.0, 0.0),
        ("wandering", 1.0, 0.0, 0.0),
        ("driven by demand", 0.6, 1.0, 0.0),
        ("of one clock", 0.6, 0.0, 3.0),
    )
    for name, memory, demand, jobs in kinds:
        draws = (np.random.default_rng([SEED, number]) for number in range(FAMILIES))
        yield _false(name, [correlate(_window(each, memory=memory, demand=demand, jobs=jobs)) for each in draws])
    yield from _true()
    with tempfile.TemporaryDirectory(prefix="pgstrata-") as folder:
        for name, seconds, unit, goal in (("day", DAY, 1, 5.0), ("month", MONTH, 60, 10.0)):
            archive = Path(folder) / name
            _forge(archive, seconds, unit)
            took, used, found = min((_timed(archive) for _ in range(3)), key=lambda each: each[0])
            note = f"{len(found.rows)} pairs, {found.steps} steps of {found.step} s, {SESSIONS} sessions"
            cpu = f"best of three, {used:.1f} s of CPU, load average {os.getloadavg()[0]:.0f}"
            yield Figure(name=f"correlate_{name}", value=took, goal=goal, unit="s", notes=[note, cpu])


def _timed(archive: Path) -> tuple[float, float, Associations]:
    """Seconds, seconds of CPU, and what was found."""
    begun, used = time.perf_counter(), time.process_time()
    found = load_associations(archive, None, None).found
    return time.perf_counter() - begun, time.process_time() - used, found


def _false(name: str, found: list[Associations]) -> Figure:
    """Windows in which a pair other than with throughput, which demand drives for true, is called associated."""
    wrong = [sum(row.resolved and row.rate != "commits" for row in each.rows) for each in found]
    pairs = [row.p <= 0.05 for each in found for row in each.rows if row.rate != "commits"]
    return Figure(
        name=f"correlate: false, {name}", value=100 * float(np.mean(np.array(wrong) > 0)), goal=5.0, unit="%",
        notes=(
            f"of {len(found)} windows with {len(found[0].rows)} pairs of {STEPS} steps",
            f"{100 * float(np.mean(pairs)):.1f} % of pairs by themselves (p at most 5 %)",
        ),
    )  # fmt: skip


def _true() -> Iterator[Figure]:
    """A wait that follows a disk, or leads it, by up to three steps, among unrelated ones."""
    right = fits = seen = 0
    for number in range(FAMILIES):
        draws = np.random.default_rng([SEED, 1, number])
        lag = int(draws.integers(-MOST_LAG, MOST_LAG + 1))
        rows = correlate(_window(draws, memory=0.8, demand=1.0, lag=lag)).rows
        row = next(row for row in rows if (row.event, row.rate) == (EVENTS[0], "disk_await"))
        if row.resolved:
            seen += 1
            right += row.lead == lag * LOOKS
            fits += row.leads[0] <= lag * LOOKS <= row.leads[1]
    yield Figure(
        name="correlate: true, right lag", value=100 * right / FAMILIES, goal=90.0, unit="%", low_is_good=False,
        notes=(
            f"found in {100 * seen / FAMILIES:.1f} %",
            f"the true lag is among those that are said to fit in {100 * fits / max(1, seen):.1f} % of these",
        ),
    )  # fmt: skip


def _drift(draws: np.random.Generator, number: int, memory: float) -> Floats:
    """Series with mean 0 and variance 1 over the window, shape (number, STEPS)."""
    found = draws.normal(size=(number, STEPS + 100))
    for step in range(1, STEPS + 100):
        found[:, step] += memory * found[:, step - 1]
    kept = found[:, 100:]
    return np.asarray((kept - kept.mean(axis=1, keepdims=True)) / kept.std(axis=1, keepdims=True))


def _clock(draws: np.random.Generator, number: int) -> Floats:
    """1 in the step in which a job of each series starts, every five minutes."""
    phases = draws.integers(0, EVERY, (number, 1))
    return np.asarray((np.arange(STEPS) + phases) % EVERY == 0, dtype=np.float64)


def _window(
    draws: np.random.Generator, *, memory: float, demand: float = 0.0, jobs: float = 0.0, lag: int | None = None
) -> ArchiveSeries:
    """A window; with a lag, the first wait follows the disk by so many steps."""
    waits, levels = (_drift(draws, len(names), memory) + jobs * _clock(draws, len(names)) for names in (EVENTS, RATES))
    driver = demand * _drift(draws, 1, 0.95)[0]
    if lag is not None:
        waits[0] = np.roll(levels[RATES.index("disk_await")], lag) + 2 * waits[0]
    strength = draws.uniform(0.2, 0.8, len(EVENTS) + len(RATES))
    delays = draws.integers(0, 3, strength.size)
    driven = [each * np.roll(driver, delay) for each, delay in zip(strength, delays, strict=True)]
    sessions = draws.poisson(LOOKS * np.exp(0.4 * waits + np.stack(driven[: len(EVENTS)])))
    rates = np.exp(0.4 * levels + np.stack(driven[len(EVENTS) :]))
    rates[0] = np.exp(driver + 0.05 * levels[0]) if demand else rates[0]
    return ArchiveSeries(
        span=Span(begin=0, end=STEPS * LOOKS), step=LOOKS, unit=1, looks=(LOOKS,) * STEPS,
        load={event: tuple(row.tolist()) for event, row in zip(EVENTS, sessions, strict=True)},
        rates={name: tuple(row.tolist()) for name, row in zip(RATES, rates, strict=True)},
    )  # fmt: skip


def _forge(folder: Path, seconds: int, unit: int) -> None:
    """200 sessions in forty classes of eighty each second, or in all of them each minute, with all rates."""
    draws = np.random.default_rng(1)
    classes = [
        SessionClass(
            kind="client backend", database="shop", role="clerk", application=f"app{number % 5}", state="active",
            wait_type=wait.partition("/")[0], event=wait.partition("/")[2], statement=f"q{number}",
        )
        for number in range(80)
        for wait in (_WAITS[number % len(_WAITS)],)
    ]  # fmt: skip
    writer = ArchiveWriter.open(folder, Keep())
    writer.add_look(BEGIN, SessionsLook(counts=dict.fromkeys(classes, 1), blocked={}))
    writer.flush(BEGIN)
    writer.close()
    size, number = ("second", 40) if unit == 1 else ("minute", 80)
    moments = range(BEGIN, BEGIN + seconds, unit)

    def looked() -> Iterator[tuple[int, int, int]]:
        for moment in moments:
            chosen = draws.permutation(len(classes))[:number] + 1
            counts = draws.poisson(SESSIONS * unit / number, number)
            yield from zip([moment] * number, chosen.tolist(), counts.tolist(), strict=True)

    with closing(sqlite3.connect(folder / ARCHIVE)) as connection:
        for table in ("look_second", "session_second"):
            connection.execute(f"DELETE FROM {table}")
        rows = ((moment, unit, SESSIONS * unit) for moment in moments)
        connection.executemany(f"INSERT INTO look_{size} VALUES (?, ?, ?)", rows)
        connection.executemany(f"INSERT INTO session_{size} VALUES (?, ?, ?)", looked())
        for table, names in (("server", SERVER_RATES), ("host", HOST_RATES)):
            values = draws.normal(1000, 50, (len(moments), len(names))).tolist()
            places = ", ".join("?" * (len(names) + 2))
            connection.executemany(
                f"INSERT INTO {table}_{size} VALUES ({places})",
                ((moment, float(unit), *row) for moment, row in zip(moments, values, strict=True)),
            )
        connection.commit()
