"""Times as tools write them: ISO 8601, seconds since 1970 and their fractions, dates with dots, ctime. Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Final

# 2024.01.01 3:00:00 +0100, 2024-01-01T03:00:00.123456Z, 2024-01-01 03:00:00+01, 2024-01-01
_DATE: Final = re.compile(
    r"(\d{4})[-./](\d\d?)[-./](\d\d?)(?:[ T](\d\d?):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?)?"
    r" ?(?:(Z|UTC)|([+-])(\d\d):?(\d\d)?)?",
    re.ASCII,
)
_EPOCH: Final = re.compile(r"(\d{9,10})(?:\.(\d{1,9}))?|(\d{12,13})|(\d{15,16})|(\d{18,19})", re.ASCII)
_DECIMALS: Final = (3, 6, 9)

# Fri Jul 05 09:55:26 BST 2019, Fri Jul  5 09:55:26 2019, Fri Jul 05 09:55:26 +0800 2019
_CTIME: Final = re.compile(
    r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) (?P<month>[A-Z][a-z]{2}) {1,2}(?P<day>\d\d?) "
    r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d) "
    r"(?:(?:(?P<sign>[+-])(?P<hours>\d\d):?(?P<minutes>\d\d)|[A-Za-z]{1,6}) )?(?P<year>\d{4})",
    re.ASCII,
)
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

# 20240405, 2024-04-05, 20240405-1754, 2024-04-05_07-34-47, 20240405T073447Z
_IN_NAME: Final = re.compile(
    r"(\d{4})-?(\d\d)-?(\d\d)(?:[-_T. ]?(\d\d)[-_.:h]?(\d\d)(?:[-_.:m]?(\d\d))?[sZ]?)?", re.ASCII
)


def parse_moment(text: str) -> datetime | None:
    """A time with its offset, or None; numbers are s, ms, µs or ns since 1970.

    A time without an offset is taken as UTC, and so is one with the abbreviation of a zone, which is ambiguous.
    """
    text = text.strip()
    try:
        if found := _EPOCH.fullmatch(text):
            return _since_1970(found)
        if found := _DATE.fullmatch(text):
            return _on_calendar(found)
        found = _CTIME.fullmatch(text)
        return _from_ctime(found) if found else None
    except (ValueError, OverflowError):
        return None


def parse_moment_in_name(text: str) -> datetime | None:
    """A time as names of files and folders have it, or None: as `parse_moment`, or digits with few separators."""
    found = _IN_NAME.fullmatch(text)
    if found is None:
        return parse_moment(text)
    year, month, day, hour, minute, second = (int(part or 0) for part in found.groups())
    try:
        return datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return parse_moment(text)


def render_moment(moment: datetime) -> str:
    """ISO 8601 with offset; without a fraction if the second is whole."""
    return moment.isoformat(timespec="auto")


def _since_1970(found: re.Match[str]) -> datetime:
    if found[1]:
        return datetime.fromtimestamp(float(found[0]), UTC)
    whole, decimals = next((text, n) for text, n in zip(found.groups()[2:], _DECIMALS, strict=True) if text)
    return datetime.fromtimestamp(int(whole) / 10**decimals, UTC)


def _on_calendar(found: re.Match[str]) -> datetime:
    year, month, day, hour, minute, second = (int(part or 0) for part in found.groups()[:6])
    fraction = int((found[7] or "")[:6].ljust(6, "0"))
    zone = _offset(found[9], found[10], found[11])
    return datetime(year, month, day, hour, minute, second, fraction, tzinfo=zone)


def _from_ctime(found: re.Match[str]) -> datetime:
    month = _MONTHS.index(found["month"]) + 1
    day, hour, minute, second = (int(found[name]) for name in ("day", "hour", "minute", "second"))
    zone = _offset(found["sign"], found["hours"], found["minutes"])
    return datetime(int(found["year"]), month, day, hour, minute, second, tzinfo=zone)


def _offset(sign: str | None, hours: str | None, minutes: str | None) -> timezone:
    away = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
    return UTC if not away else timezone(-away if sign == "-" else away)
