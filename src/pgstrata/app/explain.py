"""`pgstrata explain` and `pgstrata window`: an archive and its windows to findings."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final

from pgstrata.app.live_windows import choose_window, choose_windows, say_span
from pgstrata.diagnosis.live.explain import explain
from pgstrata.diagnosis.live.leads import CELLS
from pgstrata.diagnosis.live.periods import compare_periods
from pgstrata.diagnosis.live.profile import profile
from pgstrata.diagnosis.live.uses import longest_statements
from pgstrata.errors import ArchiveError
from pgstrata.model.archive import ArchiveFacts, ArchiveWindow, EventKind, Span
from pgstrata.model.explanation import Chosen, Explained
from pgstrata.model.periods import FoundPeriods
from pgstrata.model.profile import Profiled
from pgstrata.store.archives.reader import ArchiveReader

_MOST_AROUND: Final = 300
"""Cells of what is drawn, and in which onset and end are looked for."""


def load_explanation(
    archive: Path, begin: str | None, end: str | None, against: str | None, *, query_text: bool = True
) -> Explained:
    """Explain a window of an archive.

    Args:
        archive: its folder.
        begin: when the window begins, as the user wrote it; None for the archive's beginning.
        end: when it ends; None for the archive's end.
        against: the comparison window as FROM..TO; None for the time before.
        query_text: whether texts of statements are shown.

    Raises:
        ArchiveError: there is no archive, or nothing is recorded of a window.
        UsageError: a time cannot be read.
    """
    with ArchiveReader.open(archive) as reader:
        facts = archive_facts(reader, archive)
        chosen = choose_windows(facts, begin, end, against)
        texts = reader.texts() if query_text else {}
        return explain_chosen(reader, archive, facts, chosen, texts, leads=True)


def explain_chosen(
    reader: ArchiveReader, archive: Path, facts: ArchiveFacts, chosen: Chosen, texts: Mapping[str, str], *,
    leads: bool = False,
) -> Explained:  # fmt: skip
    """Explain windows that are chosen; `leads`: also say what changed before the load did, and what after it.

    ArchiveError where nothing is recorded of one.
    """
    value = require_looks(reader.window(chosen.window, facts))
    reference = require_looks(reader.window(chosen.comparison, facts))
    around = reader.courses(chosen.around, facts, most=_MOST_AROUND)
    found = explain(value, reference, around, partial(reader.courses, facts=facts, most=CELLS) if leads else None)
    return Explained(archive=str(archive), facts=facts, chosen=chosen, explanation=found, texts=texts)


def load_profile(archive: Path, begin: str | None, end: str | None, *, query_text: bool = True) -> Profiled:
    """What a window of an archive holds by itself; arguments and errors are those of `load_explanation`."""
    with ArchiveReader.open(archive) as reader:
        facts = archive_facts(reader, archive)
        span, clipped = choose_window(facts, begin, end)
        window = require_looks(reader.window(span, facts))
        texts = reader.texts() if query_text else {}
    return Profiled(archive=str(archive), facts=facts, profile=profile(window), texts=texts, clipped=clipped)


def load_periods(
    archive: Path, begin: str | None, end: str | None, against: str, *, query_text: bool = True
) -> FoundPeriods:
    """A window of an archive beside another one; arguments and errors are those of `load_explanation`."""
    with ArchiveReader.open(archive) as reader:
        facts = archive_facts(reader, archive)
        chosen = choose_windows(facts, begin, end, against)
        value = require_looks(reader.window(chosen.window, facts))
        reference = require_looks(reader.window(chosen.comparison, facts))
        keys = longest_statements(value, reference)
        spans = (
            Span(begin=window.span.begin, end=span.end)
            for window, span in ((value, chosen.window), (reference, chosen.comparison))
        )
        ours, theirs = (reader.use_courses(span, keys) for span in spans)
        texts = reader.texts() if query_text else {}
    found = compare_periods(value, reference, (ours, theirs) if keys else None)
    return FoundPeriods(archive=str(archive), facts=facts, chosen=chosen, periods=found, texts=texts)


def archive_facts(reader: ArchiveReader, archive: Path) -> ArchiveFacts:
    """What the archive says of itself; ArchiveError where nothing was recorded."""
    facts = reader.facts()
    if facts is None:
        raise ArchiveError("the archive is empty", where=str(archive), remedy="let `pgstrata watch` run for a while")
    return facts


def require_looks(window: ArchiveWindow) -> ArchiveWindow:
    """The window; ArchiveError where nothing was recorded of it."""
    if not sum(window.looks):
        told = next((event.detail for event in window.events if event.kind is EventKind.LOST), "")
        why = f": the connection was lost ({told})" if told else ", as if no recorder had been running"
        raise ArchiveError(
            f"nothing was recorded from {say_span(window.span)}{why}",
            where="archive",
            remedy="give a window in which the recorder was running",
        )
    return window
