"""Windows of an archive, read beside its recorder."""

from __future__ import annotations

import math
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from pgstrata.model.archive import (
    GROUP_RATES,
    HOST_RATES,
    RELATION_COUNTERS,
    RELATION_FIELDS,
    SERVER_RATES,
    ArchiveEvent,
    ArchiveFacts,
    ArchiveWindow,
    Blocking,
    EventKind,
    Holder,
    HolderKind,
    Horizon,
    Relation,
    RelationUse,
    SessionClass,
    Span,
    StatementUse,
    UseCourses,
)
from pgstrata.model.association import ArchiveSeries
from pgstrata.model.incidents import LoadStep
from pgstrata.model.query_plans import SeenPlan
from pgstrata.ports.recording import RecordedSecond
from pgstrata.store.archives.gaps import read_gaps, read_host_gaps
from pgstrata.store.archives.plans import read_plans
from pgstrata.store.archives.plausible import LATEST, check_count, check_number, take, too_many
from pgstrata.store.archives.recorded import USES, read_recorded
from pgstrata.store.archives.schema import COARSE, DETAILED, UNKNOWN, ImplausibleError, read_archive
from pgstrata.store.archives.series import read_load
from pgstrata.store.archives.steps import read_steps
from pgstrata.store.archives.tables import ArchiveTable, read_table

MOST_CELLS: Final = 240
MOST_DETAILED: Final = 2 * 3600
"""Seconds of a window from which on it is read by the minute."""
_MINUTE: Final = 60
_LONGEST_TEXT: Final = 1000
_MOST_TEXTS: Final = 200_000
"""The newest ones; an archive has more only if texts hardly ever come again."""
_MOST_CLASSES: Final = 50_000
_MOST_STEPS: Final = 1_000_000
"""Almost two years of minutes."""
LONGEST_DETAILED: Final = 86_400
"""Seconds of a window from which on its series are read by the minute."""
STEP: Final = 10
"""Seconds of a step of series that are read by the second."""
_COLUMNS: Final = "kind, database, role, application, state, wait_type, event"
_LIMITS: Final = "limits"
_INSIDE: Final = (
    "i.moment >= :begin AND i.moment < :end + 7200 "
    "AND i.moment - i.seconds / 2 >= :begin AND i.moment - i.seconds / 2 < :end"
)
"""Intervals whose middle is in the window; none is as long as 2 h, and bounds of `moment` let its index be used."""


