"""The screen of a running experiment on a terminal: what runs, how the comparisons stand, what is doubtful."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field
from typing import Final

from rich.cells import set_cell_size

from pgstrata.model.answer import Interval, Verdict
from pgstrata.model.experiment import Experiment
from pgstrata.model.metrics import TPS
from pgstrata.model.runs import RunStatus, Validity
from pgstrata.ports.events import Event, EventKind, Standing
from pgstrata.report.sentences.names import name_environment
from pgstrata.report.sentences.verdicts import Words, render_interval, say_verdict, words_of
from pgstrata.units import render_count, render_duration, render_percent_change

_BARS: Final = "▁▂▃▄▅▆▇█"
_MOST_BARS: Final = 40
_FIGURES: Final = re.compile(r"[\d.,]+")
_MOST_DOUBTS: Final = 3
_LEAST_NAME: Final = 12
# Below this many transactions per second, digits behind the point are shown.
_FEW: Final = 10


@dataclass(slots=True, kw_only=True)
class _Doubt:
    """A kind of doubt: the sentence about its first run, and how many runs have it."""

    text: str
    runs: int = 1


@dataclass(slots=True, kw_only=True)
class Screen:
    """What the screen shows. `experiment` gives environments their names; None if there are several experiments.

    `before`: number of runs of earlier calls, whose doubts are not shown. `rates`: throughput of the current run by
    second. `blocks`: that of finished runs, by environment and cell.
    """

    experiment: Experiment | None = None
    done: int = 0
    total: int = 0
    before: int = 0
    left: float | None = None
    budget: float | None = None
    run: str = ""
    doing: str = ""
    rates: deque[float] = field(default_factory=lambda: deque(maxlen=_MOST_BARS))
    blocks: dict[str, deque[float]] = field(default_factory=dict)
    standings: tuple[Standing, ...] = ()
    doubts: dict[str, _Doubt] = field(default_factory=dict)

    def note(self, event: Event) -> None:
        """Take an event in."""
        if event.seconds_left is not None:
            self.left = event.seconds_left
        if event.budget_left is not None:
            self.budget = event.budget_left
        match event.kind:
            case EventKind.STUDY_STARTED:
                self.done, self.total, self.before = event.done, event.total, event.done
            case EventKind.STEP | EventKind.PROGRESS | EventKind.BUILDING:
                self._follow(event)
            case EventKind.RUN_FINISHED:
                self.done, self.total = event.done, event.total
                if event.status == RunStatus.COMPLETED and event.value is not None:
                    kept = self.blocks.setdefault(_arm(event.run), deque(maxlen=_MOST_BARS))
                    kept.append(event.value)
                self._doubt(event)
            case EventKind.STANDINGS:
                self.standings = event.standings
            case _:
                pass

    def _follow(self, event: Event) -> None:
        if event.run != self.run:
            self.run = event.run
            self.rates.clear()
        self.doing = f"data for {event.text}" if event.kind is EventKind.BUILDING else event.text
        if event.kind is EventKind.PROGRESS and event.value is not None:
            self.rates.append(event.value)

    def _doubt(self, event: Event) -> None:
        if event.status != RunStatus.COMPLETED or event.validity == Validity.VALID or not event.text:
            return
        shape = shape_of(event.text)
        if shape in self.doubts:
            self.doubts[shape].runs += 1
        else:
            self.doubts[shape] = _Doubt(text=f"{event.validity}: {event.text}")

    def lines(self, columns: int, rows: int) -> list[str]:
        """At most `rows` lines of at most `columns` characters."""
        head = [self._head(), self._now(), *self._throughput()]
        doubts = self._doubts()
        room = rows - len(head) - len(doubts) - 1
        standings = self._standings(max(0, room))
        return [_cut(line, columns) for line in (*head, *standings, *doubts)][:rows]

    def _head(self) -> str:
        """Runs, time and budget left; where the budget ends first, the time is that of the budget."""
        parts = [f"{self.done} of at most {self.total} runs"]
        if self.left is not None and (self.budget is None or self.left < self.budget):
            parts.append(f"at most {render_duration(self.left)} left")
        if self.budget is not None:
            parts.append(f"budget: {render_duration(self.budget)} left")
        return " · ".join(parts)

    def _now(self) -> str:
        return " · ".join(part for part in (self.run or "preparing", self.doing) if part)

    def _throughput(self) -> list[str]:
        """Throughput by second. In slices, and as long as there is none, that of the environment's earlier blocks."""
        if self.rates:
            return [f"  {draw_bars(self.rates)}  {render_tps(self.rates[-1])} tps"]
        found = self.blocks.get(_arm(self.run)) if self.run else None
        if found:
            return [f"  {draw_bars(found)}  {render_tps(found[-1])} tps in its last block"]
        return []

    def _standings(self, room: int) -> list[str]:
        """A line for each comparison, those that are open first where there is not room for all."""
        if not self.standings or not room:
            return []
        shown = self.standings
        if len(shown) > room:
            shown = tuple(sorted(shown, key=lambda each: bool(each.decided_at))[:room])
        names = [self._name(each.environment) for each in shown]
        width = max(_LEAST_NAME, *(len(name) for name in names))
        words = words_of(self.experiment.metric if self.experiment else TPS.name)
        return [f"{name:<{width}}  {say_standing(each, words)}" for name, each in zip(names, shown, strict=True)]

    def _name(self, environment: str) -> str:
        if self.experiment is None:
            return environment
        return name_environment(self.experiment.environment(environment), self.experiment)

    def _doubts(self) -> list[str]:
        found = sorted(self.doubts.values(), key=lambda doubt: -doubt.runs)
        left = len(found) - _MOST_DOUBTS
        runs = render_count(self.done - self.before, "run")
        lines = [f"! {doubt.runs} of {runs} {doubt.text}" for doubt in found[:_MOST_DOUBTS]]
        return [*lines, *([f"! and {left} other kinds of doubt"] if left > 0 else [])]


def _arm(run: str) -> str:
    """Environment and cell of a run: its identity without the block."""
    return run.partition("/")[2]


def shape_of(text: str) -> str:
    """A sentence without its figures: doubts of one shape are of one kind."""
    return _FIGURES.sub("", text)


def _cut(line: str, columns: int) -> str:
    """As much of a line as fits; some characters take two columns, and none may begin another line."""
    return set_cell_size(" ".join(line.split("\n")).expandtabs(1), columns).rstrip()


def say_standing(standing: Standing, words: Words) -> str:
    """-3.1 % [-4.2, -1.9]  slower, decided after 7 blocks; or what is known so far; `words` are those of its metric."""
    blocks = render_count(standing.blocks, "block")
    if standing.effect is None:
        return f"{'':>8}  after {blocks}"
    low, high = standing.low, standing.high
    interval = None if low is None or high is None else Interval(low=low, high=high)
    figures = f"{render_percent_change(standing.effect):>8} {render_interval(interval)}".rstrip()
    if not standing.decided_at:
        return f"{figures}  open after {blocks}"
    word = say_verdict(Verdict(standing.verdict), standing.effect, words)
    return f"{figures}  {word}, decided after {blocks}"


def draw_bars(values: deque[float]) -> str:
    """A bar for each value, from the lowest to the highest."""
    low, high = min(values), max(values)
    span = (high - low) or 1.0
    return "".join(_BARS[round((value - low) / span * (len(_BARS) - 1))] for value in values)


def render_tps(value: float) -> str:
    """Whole transactions, unless they are so few that digits behind the point tell more."""
    return f"{value:,.0f}" if value >= _FEW else f"{value:.2f}"
