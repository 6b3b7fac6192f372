"""Two windows side by side as a document and for programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from pgstrata.model.courses import COURSES
from pgstrata.model.explanation import Change
from pgstrata.model.periods import FoundPeriods, Total, UseChange
from pgstrata.report.blocks.model import (
    Block,
    Column,
    Details,
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
from pgstrata.report.json.documents import pick_fields, render_document
from pgstrata.report.live.doubts import pair_doubts
from pgstrata.report.live.events import event_lines
from pgstrata.report.live.frame import archive_document, archive_json, recorded_from
from pgstrata.report.live.json import blocker_json, calls_json, figure_json, load_row_json, window_json
from pgstrata.report.live.limits import say_limits
from pgstrata.report.live.relations import change_json, horizon_blocks, horizon_json, relation_changes
from pgstrata.report.live.sides import COMPARISON, WINDOW, Line, change_line, load_lines, rate_lines, side_blocks
from pgstrata.report.live.tables import TITLES, blockers_table, calls_table, say_main, texts_table, title_of
from pgstrata.report.live.words import (
    name_application,
    name_event,
    name_row,
    name_statement,
    render_change,
    render_limit,
    say_dated,
    say_seen,
    say_window,
)
from pgstrata.report.sentences.causes import name_query, readable
from pgstrata.units import Unit, render_bytes, render_count, render_duration, render_rate

_WIDTH: Final = 44
_NARROWEST: Final = 20
_LONGEST_HINT: Final = 4000
_MOST: Final = 20
_NOTE: Final = (
    "Tables show what differs for certain: by more than both windows scatter by themselves, considering how many rows "
    "there are. Rows whose difference may be chance stand apart, in plain text and on a page."
)
_NO_ERRORS: Final = "No error of these figures is known: one of the windows has too few intervals of statements."
_NO_ERROR_OF_BLOCKERS: Final = "Sessions that waited behind it, on average; no error of these figures is known."
_CALLS: Final = (
    "Seconds of execution per second. The change is the sum of three parts. Slower: each call took longer. Demand: "
    "calls changed with the number of transactions. Mix: other changes of calls."
)
_TOTALS: Final = "What rates add up to in the seconds that were recorded of each window, whose lengths may differ."


_PER_SECOND: Final[Mapping[str, tuple[str, Callable[[float], str]]]] = {
    "calls": ("calls per second", render_rate),
    "seconds": ("seconds of execution per second", render_rate),
    "rows": ("rows per second", render_rate),
    "blocks_hit": ("blocks hit per second", render_rate),
    "blocks_read": ("blocks read per second", render_rate),
    "wal_bytes": ("WAL per second", render_bytes),
}
_PER_CALL: Final[Mapping[str, tuple[str, Callable[[float], str]]]] = {
    "seconds": ("time of a call", render_duration),
    "rows": ("rows a call", render_rate),
    "blocks_hit": ("blocks hit a call", render_rate),
    "blocks_read": ("blocks read a call", render_rate),
    "wal_bytes": ("WAL a call", render_bytes),
}
_FIRST: Final = ("seconds", "calls")
"""Figures per second that are shown before those per call."""


def make_periods_document(found: FoundPeriods, version: str) -> Document:
    """The document of `window --against`."""
    both = found.periods
    return archive_document(
        found.archive,
        f"The server from {say_window(both.window.span)}, compared with {say_dated(both.comparison.span)}",
        f"{say_dated(both.window.span)}, compared with {say_dated(both.comparison.span)}",
        answer=periods_sentences(found),
        doubts=periods_doubts(found),
        sections=_sections(found),
        version=version,
    )


def periods_sentences(found: FoundPeriods) -> Iterator[str]:
    """Throughput, load and time in both windows, and how many other figures differ; without full stops."""
    both = found.periods
    for change, unit in ((both.throughput, "transactions per second"), (both.load, "active sessions on average")):
        yield f"{say_main(change.name, change.value)} {unit}, {_beside(change)}"
    yield f"{say_main(both.time.name, both.time.value)} per transaction, {_beside(both.time)}"
    certain = [each.resolved for each in _others(found)]
    yield f"Of {render_count(len(certain), 'further figure')}, {sum(certain)} differ for certain"


def _beside(change: Change) -> str:
    """Against 120, -25 % [-26, -24]; or that the difference may be chance."""
    against = f"against {say_main(change.name, change.reference)} in the comparison window"
    if change.ratio is None:
        return f"{against}; no error is known"
    limit = render_limit(change)
    chance = f": may be chance; {limit} would have been found" if limit else ": may be chance"
    return f"{against}, {render_change(change)}{'' if change.resolved else chance}"


def _others(found: FoundPeriods) -> Iterator[Any]:
    both = found.periods
    for rows in (both.waits, both.statements, both.applications, both.server, both.host):
        yield from (row for row in rows if row.value or row.reference)
    for use in both.uses:
        yield from (change for change in (*use.per_second, *use.per_call) if change.value or change.reference)


def periods_doubts(found: FoundPeriods) -> Iterator[str]:
    """What limits the figures, without full stops."""
    both = found.periods
    sides = (("window", both.window), ("comparison window", both.comparison))
    yield from pair_doubts(found.facts, found.chosen, sides, counted=bool(both.uses))
    yield from say_limits(found.facts.limits)


def _sections(found: FoundPeriods) -> Iterator[Block]:
    both, texts = found.periods, found.texts
    yield Section("All in all", (_main_table((both.throughput, both.load, both.time)),), brief=True)
    before, after = both.courses
    charts = (
        Section(
            "Comparison window",
            (draw_courses(before, (both.comparison.span,)),),
        ),
        Section("Window", (draw_courses(after, (both.window.span,)),)),
    )
    yield Section("Over time", charts, parallel=True)
    waits = side_blocks("wait event", load_lines(both.waits, name_event))
    yield Section("Load by wait event", (*waits, Paragraph(_NOTE, Tone.NOTE)), brief=True)

    statements = load_lines(both.statements, lambda row: name_statement(row.statement, texts, _WIDTH))
    yield Section("Load by statement", tuple(side_blocks("statement", statements)), brief=True)
    applications = load_lines(both.applications, lambda row: name_application(row.application))
    yield Section("Load by application", tuple(side_blocks("application", applications)))
    rows = load_lines(both.rows, lambda row: name_row(row, texts))
    yield Details("Load by all three", tuple(side_blocks("wait event, statement, application", rows)))
    if both.blockers:
        table = blockers_table(both.blockers, texts, f"behind it, {COMPARISON}", f"behind it, {WINDOW}")
        yield Section("Who blocked", (table, Paragraph(_NO_ERROR_OF_BLOCKERS, Tone.NOTE)), brief=True)
    if both.uses:
        yield Section("Statements", tuple(_statements(found)))
    yield from _surroundings(found)


def _main_table(changes: Sequence[Change]) -> Table:
    return Table(
        names=Column(title="", cells=tuple(TITLES[change.name] for change in changes)),
        columns=(
            Column(title=COMPARISON, cells=tuple(say_main(change.name, change.reference) for change in changes)),
            Column(title=WINDOW, cells=tuple(say_main(change.name, change.value) for change in changes)),
            Column(title="difference [95 %]", cells=tuple(render_change(change) or "unknown" for change in changes)),
            Column(title="detectable", cells=tuple(render_limit(change) for change in changes)),
        ),
        soft=frozenset(place for place, change in enumerate(changes) if not change.resolved),
    )


def _statements(found: FoundPeriods) -> Iterator[Block]:
    both = found.periods
    if all(change.ratio is None for use in both.uses for change in use.per_second):
        yield Paragraph(_NO_ERRORS, Tone.NOTE)
    names = [name for name in _PER_SECOND if name not in _FIRST]
    for name in _FIRST:
        yield from _figure(found, name, per_call=False)
    for name in _PER_CALL:
        yield from _figure(found, name, per_call=True)
    yield Details(
        "Rows, blocks and WAL per second",
        tuple(block for name in names for block in _figure(found, name, per_call=False)),
    )
    where = (calls_table(both.calls, found.texts), Paragraph(_CALLS, Tone.NOTE))
    yield Details("More calls, slower calls, or another mix", where)


def _figure(found: FoundPeriods, name: str, *, per_call: bool) -> Iterator[Block]:
    """One figure of all statements that have it."""
    title, say = (_PER_CALL if per_call else _PER_SECOND)[name]
    yield from side_blocks(title, _use_lines(found, partial(_change_of, name=name, per_call=per_call), say))


def _change_of(use: UseChange, name: str, *, per_call: bool) -> Change:
    return next(change for change in (use.per_call if per_call else use.per_second) if change.name == name)


def _use_lines(
    found: FoundPeriods, change_of: Callable[[UseChange], Change], say: Callable[[float], str]
) -> Iterator[Line]:
    for use in found.periods.uses:
        change = change_of(use)
        if change.value > 0 or change.reference > 0:
            hint = name_query(found.texts.get(use.statement, ""), _LONGEST_HINT)
            yield change_line(name_statement(use.statement, found.texts, _WIDTH), change, say, hint)


def _surroundings(found: FoundPeriods) -> Iterator[Block]:
    both = found.periods
    yield from relation_changes(both.relations)
    before, after = both.horizons
    yield from horizon_blocks(before, "What held back vacuum in the comparison window")
    yield from horizon_blocks(after, "What held back vacuum in the window")
    for title, changes in (("Server", both.server), ("Host", both.host)):
        blocks = tuple(side_blocks("per second or level", rate_lines(changes, title_of)))
        if blocks:
            yield Section(title, blocks)
    totals = [total for total in both.totals if total.value or total.reference]
    if totals:
        yield Section("In total", (_totals_table(totals), Paragraph(_TOTALS, Tone.NOTE)))
    if both.background:
        rows = load_lines(both.background, lambda row: f"{readable(row.application)}: {name_event(row)}")
        yield Details("Processes that serve no client", tuple(side_blocks("process", rows)))
    for title, window in (("Events in the window", both.window), ("Events in the comparison window", both.comparison)):
        if window.events:
            yield Section(title, (Listing(tuple(event_lines(window.events))),))
    keys = [row.statement for row in both.statements[:_MOST]] + [use.statement for use in both.uses]
    table = texts_table(keys, found.texts)
    if table is not None:
        yield Details("Texts of the statements", (table,))
    yield Section("Recorded from", (Facts(tuple(_facts(found))),))


def _totals_table(totals: Sequence[Total]) -> Table:
    return Table(
        names=Column(title="in total", cells=tuple(title_of(total.name) for total in totals)),
        columns=(
            Column(title=COMPARISON, cells=tuple(_say_total(total.name, total.reference) for total in totals)),
            Column(title=WINDOW, cells=tuple(_say_total(total.name, total.value) for total in totals)),
        ),
        breaks=_NARROWEST,
    )


def _say_total(name: str, value: float) -> str:
    return render_bytes(value) if COURSES[name].unit is Unit.BYTES_PER_SECOND else f"{value:,.0f}"


def _facts(found: FoundPeriods) -> Iterator[Fact]:
    both = found.periods
    yield from recorded_from(found.archive, found.facts)
    for name, window in (("window", both.window), ("comparison window", both.comparison)):
        yield Fact(name=name, value=f"{say_dated(window.span)}, {say_seen(window)}")


def periods_json(found: FoundPeriods) -> str:
    """The document of `window --against --json`."""
    both = found.periods
    return render_document(
        {
            **archive_json(found.archive, found.facts, periods_sentences(found), periods_doubts(found)),
            "window": window_json(both.window),
            "comparison": window_json(both.comparison),
            "changes": [figure_json(change) for change in (both.throughput, both.load, both.time)],
            "rows": [load_row_json(row) for row in both.rows],
            "waits": [load_row_json(row) for row in both.waits],
            "statements": [load_row_json(row) for row in both.statements],
            "applications": [load_row_json(row) for row in both.applications],
            "uses": [
                {
                    "statement": use.statement,
                    "per_second": [figure_json(change) for change in use.per_second],
                    "per_call": [figure_json(change) for change in use.per_call],
                }
                for use in both.uses
            ],
            "blockers": [blocker_json(blocker) for blocker in both.blockers],
            "calls": [calls_json(change) for change in both.calls],
            "relations": [change_json(change) for change in both.relations],
            "horizons": [horizon_json(each) for each in both.horizons[1]],
            "comparison_horizons": [horizon_json(each) for each in both.horizons[0]],
            "server": [figure_json(change) for change in both.server],
            "host": [figure_json(change) for change in both.host],
            "background": [load_row_json(row) for row in both.background],
            "totals": [pick_fields(total, "name value reference") for total in both.totals],
            "texts": dict(found.texts),
        }
    )
