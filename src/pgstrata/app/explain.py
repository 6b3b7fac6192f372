"""`pgstrata explain` and `pgstrata window`: an archive and its windows to findings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pgstrata.app.live_windows import choose_window, choose_windows, say_span
from pgstrata.diagnosis.live.explain import explain
from pgstrata.diagnosis.live.profile import profile
from pgstrata.errors import ArchiveError
from pgstrata.model.archive import ArchiveFacts, ArchiveWindow, EventKind
from pgstrata.model.explanation import Chosen, Explained
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
        facts = read_facts(reader, archive)
        chosen = choose_windows(facts, begin, end, against)
        texts = reader.texts() if query_text else {}
        return explain_chosen(reader, archive, facts, chosen, texts)


def explain_chosen(
    reader: ArchiveReader, archive: Path, facts: ArchiveFacts, chosen: Chosen, texts: Mapping[str, str]
) -> Explained:
    """Explain windows that are chosen; ArchiveError where nothing is recorded of one."""
    value = _require(reader.window(chosen.window, facts))
    reference = _require(reader.window(chosen.comparison, facts))
    around = reader.window(chosen.around, facts, most=_MOST_AROUND)
    found = explain(value, reference, around)
    return Explained(archive=str(archive), facts=facts, chosen=chosen, explanation=found, texts=texts)


def load_profile(archive: Path, begin: str | None, end: str | None, *, query_text: bool = True) -> Profiled:
    """What a window of an archive holds by itself; arguments and errors are those of `load_explanation`."""
    with ArchiveReader.open(archive) as reader:
        facts = read_facts(reader, archive)
        window = _require(reader.window(choose_window(facts, begin, end)[0], facts))
        texts = reader.texts() if query_text else {}
    return Profiled(archive=str(archive), facts=facts, profile=profile(window), texts=texts)


def read_facts(reader: ArchiveReader, archive: Path) -> ArchiveFacts:
    """What the archive says of itself; ArchiveError where nothing is recorded yet."""
    facts = reader.facts()
    if facts is None:
        raise ArchiveError("the archive is empty", where=str(archive), remedy="let `pgstrata watch` run for a while")
    return facts


def _require(window: ArchiveWindow) -> ArchiveWindow:
    if not sum(window.looks):
        told = next((event.detail for event in window.events if event.kind is EventKind.LOST), "")
        why = f": the connection was lost ({told})" if told else ", as if no recorder had been running"
        raise ArchiveError(
            f"nothing was recorded between {say_span(window.span)}{why}",
            where="archive",
            remedy="give a window in which the recorder was at work",
        )
    return window
