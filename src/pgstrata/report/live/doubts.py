"""What limits an answer about an archive, in sentences without full stops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from pgstrata.model.archive import COUNTING, ArchiveEvent, ArchiveFacts, EventKind, Span
from pgstrata.model.explanation import Chosen, Explained, WindowFacts
from pgstrata.report.live.words import local, say_dated, say_window
from pgstrata.units import render_count

_MOST: Final = 3
_NEAR: Final = 5
"""Seconds between an event and the gap that it explains."""
_NOT_COUNTED: Final = frozenset({"no_extension", "statements_not_loaded"})
_SAMPLED: Final = (
    "sessions are sampled once a second: a shorter wait is in some samples only, in proportion to its duration"
)
_WHY: Final = {
    EventKind.STOPPED: "the recorder was stopped",
    EventKind.LOST: "the connection was lost",
    EventKind.CLOCK: "the clock was set",
}


def doubt_sentences(found: Explained) -> Iterator[str]:
    """What limits an explanation; what the recorder cannot see is not among it."""
    why = found.explanation
    sides = (("window", why.window), ("comparison window", why.comparison))
    yield from pair_doubts(found.facts, found.chosen, sides, counted=bool(why.calls))


def pair_doubts(
    facts: ArchiveFacts, chosen: Chosen, sides: Sequence[tuple[str, WindowFacts]], *, counted: bool
) -> Iterator[str]:
    """What limits what is said of two windows; `counted`: both have counts of statements."""
    for (name, _), clipped in zip(sides, (chosen.clipped, chosen.comparison_clipped), strict=True):
        yield from clip_doubts(facts, name, clipped=clipped)
    for name, window in sides:
        yield from window_doubts(name, window)
    if not counted and not _NOT_COUNTED & set(facts.limits):
        yield "one of the windows has no counts of pg_stat_statements, which is read every 10 s"
    yield _SAMPLED


def single_doubts(facts: ArchiveFacts, window: WindowFacts, *, clipped: bool) -> Iterator[str]:
    """What limits what is said of one window; what the recorder cannot see is not among it."""
    yield from clip_doubts(facts, "window", clipped=clipped)
    yield from window_doubts("window", window)


def clip_doubts(facts: ArchiveFacts, name: str, *, clipped: bool) -> Iterator[str]:
    """Whether the user asked for more than the archive has."""
    if clipped:
        yield f"the archive holds only {say_dated(facts.span)}: the {name} was cut to it"


def window_doubts(name: str, window: WindowFacts) -> Iterator[str]:
    """How completely a window was recorded, and what happened in it that limits what is known of it."""
    if window.gaps:
        found = render_count(len(window.gaps), "gap")
        yield f"the {name} has {found} in the recording: {_say_gaps(window.gaps, window.events)}"
    if unread := [gap for gap in window.host_gaps if not _is_within(gap, window.gaps)]:
        yield (
            f"the {name} has {render_count(len(unread), 'gap')} in the readings of the server's host and log: "
            f"{_say_gaps(unread, window.events)}"
        )
    if window.unit > 1:
        yield f"the {name} was read from sums of minutes, not from seconds"
    if restarts := _of(window, EventKind.RESTARTED):
        yield (
            f"the server was restarted in the {name} (it answered again at {_clock(restarts)}): its caches were "
            "empty at first, which alone makes it slower"
        )
    if reset := [event for event in _of(window, EventKind.RESET) if event.detail == COUNTING]:
        yield (
            f"somebody reset pg_stat_statements in the {name} ({_clock(reset)}): what it had counted since its last "
            "reading is missing"
        )
    if dropped := _of(window, EventKind.EVICTED):
        yield (
            f"pg_stat_statements dropped entries in {render_count(len(dropped), 'interval')} of the {name}, so some "
            "calls are missing: raise pg_stat_statements.max if that goes on"
        )


def _say_gaps(gaps: Sequence[Span], events: Sequence[ArchiveEvent]) -> str:
    """When the first of them were, and why."""
    said = ", ".join(f"{say_window(gap)}{_why(gap, events)}" for gap in gaps[:_MOST])
    return f"{said} and {len(gaps) - _MOST} more" if len(gaps) > _MOST else said


def _is_within(gap: Span, others: Sequence[Span]) -> bool:
    """Whether it is in another one, up to the seconds in which a connection is made."""
    return any(other.begin - _NEAR <= gap.begin and gap.end <= other.end + _NEAR for other in others)


def _clock(events: Sequence[ArchiveEvent]) -> str:
    """When the first of them were."""
    return ", ".join(f"{local(event.moment):%H:%M:%S}" for event in events[:_MOST])


def _why(gap: Span, events: Sequence[ArchiveEvent]) -> str:
    """Why nothing was recorded, as far as an event at its beginning tells."""
    near = [event for event in events if gap.begin - _NEAR <= event.moment <= gap.begin + _NEAR]
    return next((f" ({_WHY[event.kind]})" for event in near if event.kind in _WHY), "")


def _of(window: WindowFacts, kind: EventKind) -> list[ArchiveEvent]:
    return [event for event in window.events if event.kind is kind]
