"""Servers before 9.6: the versions since which there are features, and the words that old ones know. Pure.

Numbers are PostgreSQL's server_version_num. A setting is translated only if the old server has one that means the same.
Other settings are passed on unchanged, and a server that does not know one refuses it by name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

OLDEST: Final = 80300
CHECKSUMS_SINCE: Final = 90300
"""initdb --data-checksums, and the setting data_checksums."""
NO_SYNC_SINCE: Final = 90300
"""initdb -N."""
INCLUDE_IF_EXISTS_SINCE: Final = 90200
WAL_BLOCK_SIZE_SINCE: Final = 80400
BOOT_VALUE_SINCE: Final = 80400
FILE_SETTINGS_SINCE: Final = 90500
"""The view pg_file_settings."""
STAT_SSL_SINCE: Final = 90500
"""The view pg_stat_ssl."""
WAITS_SINCE: Final = 90600
"""The columns wait_event_type and wait_event of pg_stat_activity."""

_WAL_SIZE_SINCE: Final = 90500
_HUGE_PAGES_SINCE: Final = 90400
_SOCKET_DIRECTORIES_SINCE: Final = 90300
_WAL_LEVEL_SINCE: Final = 90000
_PREFETCH_SINCE: Final = 80400
_SEGMENT: Final = 16 * 1024**2
_SEGMENTS_BETWEEN: Final = 3
_SIZE: Final = re.compile(r"^\s*(?P<number>\d+)\s*(?P<unit>kB|MB|GB|TB|)\s*$")
_UNITS: Final[Mapping[str, int]] = {"kB": 1024, "": 1024**2, "MB": 1024**2, "GB": 1024**3, "TB": 1024**4}
# By setting: the version that introduced it, and the value that stands for what servers did before.
_ALWAYS_SO: Final[Mapping[str, tuple[int, str]]] = {
    "huge_pages": (_HUGE_PAGES_SINCE, "off"),
    "wal_level": (_WAL_LEVEL_SINCE, "minimal"),
    "max_wal_senders": (_WAL_LEVEL_SINCE, "0"),
}
# Settings without a counterpart and without an effect on results: minimum of WAL that is kept, and prefetching.
_LEFT_OUT: Final[Mapping[str, int]] = {"min_wal_size": _WAL_SIZE_SINCE, "effective_io_concurrency": _PREFETCH_SINCE}


def settings_of_its_time(settings: Mapping[str, str], version: int) -> Mapping[str, str]:
    """The settings as a server of that version knows them; unchanged from 9.5 on, or if the version is 0 (unknown).

    `max_wal_size` becomes `checkpoint_segments`: a third of it in segments of 16 MB, at least 1. This is the formula of
    the release notes of 9.5, in reverse.
    """
    if not version or version >= _WAL_SIZE_SINCE:
        return settings
    return dict(pair for name, value in settings.items() for pair in _translate(name, value, version))


def _translate(name: str, value: str, version: int) -> tuple[tuple[str, str], ...]:
    since, meaning = _ALWAYS_SO.get(name, (0, ""))
    if (version < since and value.strip().lower() == meaning) or version < _LEFT_OUT.get(name, 0):
        return ()
    if name == "max_wal_size" and (size := _SIZE.match(value)):
        total = int(size["number"]) * _UNITS[size["unit"]]
        return (("checkpoint_segments", str(max(1, total // (_SEGMENTS_BETWEEN * _SEGMENT)))),)
    if name == "unix_socket_directories" and version < _SOCKET_DIRECTORIES_SINCE:
        return (("unix_socket_directory", value),)
    return ((name, value),)
