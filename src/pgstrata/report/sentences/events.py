"""What events of the server's log are called in legends of charts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

EVENT_WORDS: Final[Mapping[str, str]] = {
    "autovacuums_done": "autovacuum finished with a table",
    "checkpoint_starts": "checkpoint began",
    "temporary_files": "temporary file",
    "checkpoint_ends": "checkpoint was complete",
    "errors": "error",
    "deadlocks": "deadlock",
}
"""By kind (`model.courses.EVENTS`), in the order of the marks of charts: square, triangles, diamond, cross."""
