"""`pgstrata window --event`: which statements of an archive's window waited for an event."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pgstrata.app.explain import archive_facts, require_looks
from pgstrata.app.live_windows import choose_window, say_span
from pgstrata.diagnosis.live.waiting import find_waits, match_events, seen_events
from pgstrata.errors import ArchiveError
from pgstrata.model.archive import ArchiveWindow
from pgstrata.model.waiting import FoundWaits
from pgstrata.report.sentences.causes import readable
from pgstrata.store.archives.reader import ArchiveReader
from pgstrata.units import render_count

_MOST_LISTED: Final = 10


def load_waits(
    archive: Path, begin: str | None, end: str | None, event: str, at_least: int, *, query_text: bool = True
) -> FoundWaits:
    """The statements that waited for an event in a window of an archive.

    Args:
        archive: its folder.
        begin: when the window begins, as the user wrote it; None for the archive's beginning.
        end: when it ends; None for the archive's end.
        event: `TYPE/EVENT`, a TYPE for all of its events, or an EVENT; in any case of letters.
        at_least: samples from which on a statement is listed.
        query_text: whether texts of statements are shown.

    Raises:
        ArchiveError: there is no archive, nothing is recorded of the window, or the event was not seen in it.
        UsageError: a time cannot be read.
    """
    with ArchiveReader.open(archive) as reader:
        facts = archive_facts(reader, archive)
        span, clipped = choose_window(facts, begin, end)
        window = require_looks(reader.window(span, facts))
        texts = reader.texts() if query_text else {}
    seen = seen_events(window)
    wanted = match_events(event, (name for name, _ in seen))
    if not wanted:
        raise _never_seen(event, window, seen)
    waits = find_waits(window, wanted, at_least)
    return FoundWaits(archive=str(archive), facts=facts, waits=waits, texts=texts, clipped=clipped)


def _never_seen(event: str, window: ArchiveWindow, seen: tuple[tuple[str, int], ...]) -> ArchiveError:
    elsewhere = match_events(event, (name for name, _ in seen_events(window, load=False)))
    why = ", only processes and idle sessions that are no part of the load" if elsewhere else ""
    listed = tuple(f"{readable(name)}: {render_count(samples, 'sample')}" for name, samples in seen[:_MOST_LISTED])
    return ArchiveError(
        f"no statement was seen waiting for {event!r} from {say_span(window.span)}{why}",
        where="--event",
        remedy="name one of the events above, or give another window" if listed else "give another window",
        details=("the most frequent events were:", *listed) if listed else ("no statement was seen waiting",),
    )
