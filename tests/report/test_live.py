"""A live server in words: the answer first, incident only where it was one, and foreign text is text."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from archives import BLOCKER, behind, session, use
from pgstrata.diagnosis.live.explain import explain
from pgstrata.diagnosis.live.profile import profile
from pgstrata.model.archive import (
    REST,
    ArchiveEvent,
    ArchiveFacts,
    ArchiveWindow,
    EventKind,
    Holder,
    HolderKind,
    Horizon,
    Relation,
    RelationUse,
    Span,
)
from pgstrata.model.attribution import ValueInterval
from pgstrata.model.explanation import CallsChange, Change, Chosen, Explained, Lead, Outcome, RelationChange
from pgstrata.model.profile import Profiled
from pgstrata.report.blocks.markdown import emit_markdown
from pgstrata.report.blocks.page import emit_page
from pgstrata.report.blocks.text import emit_text
from pgstrata.report.json.documents import render_document
from pgstrata.report.live.answer import answer_sentences
from pgstrata.report.live.document import make_explanation
from pgstrata.report.live.events import event_lines
from pgstrata.report.live.json import explanation_json
from pgstrata.report.live.limits import LIMITS, say_limits
from pgstrata.report.live.profile import make_profile_document, profile_json
from pgstrata.report.live.relations import relation_changes, say_relations
from pgstrata.report.live.tables import calls_table, rates_table
from pgstrata.report.live.words import name_statement, render_change, render_sessions

CPU, LOCK = session("select"), session("update", "Lock/transactionid")
BEGIN = 1_795_711_000
NASTY = "<script>alert('x')</script>\x1b[31m\u202e"


def window(sessions, commits, *, begin=BEGIN, **more):
    size = len(commits)
    return ArchiveWindow(
        span=Span(begin=begin, end=begin + size), unit=1, cell=1, looks=(1,) * size,
        sessions={each: tuple(counts) for each, counts in sessions.items()}, rates={"commits": tuple(commits)}, **more,
    )  # fmt: skip


def explained(value, reference, *, texts=None, limits=(), clipped=False):
    chosen = Chosen(window=value.span, comparison=reference.span, around=value.span, clipped=clipped)
    span = Span(begin=reference.span.begin, end=value.span.end)
    facts = ArchiveFacts(span=span, facts={"server_version": "18.1"}, limits=limits, detailed_since=span.begin)
    return Explained(
        archive="shop", facts=facts, chosen=chosen, explanation=explain(value, reference), texts=texts or {}
    )


def made(load, commits, **more):
    draws = np.random.default_rng(3)
    sides = [
        window(
            {CPU: draws.poisson(mean, size).tolist()}, (rate * draws.normal(1, 0.05, size)).tolist(), begin=begin
        )
        for mean, rate, size, begin in zip(load, commits, (120, 240), (BEGIN, BEGIN - 240), strict=True)
    ]  # fmt: skip
    return explained(*sides, **more)


def locked():
    value = window(
        {CPU: [1, 2] * 30, LOCK: [5, 6] * 30}, [20.0, 22.0] * 30, blocked=behind(LOCK, sessions=330),
        statements={"update": use(600, 330.0)}, counted=60.0, transactions=1260.0,
        events=(ArchiveEvent(moment=BEGIN, kind=EventKind.LOST, detail=NASTY),),
        gaps=(Span(begin=BEGIN + 5, end=BEGIN + 15),),
    )  # fmt: skip
    before = window(
        {CPU: [1, 2] * 60}, [100.0, 104.0] * 60, begin=BEGIN - 120, statements={"update": use(12_000, 12.0)},
        counted=120.0, transactions=12_240.0,
    )  # fmt: skip
    return explained(value, before, texts={"update": f"update t set a = ? {NASTY}", "select": "select ?"})


def words(found):
    return " ".join(emit_text(make_explanation(found, "1")).split())


@pytest.mark.parametrize(
    ("load", "commits", "outcome", "said"),
    [
        ((8, 2), (60, 100), Outcome.INCIDENT, "transactions were slower"),
        ((4, 2), (200, 100), Outcome.MORE, "there was more demand, and transactions did not become slower"),
        ((1, 2), (50, 100), Outcome.FEWER, "there was less demand"),
        ((8, 2), (200, 100), Outcome.SATURATED, "more transactions came"),
        ((2, 2), (100, 100), Outcome.SAME, "No change was found"),
        ((1, 2), (100, 100), Outcome.FASTER, "transactions were faster"),
        ((8, 2), (0, 100), Outcome.STALLED, "no transaction was committed"),
        ((8, 2), (math.nan, 100), Outcome.UNKNOWN, "Cannot tell"),
    ],
)
def test_each_outcome_has_its_sentence(load, commits, outcome, said):
    found = made(load, commits)
    assert found.explanation.outcome is outcome
    assert said in next(answer_sentences(found))
    assert "would have been found" in words(found) or outcome not in {Outcome.SAME, Outcome.MORE, Outcome.FEWER}


@pytest.mark.parametrize(("load", "commits"), [((4, 2), (200, 100)), ((1, 2), (50, 100)), ((2, 2), (100, 100))])
def test_more_or_less_demand_is_never_called_an_incident(load, commits):
    found = made(load, commits)
    for text in (words(found), emit_page(make_explanation(found, "1")), explanation_json(found)):
        assert "incident" not in text.lower()


def test_wait_statement_application_and_blocker_are_named():
    said = words(locked())
    assert "The largest part of the extra load was Lock/transactionid in update t set a = ?" in said
    assert "application shop" in said
    assert "a session of the application admin idle in its transaction, whose last statement was update t" in said
    assert "(process 4711) held a lock that others needed (82 % of the extra load), because 5.50 sessions" in said
    assert "its transaction had been open for up to 30 s" in said
    assert "At the head of the blocking chain" not in said
    assert "by slower calls" in said
    assert "1 gap in the recording" in said


def test_who_blocked_is_also_said_where_the_cause_is_not_told():
    found = locked()
    found = replace(found, explanation=replace(found.explanation, causes=()))
    assert (
        "At the head of the blocking chain was a session of the application admin idle in its transaction, whose last "
        "statement was update t set a = ? <script>alert('x')</script>?[31m? (process 4711): 5.50 sessions waited behind it "
        "on average; its transaction had been open for up to 30 s"
    ) in words(found)


def test_foreign_text_is_text_everywhere():
    found = locked()
    page = emit_page(make_explanation(found, "1"))
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    for text in (page, emit_text(make_explanation(found, "1")), emit_markdown(make_explanation(found, "1"))):
        assert "\x1b" not in text
        assert "\u202e" not in text
    assert "\x1b" not in explanation_json(found)


def test_a_page_has_a_chart_and_no_line_of_text_is_too_long():
    found = locked()
    assert "<svg" in emit_page(make_explanation(found, "1"))
    assert max(map(len, emit_text(make_explanation(found, "1")).splitlines())) <= 78


def test_what_the_recorder_cannot_see_is_a_doubt():
    said = words(made((2, 2), (100, 100), limits=("no_pg_monitor", "no_host", "unknown code"), clipped=True))
    assert "GRANT pg_monitor" in said
    assert "the window was cut to it" in said
    assert len(say_limits(LIMITS)) == len(LIMITS)


def told(kind, second, detail=""):
    return ArchiveEvent(moment=BEGIN + second, kind=kind, detail=detail)


def test_a_restart_a_reset_and_the_reason_of_a_gap_limit_the_answer():
    value = window(
        {CPU: [2, 3] * 60}, [100.0, 104.0] * 60, gaps=(Span(begin=BEGIN + 20, end=BEGIN + 50),),
        events=(
            told(EventKind.LOST, 21, NASTY), told(EventKind.RESTARTED, 50, "18.1"), told(EventKind.EVICTED, 70),
            told(EventKind.EVICTED, 80), told(EventKind.RESET, 90, "pg_stat_statements"), told(EventKind.RESET, 95, "wal"),
        ),
    )  # fmt: skip
    before = window({CPU: [2, 3] * 60}, [100.0, 104.0] * 60, begin=BEGIN - 120)
    said = words(explained(value, before))
    assert "the window has 1 gap in the recording" in said
    assert "(the connection was lost)" in said
    assert "the server was restarted in the window (it answered again at" in said
    assert "somebody reset pg_stat_statements in the window (" in said
    assert "pg_stat_statements dropped entries in 2 intervals of the window" in said
    alone = Profiled(
        archive="shop", facts=explained(value, before).facts, profile=profile(value), texts={}, clipped=True
    )
    text = " ".join(emit_text(make_profile_document(alone, "1")).split())
    assert "the server was restarted in the window" in text
    assert "the window was cut to it" in text
    assert len(json.loads(profile_json(alone))["warnings"]) == 5


def test_gaps_in_what_is_known_of_the_host_are_told_unless_nothing_was_recorded_in_them():
    value = window(
        {CPU: [2, 3] * 60}, [100.0, 104.0] * 60, gaps=(Span(begin=BEGIN + 20, end=BEGIN + 50),),
        host_gaps=(Span(begin=BEGIN + 20, end=BEGIN + 52), Span(begin=BEGIN + 70, end=BEGIN + 90)),
    )  # fmt: skip
    before = window({CPU: [2, 3] * 60}, [100.0, 104.0] * 60, begin=BEGIN - 120)
    found = explained(value, before)
    said = words(found)
    assert "the window has 1 gap in the readings of the server's host and log: " in said
    assert json.loads(explanation_json(found))["window"]["host_gaps"][1] == [BEGIN + 70, BEGIN + 90]


def test_nothing_is_said_of_windows_to_which_nothing_happened():
    said = words(made((2, 2), (100, 100)))
    assert not any(text in said for text in ("gap", "restarted", "dropped", "reset", "was cut"))


@pytest.mark.parametrize(
    ("seconds", "low", "high", "said"),
    [
        (12, 8, 20, "12 s before [8, 20]"),
        (-30, -35, -22, "30 s after [22, 35]"),
        (1, -4, 2, "with the load [-2, +4]"),
    ],
)
def test_what_the_host_did_before_the_load_rose_and_after_it_is_said(seconds, low, high, said):
    changes = [
        Change(name=name, value=3.0, reference=1.0, ratio=ValueInterval(low=2.5, high=3.5), resolved=True)
        for name in ("host_user_cpu", "host_system_cpu")
    ]
    lead = Lead(name="host_user_cpu", seconds=seconds, interval=ValueInterval(low=low, high=high))
    (began,) = [column for column in rates_table("x", changes, [lead]).columns if column.title == "began"]
    assert sorted(began.cells) == sorted((said, ""))
    assert not [column for column in rates_table("x", changes).columns if column.title == "began"]
    found = locked()
    found = replace(found, explanation=replace(found.explanation, host=tuple(changes), leads=(lead,)))
    assert said in words(found)
    (told,) = json.loads(explanation_json(found))["leads"]
    assert told == {"name": "host_user_cpu", "seconds": seconds, "interval": [low, high]}


def test_a_comparison_window_that_was_cut_is_told():
    found = made((2, 2), (100, 100))
    found = replace(found, chosen=replace(found.chosen, comparison_clipped=True))
    assert "the comparison window was cut to it" in words(found)


def test_documents_for_programs_have_no_number_that_is_none():
    for found in (locked(), made((8, 2), (math.nan, 100)), made((8, 2), (0, 100))):
        assert "NaN" not in explanation_json(found)
    assert render_document({})


def test_a_window_by_itself_is_shown_and_adds_up():
    value = window({CPU: [1] * 60, LOCK: [3] * 60}, [50.0] * 60, blocked=behind(LOCK, BLOCKER, sessions=180),
                   statements={"update": use(600, 30.0)}, counted=60.0)  # fmt: skip
    facts = ArchiveFacts(span=value.span, facts={}, limits=(), detailed_since=BEGIN)
    found = Profiled(archive="shop", facts=facts, profile=profile(value), texts={"update": "update t"})
    said = " ".join(emit_text(make_profile_document(found, "1")).split())
    assert (
        "4.00 sessions were active on average; 50 transactions were committed per second, 80 ms per transaction" in said
    )
    assert "Most of the load was Lock/transactionid: 75 %" in said
    for rows in (found.profile.rows, found.profile.waits, found.profile.statements, found.profile.applications):
        assert sum(row.value for row in rows) == pytest.approx(4.0)
    assert '"load": 4.0' in profile_json(found)
    assert "<svg" in emit_page(make_profile_document(found, "1"))


@pytest.mark.parametrize(("value", "said"), [(-0.001, "0.00"), (0.0, "0.00"), (1.239, "+1.24"), (-2.0, "-2.00")])
def test_what_rounds_to_nothing_has_no_sign(value, said):
    assert render_sessions(value, signed=True) == said


def test_since_when_and_until_when_is_said_with_intervals():
    draws = np.random.default_rng(9)
    load = [*draws.poisson(2, 200).tolist(), *draws.poisson(8, 100).tolist()]
    commits = draws.normal(100, 5, 300).tolist()
    whole = window({CPU: load}, commits)
    value, before = (
        window({CPU: load[begin:end]}, commits[begin:end], begin=BEGIN + begin) for begin, end in ((195, 300), (0, 195))
    )
    found = explained(value, before)
    found = replace(found, explanation=explain(value, before, whole))
    assert "The change began at" in words(found)
    assert "its end was not seen" in words(found)
    assert '"end": null' in explanation_json(found)


STOCK, PKEY = Relation(name="public.stock"), Relation(name="public.stock_pkey", table="public.stock")
REPORTS = Horizon(
    holder=Holder(kind=HolderKind.SESSION, name=NASTY, pid=77, state="idle in transaction"), age=90_000, held=600
)


def with_tables(found, scans=(0.0, 40.0), rows=(0.0, 4e6)):
    """The same explanation with a table that is scanned otherwise, and with an index that is no longer used."""
    draws = np.random.default_rng(3)
    sides = []
    for each, commits, begin in ((1, 20.0, BEGIN), (0, 100.0, BEGIN - 240)):
        size = 120 if each else 240
        load = draws.poisson(4 if each else 1, size).tolist()
        uses = {
            STOCK: RelationUse(sequential_scans=60 * scans[each], sequential_rows=60 * rows[each], updated=600.0),
            PKEY: RelationUse(index_scans=0.0 if each else 6000.0),
        }
        rates = (commits * draws.normal(1, 0.05, size)).tolist()
        horizons = (REPORTS,) if each else ()
        sides.append(window({CPU: load}, rates, begin=begin, relations=uses, relations_counted=60.0, horizons=horizons))
    return replace(found, explanation=explain(*sides))


def test_a_table_that_is_now_scanned_sequentially_is_named():
    found = with_tables(made((4, 1), (20, 100)))
    (said,) = [text for text in answer_sentences(found) if "sequentially" in text]
    assert said.startswith("The table public.stock was scanned sequentially 40 times per second instead of 0")
    text = words(found)
    assert "0 → 40" in text
    assert "public.stock_pkey on public.stock" in text


def test_of_a_table_that_was_in_the_sum_of_the_others_no_figure_of_before_is_said():
    stock = RelationChange(
        relation=STOCK, value=RelationUse(sequential_scans=40, sequential_rows=1e6), reference=RelationUse()
    )
    others = RelationChange(
        relation=Relation(name=REST), value=RelationUse(blocks_hit=10), reference=RelationUse(blocks_hit=10)
    )
    (said,) = say_relations((stock, others))
    assert said.startswith(
        "The table public.stock was scanned sequentially 40 times per second and was not among the busiest before, "
    )


@pytest.mark.parametrize(
    ("scans", "rows"), [((40.0, 42.0), (1e6, 4e6)), ((0.0, 0.01), (0.0, 4e6)), ((9.0, 40.0), (10.0, 8.0))]
)
def test_a_table_that_is_scanned_as_before_or_hardly_is_not_told(scans, rows):
    found = with_tables(made((4, 1), (20, 100)), scans, rows)
    assert not any("sequentially" in text for text in answer_sentences(found))


def test_who_holds_back_vacuum_is_shown_and_foreign_text_is_text():
    found = with_tables(made((4, 1), (20, 100)))
    page = emit_page(make_explanation(found, "1"))
    assert "What held back vacuum" in page
    assert "90,000 transactions" in page
    assert "<script>alert" not in page
    assert "\x1b" not in page
    (horizon,) = json.loads(explanation_json(found))["horizons"]
    assert (horizon["kind"], horizon["pid"], horizon["held"]) == ("session", 77, 600)


def test_a_window_by_itself_shows_its_tables():
    size = 60
    alone = window(
        {CPU: [1] * size}, [100.0] * size, relations={STOCK: RelationUse(sequential_scans=120.0, blocks_hit=600.0)},
        relations_counted=60.0, horizons=(REPORTS,),
    )  # fmt: skip
    facts = ArchiveFacts(span=alone.span, facts={}, limits=(), detailed_since=BEGIN)
    found = Profiled(archive="shop", facts=facts, profile=profile(alone), texts={})
    text = emit_text(make_profile_document(found, "1"))
    assert "public.stock" in text
    (relation,) = json.loads(profile_json(found))["relations"]
    assert (relation["name"], relation["sequential_scans"], relation["blocks_hit"]) == ("public.stock", 2.0, 10.0)


def test_few_events_are_listed_and_many_of_a_kind_are_summed_up():
    errors = [ArchiveEvent(moment=BEGIN + n, kind=EventKind.ERRORS, times=2) for n in range(100)]
    checkpoint = ArchiveEvent(moment=BEGIN + 5, kind=EventKind.CHECKPOINT, detail=f"wal {NASTY}")
    temporary = ArchiveEvent(moment=BEGIN + 1, kind=EventKind.TEMPORARY, detail="5 bytes", times=3)
    lines = list(event_lines([*errors, checkpoint, temporary]))
    assert len(lines) == 3
    assert lines[0].endswith("temporary files: 5 bytes (3 times)")
    assert "checkpoint started: wal" in lines[1]
    assert "\x1b" not in lines[1]
    assert lines[2].startswith("errors in the server's log: 200 from ")


def test_statements_that_begin_alike_are_told_apart_where_they_are_cut():
    texts = {
        "1": "update pgbench_accounts set abalance = abalance + ? where aid = ?",
        "2": "update pgbench_accounts set abalance = abalance + ? where aid between ? and ?",
        "3": "select * from pgbench_accounts where aid = ? and bid = ? and abalance > ? order by aid",
    }
    for width in (60, 44, 36):
        names = [name_statement(key, texts, width) for key in texts]
        assert len(set(names)) == 3
        assert max(map(len, names)) <= width
    assert name_statement("1", texts, 36).endswith("where aid = ?")
    assert name_statement("3", texts, 36) == "select * from pgbench_accounts wh..."


def test_of_no_calls_and_of_unused_tables_no_figures_are_shown():
    stopped = CallsChange(
        statement="1", calls=0.0, reference_calls=120.0, latency=5e-5, reference_latency=5e-5, by_demand=-0.01, by_mix=0.0,
        by_latency=0.0, blocks_per_call=0.0, reference_blocks_per_call=6.5,
    )  # fmt: skip
    cells = {column.title: column.cells[0] for column in calls_table([stopped], {}).columns}
    assert (cells["time of a call"], cells["blocks a call"]) == ("50 µs → -", "6.5 → -")
    relation = Relation(name="public.stock")
    used = RelationUse(index_scans=240.0, dead_rows=17_185.0)
    change = RelationChange(relation=relation, value=RelationUse(), reference=used)
    (section,) = relation_changes([change])
    (dead,) = [column for column in section.blocks[0].columns if column.title == "dead rows"]
    assert dead.cells == ("17,185 → -",)


@pytest.mark.parametrize(("high", "said"), [(600.0, "495 times [21.1, 600]"), (1e12, "495 times [at least 21.1]")])
def test_an_upper_end_that_tells_nothing_is_not_shown(high, said):
    change = Change(name="time", value=495.0, reference=1.0, ratio=ValueInterval(low=21.1, high=high), resolved=True)
    assert render_change(change) == said
