"""How soon incidents are found in made-up traffic, and how often there is none: `pgstrata incidents` and `watch`.

`WEEKS` of each kind of traffic without incidents are searched, then `INCIDENTS` of each kind with falls of throughput
by 20 to 60 %, and as many of exactly 20 %. Last, a month of an archive is searched.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from figures import Figure
from traffic import BEGIN, DAY, KINDS, Slow, Traffic, draw_slow, make_traffic

from pgstrata.app.incidents import load_incidents
from pgstrata.diagnosis.live.detection import WEEK, Detector
from pgstrata.diagnosis.live.memory import Memory
from pgstrata.model.archive import SessionClass, SessionsLook, StatementUse
from pgstrata.model.incidents import Incident
from pgstrata.ports.recording import Counted
from pgstrata.store.archives.thinning import Keep
from pgstrata.store.archives.writer import ArchiveWriter

WEEKS = float(os.environ.get("WEEKS") or 4)
INCIDENTS = int(os.environ.get("INCIDENTS") or 100)
_EVERY = 7200
_SOON = 60
_EARLY = 30
"""Seconds before an onset, or after an end, in which an alarm still belongs to it."""


def measure_detection() -> Iterator[Figure]:
    """By kind of traffic: false alarms, incidents found, delays, errors of onsets; seconds for a month."""
    for kind in KINDS:
        _, told = _search(kind, round(WEEKS * WEEK), [], seed=1)
        false = [each for each in told if each.end is None]
        yield Figure(
            name=f"false_alarms_{kind}", value=len(false) / WEEKS, goal=1, unit="/week", notes=[f"{WEEKS:g} weeks"]
        )
        yield from _measure_found(kind, 0.2, 0.6, "")
        yield from _measure_found(kind, 0.2, 0.2, "_20")
    yield from _measure_archive()


def _measure_found(kind: str, least: float, most: float, name: str) -> Iterator[Figure]:
    seconds = INCIDENTS * _EVERY + 3600
    slow = draw_slow(seconds, INCIDENTS, least, most, seed=7)
    limit, told = _search(kind, seconds, slow, seed=2)
    found = [_first(told, each) for each in slow]
    soon = sum(
        each is not None and each.found - BEGIN - one.begin <= _SOON for each, one in zip(found, slow, strict=True)
    )
    known = [(each, one) for each, one in zip(found, slow, strict=True) if each is not None]
    delay = float(np.median([each.found - BEGIN - one.begin for each, one in known]))
    away = float(np.median([abs(each.begin - BEGIN - one.begin) for each, one in known]))
    said = f"slowdowns that 95 % of minutes are found at: {'not known' if limit is None else f'{limit:.2f} times'}"
    notes = [f"{len(known)} of {len(slow)} found at all; falls of {least:.0%} to {most:.0%}", said]
    yield Figure(
        name=f"found_in_60_s_{kind}{name}",
        value=100 * soon / len(slow),
        goal=95,
        unit="%",
        low_is_good=False,
        notes=notes,
    )
    yield Figure(name=f"delay_{kind}{name}", value=delay, goal=_SOON, unit="s")
    yield Figure(name=f"onset_error_{kind}{name}", value=away, goal=10, unit="s")


def _search(kind: str, seconds: int, slow: list[Slow], seed: int) -> tuple[float | None, Sequence[Incident]]:
    traffic = make_traffic(kind, seconds, slow, seed)
    memory = Memory()
    for step in traffic.steps(60):
        memory.add(step.end - 59, step.load, step.looks, step.commits)
    detector = Detector(traffic, memory)
    told = [each for step in traffic.steps() for each in detector.see(step) if isinstance(each, Incident)]
    return detector.limit, told


def _first(told: Sequence[Incident], slow: Slow) -> Incident | None:
    begin, end = BEGIN + slow.begin - _EARLY, BEGIN + slow.begin + slow.seconds + _EARLY
    return next((each for each in told if each.end is None and begin <= each.found <= end), None)


def _measure_archive() -> Iterator[Figure]:
    """A month, with seconds of its last week, and one day."""
    with tempfile.TemporaryDirectory(prefix="pgstrata-") as folder:
        archive = Path(folder) / "archive"
        seconds = 30 * DAY
        slow = draw_slow(seconds, 60, 0.3, 0.6, seed=9)
        _write(archive, make_traffic("daily", seconds, slow, seed=5))
        for name, begin, goal in (("incidents_month", None, 30), ("incidents_day", f"@{BEGIN + 29 * DAY}", 5)):
            begun = time.perf_counter()
            found = load_incidents(archive, begin, None, rate=1 / WEEK)
            took = time.perf_counter() - begun
            notes = [f"{len(found.detected.incidents)} incidents"]
            yield Figure(name=name, value=took, goal=goal, unit="s", notes=notes)


def _write(archive: Path, traffic: Traffic) -> None:
    session = SessionClass(kind="client backend", state="active", statement="q")
    writer = ArchiveWriter.open(archive, Keep(total=31 * DAY, size=4 << 30))
    for number in range(traffic.load.size):
        moment = BEGIN + number
        writer.add_look(moment, SessionsLook(counts={session: int(traffic.load[number])}, blocked={}))
        writer.add_server(moment, 1.0, {"commits": float(traffic.commits[number])})
        if moment % 10 == 0 and number >= 10:
            calls, spent = (float(each[number - 9 : number + 1].sum()) for each in (traffic.commits, traffic.spent))
            uses = {"q": StatementUse(calls=calls, seconds=spent)}
            writer.add_counted(moment, Counted(seconds=10.0, spent=spent, uses=uses, complete=True))
        if number % 600 == 0:
            writer.flush(moment)
        if number % DAY == DAY - 1:
            writer.tidy(moment)
    writer.flush(BEGIN + traffic.load.size)
    writer.tidy(BEGIN + traffic.load.size)
    writer.close()
