"""What the live screen of `watch` shows: lines for a terminal of any size."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pgstrata.cli.live_cells import Line, Paint, Piece, fit, padded, shortened, width_of
from pgstrata.cli.live_chart import CLASSES, draw_bars, draw_clock, draw_stack, share_of
from pgstrata.cli.live_state import NOW, STEPS, Blocker, Column, LiveState, TopStatement
from pgstrata.model.incidents import Incident, IncidentKind
from pgstrata.report.live.words import local, name_blocker, name_statement, name_wait
from pgstrata.report.sentences.causes import readable
from pgstrata.units import render_count, render_duration, render_rate

LEAST_COLUMNS: Final = 40
LEAST_ROWS: Final = 10
_WIDE: Final = 60
"""Columns from which on statements have their calls, and charts a wide margin."""
_VERY_WIDE: Final = 110
"""Columns from which on statements have their wait event, too."""
_EVENT: Final = 26
_LABEL: Final = 5
_SINGLE: Final = 4
"""Rows of head, throughput, time and foot."""
_CHART: Final = 0.42
"""Share of the rows that the chart of the load takes."""
_FEW: Final = 10
_WITH_CLOCK: Final = 4
"""Rows from which on a chart has the times below it."""
_KEYS: Final = "q quit  p pause  z zoom"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What the user chose by keys: seconds of a column, and whether the screen stands still."""

    step: int = STEPS[0]
    paused: bool = False

    @property
    def zoomed(self) -> Choice:
        """With the next longer columns; after the longest, the shortest."""
        return Choice(step=STEPS[(STEPS.index(self.step) + 1) % len(STEPS)], paused=self.paused)

    @property
    def turned(self) -> Choice:
        """Standing still, or going on."""
        return Choice(step=self.step, paused=not self.paused)


def draw(state: LiveState, choice: Choice, columns: int, rows: int) -> list[Line]:
    """At most `rows` lines of at most `columns` cells; one line where the terminal is too small for more."""
    if columns < LEAST_COLUMNS or rows < LEAST_ROWS:
        lines: Iterable[Line] = [_brief(state)]
    else:
        lines = _View(state, choice, columns, rows).lines()
    return [fit(line, columns) for line in lines][: max(1, rows)]


def _brief(state: LiveState) -> Line:
    now = state.now
    return (
        *_connection(state),
        Piece(f" {_rate(now.throughput)} load {_load(now.load)}  q quit"),
    )


def _connection(state: LiveState) -> Line:
    if state.lost is not None:
        return (Piece(f"LOST since {local(state.lost):%H:%M:%S}", Paint.ALARM),)
    return (Piece("connected", Paint.GOOD),) if state.version else (Piece("connecting"),)


def _rate(value: float) -> str:
    return f"{render_rate(value)}/s" if math.isfinite(value) else "-"


def _time(value: float) -> str:
    return render_duration(value) if math.isfinite(value) else "-"


def _load(value: float) -> str:
    if not math.isfinite(value):
        return "-"
    return f"{value:.2f}" if value < _FEW else f"{value:.1f}"


def _say(incident: Incident) -> str:
    """An incident in one line, what matters most first."""
    since = f"since {local(incident.begin):%H:%M:%S}"
    load = f"load {_load(incident.load)}, usually {_load(incident.usual_load)}"
    if incident.kind is IncidentKind.STALLED:
        return f"STALLED {since}: no transaction is committed; {load}"
    rates = f"{_rate(incident.throughput)}, usually {_rate(incident.usual_throughput)}"
    return f"SLOWER {since}: {render_rate(incident.factor)} times the usual time; {rates}; {load}"


