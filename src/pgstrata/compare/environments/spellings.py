"""Settings whose values are spelt differently by different majors and mean the same.

What belongs here: spellings only. Defaults that really changed between majors are differences, and are told.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

# What an older spelling means in the newest one.
_SPELLINGS: Final[Mapping[str, Mapping[str, str]]] = {
    # a list of aspects since 18
    "log_connections": {"off": "", "on": "receipt,authentication,authorization"},
    # a name of the method since 10
    "password_encryption": {"on": "md5"},
    # a name of the method since 15
    "wal_compression": {"on": "pglz"},
}

# Numbers that were counted in another unit before some version (server_version_num), and what they are times.
_COUNTED_IN: Final[Mapping[str, tuple[int, int]]] = {
    "max_wal_size": (100000, 16),
    "min_wal_size": (100000, 16),
    "wal_segment_size": (110000, 8192),
}


def unify_spelling(setting: str, value: str, version: str) -> str:
    """The value of a setting in the spelling of the newest major; `version` is server_version_num, may be unknown."""
    if setting in _COUNTED_IN and value.isdecimal() and version.isdecimal():
        changed, times = _COUNTED_IN[setting]
        return str(int(value) * times) if int(version) < changed else value
    return _SPELLINGS.get(setting, {}).get(value, value)
