"""An explanation as a document: the answer, what limits it, then tables from the load down to the host."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgstrata.model.explanation import Courses, Explained
from pgstrata.report.blocks.model import (
    Block,
    Details,
    Document,
    Fact,
    Facts,
    Listing,
    OnPage,
    Paragraph,
    Section,
    Tone,
)
from pgstrata.report.figures.live import draw_blocks, draw_courses
from pgstrata.report.live.answer import answer_sentences
from pgstrata.report.live.doubts import doubt_sentences
from pgstrata.report.live.events import event_lines
from pgstrata.report.live.frame import archive_document, recorded_from
from pgstrata.report.live.limits import say_limits
from pgstrata.report.live.plans import plan_blocks
from pgstrata.report.live.relations import horizon_blocks, relation_changes
from pgstrata.report.live.runs import PLANS_NOTE, name_sides, run_doubts, runs_from, study_head
from pgstrata.report.live.tables import (
    blockers_table,
    calls_table,
    load_table,
    main_table,
    named_table,
    rates_table,
    texts_table,
)
from pgstrata.report.live.words import (
    name_application,
    name_event,
    name_statement,
    say_dated,
    say_seen,
    say_window,
)
from pgstrata.report.sentences.causes import readable

_LOAD = (
    "Load is the mean number of sessions in a statement; the time per transaction is load divided by throughput. "
    "Rows add up to the change of the load. Pale rows are not resolved: among so many rows, such changes may be chance."
)
_CALLS = (
    "Seconds of execution per second, as counted by pg_stat_statements. The change is the sum of three parts. Slower: "
    "each call took longer. Demand: calls changed with the number of transactions. Mix: other changes of calls."
)
_BLOCKS = (
    "Load by what sessions waited for, and throughput, block by block: each bar is a run. Both charts have the same "
    "axes."
)
_HOST = "Only what changed is shown, the largest change first."
_BEGAN = (
    "Began: when a figure began to change, compared with the load or throughput, with an interval of 95 %. What came "
    "first may be the cause, but need not be. An empty cell: no clear beginning was seen."
)


def make_explanation(found: Explained, version: str) -> Document:
    """The document of `explain`."""
    if found.cell:
        return study_head(
            found, answer_sentences(found), run_doubts(found.explanation), name_sides(_sections(found), found), version
        )
    why = found.explanation
    return archive_document(
        found.archive,
        f"Was the server slow from {say_window(why.window.span)}, and why?",
        f"{say_dated(why.window.span)}, compared with {say_dated(why.comparison.span)}",
        answer=answer_sentences(found),
        doubts=(*doubt_sentences(found), *say_limits(found.facts.limits)),
        sections=_sections(found),
        version=version,
    )


def _sections(found: Explained) -> Iterator[Block]:
    why, texts = found.explanation, found.texts
    yield Section("What changed", (main_table((why.throughput, why.load, why.time)), *_charts(found)), brief=True)
    if why.rows:
        load = load_table(why.rows, why.load, texts)
        yield Section("Where the load is", (load, Paragraph(_LOAD, Tone.NOTE)), brief=True)
        by_statement = named_table("statement", why.statements, lambda row: name_statement(row.statement, texts))
        by_application = named_table("application", why.applications, lambda row: name_application(row.application))
        blocks = (named_table("wait event", why.waits, name_event), by_statement, by_application)
        yield Details("The same load by wait event, by statement, by application", blocks)
    if why.blockers:
        yield Section("Who blocked", (blockers_table(why.blockers, texts),), brief=True)
    if why.calls:
        yield Section("Statements", (calls_table(why.calls, texts), Paragraph(_CALLS, Tone.NOTE)))
    yield from plan_blocks(why.plans, texts, PLANS_NOTE) if found.cell else plan_blocks(why.plans, texts)
    yield from relation_changes(why.relations)
    yield from horizon_blocks(why.horizons)
    yield from _surroundings(found)


def _charts(found: Explained) -> Iterator[Block]:
    """Over time; of a study both environments by block, side by side."""
    why = found.explanation
    theirs = why.reference_courses
    if theirs is None:
        yield draw_courses(why.courses, (why.window.span,), why.comparison.span)
    else:
        sides = ((why.comparison.label, theirs), (why.window.label, why.courses))
        yield OnPage(lambda: _side_by_side(sides))


def _side_by_side(sides: Sequence[tuple[str, Courses]]) -> tuple[Block, ...]:
    named = zip(sides, draw_blocks(sides), strict=True)
    parts = tuple(Section(name, (figure,)) for (name, _), figure in named)
    return Paragraph(_BLOCKS, Tone.HELP), Section("", parts, parallel=True)


def _surroundings(found: Explained) -> Iterator[Block]:
    why = found.explanation
    for title, changes in (("Host", why.host), ("Server", why.server)):
        table = rates_table("per second or level", changes, why.leads)
        if table is not None:
            told = any(lead.name == change.name for lead in why.leads for change in changes)
            yield Section(title, (table, Paragraph(f"{_HOST} {_BEGAN}" if told else _HOST, Tone.NOTE)))
        elif changes:
            yield Section(title, (Paragraph("Nothing differs for certain.", Tone.NOTE),))
    if why.background:
        table = named_table("process", why.background, lambda row: f"{readable(row.application)}: {name_event(row)}")
        yield Details("Processes that serve no client", (table,))
    for title, window in (("Events in the window", why.window), ("Events before", why.comparison)):
        if window.events:
            yield Section(title, (Listing(tuple(event_lines(window.events))),))
    texts = texts_table(_told_statements(found), found.texts)
    if texts is not None:
        yield Details("Texts of the statements", (texts,))
    facts = runs_from(found) if found.cell else _facts(found)
    yield Section("Measured in" if found.cell else "Recorded from", (Facts(tuple(facts)),))


def _told_statements(found: Explained) -> Iterator[str]:
    why = found.explanation
    yield from (row.statement for row in why.rows[:20])
    yield from (blocker.root.statement for blocker in why.blockers[:5] if blocker.root is not None)
    yield from (change.statement for change in why.calls[:12])
    yield from (change.statement for change in why.plans.changes[:12])


def _facts(found: Explained) -> Iterator[Fact]:
    why = found.explanation
    yield from recorded_from(found.archive, found.facts)
    for name, window in (("window", why.window), ("compared with", why.comparison)):
        yield Fact(name=name, value=f"{say_dated(window.span)}, {say_seen(window)}")
