"""The data file of a condition: a line for each visit, which is all that evaluation needs."""

from __future__ import annotations

import csv
import io
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from pgstrata.plan.design import ROUND_SECONDS

DATA: Final = Path(__file__).with_name("data")
METRICS: Final = ("tps", "server_cpu_per_tx", "client_cpu_per_tx", "latency_p50", "latency_p95")
HEAD: Final = (
    "kind", "study", "block", "after", "commit", "seconds", "preparing", "load", "background", "level",
    *(f"d_{name}" for name in METRICS), "rounds",
)  # fmt: skip
# Differences are kept in whole units of these.
_UNIT: Final = 1e-4
_ROUND_UNIT: Final = 1e-3
_STAMP: Final = "%Y%m%dT%H%M%S"


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """Two environments in one block.

    `study` is the time when it was begun, `started` when the visit was. `d` are differences ln(other / plain) by
    metric, oriented so that above zero is better; NaN where there is none. `seconds` are those of the visit,
    `preparing` those around visits of the call that it was the first of; NaN where they are not known. `load` is the
    load average, `background` the share of the CPUs that other processes used, `level` the throughput of the plain
    environment. `rounds` are log ratios of throughput by round.
    """

    kind: str
    study: str
    block: int
    started: str
    commit: str
    seconds: float
    preparing: float
    load: float
    background: float
    level: float
    d: tuple[float, ...]
    rounds: tuple[float, ...]

    @property
    def key(self) -> tuple[str, str, int]:
        """What tells it from all others of its condition."""
        return self.kind, self.study, self.block

    def first(self, rounds: int) -> Visit:
        """The visit as it would have been with so few rounds; itself if it has no more."""
        more = len(self.rounds) - rounds
        if more <= 0:
            return self
        own = self.rounds[:rounds]
        return replace(
            self, d=(statistics.median(own), *self.d[1:]), rounds=own, seconds=self.seconds - more * ROUND_SECONDS
        )

    @property
    def tps(self) -> float:
        """The difference in throughput."""
        return self.d[0]

    @property
    def cpu_ratio(self) -> float:
        """The difference of server CPU ÷ client CPU; above zero is better."""
        return self.d[1] - self.d[2]


def load_visits(file: Path) -> list[Visit]:
    """All visits in the order of recording; a last line without its end is left out."""
    text = file.read_text() if file.exists() else ""
    rows = csv.DictReader(io.StringIO(text[: text.rfind("\n") + 1]))
    return [_parse(row) for row in rows]


def keep_visits(file: Path, visits: Iterable[Visit]) -> Sequence[Visit]:
    """Write those that the file does not have; those are returned. A line that was broken off is taken out first.

    A line whose seconds were not known yet, because its call still went on, gets them. All others stay as they are.
    """
    kept = {visit.key: visit for visit in load_visits(file)}
    visits = list(visits)
    new = [visit for visit in visits if visit.key not in kept]
    better = [visit for visit in visits if visit.key in kept and _has_more_seconds(visit, kept[visit.key])]
    if new or better:
        file.parent.mkdir(parents=True, exist_ok=True)
        text = file.read_text() if file.exists() else ""
        head, *lines = text[: text.rfind("\n") + 1].splitlines() or [",".join(HEAD)]
        times = {visit.key: visit for visit in better}
        lines = [_with_seconds(line, times.get(_key_of(line))) for line in lines]
        draft = file.with_name(f"{file.name}.draft")
        draft.write_text("".join(f"{line}\n" for line in (head, *lines, *map(_render, new))))
        draft.replace(file)
    return new


def _has_more_seconds(visit: Visit, kept: Visit) -> bool:
    pairs = ((visit.seconds, kept.seconds), (visit.preparing, kept.preparing))
    return any(math.isfinite(now) and math.isnan(before) for now, before in pairs)


def _key_of(line: str) -> tuple[str, str, int]:
    kind, study, block, *_ = line.split(",")
    return kind, study, int(block)


def _with_seconds(line: str, visit: Visit | None) -> str:
    """The line of a visit with its seconds, as it is without one."""
    if visit is None:
        return line
    cells = line.split(",")
    for name, value in (("seconds", visit.seconds), ("preparing", visit.preparing)):
        cells[HEAD.index(name)] = _text(value, 1)
    return ",".join(cells)


def _parse(row: dict[str, str]) -> Visit:
    return Visit(
        kind=row["kind"],
        study=row["study"],
        block=int(row["block"]),
        started=_started(row["study"], int(row["after"])),
        commit=row["commit"],
        seconds=_number(row["seconds"]),
        preparing=_number(row["preparing"]),
        load=_number(row["load"]),
        background=_number(row["background"]),
        level=_number(row["level"]),
        d=tuple(_UNIT * _number(row[f"d_{name}"]) for name in METRICS),
        rounds=tuple(int(word) * _ROUND_UNIT for word in row["rounds"].split()),
    )


def _render(visit: Visit) -> str:
    begun = datetime.strptime(visit.study, _STAMP).replace(tzinfo=UTC)
    after = round((datetime.fromisoformat(visit.started) - begun).total_seconds())
    times = (_text(visit.seconds, 1), _text(visit.preparing, 1), _text(visit.load, 1))
    levels = (_text(visit.background, 2), _text(visit.level, 0))
    d = (_text(value / _UNIT, 0) for value in visit.d)
    rounds = " ".join(str(round(value / _ROUND_UNIT)) for value in visit.rounds)
    return ",".join((visit.kind, visit.study, str(visit.block), str(after), visit.commit, *times, *levels, *d, rounds))


def _started(study: str, after: int) -> str:
    begun = datetime.strptime(study, _STAMP).replace(tzinfo=UTC) + timedelta(seconds=after)
    return begun.strftime("%Y-%m-%dT%H:%M:%SZ")


def _number(text: str) -> float:
    return float(text) if text else math.nan


def _text(value: float, digits: int) -> str:
    return f"{value:.{digits}f}" if math.isfinite(value) else ""
