"""The parts of a look: each may fail alone, is told once, and is tried again later."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from pgstrata.errors import DatabaseFullError, HostFileError, ParseError, PgstrataError, SqlError

_SETTLED: Final = 60.0
"""Seconds for which a part has to work until a failure of it is a new one."""
_FIRST_WAIT: Final = 10.0
_LONGEST_WAIT: Final = 600.0
_EXTENSION: Final = "run CREATE EXTENSION pg_stat_statements again, in the database of the recorder"
_NO_RIGHT: Final = "42501"
_REMEDIES: Final = {
    _NO_RIGHT: "GRANT pg_monitor TO the recorder's role",
    "42P01": _EXTENSION,
    "42883": _EXTENSION,
    "3F000": _EXTENSION,
    "55000": "load pg_stat_statements in shared_preload_libraries, and restart the server",
}
"""What to do by SQLSTATE, where waiting alone does not help."""
_SCHEMA: Final = " for schema "
_SCHEMA_RIGHT: Final = "GRANT USAGE ON this SCHEMA TO the recorder's role"


class Part(StrEnum):
    """What is read of a server and its host, in the words of messages."""

    SESSIONS = "sessions"
    COUNTERS = "statistics of the server"
    STATEMENTS = "counters of statements"
    TEXTS = "texts of statements"
    HORIZON = "what holds back vacuum"
    RELATIONS = "statistics of tables"
    PLANS = "plans of statements"
    SERVER = "settings of the server"
    HOST = "counters of the host"
    LOG = "place of the log"


@dataclass(slots=True)
class _Failing:
    """A part that has failed: `again` and `since` by a clock that never jumps; `since`: it works, None: it does not."""

    again: float
    wait: float = _FIRST_WAIT
    since: float | None = None


@dataclass(slots=True)
class Parts:
    """Carries out parts of looks.

    Args:
        passed: seconds of a clock that never jumps.
        missed: told which part fails for the first time, why, and what to do about it.
    """

    passed: Callable[[], float]
    missed: Callable[[Part, str, str], None]
    _failing: dict[Part, _Failing] = field(default_factory=dict)

    def attempt(self, part: Part, look: Callable[[], None]) -> None:
        """Do it, unless it has failed a short time ago; sessions are looked at each second all the same.

        SessionLostError and whatever else concerns all parts is left to the caller.
        """
        failing = self._failing.get(part)
        if failing is not None and part is not Part.SESSIONS and self.passed() < failing.again:
            return
        try:
            look()
        except (SqlError, ParseError, HostFileError, DatabaseFullError) as error:
            self._fail(part, failing, error)
        else:
            self._succeed(part, failing)

    def _fail(self, part: Part, failing: _Failing | None, error: PgstrataError) -> None:
        if failing is None:
            failing = self._failing[part] = _Failing(again=0.0)
            self.missed(part, error.what, _remedy(error))
        failing.again = self.passed() + failing.wait
        failing.wait = min(_LONGEST_WAIT, 2 * failing.wait)
        failing.since = None

    def _succeed(self, part: Part, failing: _Failing | None) -> None:
        if failing is None:
            return
        if failing.since is None:
            failing.since = self.passed()
        if self.passed() - failing.since >= _SETTLED:
            del self._failing[part]


def _remedy(error: PgstrataError) -> str:
    state = error.sqlstate if isinstance(error, SqlError) else ""
    remedy = _REMEDIES.get(state, "")
    # an extension may lie in a schema of its own, of which pg_monitor knows nothing
    return _SCHEMA_RIGHT if state == _NO_RIGHT and _SCHEMA in error.what else remedy
