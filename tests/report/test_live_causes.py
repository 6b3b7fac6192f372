"""Causes of a slowdown in words: the first one after the answer, each with its share and its figures."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from archives import BLOCKER, session
from pgstrata.diagnosis.live.explain import explain
from pgstrata.model.archive import ArchiveFacts, ArchiveWindow, Holder, HolderKind, Horizon, SessionClass, Span
from pgstrata.model.causes import Cause, CauseKind, Evidence, EvidenceCode
from pgstrata.model.explanation import Chosen, Explained, Outcome
from pgstrata.report.blocks.page import emit_page
from pgstrata.report.live.answer import answer_sentences
from pgstrata.report.live.causes import cause_sentences, say_cause
from pgstrata.report.live.document import make_explanation
from pgstrata.report.live.json import explanation_json

BEGIN = 1_795_711_000
TEXTS = {"update": "update t set a = ?", "select": "select ?"}
NASTY = "<script>alert('x')</script>\x1b[31m\u202e"


def explained(*causes, load=(8, 2), commits=(60, 100)):
    draws = np.random.default_rng(3)
    value, reference = (
        ArchiveWindow(
            span=Span(begin=begin, end=begin + size), unit=1, cell=1, looks=(1,) * size,
            sessions={session("select"): tuple(draws.poisson(mean, size).tolist())},
            rates={"commits": tuple((rate * draws.normal(1, 0.05, size)).tolist())},
        )
        for mean, rate, size, begin in zip(load, commits, (120, 240), (BEGIN, BEGIN - 240), strict=True)
    )  # fmt: skip
    span = Span(begin=reference.span.begin, end=value.span.end)
    facts = ArchiveFacts(span=span, facts={}, limits=(), detailed_since=span.begin)
    chosen = Chosen(window=value.span, comparison=reference.span, around=span, clipped=False)
    found = replace(explain(value, reference), causes=causes)
    return Explained(archive="shop", facts=facts, chosen=chosen, explanation=found, texts=TEXTS)


def cause(kind, *evidence, share=0.93, **more):
    return Cause(kind=kind, share=share, evidence=evidence, **more)


def figure(code, value=5.5, reference=0.25, name=""):
    return Evidence(code=code, value=value, reference=reference, name=name)


IDLE = cause(
    CauseKind.IDLE_IN_TRANSACTION, figure(EvidenceCode.BEHIND), figure(EvidenceCode.OPEN, 30, None), session=BLOCKER,
    pids=(4711,), statements=("update",),
)  # fmt: skip


def test_the_most_likely_cause_follows_the_answer_with_its_figures():
    second = list(answer_sentences(explained(IDLE)))[1]
    assert second == (
        "Most likely: a session of the application admin idle in its transaction, whose last statement was update t "
        "set a = ? (process 4711) held a lock that others needed (93 % of the extra load), because 5.50 sessions "
        "waited behind it on average instead of 0.25 and its transaction had been open for up to 30 s"
    )


def test_at_most_two_further_causes_are_told():
    others = [cause(kind, share=0.4) for kind in (CauseKind.CACHE, CauseKind.SLOW_IO, CauseKind.CPU)]
    said = list(answer_sentences(explained(IDLE, *others)))
    assert [text.split(":")[0] for text in said[1:4]] == ["Most likely", "Also", "Also"]
    assert not said[4].startswith("Also")


def test_without_a_cause_it_says_that_it_cannot_tell():
    said = list(answer_sentences(explained()))[1]
    assert said == "Cannot tell the cause: no cause that pgstrata knows explains 30 % or more of the extra load"


@pytest.mark.parametrize(("load", "commits"), [((4, 2), (200, 100)), ((1, 2), (50, 100)), ((2, 2), (100, 100))])
def test_where_nothing_was_slow_no_cause_is_spoken_of(load, commits):
    found = explained(load=load, commits=commits)
    assert found.explanation.outcome not in {Outcome.INCIDENT, Outcome.SATURATED}
    assert not list(cause_sentences(found.explanation, TEXTS))
    assert "cause" not in " ".join(answer_sentences(found))


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (cause(CauseKind.PREPARED, session=SessionClass(kind="")), "a prepared transaction held a lock that others"),
        (cause(CauseKind.RELATION_LOCK, session=session("update")), "held a lock on a table that others needed"),
        (
            cause(CauseKind.LOCK_HELD, session=session("update"), pids=(1, 2), statements=("update",)),
            "transactions of the application shop queued for locks that others of them held, most of all in update t",
        ),
        (
            cause(CauseKind.LOCK_HELD, session=session("update"), pids=(1,)),
            "a session of the application shop in update t set a = ? (process 1) held a lock that others needed",
        ),
        (
            cause(CauseKind.IDLE_IN_TRANSACTION, session=BLOCKER, pids=(1, 2)),
            "sessions of the application admin that were idle in their transactions held locks that others needed",
        ),
        (cause(CauseKind.LOCK_HELD), "a session that was not seen held a lock that others needed"),
        (
            cause(CauseKind.OLD_TRANSACTION, session=BLOCKER),
            "kept its transaction open, so that vacuum could not remove old row versions",
        ),
        (
            cause(
                CauseKind.OLD_TRANSACTION,
                horizon=Horizon(holder=Holder(kind=HolderKind.SLOT, name="gone"), age=9, held=0),
            ),
            "the replication slot gone kept vacuum from removing old row versions",
        ),
        (
            cause(CauseKind.MORE_BLOCKS, statements=("select", "update")),
            "select ? and others touched more blocks a call",
        ),
        (cause(CauseKind.NEW_STATEMENTS, statements=("select",)), "select ? ran, which had not been there before"),
        (cause(CauseKind.MORE_CALLS, statements=("select",)), "select ? was called more often in each transaction"),
        (
            cause(CauseKind.EVENT, event="LWLock/BufferContent", statements=("update",)),
            "sessions waited for LWLock/BufferContent, most of all in update t set a = ?",
        ),
    ],
)
def test_causes_name_who_and_what(made, said):
    assert said in say_cause(made, TEXTS)


@pytest.mark.parametrize("kind", CauseKind)
def test_every_kind_has_its_own_words(kind):
    told = {
        each: say_cause(cause(each, session=BLOCKER, event="IPC/X", statements=("select",)), TEXTS)
        for each in CauseKind
    }
    assert told[kind].endswith("(93 % of the extra load)")
    locks = {CauseKind.IDLE_IN_TRANSACTION, CauseKind.PREPARED, CauseKind.LOCK_HELD}
    assert kind in locks or list(told.values()).count(told[kind]) == 1


@pytest.mark.parametrize(
    ("item", "said"),
    [
        (figure(EvidenceCode.WAIT, name="Lock/tuple"), "5.50 sessions waited for Lock/tuple instead of 0.25"),
        (figure(EvidenceCode.RUNNING), "5.50 sessions were running or ready to run instead of 0.25"),
        (figure(EvidenceCode.LOAD, name="select"), "5.50 sessions were in select ? instead of 0.25"),
        (figure(EvidenceCode.BLOCKS, 4000, 10, "select"), "select ? touched 4,000 blocks instead of 10"),
        (figure(EvidenceCode.BLOCKS, 12, 11), "each transaction touched 12 blocks instead of 11"),
        (figure(EvidenceCode.READS, 12, 0.5), "each transaction read 12 blocks instead of 0.5"),
        (figure(EvidenceCode.TIME, 0.5, 0.001), "a call took 500 ms instead of 1 ms"),
        (figure(EvidenceCode.CALLS, 16, 4, "select"), "each transaction called select ? 16 times instead of 4"),
        (figure(EvidenceCode.WAL_OF, 2048, 0, "select"), "select ? wrote 2 kB of WAL a second instead of 0 B"),
        (figure(EvidenceCode.RATE, 0.5, 1.5, "host_user_cpu"), "CPU of all programs was 0.50 CPU instead of 1.50 CPU"),
        (figure(EvidenceCode.RATE, 90, 20, "connections"), "sessions connected were 90.0 instead of 20.0"),
        (figure(EvidenceCode.RATE, 900, 200, "page_faults"), "page faults were 900/s instead of 200/s"),
        (figure(EvidenceCode.EACH, 1024, 10, "wal_bytes"), "WAL was 1 kB per transaction instead of 10 B"),
        (
            figure(EvidenceCode.OTHERS, 6, -0.5),
            "6.00 other tasks were running or ready to run instead of 0.00",
        ),
        (figure(EvidenceCode.PRESENT, 600, None), "it was there for at least 10 min"),
        (figure(EvidenceCode.GREW, 300, 200), "a transaction touched 300 blocks late in the window, after 200 before"),
        (figure(EvidenceCode.AGE, 123_456, None), "its snapshot was 123,456 transactions old"),
        (figure(EvidenceCode.RESTARTED, 1, None), "the server was restarted"),
        (figure(EvidenceCode.BEHIND), "5.50 sessions waited behind it on average instead of 0.25"),
        (figure(EvidenceCode.PLAN, 0, None), "its plan differs"),
        (figure(EvidenceCode.OPEN, 30, None), "its transaction had been open for up to 30 s"),
    ],
)
def test_each_figure_is_a_clause_with_both_windows(item, said):
    assert say_cause(cause(CauseKind.CACHE, item), TEXTS).endswith(f"because {said}")


def test_every_code_has_a_clause():
    for code in EvidenceCode:
        name = "wal_bytes" if code in {EvidenceCode.RATE, EvidenceCode.EACH} else "select"
        assert "because " in say_cause(cause(CauseKind.CACHE, figure(code, name=name)), TEXTS)


def test_causes_are_there_for_programs():
    (told,) = json.loads(explanation_json(explained(IDLE)))["causes"]
    assert (told["kind"], told["share"], told["pids"]) == ("idle in transaction", 0.93, [4711])
    assert told["session"]["application"] == "admin"
    assert told["evidence"][0] == {"code": "sessions behind it", "name": "", "value": 5.5, "reference": 0.25}
    assert told["said"].startswith("a session of the application admin")


def test_foreign_names_are_text():
    nasty = cause(CauseKind.EVENT, figure(EvidenceCode.WAIT, name=NASTY), event=NASTY, statements=(NASTY,))
    named = cause(CauseKind.LOCK_HELD, session=session(NASTY, application=NASTY), pids=(1, 2))
    found = explained(nasty, named)
    page = emit_page(make_explanation(found, "1"))
    assert "<script>alert" not in page
    for text in answer_sentences(found):
        assert "\x1b" not in text
        assert "\u202e" not in text


def test_the_glossary_lists_all_kinds_in_the_order_in_which_they_are_told():
    text = (Path(__file__).parents[2] / "docs" / "concepts.md").read_text("utf-8")
    section = text.split("## Causes of a slowdown\n")[1].split("\n## ")[0]
    assert re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE) == [kind.value for kind in CauseKind]
