"""A figure of the benchmark: name, value, goal, and whether it was reached."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measured figure; `low_is_good` false turns the goal into a floor."""

    name: str
    value: float
    goal: float
    unit: str = ""
    low_is_good: bool = True
    notes: Sequence[str] = field(default_factory=tuple)

    @property
    def reached(self) -> bool:
        return self.value <= self.goal if self.low_is_good else self.value >= self.goal

    def line(self) -> str:
        sign = "<=" if self.low_is_good else ">="
        state = "ok" if self.reached else "short"
        return f"{self.name:<36} {self.value:>10.4g} {self.unit:<6} goal {sign} {self.goal:g}  {state}"


Benchmark = Callable[[], Iterable[Figure]]


def run_benchmarks(benchmarks: dict[str, Benchmark], only: str | None, results: Path) -> int:
    """Measure, print a line per figure as it comes, keep all as JSON; always 0, unless a name is unknown.

    `only` names some of them, separated by commas.
    """
    wanted = [name.strip() for name in (only or "").split(",") if name.strip()]
    unknown = [name for name in wanted if name not in benchmarks]
    if unknown:
        print(f"there is no benchmark {', '.join(unknown)}: {', '.join(benchmarks)}")
        return 2
    done: list[Figure] = []
    for name, benchmark in benchmarks.items():
        if not wanted or name in wanted:
            print(f"# {name}", flush=True)
            for figure in benchmark():
                print(figure.line(), flush=True)
                for note in figure.notes:
                    print(f"    {note}", flush=True)
                done.append(figure)
    content = [{**asdict(figure), "state": "ok" if figure.reached else "short"} for figure in done]
    results.write_text(json.dumps(content, indent=1) + "\n")
    return 0
