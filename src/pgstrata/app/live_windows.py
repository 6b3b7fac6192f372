"""Which stretch of an archive a user means: times as they are spoken, and the time before as the comparison."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from typing import Final

from pgstrata.errors import ArchiveError, UsageError
from pgstrata.model.archive import ArchiveFacts, Span
from pgstrata.model.explanation import Chosen
from pgstrata.report.live.words import local, say_window
from pgstrata.store.archives.plausible import LATEST

_TIME: Final = re.compile(r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2}))?", re.ASCII)
_REMEDY: Final = "write 13:28, 13:28:30, 2026-11-26T13:28, 2026-11-26T13:28:00+01:00 or @ and Unix seconds"
LONGER: Final = 4
"""Lengths of the window that the comparison window has where nobody names one: what is longer is known better."""
_LONGEST: Final = 7200
_SHORTEST: Final = 5
_AHEAD: Final = 12 * 3600
"""Seconds after the archive's end that a time of the day may mean as the end of a window."""
_ENOUGH: Final = 300
"""Seconds of a comparison window that are enough, where more would have another incident in them."""


def choose_windows(facts: ArchiveFacts, begin: str | None, end: str | None, against: str | None) -> Chosen:
    """The spans that a user means.

    Args:
        facts: of the archive.
        begin: when the window begins; None for the archive's beginning.
        end: when it ends; None for the archive's end.
        against: the comparison window as FROM..TO; None for the time before the window.

    Raises:
        UsageError: a text is no time, or the window ends before it begins.
        ArchiveError: the archive has nothing of it.
    """
    window, clipped = choose_window(facts, begin, end)
    compared_clipped = False
    if against is not None:
        first, dots, last = against.partition("..")
        if not dots:
            raise UsageError(f"{against!r} is not a window", where="--against", remedy="write FROM..TO")
        asked = _span(facts, first.strip() or None, last.strip() or None, "--against")
        compared = _within(facts, asked)
        compared_clipped = compared != asked
        if compared.begin < window.end and window.begin < compared.end:
            raise UsageError(
                "both windows overlap", where="--against", remedy="give a window before or after the other"
            )
    else:
        compared = window_before(facts, window)
    return Chosen(
        window=window,
        comparison=compared,
        around=_around(facts, window, compared),
        clipped=clipped,
        comparison_clipped=compared_clipped,
    )


def choose_exactly(facts: ArchiveFacts, window: Span, since: int | None = None) -> Chosen:
    """A window that is known by its moments, compared with the time before it.

    Args:
        facts: of the archive.
        window: within it.
        since: the comparison window does not begin earlier, unless little would be left of it.

    Raises:
        ArchiveError: nothing was recorded before it.
    """
    compared = window_before(facts, window)
    if since is not None and compared.begin < since <= window.begin - _ENOUGH:
        compared = Span(begin=since, end=window.begin)
    return Chosen(window=window, comparison=compared, around=_around(facts, window, compared), clipped=False)


def _around(facts: ArchiveFacts, window: Span, compared: Span) -> Span:
    after = min(facts.span.end, window.end + max(60, window.seconds))
    return Span(begin=min(compared.begin, window.begin), end=max(after, compared.end))


def choose_window(facts: ArchiveFacts, begin: str | None, end: str | None) -> tuple[Span, bool]:
    """The window alone, and whether it was cut to what the archive has."""
    asked = _span(facts, begin, end, "--from")
    window = _within(facts, asked)
    return window, window != asked


def window_before(facts: ArchiveFacts, window: Span) -> Span:
    """The comparison window where nobody names one; ArchiveError where nothing was recorded before the window."""
    length = max(window.seconds, min(LONGER * window.seconds, _LONGEST))
    begin = max(facts.span.begin, window.begin - length)
    if window.begin - begin < _SHORTEST:
        raise ArchiveError(
            "nothing is recorded before this window to compare it with",
            where=f"the archive from {say_span(facts.span)}",
            remedy="give a later --from, or another window to compare with: --against FROM..TO",
        )
    return Span(begin=begin, end=window.begin)


