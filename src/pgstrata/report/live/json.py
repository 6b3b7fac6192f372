"""An explanation for programs: base units, times in Unix seconds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pgstrata.model.archive import SessionClass
from pgstrata.model.causes import Cause
from pgstrata.model.explanation import CallsChange, Change, Explained, LoadRow, RootBlocker, WindowFacts
from pgstrata.report.json.documents import pick_fields, render_document
from pgstrata.report.live.answer import answer_sentences
from pgstrata.report.live.causes import say_cause
from pgstrata.report.live.doubts import doubt_sentences
from pgstrata.report.live.frame import archive_json
from pgstrata.report.live.plans import plans_json
from pgstrata.report.live.relations import change_json, horizon_json
from pgstrata.report.live.runs import study_json

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
            **_head(found),
            "outcome": why.outcome.value,
            "causes": [cause_json(cause, found.texts) for cause in why.causes],
            "window": _window(why.window),
            "comparison": _window(why.comparison),
            "onset": pick_fields(why.onset, "begin begin_interval end end_interval"),
            "changes": [figure_json(change) for change in (why.throughput, why.load, why.time)],
            "rows": [load_row_json(row) for row in why.rows],
            "waits": [load_row_json(row) for row in why.waits],
            "statements": [load_row_json(row) for row in why.statements],
            "applications": [load_row_json(row) for row in why.applications],
            "blockers": [blocker_json(blocker) for blocker in why.blockers],
            "calls": [calls_json(change) for change in why.calls],
            "relations": [change_json(change) for change in why.relations],
            "horizons": [horizon_json(each) for each in why.horizons],
            "plans": plans_json(why.plans),
            "server": [figure_json(change) for change in why.server],
            "host": [figure_json(change) for change in why.host],
            "leads": [pick_fields(lead, "name seconds interval") for lead in why.leads],
            "background": [load_row_json(row) for row in why.background],
            "texts": dict(found.texts),
        }
    )


def _head(found: Explained) -> Mapping[str, Any]:
    if found.cell:
        return study_json(found, answer_sentences(found))
    return archive_json(found.archive, found.facts, answer_sentences(found), doubt_sentences(found))


def _window(window: WindowFacts) -> Mapping[str, Any]:
    return pick_fields(window, "environment=name runs looks") if window.name else window_json(window)


def window_json(window: WindowFacts) -> Mapping[str, Any]:
    """How well a window is known."""
    return {
        **pick_fields(window, "begin=span.begin end=span.end seen looks unit"),
        "gaps": [[gap.begin, gap.end] for gap in window.gaps],
        "host_gaps": [[gap.begin, gap.end] for gap in window.host_gaps],
        "events": [pick_fields(event, "moment kind detail times") for event in window.events],
    }


def figure_json(change: Change) -> Mapping[str, Any]:
    """A figure of both windows."""
    return pick_fields(change, _CHANGE)


def load_row_json(row: LoadRow) -> Mapping[str, Any]:
    """A part of the load in both windows."""
    return pick_fields(row, _ROW)


def blocker_json(blocker: RootBlocker) -> Mapping[str, Any]:
    """A head of chains of those that block."""
    return {**pick_fields(blocker, "pids held value reference"), "root": _session(blocker.root)}


def _session(session: SessionClass | None) -> Mapping[str, Any]:
    return pick_fields(session, "kind database role application state wait_type event statement")


def cause_json(cause: Cause, texts: Mapping[str, str]) -> Mapping[str, Any]:
    """A cause, for programs."""
    return {
        **pick_fields(cause, "kind share event statements pids"),
        "session": None if cause.session is None else _session(cause.session),
        "horizon": None if cause.horizon is None else horizon_json(cause.horizon),
        "evidence": [pick_fields(each, "code name value reference") for each in cause.evidence],
        "said": say_cause(cause, texts),
    }


def calls_json(change: CallsChange) -> Mapping[str, Any]:
    """A statement's part of the change, and where that comes from."""
    return pick_fields(change, _CALLS)
