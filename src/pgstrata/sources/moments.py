"""Times as tools write them: ISO 8601, seconds since 1970 and their fractions, dates with dots. Pure."""

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


def parse_moment(text: str) -> datetime | None:
    """A time with its offset (UTC if it has none), or None; numbers are s, ms, µs or ns since 1970."""
    text = text.strip()
    try:
        if found := _EPOCH.fullmatch(text):
            return _since_1970(found)
        found = _DATE.fullmatch(text)
        return _on_calendar(found) if found else None
    except (ValueError, OverflowError):
        return None


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
    away = timedelta(hours=int(found[10] or 0), minutes=int(found[11] or 0))
    offset = UTC if not away else timezone(-away if found[9] == "-" else away)
    return datetime(year, month, day, hour, minute, second, fraction, tzinfo=offset)
