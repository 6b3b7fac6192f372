"""`pgstrata explain`: an archive and two of its windows to an explanation."""

from __future__ import annotations

from pathlib import Path

from pgstrata.app.live_windows import choose_windows, say_span
from pgstrata.diagnosis.live.explain import explain
from pgstrata.errors import ArchiveError
from pgstrata.model.archive import ArchiveWindow, EventKind
from pgstrata.model.explanation import Explained
from pgstrata.store.archives.reader import ArchiveReader


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
        facts = reader.facts()
        if facts is None:
            raise ArchiveError(
                "the archive is empty", where=str(archive), remedy="let `pgstrata watch` run for a while"
            )
        chosen = choose_windows(facts, begin, end, against)
        value = _require(reader.window(chosen.window, facts))
        reference = _require(reader.window(chosen.comparison, facts))
        around = reader.window(chosen.around, facts)
        texts = reader.texts() if query_text else {}
    found = explain(value, reference, around)
    return Explained(archive=str(archive), facts=facts, chosen=chosen, explanation=found, texts=texts)


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