@dataclass(frozen=True, slots=True)
class ArchiveReader:
    """An archive as it was at one moment."""

    _connection: sqlite3.Connection

    @classmethod
    @contextmanager
    def open(cls, folder: Path) -> Iterator[ArchiveReader]:
        """Read the archive in a folder; ArchiveError where there is none that can be read."""
        with read_archive(folder) as connection:
            yield cls(connection)

    def facts(self) -> ArchiveFacts | None:
        """What the archive says of itself; None where nothing was recorded yet."""
        ends = "SELECT min(b), max(e) FROM (SELECT min(moment) AS b, max(moment) + {0} AS e FROM look_{1})"
        begin, _ = self._connection.execute(ends.format(_MINUTE, COARSE)).fetchone()
        first, end = self._connection.execute(ends.format(1, DETAILED)).fetchone()
        if begin is None and first is None:
            return None
        if end is None:
            (end,) = self._connection.execute(f"SELECT max(moment) + {_MINUTE} FROM look_{COARSE}").fetchone()
        for moment in filter(None, (begin, first, end)):
            check_count(moment, "moment", most=LATEST)
        facts = dict(self._connection.execute("SELECT name, substr(value, 1, 10000) FROM fact LIMIT 1000"))
        limits = tuple(filter(None, facts.pop(_LIMITS, "").split()))
        # the first minute of a fresh archive begins before its first second
        earliest = min(each for each in (begin, first) if each is not None)
        if first is not None and first - earliest < _MINUTE:
            earliest = first
        detailed = first if first is not None else end
        return ArchiveFacts(span=Span(begin=earliest, end=end), facts=facts, limits=limits, detailed_since=detailed)

    def texts(self) -> Mapping[str, str]:
        """Texts of statements by key, those that are known."""
        query = f"SELECT key, substr(text, 1, {_LONGEST_TEXT}) FROM statement WHERE text <> '' ORDER BY id DESC"
        return dict(self._connection.execute(f"{query} LIMIT {_MOST_TEXTS}"))

    def steps(self, span: Span, seconds: int) -> list[LoadStep]:
        """Load and transactions in steps, as `read_steps` does."""
        return read_steps(self._connection, span, seconds)

    def window(self, span: Span, facts: ArchiveFacts, *, most: int = MOST_CELLS) -> ArchiveWindow:
        """What the archive has of a span; one that is read by the minute is widened to whole minutes.

        Args:
            span: the window.
            facts: of the archive.
            most: cells at most.
        """
        window = self.courses(span, facts, most=most)
        size, within = COARSE if window.unit > 1 else DETAILED, Span(begin=window.span.begin, end=span.end)
        read = _Read(self._connection, size, within, window.cell, len(window.looks), span.end)
        uses, counted, transactions = read.statements()
        relations, relations_counted = read.relations()
        return replace(
            window,
            blocked=read.blocked(),
            statements=uses,
            counted=counted,
            transactions=transactions,
            relations=relations,
            relations_counted=relations_counted,
            horizons=read.horizons(),
            plans=read.plans(),
            events=read.events(),
            gaps=read_gaps(self._connection, size, within),
            host_gaps=read_host_gaps(self._connection, size, within),
        )

    def courses(self, span: Span, facts: ArchiveFacts, *, most: int = MOST_CELLS) -> ArchiveWindow:
        """The same with nothing but what there is by cell: looks, sessions and rates."""
        coarse = span.seconds > MOST_DETAILED or span.begin < facts.detailed_since
        size, unit = (COARSE, _MINUTE) if coarse else (DETAILED, 1)
        begin = span.begin // unit * unit
        cell = unit * max(1, math.ceil((span.end - begin) / unit / most))
        number = max(1, math.ceil((span.end - begin) / cell))
        read = _Read(self._connection, size, Span(begin=begin, end=begin + number * cell), cell, number, span.end)
        looks, sessions = read.looks(), read.sessions()
        if any(count and not looks[place] for counts in sessions.values() for place, count in enumerate(counts)):
            raise ImplausibleError("sessions are recorded for a moment without a look at them")
        whole = Span(begin=begin, end=-(-span.end // unit) * unit)
        return ArchiveWindow(span=whole, unit=unit, cell=cell, looks=looks, sessions=sessions, rates=read.all_rates())

    def recorded(self, window: ArchiveWindow) -> tuple[RecordedSecond, ...]:
        """What is known of each second of a window that was read in cells of a second."""
        return tuple(read_recorded(self._connection, window))

    def series(self, span: Span, facts: ArchiveFacts) -> ArchiveSeries:
        """Load by wait event and rates of a span in steps of 10 s, of a minute where it is longer than a day or old.

        Steps are whole: what is left of one at the end is not read.
        """
        coarse = span.seconds > LONGEST_DETAILED or span.begin < facts.detailed_since
        size, unit, step = (COARSE, _MINUTE, _MINUTE) if coarse else (DETAILED, 1, STEP)
        begin = -(-span.begin // unit) * unit
        number = max(0, span.end - begin) // step
        if number > _MOST_STEPS:
            raise too_many("steps", _MOST_STEPS)
        whole = Span(begin=begin, end=begin + number * step)
        read = _Read(self._connection, size, whole, step, number, whole.end)
        return ArchiveSeries(
            span=whole,
            step=step,
            unit=unit,
            looks=read.looks(),
            load=read_load(self._connection, size, whole, step),
            rates=read.all_rates(),
        )

    def table(self, name: str, span: Span, facts: ArchiveFacts, *, by_minute: bool) -> ArchiveTable:
        """What the archive has of a span as a table for other tools; see `read_table`."""
        return read_table(self._connection, name, span, facts, by_minute=by_minute)

    def use_courses(self, span: Span, keys: Collection[str], *, most: int = MOST_CELLS) -> UseCourses:
        """What was counted of statements in a window, `span` as `ArchiveWindow` has it; in so many cells at most."""
        (number,) = self._connection.execute(
            f"SELECT count(*) FROM statement_interval i WHERE {_INSIDE}", {"begin": span.begin, "end": span.end}
        ).fetchone()
        cell = max(1, math.ceil(number / most))
        return _Read(self._connection, DETAILED, span, cell, math.ceil(number / cell), span.end).use_courses(keys)


@dataclass(frozen=True, slots=True)
class _Read:
    """Reading one window."""

    connection: sqlite3.Connection
    size: str
    span: Span
    cell: int
    number: int
    end: int

    def _rows(self, statement: str) -> sqlite3.Cursor:
        names = {"begin": self.span.begin, "end": self.end, "cell": self.cell}
        return self.connection.execute(statement.replace("{size}", self.size), names)

    def looks(self) -> tuple[int, ...]:
        found = [0] * self.number
        query = (
            "SELECT (moment - :begin) / :cell, sum(looks), min(looks) FROM look_{size} "
            "WHERE moment >= :begin AND moment < :end GROUP BY 1"
        )
        for place, looks, least in self._rows(query):
            found[place] = check_count(looks, "looks", most=self.cell)
            check_count(least - 1, "looks")
        return tuple(found)

    def sessions(self) -> Mapping[SessionClass, tuple[int, ...]]:
        found: dict[int, list[int]] = {}
        query = (
            "SELECT (moment - :begin) / :cell, class, sum(sessions), min(sessions) FROM session_{size} "
            "WHERE moment >= :begin AND moment < :end GROUP BY 2, 1"
        )
        for place, number, sessions, least in self._rows(query):
            check_count(least, "sessions")
            found.setdefault(number, [0] * self.number)[place] = check_count(sessions, "sessions")
            if len(found) > _MOST_CLASSES:
                raise too_many("classes of sessions", _MOST_CLASSES)
        classes = self._classes(found.keys())
        together: dict[SessionClass, list[int]] = {}
        for number, counts in found.items():
            known = together.setdefault(classes[number], [0] * self.number)
            known[:] = [one + other for one, other in zip(known, counts, strict=True)]
        return {session: tuple(counts) for session, counts in together.items()}

    def _classes(self, wanted: Collection[int]) -> Mapping[int, SessionClass]:
        ids = self._ids_of_hashes()
        query = (
            f"SELECT c.id, {', '.join(f'c.{name}' for name in _COLUMNS.split(', '))}, coalesce(s.key, '') "
            "FROM session_class c LEFT JOIN statement s ON s.id = c.statement"
        )
        found = {
            number: SessionClass(
                kind=kind, database=database, role=role, application=application, state=state, wait_type=wait_type,
                event=event, statement=ids.get(key, key),
            )
            for number, kind, database, role, application, state, wait_type, event, key in self._rows(query)
            if number in wanted
        }  # fmt: skip
        if len(found) < len(wanted):
            raise ImplausibleError("a class of sessions is missing")
        return found

    def _ids_of_hashes(self) -> Mapping[str, str]:
        """Ids of statements that were also seen by their texts.

        The server gives a session the id of its statement only once it is analysed: one that waits for the lock of a
        table before that has none yet.
        """
        query = (
            "SELECT h.key, min(i.key) FROM statement h JOIN statement i ON i.text = h.text "
            "WHERE h.text <> '' AND h.key GLOB 'q*' AND NOT i.key GLOB 'q*' GROUP BY 1"
        )
        return dict(self._rows(query))

    def all_rates(self) -> Mapping[str, tuple[float, ...]]:
        tables = (("server", SERVER_RATES), ("host", HOST_RATES), ("group", GROUP_RATES))
        return {name: values for table, columns in tables for name, values in self.rates(table, columns).items()}

    def rates(self, table: str, columns: tuple[str, ...]) -> Mapping[str, tuple[float, ...]]:
        means = ", ".join(
            f"sum({name} * seconds) / sum(CASE WHEN {name} IS NOT NULL THEN seconds END)" for name in columns
        )
        query = (
            f"SELECT (moment - :begin) / :cell, {means} FROM {table}_{{size}} "
            "WHERE moment >= :begin AND moment < :end GROUP BY 1"
        )
        found = {name: [math.nan] * self.number for name in columns}
        for place, *values in self._rows(query):
            for name, value in zip(columns, values, strict=True):
                found[name][place] = math.nan if value is None else check_number(value, name, negative=True)
        return {name: tuple(values) for name, values in found.items() if any(map(math.isfinite, values))}

    def blocked(self) -> Mapping[Blocking, int]:
        query = (
            "SELECT class, root, pid, max(held), sum(sessions) FROM blocked_{size} "
            "WHERE moment >= :begin AND moment < :end GROUP BY 1, 2, 3"
        )
        rows = take(self._rows(query), "blocked sessions")
        classes = self._classes({number for row in rows for number in row[:2]} - {UNKNOWN})
        found: Counter[Blocking] = Counter()
        for waiting, root, pid, held, sessions in rows:
            if waiting not in classes:
                raise ImplausibleError("a class of sessions is missing")
            check_count(max(0, held), "seconds of a transaction")
            blocking = Blocking(waiting=classes[waiting], root=classes.get(root), pid=pid, held=max(0, held))
            found[blocking] += check_count(sessions, "blocked sessions")
        return dict(found)

    def statements(self) -> tuple[Mapping[str, StatementUse], float | None, float]:
        """Sums of all intervals whose middle is in the window, the seconds that they cover, transactions in these."""
        ends = "sum(i.seconds), min(i.moment - i.seconds), max(i.moment)"
        ((seconds, first, last),) = self._rows(f"SELECT {ends} FROM statement_interval i WHERE {_INSIDE}")
        for each in filter(None, (seconds, first, last)):
            check_number(each, "length of an interval")
        summed = ", ".join(f"sum(u.{name}) AS {name}" for name in USES)
        query = (
            f"SELECT s.key, {', '.join(f'u.{name}' for name in USES)} FROM "
            f"(SELECT u.statement, {summed} FROM statement_interval i JOIN statement_use u ON u.moment = i.moment "
            f"WHERE {_INSIDE} GROUP BY 1) u JOIN statement s ON s.id = u.statement"
        )
        uses = {
            key: StatementUse(calls=calls, seconds=spent, rows=rows, blocks_hit=hit, blocks_read=read, wal_bytes=wal)
            for key, *counts in take(self._rows(query), "statements")
            for calls, spent, rows, hit, read, wal in [
                [check_number(each, "counter of a statement") for each in counts]
            ]
        }
        committed = f"SELECT sum(commits * seconds) FROM server_{self.size} WHERE moment > ? AND moment <= ?"
        (transactions,) = self.connection.execute(committed, (round(first or 0), last or 0)).fetchone()
        return uses, seconds, check_number(transactions or 0.0, "number of transactions")

    def use_courses(self, keys: Collection[str]) -> UseCourses:
        """Cells of equally many intervals, as many as the window's cells are long."""
        ranked = (
            f"SELECT i.moment, i.seconds, (row_number() OVER (ORDER BY i.moment) - 1) / :cell AS place "
            f"FROM statement_interval i WHERE {_INSIDE}"
        )
        seconds = [0.0] * self.number
        for place, covered in self._rows(f"SELECT place, sum(seconds) FROM ({ranked}) GROUP BY 1"):
            seconds[place] = check_number(covered, "length of an interval")
        sums = ", ".join(f"sum(u.{name})" for name in USES)
        known = self._rows("SELECT id, key FROM statement")
        wanted = {number: key for number, key in known if key in keys}
        query = (
            f"SELECT r.place, u.statement, {sums} FROM ({ranked}) r JOIN statement_use u ON u.moment = r.moment "
            f"AND u.statement IN ({', '.join(map(str, wanted))}) GROUP BY 2, 1"
        )
        found = {key: [StatementUse()] * self.number for key in keys}
        for place, number, *values in self._rows(query):
            checked = [check_number(value, "counter of a statement") for value in values]
            found[wanted[number]][place] = StatementUse(**dict(zip(USES, checked, strict=True)))
        return UseCourses(seconds=tuple(seconds), uses={key: tuple(cells) for key, cells in found.items()})

    def relations(self) -> tuple[Mapping[Relation, RelationUse], float | None]:
        """Sums of all intervals whose middle is in the window, and the seconds that they cover."""
        ((seconds,),) = self._rows(f"SELECT sum(i.seconds) FROM relation_interval i WHERE {_INSIDE}")
        summed = ", ".join(
            f"{'sum' if name in RELATION_COUNTERS else 'max'}(u.{name}) AS {name}" for name in RELATION_FIELDS
        )
        query = (
            f"SELECT r.name, r.on_table, {', '.join(f'u.{name}' for name in RELATION_FIELDS)} FROM "
            f"(SELECT u.relation, {summed} FROM relation_interval i JOIN relation_use u ON u.moment = i.moment "
            f"WHERE {_INSIDE} GROUP BY 1) u JOIN relation r ON r.id = u.relation"
        )
        uses = {}
        for name, table, *values in take(self._rows(query), "tables and indexes"):
            checked = [check_number(value, "counter of a table", negative=True) for value in values]
            uses[Relation(name=name, table=table)] = RelationUse(**dict(zip(RELATION_FIELDS, checked, strict=True)))
        return uses, None if seconds is None else check_number(seconds, "length of an interval")

    def horizons(self) -> tuple[Horizon, ...]:
        """For each holder, the look at which it held back most."""
        query = (
            "SELECT kind, name, pid, state, max(age), held FROM horizon WHERE moment >= :begin AND moment < :end "
            "GROUP BY kind, name, pid ORDER BY 5 DESC LIMIT 20"
        )
        known = {kind.value for kind in HolderKind}
        return tuple(
            Horizon(
                holder=Holder(kind=HolderKind(kind), name=name, pid=pid, state=state),
                age=check_count(age, "transactions"),
                held=check_count(max(0, held), "seconds of a transaction"),
            )
            for kind, name, pid, state, age, held in self._rows(query)
            if kind in known
        )

    def plans(self) -> tuple[SeenPlan, ...]:
        return read_plans(self.connection, self.span.begin, self.end, self._ids_of_hashes())

    def events(self) -> tuple[ArchiveEvent, ...]:
        query = "SELECT moment, kind, detail, times FROM event WHERE moment >= :begin AND moment < :end ORDER BY moment"
        known = {kind.value for kind in EventKind}
        return tuple(
            ArchiveEvent(moment=moment, kind=EventKind(kind), detail=detail, times=check_count(times, "events"))
            for moment, kind, detail, times in take(self._rows(query), "events")
            if kind in known
        )