def _span(facts: ArchiveFacts, begin: str | None, end: str | None, where: str) -> Span:
    last = facts.span.end
    first = facts.span.begin if begin is None else _latest(begin, last, where)
    if end is None:
        return _checked(first, last, where)
    if begin is None:
        return _checked(first, _latest(end, last, where), where)
    # 23:50 to 00:10 ends on the next day, but 13:28 to 13:27 does not end tomorrow
    upto = _next(end, first, where)
    return _checked(first, upto if upto <= last + _AHEAD or not _is_time(end) else _latest(end, last, where), where)


def _checked(begin: int, end: int, where: str) -> Span:
    if end <= begin:
        raise UsageError("the window ends before it begins", where=where, remedy="give --from before --to")
    return Span(begin=begin, end=end)


def _is_time(text: str) -> bool:
    return _TIME.fullmatch(text.strip()) is not None


def _latest(text: str, last: int, where: str) -> int:
    """Unix seconds. A time of day, or one that occurred twice, means its last occurrence before the archive's end."""
    if not _is_time(text):
        moments = _dated(text, where)
        return max((each for each in moments if each <= last), default=moments[0])
    today = local(last).date()
    moments = [each for back in (1, 0) for each in _on(today - timedelta(days=back), text, where) if each <= last]
    return moments[-1]


def _next(text: str, first: int, where: str) -> int:
    """Unix seconds of the first such time after a moment; if there is none, of the last such time."""
    today = local(first).date()
    moments = (
        [each for ahead in (0, 1) for each in _on(today + timedelta(days=ahead), text, where)]
        if _is_time(text)
        else _dated(text, where)
    )
    return next((each for each in moments if each > first), moments[-1])


def _dated(text: str, where: str) -> Sequence[int]:
    """Moments that a text with a date, or with Unix seconds, may mean, in order."""
    text = text.strip()
    try:
        if text.startswith("@") and text[1:].isdecimal():
            return [_checked_moment(int(text[1:]))]
        moment = datetime.fromisoformat(text)
        return _instants(moment) if moment.tzinfo is None else [_checked_moment(int(moment.timestamp()))]
    except (ValueError, OverflowError, OSError):
        raise UsageError(f"{text[:80]!r} is not a time", where=where, remedy=_REMEDY) from None


def _on(day: date, text: str, where: str) -> Sequence[int]:
    """Moments of a time of that day, in order."""
    found = _TIME.fullmatch(text.strip())
    assert found is not None
    try:
        clock = time(int(found["hour"]), int(found["minute"]), int(found["second"] or 0))
        return _instants(datetime.combine(day, clock))
    except (ValueError, OverflowError, OSError):
        raise UsageError(f"{found[0]!r} is not a time of the day", where=where, remedy=_REMEDY) from None


def _instants(naive: datetime) -> Sequence[int]:
    """Moments of a local time: two if clocks were set back over it; if they were set forward, when that was."""
    early, late = sorted(_checked_moment(int(naive.replace(fold=fold).timestamp())) for fold in (0, 1))
    if early == late or local(early).replace(tzinfo=None) == naive.replace(microsecond=0, fold=0):
        return sorted({early, late})
    before = local(early).utcoffset()
    while late - early > 1:
        middle = (early + late) // 2
        early, late = (middle, late) if local(middle).utcoffset() == before else (early, middle)
    return [late]


def _checked_moment(moment: int) -> int:
    """ValueError for one that no clock shows."""
    if not 0 <= moment <= LATEST:
        raise ValueError(moment)
    return moment


def _within(facts: ArchiveFacts, asked: Span) -> Span:
    begin, end = max(asked.begin, facts.span.begin), min(asked.end, facts.span.end)
    if begin >= end:
        raise ArchiveError(
            f"nothing is recorded from {say_span(asked)}",
            where=f"the archive from {say_span(facts.span)}",
            remedy="give times within it; a time without a date is that of the archive's last 24 hours",
        )
    return Span(begin=begin, end=end)


def say_span(span: Span) -> str:
    """2026-11-26 13:28:00 to 13:47:00 in the local zone."""
    begin, end = local(span.begin), local(span.end)
    return f"{begin:%Y-%m-%d} {say_window(span)}" if begin.date() == end.date() else say_window(span)
