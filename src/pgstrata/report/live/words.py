"""Why a live server was slow, in sentences: names of rows and statements, figures with their intervals."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, assert_never

from pgstrata.model.archive import REST, SessionClass, Span
from pgstrata.model.attribution import Part, ValueInterval
from pgstrata.model.explanation import CallsChange, Change, Explained, LoadRow, Onset, Outcome, RootBlocker, WindowFacts
from pgstrata.model.profile import LoadShare
from pgstrata.report.live.relations import say_relations
from pgstrata.report.sentences.causes import PART_NAMES, name_query, readable
from pgstrata.units import render_count, render_duration, render_rate, render_share

_TOLD: Final = 0.1
"""Share of the extra load from which on a row is told in words."""
_MOST_TOLD: Final = 3
_FEW_BLOCKED: Final = 0.1
"""Sessions behind a head of a chain, on average, from which on it is told."""
_MUCH: Final = 0.2
"""Share of the extra load that has to wait behind it."""
_SLOWER: Final = frozenset({Outcome.INCIDENT, Outcome.STALLED, Outcome.SATURATED, Outcome.OTHER_MIX})
_WHOLE: Final = 20
_MANY_TIMES: Final = 2.0
_ENDLESS: Final = 100.0
"""Times its figure from which on the upper end of an interval tells nothing."""
_AGREE: Final = 0.6
"""Share of the extra load that statements have to tell of, to be told."""
_CHANGED: Final = 3.0
"""Times as many blocks per call from which on a statement's plan or data are said to differ."""


def say_window(span: Span) -> str:
    """13:28:00 to 13:47:00; with both zones where clocks were set between."""
    begin, end = local(span.begin), local(span.end)
    day = "" if begin.date() == end.date() else "%Y-%m-%d "
    pattern = f"{day}%H:%M:%S{' %Z' if _is_shifted(span) else ''}"
    return f"{begin.strftime(pattern)} to {end.strftime(pattern)}"


def _is_shifted(span: Span) -> bool:
    return local(span.begin).utcoffset() != local(span.end).utcoffset()


def say_dated(span: Span) -> str:
    """2026-11-26 13:28:00 to 13:47:00 (UTC+01:00)."""
    begin = local(span.begin)
    same = begin.date() == local(span.end).date()
    zone = "" if _is_shifted(span) else f" ({begin:%Z})"
    return f"{f'{begin:%Y-%m-%d} ' if same else ''}{say_window(span)}{zone}"


def say_place(window: WindowFacts) -> str:
    """From 13:28:00 to 13:47:00; of an environment of a study: In pg18."""
    return f"In {window.label}" if window.label else f"From {say_window(window.span)}"


def say_seen(window: WindowFacts) -> str:
    """1,140 looks, 100 % seen."""
    return f"{render_count(window.looks, 'look')}, {window.seen * 100:.0f} % seen"


def local(moment: float) -> datetime:
    """A moment in the local zone."""
    return datetime.fromtimestamp(moment, tz=UTC).astimezone()


# -------------------------------------------------------------------------------------------------- names


def name_statement(key: str, texts: Mapping[str, str], width: int = 60) -> str:
    """Its text in a line, cut where it is long so that others can be told from it; without one its id or hash."""
    if not key:
        return "statement not known"
    if key == REST:
        return "other statements"
    text = texts.get(key, "")
    if not text:
        return f"query {readable(key)}"
    begin = text[: width - 3]
    others = [each for each in texts.values() if each.startswith(begin) and each != text] if len(text) > width else []
    return _name_apart(readable(text), others, width) if others else name_query(text, width)


