"""Reads logs that pgbench writes (-l): when a run began, and whether its throughput was steady. Pure.

`pgbench -l` writes PREFIX.PID for its first thread and PREFIX.PID.THREAD for the others. A line of an aggregated log
begins with the seconds since 1970 of its interval and the number of transactions in it; a line of a transaction log has
the seconds since 1970 in its fifth field.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import numpy as np

from pgstrata.sources.seconds import opening_of_seconds

LOG_PREFIX: Final = "pgbench_log"
"""The prefix unless --log-prefix gives another one."""
LOG_NAME: Final = re.compile(r"(?P<prefix>.+?)\.(?P<pid>\d+)(?:\.\d+)?", re.ASCII)
_AGGREGATED: Final = re.compile(r"(?P<start>\d{9,10}) (?P<count>\d{1,18}) \d+ \d+ \d+ \d+(?: \d+)*", re.ASCII)
_TRANSACTION: Final = re.compile(r"\d+ \d+ (?:\d+|[a-z]+) \d+ (?P<start>\d{9,10}) \d{1,6}(?: -?\d+)*", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedRun:
    """The time of the first logged interval or transaction, and the opening of the throughput if it is known."""

    started: datetime
    opening: float | None


def read_logs(texts: Sequence[str], *, whole: bool) -> LoggedRun | None:
    """Read the logs of all threads of one run; None if one of them is no such log.

    Args:
        texts: the texts of the files, or their beginnings.
        whole: whether the texts are complete; otherwise there is no opening.
    """
    starts: list[int] = []
    counts: dict[int, int] = {}
    for text in texts:
        lines = text.splitlines()
        first = lines[0] if lines else ""
        if single := _TRANSACTION.fullmatch(first):
            starts.append(int(single["start"]))
            whole = False
            continue
        if _AGGREGATED.fullmatch(first) is None:
            return None
        for line in lines if whole else lines[:1]:
            if (found := _AGGREGATED.fullmatch(line)) is None:
                return None
            starts.append(int(found["start"]))
            counts[int(found["start"])] = counts.get(int(found["start"]), 0) + int(found["count"])
    if not starts:
        return None
    # the last interval is rarely complete
    parts = np.array([counts[start] for start in sorted(counts)][:-1], dtype=np.float64)
    opening = opening_of_seconds(parts) if whole else None
    return LoggedRun(started=datetime.fromtimestamp(min(starts), UTC), opening=opening)
