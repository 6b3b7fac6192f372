"""Which statements waited for an event, as a document and for programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from pgstrata.model.waiting import FoundWaits, WaitingStatement
from pgstrata.report.blocks.model import (
    Block,
    Column,
    ColumnPlace,
    Details,
    Document,
    Facts,
    Paragraph,
    Section,
    Table,
    Tone,
)
from pgstrata.report.json.documents import pick_fields, render_document
from pgstrata.report.live.doubts import single_doubts
from pgstrata.report.live.frame import archive_document, archive_json, recorded_from
from pgstrata.report.live.limits import say_limits
from pgstrata.report.live.tables import texts_table
from pgstrata.report.live.words import name_application, name_statement, say_dated, say_seen, say_window
from pgstrata.report.sentences.causes import name_query, readable
from pgstrata.units import render_count, render_duration, render_names, render_rate, render_share

_WIDTH: Final = 44
_NARROWEST: Final = 20
_LONGEST_HINT: Final = 4000
_MOST_NAMES: Final = 3
_NOTE: Final = (
    "Sessions are looked at once a second: a sample is one session that waited when it was looked at, and stands for a "
    "second. The interval is that of a count of independent samples (Poisson), about ±2 √samples. It is wider where "
    "many sessions begin and end their waits together."
)
_COUNTED: Final = (
    "Calls and times of a call are those of pg_stat_statements; they are empty where it did not count the statement."
)
_ROW: Final = (
    "statement samples interval seconds of_event of_load calls latency applications databases statements=members"
)


def make_waits_document(found: FoundWaits, version: str) -> Document:
    """The document of `window --event`."""
    waits = found.waits
    return archive_document(
        found.archive,
        f"Which statements waited for {_events(found)} from {say_window(waits.window.span)}?",
        f"{say_dated(waits.window.span)}, {say_seen(waits.window)}",
        answer=_answer(found),
        doubts=(*_doubts(found), *say_limits(found.facts.limits)),
        sections=_sections(found),
        version=version,
    )


def _doubts(found: FoundWaits) -> Iterator[str]:
    return single_doubts(found.facts, found.waits.window, clipped=found.clipped)


def _events(found: FoundWaits) -> str:
    names = [readable(event) for event, _ in found.waits.events]
    return names[0] if len(names) == 1 else f"{names[0].partition('/')[0]} events"


def _answer(found: FoundWaits) -> Iterator[str]:
    waits, whole = found.waits, found.waits.whole
    yield (
        f"Sessions waited for {_events(found)} in {_samples(whole)} {_span(whole)}, which is about "
        f"{render_duration(whole.seconds)} of waiting and {render_share(whole.of_load)} of the load"
    )
    least = render_count(waits.at_least, "sample")
    if waits.rows:
        share = render_share(sum(row.of_event for row in waits.rows))
        statements = render_count(len(waits.rows), "statement")
        yield f"{statements} with at least {least} had {share} of it"
    else:
        yield f"No statement was in at least {least}: --at-least N lists those with fewer"
    if waits.elsewhere:
        samples = render_count(waits.elsewhere, "more sample")
        yield f"{samples} were of processes that serve no client, or of idle sessions, which are no part of the load"


def _samples(row: WaitingStatement) -> str:
    return render_count(row.samples, "sample")


def _span(row: WaitingStatement) -> str:
    return f"[{row.interval.low:,.0f}, {row.interval.high:,.0f}]"


def _sections(found: FoundWaits) -> Iterator[Block]:
    waits, texts = found.waits, found.texts
    notes = (Paragraph(_NOTE, Tone.NOTE), Paragraph(_COUNTED, Tone.NOTE))
    yield Section("Statements", (_table(found), *notes), brief=True)
    if len(waits.events) > 1:
        names = Column(title="wait event", cells=tuple(readable(event) for event, _ in waits.events))
        samples = Column(title="samples", cells=tuple(f"{number:,}" for _, number in waits.events))
        yield Section("Events", (Table(names=names, columns=(samples,), breaks=_NARROWEST),))
    table = texts_table((row.statement or "" for row in waits.rows), texts)
    if table is not None:
        yield Details("Texts of the statements", (table,))
    yield Section("Recorded from", (Facts(tuple(recorded_from(found.archive, found.facts))),))


def _table(found: FoundWaits) -> Table:
    waits, texts = found.waits, found.texts
    lines = [(name_statement(row.statement or "", texts, _WIDTH), row) for row in waits.rows]
    if waits.remainder is not None:
        fewer = render_count(waits.remainder.members, "statement")
        lines.append((f"{fewer} with fewer than {render_count(waits.at_least, 'sample')}", waits.remainder))
    lines.append(("all", waits.whole))
    rows = [row for _, row in lines]
    return Table(
        names=Column(title="statement", cells=tuple(name for name, _ in lines)),
        columns=(
            Column(
                title="samples [95 %]",
                cells=tuple(f"{row.samples:,}" for row in rows),
                beside=tuple(map(_span, rows)),
            ),
            Column(title="waiting", cells=tuple(render_duration(row.seconds) for row in rows)),
            Column(title="of the event", cells=tuple(render_share(row.of_event) for row in rows)),
            Column(title="of the load", cells=tuple(render_share(row.of_load) for row in rows)),
            Column(title="calls/s", cells=tuple(_known(row.calls, render_rate) for row in rows)),
            Column(title="time of a call", cells=tuple(_known(row.latency, render_duration) for row in rows)),
            Column(
                title="query",
                cells=tuple(row.statement or "" for row in rows),
                place=ColumnPlace.MORE,
                words=True,
            ),
            Column(
                title="applications",
                cells=tuple(_names(row.applications, row) for row in rows),
                place=ColumnPlace.MORE,
                words=True,
            ),
            Column(
                title="databases",
                cells=tuple(_names(row.databases, row) for row in rows),
                place=ColumnPlace.MORE,
                words=True,
            ),
        ),
        hints=tuple(name_query(texts.get(row.statement or "", ""), _LONGEST_HINT) for row in rows),
        breaks=_NARROWEST,
    )


def _known(value: float | None, render: Callable[[float], str]) -> str:
    return "" if value is None else render(value)


def _names(names: tuple[str, ...], row: WaitingStatement) -> str:
    """The most frequent first; of several statements together they say little."""
    if row.statement is None:
        return ""
    return render_names([*map(name_application, names)], _MOST_NAMES)


def waits_json(found: FoundWaits) -> str:
    """The document of `window --event --json`."""
    waits = found.waits
    shown = {row.statement for row in waits.rows}
    return render_document(
        {
            **archive_json(found.archive, found.facts, _answer(found), _doubts(found)),
            "window": pick_fields(waits.window, "begin=span.begin end=span.end seen looks unit"),
            "events": [{"event": event, "samples": samples} for event, samples in waits.events],
            **pick_fields(waits, "at_least load elsewhere"),
            "whole": _row(waits.whole),
            "statements": [_row(row) for row in waits.rows],
            "remainder": None if waits.remainder is None else _row(waits.remainder),
            "texts": {key: text for key, text in found.texts.items() if key in shown},
        }
    )


def _row(row: WaitingStatement) -> Mapping[str, Any]:
    return pick_fields(row, _ROW)
