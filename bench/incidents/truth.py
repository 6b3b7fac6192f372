"""What was injected into a recording: kinds, spans, and what clients saw of them; a JSON file beside the archive.

A cause is written down before it is injected, so that nobody's finding can colour it.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

DATA: Final = Path(__file__).with_name("data")
TRUTH: Final = "truth.json"
ARCHIVE: Final = "archive.sqlite.xz"
NOTICEABLE: Final = 1.1
"""Ratio of the clients' mean latency, in the span against before, from which an injection counts as an incident."""
LOST: Final = 0.9
"""Ratio of the transactions that ended per second, below which it counts as well."""
LARGE: Final = 0.8
"""Ratio of throughput below which a fall is large; where demand is given, of the latency before to that in the span."""
SETTLE: Final = 60
"""Seconds after an injection that are neither quiet nor part of it: a backlog is worked off, a cache fills."""


class Kind(StrEnum):
    """What was injected. The last three are no incidents: nothing becomes slower because of the server."""

    HOT_ROWS = "hot-rows"
    IDLE_BLOCKER = "idle-blocker"
    DROPPED_INDEX = "dropped-index"
    STALE_STATISTICS = "stale-statistics"
    SMALL_CACHE = "small-cache"
    WAL_BURST = "wal-burst"
    CPU_QUOTA = "cpu-quota"
    IO_THROTTLE = "io-throttle"
    NOISY_NEIGHBOUR = "noisy-neighbour"
    CONNECTION_STORM = "connection-storm"
    HELD_VACUUM = "held-vacuum"
    MORE_DEMAND = "more-demand"
    LESS_DEMAND = "less-demand"
    DAILY_SHAPE = "daily-shape"


NO_INCIDENT: Final = frozenset({Kind.MORE_DEMAND, Kind.LESS_DEMAND, Kind.DAILY_SHAPE})
CONCERNED: Final = {
    Kind.HOT_ROWS: ("UPDATE stock", "batch"),
    Kind.IDLE_BLOCKER: ("UPDATE stock", "clerk"),
    Kind.DROPPED_INDEX: ("SELECT sum(pieces) FROM orders", ""),
    Kind.STALE_STATISTICS: ("SELECT * FROM tickets", ""),
    Kind.SMALL_CACHE: ("SELECT count(note) FROM articles", ""),
    Kind.WAL_BURST: ("INSERT INTO import", "import"),
    Kind.CPU_QUOTA: ("", ""),
    Kind.IO_THROTTLE: ("", ""),
    Kind.NOISY_NEIGHBOUR: ("", ""),
    Kind.CONNECTION_STORM: ("", "storm"),
    Kind.HELD_VACUUM: ("SELECT sum(n) FROM counters", "report"),
    Kind.MORE_DEMAND: ("", "shop"),
    Kind.LESS_DEMAND: ("", "shop"),
    Kind.DAILY_SHAPE: ("", "shop"),
}
"""How the statement that becomes slow or is new begins, and the application that causes it; empty: there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What the clients' own log says: mean latency in seconds and transactions per second, before and in the span."""

    latency_before: float
    latency: float
    rate_before: float
    rate: float

    @property
    def slower(self) -> float:
        """Ratio of the latencies; infinite where nothing ended in the span, NaN where nothing is known of before."""
        if not self.latency_before:
            return math.nan
        return self.latency / self.latency_before if self.rate > 0 else math.inf

    @property
    def is_noticed(self) -> bool:
        """Whether transactions took longer, or many did not end: those that still hang have no latency yet."""
        return self.slower >= NOTICEABLE or self.rate < LOST * self.rate_before

    @property
    def is_large(self) -> bool:
        """Whether the server could do a fifth less, or even less than that."""
        return self.slower >= 1 / LARGE or self.rate <= LARGE * self.rate_before


@dataclass(frozen=True, slots=True, kw_only=True)
class Injection:
    """One cause, from `onset` to `end` in Unix seconds; `machine_load` is the load average before it.

    `statement` and `application` are those of `CONCERNED`, `how` what was drawn of it. `effect` is None until the load
    has ended.
    """

    kind: Kind
    onset: float
    end: float
    statement: str
    application: str
    how: str
    machine_load: float
    effect: Effect | None = None

    @property
    def is_incident(self) -> bool:
        """Whether the clients' own log shows it, and it is no change of their demand."""
        return self.kind not in NO_INCIDENT and self.effect is not None and self.effect.is_noticed

    @property
    def is_large(self) -> bool:
        """Whether it is an incident that must be found within a minute."""
        return self.is_incident and self.effect is not None and self.effect.is_large


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """Injections into one server, in order of time, between `begin` and `end`, Unix seconds; `commit` of the recorder.

    `machine_loads` are load averages of the machine, one for each minute, which tell what else it was busy with.
    """

    name: str
    half: str
    begin: float
    end: float
    commit: str
    machine: str
    injections: tuple[Injection, ...]
    machine_loads: tuple[float, ...] = ()


def half_of(name: str) -> str:
    """Whether a recording may be looked at for tuning, or is only judged: by a hash of its name alone."""
    return "tuning" if hashlib.sha256(name.encode()).digest()[0] % 2 else "judged"


def save_truth(recording: Recording, folder: Path) -> None:
    """Write it whole, or not at all."""
    draft = folder / f"{TRUTH}.{os.getpid()}"
    draft.write_text(json.dumps(asdict(recording), indent=1, allow_nan=False) + "\n")
    draft.replace(folder / TRUTH)


def load_truth(folder: Path) -> Recording:
    """Raises: ValueError, KeyError, TypeError: it is no such file."""
    found = json.loads((folder / TRUTH).read_text())
    injections = tuple(
        Injection(**{**each, "kind": Kind(each["kind"]), "effect": each["effect"] and Effect(**each["effect"])})
        for each in found["injections"]
    )
    return Recording(**{**found, "injections": injections, "machine_loads": tuple(found["machine_loads"])})


def load_recordings(data: Path = DATA) -> Sequence[Path]:
    """Folders of whole recordings, the oldest first."""
    return sorted(file.parent for file in data.glob(f"*/{TRUTH}") if (file.parent / ARCHIVE).exists())
