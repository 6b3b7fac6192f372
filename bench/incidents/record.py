"""One recording: a private server under the shop's load, recorded by `pgstrata watch`, and causes injected into it."""

from __future__ import annotations

import os
import platform
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from figures import commit_of_source
from incidents.groups import own_groups
from incidents.injections import PAUSE, NotInjectedError, Scene, begin, draw
from incidents.ledger import Ledger, keep_ledger
from incidents.load import client_log, effect_of, shop_loads
from incidents.packing import LARGEST, pack
from incidents.server import Site, private_server
from incidents.truth import (
    ARCHIVE,
    CONCERNED,
    TRUTH,
    Injection,
    Kind,
    Recording,
    half_of,
    load_recordings,
    load_truth,
    save_truth,
)

MOST: Final = 8
"""Injections into one recording."""
_SHAPE: Final = 3
"""Longest causes that the shape of a day lasts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Seconds of a recording: quiet before the first cause, a cause, quiet after one, and quiet at the end."""

    quiet: tuple[float, float] = (450.0, 500.0)
    cause: tuple[float, float] = (60.0, 120.0)
    between: tuple[float, float] = (190.0, 240.0)
    last: float = 90.0

    def longest(self, causes: int) -> float:
        """Of a recording with so many causes, the server's start included."""
        spans = (causes + _SHAPE - 1) * (self.cause[1] + 15)
        return 60 + self.quiet[1] + spans + (causes - 1) * self.between[1] + self.last


def record_for(seconds: float, work: Path, data: Path, kinds: Sequence[Kind], times: Times, half: str = "") -> None:
    """Make recordings until no further one fits; kinds of which there are fewest come first.

    With `half`, all of them belong to that half.

    One that breaks off is told and left; a second one in a row ends it.

    Raises:
        EOFError, NotInjectedError, OSError, subprocess.CalledProcessError: the server cannot be used.
    """
    until, broken = time.monotonic() + seconds, False
    skipped: set[Kind] = set()
    while True:
        left = until - time.monotonic()
        number = max((count for count in range(1, MOST + 1) if times.longest(count) <= left), default=0)
        rng = random.Random()
        chosen = choose(count_kinds(data), [kind for kind in kinds if kind not in skipped], number, rng)
        if not chosen:
            return
        try:
            skipped |= record(draw_name(rng, half), work, data, chosen, times, rng)
            broken = False
        except (EOFError, NotInjectedError, OSError, subprocess.CalledProcessError) as error:
            if broken:
                raise
            print(f"    broken off: {error}", flush=True)
            broken = True


def count_kinds(data: Path) -> Mapping[Kind, int]:
    """Injections by kind in all whole recordings."""
    made = [each.kind for folder in load_recordings(data) for each in load_truth(folder).injections]
    return {kind: made.count(kind) for kind in Kind}


def choose(have: Mapping[Kind, int], kinds: Sequence[Kind], number: int, rng: random.Random) -> Sequence[Kind]:
    """Kinds for one recording, each at most once, those that are rare first, in a random order."""
    drawn = sorted(kinds, key=lambda kind: (have.get(kind, 0), rng.random()))[:number]
    rng.shuffle(drawn)
    return drawn


def draw_name(rng: random.Random, half: str = "") -> str:
    """The time and a random part, which decides on the half; drawn again until it belongs to `half`, if given."""
    while True:
        name = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{rng.randrange(16**4):04x}"
        if not half or half_of(name) == half:
            return name


def record(
    name: str, work: Path, data: Path, kinds: Sequence[Kind], times: Times, rng: random.Random
) -> frozenset[Kind]:
    """One recording, which becomes part of the data when it is whole; returned are kinds that are not possible here."""
    folder = work / name
    print(f"    {name} ({half_of(name)}): {', '.join(kinds)}", flush=True)
    with keep_ledger(folder) as ledger, private_server(ledger) as site:
        skipped = _record_in(folder, ledger, site, kinds, times, rng)
    size = pack(folder / "archive" / "archive.sqlite", folder / ARCHIVE)
    if size > LARGEST:
        print(f"    {name}: {size} bytes are more than {LARGEST}; left in {folder}", flush=True)
    elif load_truth(folder).injections:
        target = data / name
        target.mkdir(parents=True)
        # the truth goes last, since it makes the recording count
        for file in (ARCHIVE, TRUTH):
            shutil.copy(folder / file, target / file)
        shutil.rmtree(folder)
        print(f"    {name}: {size} bytes", flush=True)
    return skipped