def _name_apart(line: str, others: Sequence[str], width: int) -> str:
    """update stock set... where item between ? and ?: the beginning, and what parts it from the others."""
    head = line[: width // 2 - 3].rstrip()
    room = width - len(head) - 4
    start = min(line.rfind(" ", 0, max(_alike(line, other) for other in others)), len(line) - room)
    tail = line[max(len(head), start) :]
    return f"{head}... {name_query(tail[tail.find(' ') + 1 :], room)}"


def _alike(first: str, second: str) -> int:
    """Characters that both begin with."""
    pairs = zip(first, second, strict=False)
    return next((place for place, (a, b) in enumerate(pairs) if a != b), min(len(first), len(second)))


def name_wait(event: str) -> str:
    """Lock/transactionid; CPU and run queue for sessions that wait for nothing."""
    return readable(event) or PART_NAMES[Part.RUNNING]


def name_event(row: LoadRow | LoadShare) -> str:
    """The wait event of a part of the load, or that it is the remainder."""
    return "remainder" if row.part is None else name_wait(row.event)


def name_row(row: LoadRow, texts: Mapping[str, str], width: int = 44) -> str:
    """Lock/tuple in update t set x = ?, shop."""
    if row.part is None:
        return name_event(row)
    return f"{name_event(row)} in {name_statement(row.statement, texts, width)}, {name_application(row.application)}"


def name_application(application: str) -> str:
    """As it calls itself."""
    return readable(application) or "(without a name)"


def name_blocker(root: SessionClass | None, texts: Mapping[str, str]) -> str:
    """What the head of a chain was doing."""
    if root is None:
        return "a session that was not seen"
    if not root.kind:
        return "a prepared transaction"
    who = f"a session of the application {name_application(root.application)}"
    if root.kind not in {"client backend", "parallel worker"}:
        who = f"the {readable(root.kind)}"
    statement = name_statement(root.statement, texts) if root.statement else ""
    if root.is_idle_in_transaction:
        last = f", whose last statement was {statement}" if statement else ""
        return f"{who} idle in its transaction{last}"
    waits = f", waiting for {readable(root.wait_type)}/{readable(root.event)}" if root.wait_type else ""
    return f"{who} in {statement}{waits}" if statement else f"{who}{waits}"


# ------------------------------------------------------------------------------------------------ figures


def render_sessions(value: float, *, signed: bool = False) -> str:
    """3.24, or +3.24; what rounds to nothing has no sign."""
    text = f"{value:{'+' if signed else ''}.2f}"
    return text.lstrip("+-") if float(text) == 0 else text


def render_span(interval: ValueInterval | None) -> str:
    """[+1.9, +4.2], empty where it is not known."""
    if interval is None:
        return ""
    return f"[{render_sessions(interval.low, signed=True)}, {render_sessions(interval.high, signed=True)}]"


def render_change(change: Change) -> str:
    """+38 % [+30, +46]; 3.2 times [2.9, 3.5] where it is large; empty where it is not known."""
    if not (change.reference > 0 and math.isfinite(change.value)):
        return ""
    ratio, span = change.value / change.reference, change.ratio
    if ratio >= _MANY_TIMES:
        if span is not None and span.high > _ENDLESS * ratio:
            return f"{render_rate(ratio)} times [at least {render_rate(span.low)}]"
        ends = "" if span is None else f" [{render_rate(span.low)}, {render_rate(span.high)}]"
        return f"{render_rate(ratio)} times{ends}"
    digits = 0 if abs(ratio - 1) * 100 >= _WHOLE else 1
    ends = "" if span is None else f" [{_percent(span.low, digits)}, {_percent(span.high, digits)}]"
    return f"{_percent(ratio, digits)} %{ends}"


def _percent(ratio: float, digits: int) -> str:
    """+38.0; what rounds to nothing is not below it."""
    return f"{round((ratio - 1) * 100, digits) + 0.0:+.{digits}f}"


def render_limit(change: Change) -> str:
    """12 %."""
    if change.limit is None:
        return ""
    return render_share(change.limit) if change.limit < 1 else f"{render_times(change.limit + 1)} times"


def render_times(value: float) -> str:
    """A multiple with two digits that tell something: 2.3, 34, 1,300."""
    return render_rate(float(f"{value:.2g}"))


# ------------------------------------------------------------------------------------------------ sentences


def detail_sentences(found: Explained) -> Iterator[str]:
    """Since when, where the load is, who blocked and what statements did, without full stops."""
    why = found.explanation
    if why.onset is not None:
        yield _say_onset(why.onset)
    if why.outcome in {*_SLOWER, Outcome.MORE}:
        yield from _say_rows(found)
    yield from _say_blockers(found)
    yield from _say_calls(found)
    if why.outcome in _SLOWER:
        yield from say_relations(why.relations)


def say_outcome(found: Explained) -> str:
    """Whether transactions were slower, with throughput and time of both windows."""
    why, where = found.explanation, say_place(found.explanation.window)
    inside = f"{where[:1].lower()}{where[1:]}"
    throughput, load, time = why.throughput, why.load, why.time
    per = f"{_seconds(time.value)} per transaction instead of {_seconds(time.reference)}"
    match why.outcome:
        case Outcome.INCIDENT:
            moved = "fell" if throughput.value < throughput.reference and throughput.resolved else "did not rise"
            rate = f"throughput {moved} ({_rates(throughput)}, {render_change(throughput)})"
            return f"{where} transactions were slower: {per}, {render_change(time)}; {rate}"
        case Outcome.STALLED:
            active = f"{load.value:.1f} sessions were active on average, instead of {load.reference:.1f}"
            return f"{where} no transaction was committed, and {active}"
        case Outcome.SATURATED:
            return (
                f"{where} more transactions came ({_rates(throughput)}, {render_change(throughput)}), and each "
                f"took longer: {per}, {render_change(time)}"
            )
        case Outcome.MORE:
            return (
                f"{where} there was more demand, and transactions did not become slower: {_rates(throughput)}, "
                f"{render_change(throughput)}; {_say_unchanged(time, per)}"
            )
        case Outcome.FEWER:
            return (
                f"{where} there was less demand, and transactions did not become slower: {_rates(throughput)}, "
                f"{render_change(throughput)}; {_say_unchanged(time, per)}"
            )
        case Outcome.OTHER_MIX:
            return (
                f"{where} other statements ran: the extra load comes from them, not from slower transactions; load "
                f"{load.value:.2f} instead of {load.reference:.2f} active sessions, {render_change(load)}; throughput "
                f"{_rates(throughput)}, {render_change(throughput)}"
            )
        case Outcome.FASTER:
            return f"{where} transactions were faster: {per}, {render_change(time)}"
        case Outcome.SAME:
            return (
                f"No change was found {inside}: throughput {_rates(throughput)}, {render_change(throughput)}; "
                f"{per}, {render_change(time)}; {_say_limits(why.throughput, why.time)}"
            )
        case Outcome.UNKNOWN:
            return (
                f"Cannot tell whether anything changed {inside}: there are too few seconds, or too little happened "
                f"in them, for an interval (throughput {_rates(throughput)}; {per})"
            )
        case _:
            assert_never(why.outcome)


def _say_unchanged(time: Change, per: str) -> str:
    limit = render_limit(time)
    known = f", and {limit} more would have been found" if limit else ""
    return f"{per}, {render_change(time)}{known}"


def _say_limits(throughput: Change, time: Change) -> str:
    limits = f"{render_limit(throughput)} of throughput, or {render_limit(time)} of the time"
    return f"a change of {limits}, would have been found"


def _rates(change: Change) -> str:
    return f"{render_rate(change.value)} instead of {render_rate(change.reference)} per second"


def _seconds(value: float) -> str:
    return render_duration(value) if math.isfinite(value) else "an unknown time"


def _say_onset(onset: Onset) -> str:
    """Since when and until when, with intervals."""
    since = f"The change began at {_clock(onset.begin)} {_clock_span(onset.begin_interval)}"
    if onset.end is None or onset.end_interval is None:
        return f"{since}; its end was not seen"
    return f"{since} and ended at {_clock(onset.end)} {_clock_span(onset.end_interval)}"


def _clock(moment: float) -> str:
    return f"{local(moment):%H:%M:%S}"


def _clock_span(interval: ValueInterval) -> str:
    return f"[{_clock(interval.low)}, {_clock(interval.high)}]"


def _say_rows(found: Explained) -> Iterator[str]:
    """Rows with a large part of the extra load, and the whole of it."""
    why = found.explanation
    extra = why.load.value - why.load.reference
    if extra <= 0:
        return
    rows = [row for row in why.rows if row.part is not None and row.resolved and row.difference >= _TOLD * extra]
    for place, row in enumerate(rows[:_MOST_TOLD]):
        where = f"{name_event(row)} in {name_statement(row.statement, found.texts)}"
        share = f"{render_sessions(row.difference, signed=True)} {render_span(row.interval)}"
        if place == 0:
            said = f"The largest part of the extra load was {where}, application {name_application(row.application)}"
            yield f"{said}: {share} of {render_sessions(extra, signed=True)} active sessions"
        else:
            yield f"Then {where}, application {name_application(row.application)}: {share}"
    if not rows:
        yield (
            f"The load changed by {render_sessions(extra, signed=True)} active sessions; no combination of wait event, "
            "statement and application certainly has a large part in that"
        )


def _say_blockers(found: Explained) -> Iterator[str]:
    why = found.explanation
    least = max(_FEW_BLOCKED, _MUCH * (why.load.value - why.load.reference))
    # what a cause says is not said again
    named = {cause.session.application for cause in why.causes if cause.pids and cause.session is not None}
    told = [
        each
        for each in why.blockers
        if each.root is not None and each.value - each.reference >= least and each.root.application not in named
    ]
    for blocker in told[:2]:
        yield say_blocker(blocker, found.texts)


def say_blocker(blocker: RootBlocker, texts: Mapping[str, str]) -> str:
    """Who was at the head, and how many waited behind."""
    pids = ", ".join(map(str, blocker.pids[:2])) + (" and others" if len(blocker.pids) > 2 else "")  # noqa: PLR2004
    process = f" (process {pids})" if blocker.pids else ""
    held = f"; its transaction had been open for up to {render_duration(blocker.held)}" if blocker.held else ""
    return (
        f"At the head of the blocking chain was {name_blocker(blocker.root, texts)}{process}: "
        f"{blocker.value:.2f} sessions waited behind it on average{held}"
    )


def _say_calls(found: Explained) -> Iterator[str]:
    """Of what pg_stat_statements counted: where the extra time comes from, and who reads more blocks a call."""
    changes = found.explanation.calls
    total = sum(change.difference for change in changes)
    if not changes or found.explanation.outcome in {Outcome.SAME, Outcome.UNKNOWN, Outcome.FASTER, Outcome.FEWER}:
        return
    extra = found.explanation.load.value - found.explanation.load.reference
    # statements that have not ended are not counted: then they tell of something else
    if total > 0 and _AGREE * extra < total < extra / _AGREE:
        demand = sum(change.by_demand for change in changes)
        parts = (
            ("slower calls", sum(change.by_latency for change in changes)),
            ("more transactions" if demand > 0 else "fewer transactions", demand),
            ("another mix of statements", sum(change.by_mix for change in changes)),
        )
        said = ", ".join(f"{render_sessions(part, signed=True)} by {name}" for name, part in parts)
        yield f"Execution time of statements changed by {render_sessions(total, signed=True)} s per second: {said}"
    named = {key for cause in found.explanation.causes for key in cause.statements}
    for change in changes[:_MOST_TOLD]:
        if change.statement not in named and _reads_more(change, total):
            blocks = map(render_rate, (change.blocks_per_call, change.reference_blocks_per_call))
            more = " blocks a call instead of ".join(blocks)
            yield (
                f"{name_statement(change.statement, found.texts)} touched {more}: its plan, its parameters or the size "
                "of its tables changed"
            )


def _reads_more(change: CallsChange, total: float) -> bool:
    before = change.reference_blocks_per_call
    large = change.by_latency >= _TOLD * total > 0
    return large and before > 0 and change.blocks_per_call >= _CHANGED * before
