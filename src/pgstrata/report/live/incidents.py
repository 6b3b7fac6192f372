"""Incidents of an archive as a document: how many, the worst in words, a table; more demand apart from them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import Final

from pgstrata.model.archive import Span
from pgstrata.model.attribution import ValueInterval
from pgstrata.model.causes import CauseKind
from pgstrata.model.explanation import Explained
from pgstrata.model.incidents import DemandChange, DemandKind, Detected, Ending, Found, Incident, IncidentKind
from pgstrata.report.blocks.model import (
    Block,
    Column,
    Document,
    Fact,
    Facts,
    Listing,
    Paragraph,
    Section,
    Table,
    Tone,
)
from pgstrata.report.figures.live import draw_courses
from pgstrata.report.live.causes import name_cause
from pgstrata.report.live.frame import archive_document, recorded_from
from pgstrata.report.live.limits import say_limits
from pgstrata.report.live.words import (
    local,
    name_application,
    name_event,
    name_statement,
    render_sessions,
    render_times,
    say_dated,
    say_window,
)
from pgstrata.report.sentences.causes import readable
from pgstrata.units import render_count, render_duration, render_rate, render_share

_TOLD: Final = 5
"""Incidents that are told in words."""
_MOST: Final = 100
"""Rows of a table."""
_DAY: Final = 86_400
_PERIODS: Final = {3600: "an hour", _DAY: "a day", 7 * _DAY: "a week", 30 * _DAY: "a month"}
_TIMES: Final = 2.0
_HOW: Final = (
    "A row's time per transaction is its load divided by its throughput, as a multiple of the usual one: that of the "
    "last hour without incidents. More demand, or a fall of demand, is no incident."
)


def make_incidents(found: Found, version: str) -> Document:
    """The document of `incidents`."""
    span = found.detected.span
    return archive_document(
        found.archive,
        f"When was the server slow, from {say_window(span)}?",
        f"{say_dated(span)}, {render_duration(found.detected.judged)} of it judged",
        answer=answer_sentences(found),
        doubts=(*doubt_sentences(found), *say_limits(found.facts.limits)),
        sections=_sections(found),
        version=version,
    )


def answer_sentences(found: Found) -> Iterator[str]:
    """How many incidents there were, then the worst of them; without full stops."""
    detected = found.detected
    if not detected.judged:
        yield _say_learning(detected)
        return
    number = len(detected.incidents)
    many = render_count(number, "incident") if number else "No incident"
    rate = f"one false alarm {say_period(detected.rate)} is expected"
    yield f"{many} in {render_duration(detected.judged)}; {rate}"
    for incident, explained in sorted(
        zip(detected.incidents, found.explained, strict=True), key=lambda each: -each[0].lost(detected.span.end)
    )[:_TOLD]:
        yield f"{say_when(incident)}: {say_incident(incident)}{_because(explained)}"
    if number > _TOLD:
        yield f"The table has the other {number - _TOLD}"


def _say_learning(detected: Detected) -> str:
    return (
        f"Cannot tell yet: {render_duration(detected.seconds)} were recorded in which transactions were counted, and "
        "7 minutes are needed to know what is usual"
    )


def say_period(rate: float) -> str:
    """A week, every 3 h: the time in which one false alarm is expected."""
    seconds = round(1 / rate)
    return _PERIODS.get(seconds, f"every {render_duration(seconds)}")


def say_when(incident: Incident) -> str:
    """2026-11-26 13:28:20 to 13:47:20 (19 min), or since."""
    begin = local(incident.begin)
    if incident.end is None:
        return f"Since {begin:%Y-%m-%d %H:%M:%S}"
    return f"{begin:%Y-%m-%d} {say_window(Span(begin=incident.begin, end=incident.end))}"


def say_incident(incident: Incident, *, lasts: bool = False) -> str:
    """Transactions took 2.3 times as long, with throughput and load."""
    rate = (
        f"throughput {render_rate(incident.throughput)} instead of {render_rate(incident.usual_throughput)} per second"
    )
    load = f"load {render_sessions(incident.load)} instead of {render_sessions(incident.usual_load)} active sessions"
    if incident.kind is IncidentKind.STALLED:
        ended, were = ("ends", "are") if lasts else ("ended", "were")
        return f"no transaction {ended}, while sessions {were} active ({load}; {rate})"
    return f"transactions {'take' if lasts else 'took'} {say_factor(incident.factor)} ({rate}; {load})"


def say_begun(incident: Incident, explained: Explained | None) -> str:
    """Incident since 13:28:20: transactions take 2.3 times as long; where most of that is."""
    said = f"incident since {local(incident.begin):%H:%M:%S}: {say_incident(incident, lasts=True)}"
    return f"{said}{_because(explained)}"


def say_ended(incident: Incident) -> str:
    """Incident of 13:28:20 ended at 13:47:20, after 19 min."""
    end = incident.end or incident.found
    which = f"the incident of {local(incident.begin):%H:%M:%S}"
    after = f"after {render_duration(end - incident.begin)}"
    match incident.ending:
        case Ending.ADOPTED:
            return f"{which} has lasted so long that it counts as usual from now on, {after}"
        case Ending.UNSEEN:
            return f"{which} was seen until {local(end):%H:%M:%S}, {after}: then nothing was recorded"
        case _:
            return f"{which} ended at {local(end):%H:%M:%S}, {after}: {say_incident(incident)}"


def say_factor(factor: float) -> str:
    """2.3 times as long; 34 % longer; 5 % less time; as long as usual if the change is rounded to nothing."""
    if factor >= _TIMES:
        return f"{render_times(factor)} times as long"
    percent = round((factor - 1) * 100)
    if not percent:
        return "as long as usual"
    return f"{percent} % longer" if percent > 0 else f"{-percent} % less time"


def _because(explained: Explained | None) -> str:
    said = None if explained is None else say_first_cause(explained)
    return f"; {said}" if said else ""


def say_first_cause(explained: Explained) -> str | None:
    """The most likely cause, or else the largest part of the extra load; None where neither is known."""
    why, texts = explained.explanation, explained.texts
    if why.causes:
        return f"most likely, {name_cause(why.causes[0], texts)}"
    rows = [row for row in why.rows if row.part is not None and row.difference > 0]
    if not rows:
        return None
    row = max(rows, key=lambda each: each.difference)
    where = f"{name_event(row)} in {name_statement(row.statement, texts)}"
    change = f"{render_sessions(row.difference, signed=True)} active sessions"
    return f"most of the added load was {where}, application {name_application(row.application)}: {change}"


def doubt_sentences(found: Found) -> Iterator[str]:
    """What may have gone unseen, without full stops."""
    detected = found.detected
    if detected.limit is not None:
        yield f"a slowdown of less than {_percent(detected.limit)} that lasts a minute may go unseen"
    if detected.judged and detected.seconds - detected.judged >= 1:
        away = render_duration(detected.seconds - detected.judged)
        yield f"{away} at the beginning, or without known transactions, were not judged: usual values were not known"
    if found.coarse_until is not None:
        until = f"{local(found.coarse_until):%Y-%m-%d %H:%M}"
        yield f"before {until} only minutes are kept: incidents shorter than a few minutes may go unseen there"
    if detected.gaps:
        whole = render_duration(sum(gap.seconds for gap in detected.gaps))
        yield f"the recording has {render_count(len(detected.gaps), 'gap')}, {whole} in all: nothing is known of them"
    if detected.judged and not detected.days:
        yield "fewer than three former days are known: usual values are those of the hour before only"


def _percent(factor: float) -> str:
    return render_share(factor - 1) if factor < _TIMES else f"{render_times(factor)} times"


def _sections(found: Found) -> Iterator[Block]:
    detected = found.detected
    if found.courses is not None and found.courses.starts:
        spans = [Span(begin=each.begin, end=each.end or detected.span.end) for each in detected.incidents]
        yield Section("Over time", (draw_courses(found.courses, spans, None, "incidents are shaded"),))
    if detected.incidents:
        table = _incidents_table(detected.incidents[-_MOST:], found.explained[-_MOST:])
        look = _commands(found)
        yield Section("Incidents", (table, Paragraph(_HOW, Tone.NOTE)), brief=True)
        yield Section("To look closer", (Listing(look),))
    if detected.demand:
        table = _demand_table(detected.demand[-_MOST:], found)
        yield Section("More demand: no incidents", (table,))
    yield Section("Recorded from", (Facts(tuple(_facts(found))),))


def _incidents_table(incidents: Sequence[Incident], explained: Sequence[Explained | None]) -> Table:
    return Table(
        names=Column(title="began", cells=tuple(f"{local(each.begin):%Y-%m-%d %H:%M:%S}" for each in incidents)),
        columns=(
            Column(title="[95 %]", cells=tuple(_clocks(each.begin_interval) for each in incidents)),
            Column(title="lasted", cells=tuple(map(_lasted, incidents))),
            Column(title="found after", cells=tuple(render_duration(each.found - each.begin) for each in incidents)),
            Column(title="time per transaction", cells=tuple(map(_times, incidents))),
            Column(
                title="throughput", cells=tuple(_pair(each.usual_throughput, each.throughput) for each in incidents)
            ),
            Column(title="load", cells=tuple(_pair(each.usual_load, each.load) for each in incidents)),
            Column(
                title="most likely cause",
                cells=tuple("" if each is None else _cause(each) for each in explained),
                words=True,
            ),
        ),
    )


def _clocks(interval: ValueInterval) -> str:
    return f"[{local(interval.low):%H:%M:%S}, {local(interval.high):%H:%M:%S}]"


def _lasted(incident: Incident) -> str:
    if incident.end is None:
        return "still lasts"
    said = render_duration(incident.end - incident.begin)
    match incident.ending:
        case Ending.ADOPTED:
            return f"{said}, then usual"
        case Ending.UNSEEN:
            return f"{said}, then a gap"
        case _:
            return said


def _times(incident: Incident) -> str:
    if incident.kind is IncidentKind.STALLED:
        return "stalled"
    interval = incident.factor_interval
    ends = "" if interval is None else f" [{render_rate(interval.low)}, {render_rate(interval.high)}]"
    return f"x {render_rate(incident.factor)}{ends}"


def _pair(before: float, now: float) -> str:
    return f"{render_rate(before)} → {render_rate(now)}"


def _cause(explained: Explained) -> str:
    """The kind of the most likely cause; of waits the event."""
    causes = explained.explanation.causes
    if not causes:
        return "cannot tell"
    return readable(causes[0].event) if causes[0].kind is CauseKind.EVENT else causes[0].kind.value


def _commands(found: Found) -> tuple[str, ...]:
    worst = sorted(found.detected.incidents, key=lambda each: -each.lost(found.detected.span.end))[:_TOLD]
    archive = shlex.quote(found.archive)
    return tuple(
        f"pgstrata explain {archive} --from @{each.begin}{'' if each.end is None else f' --to @{each.end}'}"
        for each in sorted(worst, key=lambda each: each.begin)
    )


def _demand_table(changes: Sequence[DemandChange], found: Found) -> Table:
    return Table(
        names=Column(title="from", cells=tuple(f"{local(each.begin):%Y-%m-%d %H:%M:%S}" for each in changes)),
        columns=(
            Column(title="what came", cells=tuple(_came(each, found) for each in changes), words=True),
            Column(title="throughput", cells=tuple(_pair(each.usual_throughput, each.throughput) for each in changes)),
            Column(title="load", cells=tuple(_pair(each.usual_load, each.load) for each in changes)),
        ),
    )


def _came(change: DemandChange, found: Found) -> str:
    if change.kind is DemandKind.MORE:
        slower = change.factor is not None and change.factor > 1.1  # noqa: PLR2004 - what is shown as longer
        longer = f"; each took {say_factor(change.factor)}" if slower and change.factor is not None else ""
        return f"more transactions{longer}"
    names = ", ".join(name_statement(key, found.texts, 40) for key in change.statements)
    return f"other statements: {names}" if names else "other statements"


def _facts(found: Found) -> Iterator[Fact]:
    yield from recorded_from(found.archive, found.facts)
    if found.detected.days:
        yield Fact(name="usual", value=f"the last hour, and the same time of {found.detected.days} former days")
