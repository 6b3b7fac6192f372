"""The tables of an explanation: changes, load by what it was spent on, heads of chains, statements, server and host."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from pgstrata.model.courses import COURSES
from pgstrata.model.explanation import CallsChange, Change, Lead, LoadRow, RootBlocker
from pgstrata.report.blocks.model import Column, ColumnPlace, Shape, Table, begin
from pgstrata.report.live.words import (
    name_blocker,
    name_row,
    name_statement,
    render_change,
    render_limit,
    render_sessions,
    render_span,
)
from pgstrata.report.sentences.causes import name_query
from pgstrata.units import Unit, render_duration, render_rate, render_value

_LONGEST_HINT: Final = 4000
_NARROWEST: Final = 20
_MOST: Final = 12
_STATEMENT: Final = 44
TITLES: Final = {
    "throughput": "transactions per second",
    "load": "load, active sessions",
    "time": "time per transaction",
}
_CONNECTIONS: Final = "connections"
_TENTH: Final = 0.1
_HUNDREDTH: Final = 0.01
_TRIFLE: Final = 0.005
"""Seconds per second, which would be shown as 0."""
_LEAST: Final = {
    Unit.CPUS: 0.05, Unit.COUNT: 0.5, Unit.RATIO: 0.02, Unit.PER_SECOND: 1.0, Unit.BYTES_PER_SECOND: 10_240.0,
    Unit.BYTES: 1_048_576.0, Unit.SECONDS: 1e-4,
}  # fmt: skip
"""Differences below which a figure of server or host is not shown."""


def main_table(changes: Sequence[Change]) -> Table:
    """Throughput, load and time per transaction in both windows, and the smallest change that would be found."""
    return Table(
        names=Column(title="", cells=tuple(TITLES[change.name] for change in changes)),
        columns=(
            Column(title="before", cells=tuple(say_main(change.name, change.reference) for change in changes)),
            Column(title="window", cells=tuple(say_main(change.name, change.value) for change in changes)),
            Column(title="change [95 %]", cells=tuple(render_change(change) or "unknown" for change in changes)),
            Column(title="detectable", cells=tuple(render_limit(change) for change in changes)),
        ),
    )


def say_main(name: str, value: float) -> str:
    """Throughput, load or time per transaction, without its unit where the heading has it."""
    if not math.isfinite(value):
        return "unknown"
    if name == "time":
        return render_duration(value)
    return render_rate(value) if name == "throughput" else render_sessions(value)


def load_table(rows: Sequence[LoadRow], total: Change, texts: Mapping[str, str]) -> Table:
    """Wait events by statement and application; smaller rows are summed up, so that the column adds up."""
    shown, left = _split(rows)
    whole = LoadRow(
        part=None, event="", statement="", application="", value=total.value, reference=total.reference, interval=None,
        resolved=True, samples=0,
    )  # fmt: skip
    rest = _sum(left)
    lines = [(name_row(row, texts, _STATEMENT), row) for row in shown]
    lines += [("remainder", rest)] if left else []
    lines.append(("all", whole))
    return Table(
        names=Column(title="wait event, statement, application", cells=tuple(name for name, _ in lines)),
        columns=_sessions_columns([row for _, row in lines]),
        soft=frozenset(place for place, (_, row) in enumerate(lines) if not row.resolved),
        hints=tuple(name_query(texts.get(row.statement, ""), _LONGEST_HINT) for _, row in lines),
        breaks=_NARROWEST,
    )


def named_table(title: str, rows: Sequence[LoadRow], name: Callable[[LoadRow], str]) -> Table:
    """The load by one name."""
    shown, left = _split(rows)
    lines = [(name(row), row) for row in shown] + ([("remainder", _sum(left))] if left else [])
    return Table(
        names=Column(title=title, cells=tuple(text for text, _ in lines)),
        columns=_sessions_columns([row for _, row in lines]),
        soft=frozenset(place for place, (_, row) in enumerate(lines) if not row.resolved),
        breaks=_NARROWEST,
    )


def _split(rows: Sequence[LoadRow]) -> tuple[list[LoadRow], list[LoadRow]]:
    named = [row for row in rows if row.part is not None or row.statement or row.application]
    named = named or list(rows)
    shown = sorted(named, key=lambda row: -abs(row.difference))[:_MOST]
    kept = set(map(id, shown))
    return shown, [row for row in rows if id(row) not in kept]


def _sum(rows: Sequence[LoadRow]) -> LoadRow:
    return LoadRow(
        part=None, event="", statement="", application="", value=math.fsum(row.value for row in rows),
        reference=math.fsum(row.reference for row in rows), interval=None, resolved=False,
        samples=sum(row.samples for row in rows),
    )  # fmt: skip


def _sessions_columns(rows: Sequence[LoadRow]) -> tuple[Column, ...]:
    return (
        Column(title="before", cells=tuple(render_sessions(row.reference) for row in rows)),
        Column(title="window", cells=tuple(render_sessions(row.value) for row in rows)),
        Column(
            title="change [95 %]",
            cells=tuple(render_sessions(row.difference, signed=True) for row in rows),
            beside=tuple(render_span(row.interval) for row in rows),
        ),
    )


def blockers_table(
    blockers: Iterable[RootBlocker],
    texts: Mapping[str, str],
    before: str = "behind it, before",
    now: str = "behind it",
) -> Table:
    """Heads of the chains of those that block; `before` and `now` head the columns of sessions behind them."""
    rows = list(blockers)[:_MOST]
    return Table(
        names=Column(title="head of the chain", cells=tuple(begin(name_blocker(row.root, texts)) for row in rows)),
        columns=(
            Column(title="process", cells=tuple(", ".join(map(str, row.pids[:2])) for row in rows)),
            Column(title="open for", cells=tuple(render_duration(row.held) if row.held else "" for row in rows)),
            Column(title=before, cells=tuple(render_sessions(row.reference) for row in rows)),
            Column(title=now, cells=tuple(render_sessions(row.value) for row in rows)),
        ),
        hints=tuple(name_query(texts.get(row.root.statement, ""), _LONGEST_HINT) if row.root else "" for row in rows),
        breaks=_NARROWEST,
    )


def calls_table(changes: Sequence[CallsChange], texts: Mapping[str, str]) -> Table:
    """Statements: seconds of executing per second, by what they grew."""
    largest = max((abs(row.difference) for row in changes), default=0.0)
    rows = [row for row in changes[:_MOST] if abs(row.difference) >= max(_TRIFLE, _HUNDREDTH * largest)] or changes[:1]
    return Table(
        names=Column(title="statement", cells=tuple(name_statement(row.statement, texts, _STATEMENT) for row in rows)),
        columns=(
            Column(
                title="calls/s",
                cells=tuple(f"{render_rate(row.reference_calls)} → {render_rate(row.calls)}" for row in rows),
                place=ColumnPlace.MORE,
            ),
            Column(
                title="time of a call",
                cells=tuple(
                    _calls(row, render_duration(row.reference_latency), render_duration(row.latency)) for row in rows
                ),
            ),
            Column(title="change", cells=tuple(render_sessions(row.difference, signed=True) for row in rows)),
            Column(title="slower", cells=tuple(render_sessions(row.by_latency, signed=True) for row in rows)),
            Column(title="demand", cells=tuple(render_sessions(row.by_demand, signed=True) for row in rows)),
            Column(title="mix", cells=tuple(render_sessions(row.by_mix, signed=True) for row in rows)),
            Column(
                title="blocks a call",
                cells=tuple(
                    _calls(row, render_rate(row.reference_blocks_per_call), render_rate(row.blocks_per_call))
                    for row in rows
                ),
                place=ColumnPlace.MORE,
            ),
        ),
        hints=tuple(name_query(texts.get(row.statement, ""), _LONGEST_HINT) for row in rows),
        breaks=_NARROWEST,
    )


def _calls(row: CallsChange, before: str, after: str) -> str:
    """A figure of a call in both windows; of no calls there is none."""
    return f"{before if row.reference_calls else '-'} → {after if row.calls else '-'}"


def rates_table(title: str, changes: Sequence[Change], leads: Iterable[Lead] = ()) -> Table | None:
    """What the server or the host did otherwise, the largest change first; None where nothing did."""
    rows = sorted((change for change in changes if change.resolved and _matters(change)), key=_distance, reverse=True)
    if not rows:
        return None
    begun = {lead.name: lead for lead in leads}
    moments = tuple(say_lead(begun[change.name]) if change.name in begun else "" for change in rows)
    return Table(
        names=Column(title=title, cells=tuple(title_of(change.name) for change in rows)),
        columns=(
            Column(title="before", cells=tuple(say_amount(change.name, change.reference) for change in rows)),
            Column(title="window", cells=tuple(say_amount(change.name, change.value) for change in rows)),
            Column(title="change [95 %]", cells=tuple(render_change(change) for change in rows)),
            *((Column(title="began", cells=moments, place=ColumnPlace.MORE),) if any(moments) else ()),
        ),
        breaks=_NARROWEST,
    )


def say_lead(lead: Lead) -> str:
    """12 s before the load [8, 20]; with the load [-2, +4] where the interval does not tell which was first."""
    low, high = lead.interval.low, lead.interval.high
    if low > 0:
        return f"{lead.seconds:.0f} s before [{low:.0f}, {high:.0f}]"
    if high < 0:
        return f"{-lead.seconds:.0f} s after [{-high:.0f}, {-low:.0f}]"
    return f"with the load [{-high:+.0f}, {-low:+.0f}]"


def _matters(change: Change) -> bool:
    """Whether it is more than a trifle: a tenth of itself, and of a size that can be felt."""
    if change.name == _CONNECTIONS:
        return abs(change.value - change.reference) >= 1
    least = _LEAST.get(COURSES[change.name].unit, 0.0)
    return abs(change.value - change.reference) >= max(least, _TENTH * change.reference)


def _distance(change: Change) -> float:
    if change.value <= 0 or change.reference <= 0:
        return math.inf
    return abs(math.log(change.value) - math.log(change.reference))


def title_of(name: str) -> str:
    """How a rate of the server or the host is called."""
    return "sessions connected" if name == _CONNECTIONS else COURSES[name].title


def say_amount(name: str, value: float) -> str:
    """A rate of the server or the host with its unit."""
    if name == _CONNECTIONS:
        return f"{value:.1f}"
    unit = COURSES[name].unit
    return f"{value:.2f}" if unit is Unit.COUNT else render_value(value, unit)


def texts_table(statements: Iterable[str], texts: Mapping[str, str]) -> Table | None:
    """Whole texts of statements, to be copied."""
    keys = [key for key in dict.fromkeys(statements) if texts.get(key)]
    if not keys:
        return None
    return Table(
        names=Column(title="query", cells=tuple(keys)),
        columns=(Column(title="text", cells=tuple(name_query(texts[key], _LONGEST_HINT) for key in keys), words=True),),
        shape=Shape.RECORDS,
        code=True,
    )
