"""What a window holds by itself as a document and for programs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from pgstrata.model.archive import SERVER_RATES, StatementUse
from pgstrata.model.courses import COURSES
from pgstrata.model.profile import LoadShare, Profiled
from pgstrata.report.blocks.model import (
    Block,
    Column,
    ColumnPlace,
    Details,
    Document,
    Facts,
    Listing,
    Section,
    Table,
)
from pgstrata.report.figures.live import draw_courses
from pgstrata.report.json.documents import pick_fields, render_document
from pgstrata.report.live.doubts import single_doubts
from pgstrata.report.live.events import event_lines
from pgstrata.report.live.frame import archive_document, archive_json, recorded_from
from pgstrata.report.live.limits import say_limits
from pgstrata.report.live.relations import horizon_blocks, horizon_json, relation_shares, use_json
from pgstrata.report.live.tables import blockers_table, say_amount, texts_table, title_of
from pgstrata.report.live.words import (
    name_application,
    name_event,
    name_statement,
    render_sessions,
    say_dated,
    say_seen,
    say_window,
)
from pgstrata.units import render_bytes, render_duration, render_rate

_MOST: Final = 20
_WIDTH: Final = 44
_NARROWEST: Final = 20
_SHARE: Final = "part event statement application value samples"
_USE: Final = "calls seconds rows blocks_hit blocks_read wal_bytes"


def make_profile_document(found: Profiled, version: str) -> Document:
    """The document of `window`."""
    profile = found.profile
    return archive_document(
        found.archive,
        f"The server from {say_window(profile.window.span)}",
        f"{say_dated(profile.window.span)}, {say_seen(profile.window)}",
        answer=_answer(found),
        doubts=(
            *single_doubts(found.facts, profile.window, clipped=found.clipped),
            *say_limits(found.facts.limits),
        ),
        sections=_sections(found),
        version=version,
    )


def _answer(found: Profiled) -> Iterator[str]:
    profile = found.profile
    load = f"{render_sessions(profile.load)} sessions were active on average"
    if math.isfinite(profile.throughput):
        time = f", {render_duration(profile.time)} per transaction" if math.isfinite(profile.time) else ""
        yield f"{load}; {render_rate(profile.throughput)} transactions were committed per second{time}"
    else:
        yield f"{load}; the throughput is not known"
    if profile.waits and profile.load:
        most = profile.waits[0]
        yield f"Most of the load was {name_event(most)}: {_percent(most.value, profile.load)}"


def _percent(value: float, whole: float) -> str:
    return f"{value / whole * 100:.0f} %" if whole else ""


def _sections(found: Profiled) -> Iterator[Block]:
    profile, texts = found.profile, found.texts
    yield Section("Over time", (draw_courses(profile.courses, (profile.window.span,)),))

    def statement(share: LoadShare) -> str:
        return name_statement(share.statement, texts, _WIDTH)

    def whole(share: LoadShare) -> str:
        return (
            f"{name_event(share)} in {statement(share)}, {name_application(share.application)}"
            if share.part
            else "remainder"
        )

    by_event = _shares("wait event", profile.waits, name_event, profile.load)
    yield Section("Load by wait event", (by_event,), brief=True)
    yield Section("Load by statement", (_shares("statement", profile.statements, statement, profile.load),), brief=True)
    applications = _shares(
        "application", profile.applications, lambda each: name_application(each.application), profile.load
    )
    yield Details("By application, and by all three", (
        applications, _shares("wait event, statement, application", profile.rows, whole, profile.load),
    ))  # fmt: skip
    if profile.blockers:
        yield Section("Who blocked", (blockers_table(profile.blockers, texts),), brief=True)
    if profile.counted:
        yield Section("Statements", (_uses(profile.uses, profile.counted, texts),))
    yield from relation_shares(profile.relations)
    yield from horizon_blocks(profile.horizons)
    names = (("Server", set(SERVER_RATES)), ("Host", set(COURSES) - set(SERVER_RATES)))
    for title, wanted in names:
        rows = [(name, value) for name, value in profile.rates if name in wanted and value]
        if rows:
            yield Section(title, (_rates(rows),))
    if profile.window.events:
        yield Section("Events", (Listing(tuple(event_lines(profile.window.events))),))
    keys = [share.statement for share in profile.statements[:_MOST]] + [key for key, _ in profile.uses[:_MOST]]
    table = texts_table(keys, texts)
    if table is not None:
        yield Details("Texts of the statements", (table,))
    yield Section("Recorded from", (Facts(tuple(recorded_from(found.archive, found.facts))),))


def _shares(title: str, shares: Sequence[LoadShare], name: Callable[[LoadShare], str], load: float) -> Table:
    rows = shares[:_MOST]
    return Table(
        names=Column(title=title, cells=tuple(map(name, rows))),
        columns=(
            Column(title="active sessions", cells=tuple(render_sessions(row.value) for row in rows)),
            Column(title="share", cells=tuple(_percent(row.value, load) for row in rows)),
            Column(title="samples", cells=tuple(f"{row.samples:,}" for row in rows)),
        ),
        breaks=_NARROWEST,
    )


def _uses(uses: Sequence[tuple[str, StatementUse]], seconds: float, texts: Mapping[str, str]) -> Table:
    rows = [(key, use) for key, use in uses if use.calls][:_MOST]
    blocks = [(use.blocks_hit + use.blocks_read) / use.calls for _, use in rows]
    return Table(
        names=Column(title="statement", cells=tuple(name_statement(key, texts, _WIDTH) for key, _ in rows)),
        columns=(
            Column(title="s/s", cells=tuple(f"{use.seconds / seconds:.3f}" for _, use in rows)),
            Column(title="calls/s", cells=tuple(render_rate(use.calls / seconds) for _, use in rows)),
            Column(title="time of a call", cells=tuple(render_duration(use.seconds / use.calls) for _, use in rows)),
            Column(
                title="rows a call",
                cells=tuple(render_rate(use.rows / use.calls) for _, use in rows),
                place=ColumnPlace.MORE,
            ),
            Column(title="blocks a call", cells=tuple(map(render_rate, blocks)), place=ColumnPlace.MORE),
            Column(
                title="WAL a call",
                cells=tuple(render_bytes(use.wal_bytes / use.calls) for _, use in rows),
                place=ColumnPlace.MORE,
            ),
        ),
        breaks=_NARROWEST,
    )


def _rates(rows: Sequence[tuple[str, float]]) -> Table:
    return Table(
        names=Column(title="per second or level", cells=tuple(title_of(name) for name, _ in rows)),
        columns=(Column(title="mean", cells=tuple(say_amount(name, value) for name, value in rows)),),
        breaks=_NARROWEST,
    )


def profile_json(found: Profiled) -> str:
    """The document of `window --json`."""
    profile = found.profile

    def shares(rows: Sequence[LoadShare]) -> list[dict[str, Any]]:
        return [pick_fields(row, _SHARE) for row in rows]

    return render_document(
        {
            **archive_json(
                found.archive,
                found.facts,
                _answer(found),
                single_doubts(found.facts, profile.window, clipped=found.clipped),
            ),
            "window": pick_fields(profile.window, "begin=span.begin end=span.end seen looks unit"),
            **pick_fields(profile, "throughput load time counted"),
            "rows": shares(profile.rows),
            "waits": shares(profile.waits),
            "statements": shares(profile.statements),
            "applications": shares(profile.applications),
            "uses": [{"statement": key, **pick_fields(use, _USE)} for key, use in profile.uses],
            "relations": [use_json(*each) for each in profile.relations],
            "horizons": [horizon_json(each) for each in profile.horizons],
            "rates": dict(profile.rates),
            "texts": dict(found.texts),
        }
    )
