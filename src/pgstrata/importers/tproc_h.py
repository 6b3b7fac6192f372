"""Runs of HammerDB's TPROC-H: sets of 22 queries, by one virtual user (power) or several at once (throughput). Pure."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from pgstrata.importers.results import Result

GEOMEAN: Final = "query_geomean_seconds"
SET: Final = "query_set_seconds"
_SECONDS_PER_HOUR: Final = 3600

_USER: Final = r"(?:Vuser (?P<user>\d{1,9}): ?)?"
_NUMBER: Final = r"\d{1,9}(?:\.\d{1,9})?"
_EXECUTING: Final = re.compile(rf"{_USER}Executing Query \d{{1,2}} \(\d{{1,2}} of \d{{1,2}}\)")
_QUERY: Final = re.compile(rf"{_USER}query (?P<query>\d{{1,2}}) completed in (?P<seconds>{_NUMBER}) seconds")
_COMPLETED: Final = re.compile(rf"{_USER}Completed (?P<set>\d{{1,9}}) query set\(s\) in (?P<seconds>{_NUMBER}) seconds")
# the number has quotation marks, which JSON escapes
_GEOMEAN: Final = re.compile(
    rf'{_USER}Geometric mean of query times returning rows \((?P<rows>\d{{1,3}})\) is \\?"?(?P<seconds>{_NUMBER})'
)
_WRONG: Final = re.compile(r"Vuser (?P<user>\d{1,9}): ?(?P<what>FINISHED FAILED|Query (?:Failed|Error))")
_FINISHED: Final = re.compile(r"Vuser (?P<user>\d{1,9}): ?FINISHED SUCCESS")
_DATABASE: Final = re.compile(r"RUNNING - (?P<database>\w[\w ]{0,40}?) TP(?:RO)?C-H")
_ENDS: Final = ("ALL VIRTUAL USERS COMPLETE", "Hammerdb Log @")
# the list of a job's output has the number of the user in the line before
_LISTED_USER: Final = re.compile(r'\s*"(?P<user>\d{1,9})",?\s*')
_WORDS: Final = (
    "Executing Query", "completed in", "query set(s)", "Geometric mean", "FINISHED", "Query Failed", "Query Error",
    "RUNNING - ", *_ENDS,
)  # fmt: skip
"""A line without any of them is none of TPROC-H."""


Totals = tuple[float | None, float | None]


def measure_queries(geomean: float | None, seconds: dict[str, float]) -> dict[str, float]:
    """Measurements by name: `power` is 3600 ÷ the geometric mean, as in pgstrata's own runs; `seconds` as they are."""
    named = {GEOMEAN: geomean or 0.0, **seconds}
    found = {name: value for name, value in named.items() if value > 0}
    return {"power": _SECONDS_PER_HOUR / found[GEOMEAN], **found} if GEOMEAN in found else found


@dataclass(slots=True, kw_only=True)
class _Set:
    """One set of queries of one virtual user: seconds of all of it, and of each query by its number."""

    seconds: float
    queries: dict[int, float]
    geomean: float | None = None
    rows: str = ""


@dataclass(slots=True)
class _Run:
    """The run that is being read; `began` is the number of its first line, or 0 between runs.

    `open` are queries of users whose set is not complete, `last` the latest complete sets by user, `sets` the sets of
    all users by number. `early` are means that came before their set, as in the result of a job.
    """

    began: int = 0
    started: datetime | None = None
    failed: str = ""
    open: dict[str, dict[int, float]] = field(default_factory=dict)
    last: dict[str, _Set] = field(default_factory=dict)
    sets: dict[int, list[_Set]] = field(default_factory=dict)
    early: deque[tuple[float, str]] = field(default_factory=deque)
    finished: set[str] = field(default_factory=set)


