"""What `list` prints: what lies below a folder, an entry of two or three lines each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Final

from pgstrata.compare.headlines import faulty_controls, lead_comparisons
from pgstrata.model.answer import Answer
from pgstrata.model.listing import Listed, ListedKind, ListedState, Listing
from pgstrata.report.blocks.layout import wrap_text
from pgstrata.report.json.documents import SCHEMA, render_document
from pgstrata.report.sentences.causes import readable
from pgstrata.report.sentences.names import count, name_environment
from pgstrata.report.sentences.verdicts import verdict_label
from pgstrata.units import render_duration, render_percent_change

_MOST_SAID: Final = 3
_MOST_ENVIRONMENTS: Final = 6
_INDENT: Final = "  "


def say_headline(answer: Answer) -> str:
    """The answer in a few words: 18: -4.5 % slower; 17: no difference. Empty where nothing is compared."""
    experiment = answer.study.plan.experiment
    leads = [item for item in lead_comparisons(answer) if not item.control]
    said = []
    for item in leads[:_MOST_SAID]:
        change = "" if item.effect is None else f"{render_percent_change(item.effect)} "
        name = name_environment(experiment.environment(item.environment), experiment)
        said.append(f"{name}: {change}{verdict_label(item)}")
    if len(leads) > _MOST_SAID:
        said.append(f"{len(leads) - _MOST_SAID} more")
    if faulty_controls(answer):
        said.insert(0, "a control differs from what it repeats")
    return "; ".join(said)


def render_listing(found: Listing, columns: int) -> str:
    """Lines of at most so many columns."""
    blocks = ["\n".join(_entry(one, columns)) for one in found.entries]
    return "\n\n".join((*blocks, "\n".join(_notes(found, columns)))).strip("\n") + "\n"


def _entry(one: Listed, columns: int) -> Iterator[str]:
    yield f"{readable(one.path)}  {say_state(one)}{_date(one)}"
    for text in _said(one):
        yield from wrap_text(readable(text), columns, first=_INDENT, rest=_INDENT * 2)


def _said(one: Listed) -> Iterator[str]:
    if one.state is ListedState.DAMAGED:
        yield one.problem
        if one.remedy:
            yield f"-> {one.remedy}"
        return
    if one.question:
        yield one.question
    if one.kind is ListedKind.MERGED:
        yield f"of {', '.join(one.environments)}"
    elif one.environments:
        yield say_environments(one.environments)
    if one.headline:
        yield one.headline
    elif one.kind is ListedKind.STUDY and one.runs and not one.decided:
        yield f"not decided yet: pgstrata show {one.path}, or list --decide"


def say_environments(names: tuple[str, ...]) -> str:
    """The first few, which begin with the baseline."""
    left = len(names) - _MOST_ENVIRONMENTS
    said = [f"{names[0]} (baseline)", *names[1:_MOST_ENVIRONMENTS], *([f"{left} more"] if left > 0 else [])]
    return ", ".join(said)


def say_state(one: Listed) -> str:
    """Its kind, unless it is a study, and how far it is."""
    kind = "" if one.kind is ListedKind.STUDY else f"{one.kind}, "
    runs = ""
    if one.runs is not None:
        early = one.planned is None or one.runs >= one.planned or one.state is ListedState.FINISHED
        runs = count(one.runs, "run") if early else f"{one.runs} of up to {one.planned} runs"
    match one.state:
        case ListedState.DAMAGED:
            return f"{kind}damaged"
        case ListedState.RUNNING:
            doing = "recording by" if one.kind is ListedKind.ARCHIVE else "running by"
            state = f"{doing} process {one.process}"
        case ListedState.FINISHED:
            state = "finished" if one.kind is ListedKind.STUDY else ""
        case ListedState.BEGUN:
            state = ""
    held = "" if one.span is None else f"{render_duration(one.span.seconds)} of {one.server}"
    parts = count(len(one.environments), "part") if one.kind is ListedKind.MERGED else ""
    return kind + ", ".join(filter(None, (state, runs, parts, held)))


def _date(one: Listed) -> str:
    return f"  {readable(one.created[:10])}" if one.created else ""


def _notes(found: Listing, columns: int) -> Iterator[str]:
    for text in listing_notes(found):
        yield from wrap_text(text, columns, first="", rest="")


def listing_notes(found: Listing) -> Iterator[str]:
    """Sentences on what is missing in the list, and why."""
    if not found.entries:
        yield readable(
            f"No study, bundle or archive in {found.folder} or up to {count(found.depth, 'folder')} below it. "
            "`pgstrata try` and `pgstrata run` make studies, `pgstrata watch` archives."
        )
    if found.unread:
        more = f" and {len(found.unread) - 1} more" if len(found.unread) > 1 else ""
        yield readable(f"Not looked into, because it cannot be read: {found.unread[0]}{more}")
    if found.cut:
        yield "There are too many files: not all were looked at. Name a folder further below."


def listing_json(found: Listing) -> str:
    """The document of `list --json`."""
    return render_document(
        {
            "schema": SCHEMA,
            "folder": found.folder,
            "entries": [_entry_json(one) for one in found.entries],
            "unread": list(found.unread),
            "cut": found.cut,
        }
    )


def _entry_json(one: Listed) -> dict[str, object]:
    span = None if one.span is None else [_iso(one.span.begin), _iso(one.span.end)]
    empty = {"created": one.created or None, "headline": one.headline if one.decided else None, "span": span}
    return {**asdict(one), "kind": one.kind.value, "state": one.state.value, **empty}


def _iso(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="seconds")