def _record_in(
    folder: Path, ledger: Ledger, site: Site, kinds: Sequence[Kind], times: Times, rng: random.Random
) -> frozenset[Kind]:
    with own_groups(ledger, site.processes(), site.folder) as limits:
        scene = Scene(site=site, limits=limits, loads=shop_loads(site))
        recorder = _start_recorder(site, folder)
        try:
            book = _Book(folder, _empty(folder.name))
            skipped = _carry_out(scene, book, kinds, times, rng)
            begun, ended = recorder.poll() is None, time.time()
        finally:
            recorder.send_signal(signal.SIGINT)
            recorder.wait(60)
            for load in scene.loads:
                load.stop()
    if not begun:
        raise EOFError(f"the recorder ended by itself: see {folder / 'recorder'}")
    shutil.copy(site.folder / "log", folder / "server.log")
    book.finish(client_log(site.folder), ended)
    return skipped


def _carry_out(scene: Scene, book: _Book, kinds: Sequence[Kind], times: Times, rng: random.Random) -> frozenset[Kind]:
    skipped = set()
    book.rest(rng.uniform(*times.quiet))
    for place, kind in enumerate(kinds):
        if not scene.is_possible(kind):
            print(f"    {kind}: this machine lets nobody limit a group of ours; skipped", flush=True)
            skipped.add(kind)
            continue
        if place:
            book.rest(rng.uniform(*times.between))
        seconds = _SHAPE * times.cause[1] if kind is Kind.DAILY_SHAPE else rng.uniform(*times.cause)
        _inject(scene, book, kind, seconds, rng)
    book.rest(times.last)
    return frozenset(skipped)


def _inject(scene: Scene, book: _Book, kind: Kind, seconds: float, rng: random.Random) -> None:
    drawn = draw(kind, rng, seconds)
    book.plan(kind, seconds, drawn)
    with closing(begin(kind, scene, drawn)) as course:
        next(course)
        onset = time.time()
        while time.time() < onset + seconds:
            book.rest(PAUSE)
            next(course)
    book.mark(onset, time.time())
    print(f"    {kind}: {time.time() - onset:.0f} s, {', '.join(f'{k} {v:g}' for k, v in drawn.items())}", flush=True)


class _Book:
    """The truth as it is written down."""

    def __init__(self, folder: Path, recording: Recording) -> None:
        self._folder, self._recording, self._loads = folder, recording, list[float]()
        save_truth(recording, folder)

    def rest(self, seconds: float) -> None:
        """Let time go by, and look at the machine's load each minute."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            time.sleep(min(left, 5.0))
            if time.time() >= self._recording.begin + 60 * (len(self._loads) + 1):
                self._loads.append(round(os.getloadavg()[0], 2))

    def plan(self, kind: Kind, seconds: float, drawn: Mapping[str, float]) -> None:
        """Before it is injected."""
        statement, application = CONCERNED[kind]
        planned = Injection(
            kind=kind, onset=round(time.time(), 1), end=round(time.time() + seconds, 1), statement=statement,
            application=application, how=", ".join(f"{name} {value:g}" for name, value in drawn.items()),
            machine_load=round(os.getloadavg()[0], 2),
        )  # fmt: skip
        self._save(replace(self._recording, injections=(*self._recording.injections, planned)))

    def mark(self, onset: float, end: float) -> None:
        """When it really began and ended."""
        *others, last = self._recording.injections
        last = replace(last, onset=round(onset, 1), end=round(end, 1))
        self._save(replace(self._recording, injections=(*others, last)))

    def finish(self, log: Mapping[int, tuple[float, float]], end: float) -> None:
        """What the clients saw of each, against the time before it."""
        after, found = self._recording.begin + 30, []
        for each in self._recording.injections:
            effect = effect_of(log, (max(after, each.onset - 300), each.onset), (each.onset, each.end))
            found.append(replace(each, effect=effect))
            after = each.end + 60
        loads = tuple(self._loads)
        self._save(replace(self._recording, injections=tuple(found), end=round(end, 1), machine_loads=loads))

    def _save(self, recording: Recording) -> None:
        self._recording = recording
        save_truth(recording, self._folder)


def _empty(name: str) -> Recording:
    machine = f"{len(os.sched_getaffinity(0))} of {os.cpu_count()} CPUs, {platform.system()} {platform.release()}"
    return Recording(
        name=name, half=half_of(name), begin=round(time.time(), 1), end=0.0, commit=commit_of_source(),
        machine=machine, injections=(),
    )  # fmt: skip


def _start_recorder(site: Site, folder: Path) -> subprocess.Popen[bytes]:
    """The real one, which ends by itself if nobody ends it."""
    words = [
        sys.executable, "-m", "pgstrata", "watch", site.dsn, "--archive", str(folder / "archive"), "--duration", "3h",
    ]  # fmt: skip
    return site.start(words, "", folder / "recorder")
