"""Which plans a recorder keeps: those of the statements with most time, asked for one at a time, and logged ones."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from pgstrata.app.watching.connection import Connected
from pgstrata.collectors.live.logged_plans import LoggedPlan
from pgstrata.collectors.live.plans import (
    GENERIC_SINCE,
    NO_PLAN,
    Explainable,
    explain_statement,
    explainable_statement,
    read_explainable,
    read_generic_plan,
)
from pgstrata.errors import SqlError
from pgstrata.model.archive import REST, StatementUse
from pgstrata.model.query_plans import LivePlan, PlanProblem, PlanSource

EVERY: Final = 5
"""Seconds between two questions."""
MOST: Final = 10
"""Statements whose plans are asked for, those with most time in the last ten seconds."""
_AGAIN: Final = 60.0
"""Seconds after which a plan is asked for again."""
_MOST_WORK: Final = 0.001
"""Share of the time that the server may spend on planning one statement again and again."""
_WITHOUT: Final = 3600.0
"""Seconds after which a plan that could not be had is asked for again."""
_FIRST_PAUSE: Final = 10.0
_LONGEST_PAUSE: Final = 600.0
"""Pauses after a failure: each leaves an error in the server's log."""
_MOST_KNOWN: Final = 1000
_LOCKED: Final = "55P03"
_LONGEST: Final = 200
_REMEDIES: Final = {
    "42501": "GRANT SELECT on its tables TO the recorder's role; a statement that writes needs the right to write",
    "42P01": "give the recorder's role the search_path of the application: ALTER ROLE … SET search_path",
    "3F000": "give the recorder's role the search_path of the application: ALTER ROLE … SET search_path",
}


@dataclass(slots=True)
class PlansAsker:
    """Knows what is due.

    Args:
        passed: seconds of a clock that never jumps.
        keep: takes each plan with the second, the statement's key, where it comes from, and how often it was seen.
        learn: takes texts of statements by key.
        tell: says what cannot be had, each kind of failure once.
    """

    passed: Callable[[], float]
    keep: Callable[[int, str, LivePlan, PlanSource, int], None]
    learn: Callable[[Mapping[str, str]], None]
    tell: Callable[[str], None]
    _ranked: tuple[str, ...] = ()
    _texts: dict[str, Explainable] = field(default_factory=dict)
    _due: dict[str, float] = field(default_factory=dict)
    _pause: float = 0.0
    _again: float = -math.inf
    _told: set[str] = field(default_factory=set)
    _logged: set[str] = field(default_factory=set)

    def rank(self, uses: Mapping[str, StatementUse]) -> None:
        """What was counted of statements, by the server's ids, in the last seconds."""
        named = sorted((key for key in uses if key != REST), key=lambda key: -uses[key].seconds)
        self._ranked = tuple(named[:MOST])
        if max(len(self._texts), len(self._due)) > _MOST_KNOWN:
            self._texts.clear()
            self._due.clear()

    def ask(self, connected: Connected, moment: int) -> None:
        """Ask for the plan that is most overdue, if one is due.

        Raises:
            SqlError: texts of statements cannot be read.
            ParseError: an answer has an unknown shape.
            SessionLostError: there is no connection any more.
        """
        now = self.passed()
        due = [key for key in self._ranked if self._due.get(key, -math.inf) <= now]
        if not due or now < self._again or not _can_be_asked(connected):
            return
        key = min(due, key=lambda each: self._due.get(each, -math.inf))
        if key not in self._texts:
            self._learn(connected)
        known = self._texts[key]
        # whatever happens now, it is not asked for again at once
        self._due[key] = now + _WITHOUT
        if known.problem:
            del self._texts[key]
        found = LivePlan(problem=known.problem) if known.problem else self._explain(connected, key, known.text)
        if found is not None and found.problem != NO_PLAN:
            self.keep(moment, key, found, PlanSource.GENERIC, 1)

    def keep_logged(self, moment: int, plans: Iterable[LoggedPlan]) -> None:
        """Plans that came to the server's log."""
        found = list(plans)
        for (key, plan), times in Counter((each.statement, each.plan) for each in found).items():
            self.keep(moment, key, plan, PlanSource.LOGGED, times)
        texts = {each.statement: each.text for each in found if each.statement not in self._logged}
        if len(self._logged) > _MOST_KNOWN:
            self._logged.clear()
        if texts:
            self._logged.update(texts)
            self.learn(texts)

    def _learn(self, connected: Connected) -> None:
        unknown = [key for key in self._ranked if key not in self._texts]
        rows = connected.rows(explainable_statement(unknown, connected.server.said["counting"]))
        self._texts |= read_explainable(rows, unknown)

    def _explain(self, connected: Connected, key: str, text: str) -> LivePlan | None:
        """The plan, or what the server says instead; None where a lock was in the way."""
        begun = self.passed()
        try:
            rows = connected.explain(explain_statement(text))
        except SqlError as error:
            self._fail(error)
            if error.sqlstate != _LOCKED:
                return LivePlan(problem=error.what[:_LONGEST])
            self._due[key] = begun + _LONGEST_PAUSE
            return None
        if rows is None:
            return LivePlan(problem=PlanProblem.SUPERUSER)
        found = read_generic_plan(rows)
        ended = self.passed()
        self._due[key] = ended + max(_AGAIN, (ended - begun) / _MOST_WORK)
        self._pause = 0.0
        return found

    def _fail(self, error: SqlError) -> None:
        self._pause = min(_LONGEST_PAUSE, max(_FIRST_PAUSE, 2 * self._pause))
        self._again = self.passed() + self._pause
        if error.sqlstate in self._told or error.sqlstate == _LOCKED:
            return
        self._told.add(error.sqlstate)
        remedy = _REMEDIES.get(error.sqlstate, "")
        self.tell(f"a statement has no plan in the archive: {error.what}{f' ({remedy})' if remedy else ''}")


def _can_be_asked(connected: Connected) -> bool:
    server = connected.server
    return server.version >= GENERIC_SINCE and server.counts_statements
