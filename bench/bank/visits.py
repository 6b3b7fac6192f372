"""The data file of a condition: a line for each visit, which is all that evaluation needs."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

DATA: Final = Path(__file__).with_name("data")
METRICS: Final = ("tps", "server_cpu_per_tx", "client_cpu_per_tx", "latency_p50", "latency_p95")
HEAD: Final = (
    "kind", "study", "block", "started", "commit", "seconds", "preparing", "load", "background", "level",
    *(f"d_{name}" for name in METRICS), "rounds",
)  # fmt: skip
# Log ratios of rounds are kept in whole units of this.
_ROUND_UNIT: Final = 1e-4


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """Two environments in one block.

    `d` are differences ln(other / plain) by metric, oriented so that above zero is better; NaN where there is none.
    `seconds` are those of the visit, `preparing` those around visits of the call that it was the first of; NaN where
    they are not known. `load` is the load average, `background` the share of the CPUs that other processes used, `level`
    the throughput of the plain environment. `rounds` are log ratios of throughput by round.
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

    @property
    def tps(self) -> float:
        """The difference in throughput."""
        return self.d[0]

    @property
    def cpu_ratio(self) -> float:
        """The difference of server CPU ÷ client CPU; above zero is better."""
        return self.d[1] - self.d[2]


def load_visits(file: Path) -> list[Visit]:
    """All visits in the order of recording; a last line without its end is left out, and so is a file that is missing."""
    text = file.read_text() if file.exists() else ""
    rows = csv.DictReader(io.StringIO(text[: text.rfind("\n") + 1]))
    return [_parse(row) for row in rows]


def append_visits(file: Path, visits: Iterable[Visit]) -> Sequence[Visit]:
    """Write those that the file does not have; those are returned. A line that was broken off is taken out first."""
    known = {visit.key for visit in load_visits(file)}
    new = [visit for visit in visits if visit.key not in known]
    if new:
        file.parent.mkdir(parents=True, exist_ok=True)
        text = file.read_text() if file.exists() else ""
        whole = text[: text.rfind("\n") + 1] or ",".join(HEAD) + "\n"
        if whole != text:
            file.write_text(whole)
        with file.open("a") as out:
            out.write("".join(_render(visit) + "\n" for visit in new))
    return new


def _parse(row: dict[str, str]) -> Visit:
    return Visit(
        kind=row["kind"],
        study=row["study"],
        block=int(row["block"]),
        started=row["started"],
        commit=row["commit"],
        seconds=_number(row["seconds"]),
        preparing=_number(row["preparing"]),
        load=_number(row["load"]),
        background=_number(row["background"]),
        level=_number(row["level"]),
        d=tuple(_number(row[f"d_{name}"]) for name in METRICS),
        rounds=tuple(int(word) * _ROUND_UNIT for word in row["rounds"].split()),
    )


def _render(visit: Visit) -> str:
    numbers = [_text(value, digits) for value, digits in (
        (visit.seconds, 2), (visit.preparing, 2), (visit.load, 2), (visit.background, 3), (visit.level, 0),
        *((value, 5) for value in visit.d),
    )]  # fmt: skip
    rounds = " ".join(str(round(value / _ROUND_UNIT)) for value in visit.rounds)
    return ",".join((visit.kind, visit.study, str(visit.block), visit.started, visit.commit, *numbers, rounds))


def _number(text: str) -> float:
    return float(text) if text else math.nan


def _text(value: float, digits: int) -> str:
    return f"{value:.{digits}f}" if math.isfinite(value) else ""