@dataclass(slots=True)
class _View:
    """One drawing."""

    state: LiveState
    choice: Choice
    columns: int
    rows: int

    def lines(self) -> Iterator[Line]:
        incident = self.state.incident
        left = self.rows - _SINGLE - (incident is not None)
        chart = max(2, round(left * _CHART))
        blockers = left // 8 if left >= _FEW else 0
        yield self._head()
        if incident is not None:
            yield (Piece(padded(shortened(_say(incident), self.columns), self.columns), Paint.ALARM),)
        yield from self._charts(chart)
        yield from self._statements(left - chart - blockers - 1)
        yield from self._blockers(blockers)
        yield self._foot()

    def _head(self) -> Line:
        """What is recorded on the left, whether it still is on the right."""
        state, right = self.state, _connection(self.state)
        since = "" if state.since is None else f"  since {local(state.since):%H:%M:%S}"
        looks = f"  {render_count(state.looks, 'look')}"
        server = f"PostgreSQL {state.version}" if state.version else "PostgreSQL"
        room = self.columns - width_of(right) - 1
        wide = self.columns >= _WIDE
        archive = shortened(readable(state.archive), room - len(server + since + looks) - 2) if wide else ""
        parts = (server, f"  {archive}" if archive else "", since, looks if wide else "")
        return Piece(padded(shortened("".join(parts), room), room + 1), Paint.STRONG), *right

    # ------------------------------------------------------------------------------------------------- charts

    @property
    def _margin(self) -> int:
        return 24 if self.columns >= _WIDE else 20

    def _charts(self, rows: int) -> Iterator[Line]:
        """Throughput, time per transaction and load along the same clock; values and classes stand beside them."""
        room = self.columns - self._margin - _LABEL - 1
        shown = self.state.histories[self.choice.step].last(room)
        now = self.state.now
        before = " " * (room - len(shown))
        for name, value, course in (
            ("throughput", _rate(now.throughput), [column.throughput for column in shown]),
            ("time per tx", _time(now.time), [column.time for column in shown]),
        ):
            yield *self._beside(name, value), Piece(f"{' ' * (_LABEL + 1)}{before}{draw_bars(course)}")
        axis = 1 if rows >= _WITH_CLOCK else 0
        top, stack = draw_stack(shown, rows - axis)
        beside = [self._beside("load", _load(now.load)), *self._classes(now, shown)]
        for row, line in enumerate(stack):
            left = beside[row] if row < len(beside) else (Piece(" " * self._margin),)
            label = f"{top:g}" if row == 0 else ""
            yield *left, Piece(f"{label:>{_LABEL}}{'┤' if row == 0 else '│'}{before}"), *line
        if axis:
            said = padded(f"means of {NOW} s", self._margin)
            yield Piece(said, Paint.FAINT), Piece(f"{'0':>{_LABEL}}┴{before}{draw_clock(shown, self.choice.step)}")

    def _beside(self, name: str, value: str) -> Line:
        room = self._margin - len(value) - 1
        return Piece(padded(name, room), Paint.STRONG), Piece(f" {value}")

    def _classes(self, now: Column, shown: Sequence[Column]) -> Iterator[Line]:
        """Those that are in the chart, each with its letter and its present part of the load."""
        for each in CLASSES:
            if any(share_of(column, each) for column in shown):
                value = _load(share_of(now, each))
                room = self._margin - len(value) - 3
                yield Piece(each.letter, each.paint), Piece(f" {padded(each.name, room)} {value}")

    # --------------------------------------------------------------------------------------------- statements

    def _statements(self, rows: int) -> Iterator[Line]:
        """Exactly so many lines, the title among them."""
        found = self.state.statements(rows - 1)
        yield self._title(self._row("load", "calls/s", "mean", "mostly", "statements of the last minute"))
        for each in found:
            yield (Piece(self._statement(each)),)
        yield from ((Piece(""),) for _ in range(rows - 1 - len(found)))

    def _title(self, text: str) -> Line:
        return (Piece(padded(text, self.columns), Paint.TITLE),)

    def _row(self, load: str, calls: str, mean: str, event: str, text: str) -> str:
        if self.columns < _WIDE:
            return f"{load:>5} {text}"
        wait = f" {padded(event, _EVENT)}" if self.columns >= _VERY_WIDE else ""
        return f"{load:>6} {calls:>9} {mean:>9} {wait} {text}"

    def _statement(self, each: TopStatement) -> str:
        calls = mean = ""
        if each.use is not None and each.use.calls > 0 and each.counted > 0:
            calls, mean = render_rate(each.use.calls / each.counted), render_duration(each.use.seconds / each.use.calls)
        event = "" if each.event is None else name_wait(each.event)
        # not told from all others each second: that takes time
        text = name_statement(each.key, {each.key: self.state.texts.get(each.key, "")}, self.columns)
        return shortened(self._row(_load(each.load), calls, mean, event, text), self.columns)

    # ----------------------------------------------------------------------------------------------- blockers

    def _blockers(self, rows: int) -> Iterator[Line]:
        """A title that says how many wait, and exactly so many heads of chains below it."""
        found = self.state.blockers
        waiting = sum(each.behind for each in found)
        said = f"{render_count(waiting, 'session')} blocked" if waiting else "nobody is blocked"
        if rows and waiting and self.columns >= _WIDE:
            yield self._title(f"behind  open for  head of the chain ({said})")
        else:
            yield self._title(f"{said} by {found[0].pid}" if waiting and found[0].pid else said)
        for each in found[:rows]:
            yield (Piece(self._blocker(each)),)
        yield from ((Piece(""),) for _ in range(rows - len(found)))

    def _blocker(self, each: Blocker) -> str:
        held = render_duration(each.held) if each.held else ""
        process = f"process {each.pid}: " if each.pid else ""
        return shortened(
            f"{each.behind:>6} {held:>9}  {process}{name_blocker(each.root, self.state.texts)}", self.columns
        )

    # --------------------------------------------------------------------------------------------------- foot

    def _foot(self) -> Line:
        step = self.choice.step
        keys = f"PAUSED  {_KEYS}" if self.choice.paused else f"{_KEYS} ({step} s)"
        return Piece(keys, Paint.FAINT), Piece(f"  {shortened(self.state.message, self.columns - len(keys) - 2)}")
