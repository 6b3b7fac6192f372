"""An explanation for programs: base units, times in Unix seconds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pgstrata.model.archive import SessionClass
from pgstrata.model.causes import Cause
from pgstrata.model.explanation import Change, Explained, LoadRow, RootBlocker, WindowFacts
from pgstrata.report.json.documents import SCHEMA, pick_fields, render_document
from pgstrata.report.live.answer import answer_sentences
from pgstrata.report.live.causes import say_cause
from pgstrata.report.live.words import doubt_sentences

_ROW: Final = "part event statement application value reference difference interval resolved samples"
_CALLS: Final = (
    "statement calls reference_calls latency reference_latency difference by_demand by_mix by_latency blocks_per_call "
    "reference_blocks_per_call"
)
_CHANGE: Final = "name value reference ratio limit resolved"


def explanation_json(found: Explained) -> str:
    """The document of `explain --json`."""
    why = found.explanation
    return render_document(
        {
            "schema": SCHEMA,
            "archive": found.archive,
            "outcome": why.outcome.value,
            "answer": list(answer_sentences(found)),
            "warnings": list(doubt_sentences(found)),
            "limits": list(found.facts.limits),
            "causes": [_cause(cause, found.texts) for cause in why.causes],
            "window": _window(why.window),
            "comparison": _window(why.comparison),
            "onset": pick_fields(why.onset, "begin begin_interval end end_interval"),
            "changes": [_change(change) for change in (why.throughput, why.load, why.time)],
            "rows": [_row(row) for row in why.rows],
            "waits": [_row(row) for row in why.waits],
            "statements": [_row(row) for row in why.statements],
            "applications": [_row(row) for row in why.applications],
            "blockers": [_blocker(blocker) for blocker in why.blockers],
            "calls": [pick_fields(change, _CALLS) for change in why.calls],
            "server": [_change(change) for change in why.server],
            "host": [_change(change) for change in why.host],
            "background": [_row(row) for row in why.background],
            "texts": dict(found.texts),
        }
    )


def _window(window: WindowFacts) -> Mapping[str, Any]:
    return {
        **pick_fields(window, "begin=span.begin end=span.end seen looks unit"),
        "gaps": [[gap.begin, gap.end] for gap in window.gaps],
        "events": [pick_fields(event, "moment kind detail") for event in window.events],
    }


def _change(change: Change) -> Mapping[str, Any]:
    return pick_fields(change, _CHANGE)


def _row(row: LoadRow) -> Mapping[str, Any]:
    return pick_fields(row, _ROW)


def _blocker(blocker: RootBlocker) -> Mapping[str, Any]:
    return {**pick_fields(blocker, "pids held value reference"), "root": _session(blocker.root)}


def _session(session: SessionClass | None) -> Mapping[str, Any]:
    return pick_fields(session, "kind database role application state wait_type event statement")


def _cause(cause: Cause, texts: Mapping[str, str]) -> Mapping[str, Any]:
    return {
        **pick_fields(cause, "kind share event statements pids"),
        "session": None if cause.session is None else _session(cause.session),
        "evidence": [pick_fields(each, "code name value reference") for each in cause.evidence],
        "said": say_cause(cause, texts),
    }