class QueryLog:
    """Reads a log of runs, or the output or result of jobs, line by line.

    HammerDB itself compares the geometric mean of the slowest virtual user to complete its set (manual of HammerDB 4.3,
    section 11.2). So of several users, that one's mean and seconds count. Seconds of single queries are measurements if
    there is one user. Further sets of a run have a number, because only the first one may have met a cold cache.
    """

    def __init__(self) -> None:
        self.results: list[Result] = []
        self.unusable: list[tuple[int, str]] = []
        self.lower: set[str] = set()
        self._run = _Run()
        self._database = ""
        self._user = ""
        self._stamp: datetime | None = None
        self._logged = frozenset[Totals]()

    def read_line(self, number: int, line: str, stamp: datetime | None) -> None:
        """Read a line; `stamp` is the time that it states."""
        if stamp is not None:
            self._stamp = stamp
        if line.strip() == "[":
            self._user = ""
            self.end_run()
        elif listed := _LISTED_USER.fullmatch(line):
            self._user = listed["user"]
        elif any(word in line for word in _WORDS):
            self._read_event(number, line)

    def _read_event(self, number: int, line: str) -> None:
        if found := _EXECUTING.search(line):
            user = found["user"] or self._user
            if user in self._run.finished:
                self.end_run()
            self._begin(number).open.setdefault(user, {})
        elif found := _QUERY.search(line):
            user = found["user"] or self._user
            self._begin(number).open.setdefault(user, {})[int(found["query"])] = float(found["seconds"])
        elif found := _WRONG.search(line):
            self._run.failed = self._run.failed or (_say_wrong(found) if self._run.began else "")
        elif found := _FINISHED.search(line):
            self._run.finished.add(found["user"])
        elif found := _DATABASE.search(line):
            self.end_run()
            self._database = found["database"]
        elif any(word in line for word in _ENDS):
            self.end_run()
        else:
            self._read_totals(number, line)

    def _read_totals(self, number: int, line: str) -> None:
        """Means and complete sets; the result of a job has those of all users in one line each, the means first."""
        for found in _GEOMEAN.finditer(line):
            run, mean = self._begin(number), float(found["seconds"])
            last = run.last.get(found["user"] or self._user)
            if last is not None and last.geomean is None:
                last.geomean, last.rows = mean, found["rows"]
            else:
                run.early.append((mean, found["rows"]))
        for found in _COMPLETED.finditer(line):
            self._complete(number, found["user"] or self._user, int(found["set"]), float(found["seconds"]))

    def _complete(self, number: int, user: str, place: int, seconds: float) -> None:
        run = self._begin(number)
        if user and user in run.last and place == 1:
            # the first set again: another run, of which nothing else tells
            queries = run.open.pop(user, {})
            self.end_run()
            run = self._begin(number)
            run.open[user] = queries
        made = _Set(seconds=seconds, queries=run.open.pop(user, {}))
        if run.early:
            made.geomean, made.rows = run.early.popleft()
        run.last[user] = made
        run.sets.setdefault(place, []).append(made)

    def _begin(self, number: int) -> _Run:
        """The current run; begins one at this line if there is none. A time stamp read before it is its start."""
        run = self._run
        if not run.began:
            run.began, run.started, self._stamp = number, self._stamp, None
        return run

    def end_run(self) -> None:
        """If a run has begun, add its results, or the reason why it has none."""
        run, self._run = self._run, _Run()
        if not run.began:
            return
        if run.failed:
            self.unusable.append((run.began, run.failed))
        elif run.open or not run.sets:
            users = ", ".join(user for user in list(run.open)[:3] if user)
            said = f" of virtual user {users}" if users else ""
            self.unusable.append((run.began, f"the run did not finish: the queries{said} are not complete"))
        else:
            self._add(run)

    def _add(self, run: _Run) -> None:
        made = list(self._to_results(run))
        logged = any(each.queries for sets in run.sets.values() for each in sets)
        # scripts print the result of a job below the log of its run
        if not logged and made and self._logged.issuperset(_totals(each.measurements) for each in made):
            self._logged = frozenset()
            return
        self._logged = frozenset(part for each in made for part in _parts(each.measurements)) if logged else frozenset()
        self.results += made
        self.lower.update(name for each in made for name in each.measurements if name != "power")

    def _to_results(self, run: _Run) -> Iterator[Result]:
        started = run.started
        for place, sets in sorted(run.sets.items()):
            slowest = max(sets, key=lambda each: (each.seconds, each.geomean or 0.0))
            single = slowest.queries if len(sets) == 1 else {}
            queries = {f"query_{query:02}_seconds": seconds for query, seconds in sorted(single.items())}
            said = {
                "database": self._database, "users": str(len(sets)), "queries": slowest.rows,
                "set": str(place) if len(run.sets) > 1 else "",
            }  # fmt: skip
            yield Result(
                measurements=measure_queries(slowest.geomean, {SET: slowest.seconds, **queries}),
                line=run.began,
                said={name: level for name, level in said.items() if level},
                started=started,
                seconds=slowest.seconds,
            )
            started = _later(started, slowest.seconds)


def _totals(measurements: Mapping[str, float]) -> Totals:
    """The seconds of a set and the mean of its queries, without single queries."""
    return (measurements.get(SET), measurements.get(GEOMEAN))


def _parts(measurements: Mapping[str, float]) -> Iterator[Totals]:
    """The totals of a set in a log, as the result of its job may have them: both, one, or none of them."""
    seconds, mean = _totals(measurements)
    yield from ((seconds, mean), (seconds, None), (None, mean), (None, None))


def _say_wrong(found: re.Match[str]) -> str:
    user = found["user"]
    if found["what"].startswith("Query"):
        return f"a query of virtual user {user} failed, so the mean covers only the others"
    return f"virtual user {user} failed before the run had a result"


def _later(moment: datetime | None, seconds: float) -> datetime | None:
    try:
        return moment + timedelta(seconds=seconds) if moment is not None else None
    except OverflowError:
        return None
