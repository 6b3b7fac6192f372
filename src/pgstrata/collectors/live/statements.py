"""Counters of pg_stat_statements, and what came to them between two looks; it is never reset. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Final

from pgstrata.collectors.lines import whole_lines
from pgstrata.collectors.statements import constants_expression, statements_for
from pgstrata.diagnosis.query_text import hash_query, normalise_masked
from pgstrata.errors import ParseError
from pgstrata.libpq import quote_literal
from pgstrata.model.archive import REST, StatementUse

MOST_KEPT: Final = 100
"""Statements of an interval that stand alone, those with most time; the others are summed up."""
IDENTITIES_SINCE: Final = 140000
"""Version from which on pg_stat_activity has the ids of statements."""
OWN: Final = "pgstrata"
"""Name that stands in each statement of the recorder, so that it is not counted as one of the server's."""
EXPLAIN: Final = "EXPLAIN (GENERIC_PLAN, COSTS, FORMAT TEXT)"
"""How its questions for plans begin, in which there is no place for the name."""
_COLUMNS: Final = 7
_NAMELESS: Final = frozenset({"begin read only", "savepoint ?", "rollback to savepoint ?"})
_MOST_NAMELESS: Final = 3
"""Most calls of each in ten seconds that are the recorder's: it asks for a plan every five."""


def is_own_use(normalised: str, use: StatementUse) -> bool:
    """Whether calls of an interval of ten seconds are the recorder's, by the normalised text of the statement.

    Versions after 17 remove the name from some statements that it sends to get plans. Applications may send the same
    statements, but hardly so few in ten seconds.
    """
    nameless = normalised in _NAMELESS and use.calls <= _MOST_NAMELESS
    return is_own(normalised) or nameless


def is_own(normalised: str) -> bool:
    """Whether a normalised text names the recorder."""
    return OWN in normalised or normalised.startswith(EXPLAIN.lower())


@cache
def counts_statement(version: int, schema: str) -> str:
    """Counters of all statements, a row for each user and database; without an id where this role may not see it."""
    return statements_for(__package__, "statements", version)[0][1].replace("@schema@", schema)


@cache
def resets_statement(version: int, schema: str) -> str:
    """How often entries were thrown away, and when all were: a row."""
    return statements_for(__package__, "resets", version)[0][1].replace("@schema@", schema)


def texts_statement(identities: Iterable[str], schema: str) -> str:
    """Texts of statements with these ids that pg_stat_statements knows, a row each."""
    return _with_ids("texts.sql", identities).replace("@schema@", schema)


def running_statement(identities: Iterable[str]) -> str:
    """Texts of statements with these ids that are running, a row each; of servers from `IDENTITIES_SINCE` on."""
    return _with_ids(f"running.{IDENTITIES_SINCE}.sql", identities)


def _with_ids(name: str, identities: Iterable[str]) -> str:
    text = (files(__package__) / "sql" / name).read_text("utf-8").replace("@constant@", constants_expression())
    return text.replace("@ids@", quote_literal(" ".join(sorted(identities))))


def read_texts(rows: bytes) -> Mapping[str, str]:
    """Normalised texts by id."""
    pairs = (line.partition("\t") for line in whole_lines(rows))
    return {identity: normalise_masked(masked) for identity, _, masked in pairs if masked}


def read_counts(rows: bytes) -> Mapping[str, StatementUse]:
    """Counters by entry: id, user and database; ParseError where a row has an unknown shape."""
    found = {}
    for line in whole_lines(rows):
        words = line.split("\t")
        try:
            numbers = [float(word or 0) for word in words[1:]]
        except ValueError:
            numbers = []
        if len(words) != _COLUMNS or not numbers:
            raise ParseError(f"unknown shape of a row of pg_stat_statements: {line[:200]!r}")
        found[words[0]] = StatementUse(
            calls=numbers[0], seconds=numbers[1], rows=numbers[2], blocks_hit=numbers[3], blocks_read=numbers[4],
            wal_bytes=numbers[5],
        )  # fmt: skip
    return found


def _identity(entry: str) -> str:
    return entry.partition("/")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """What was counted between two looks, by id.

    `complete`: nothing was reset or thrown away meanwhile; `reset`: somebody reset all of it.
    """

    uses: Mapping[str, StatementUse]
    complete: bool
    reset: bool = False


@dataclass(slots=True)
class StatementsReader:
    """Keeps the last look."""

    _last: Mapping[str, StatementUse] = field(default_factory=dict)
    _resets: str | None = None

    def read(self, counts: bytes, resets: bytes) -> Interval | None:
        """What came since the last look; None at the first.

        Entries that are new or were made anew count from their beginning. After a reset all do. Those that are new
        because this role may see more than before do not: they may have counted for months.
        """
        now, said = read_counts(counts), resets.decode("utf-8", "replace").strip()
        last, before = self._last, self._resets
        self._last, self._resets = now, said
        if before is None:
            return None
        revealed = any(
            not _identity(entry) and (entry not in now or now[entry].calls < use.calls) for entry, use in last.items()
        )
        uses: dict[str, StatementUse] = {}
        complete = before == said and not revealed and last.keys() <= now.keys()
        for entry, use in now.items():
            identity = _identity(entry)
            if not identity or (revealed and entry not in last):
                continue
            grown = use.since(last[entry]) if entry in last else use
            complete = complete and grown is not None
            grown = use if grown is None else grown
            if grown.calls > 0:
                uses[identity] = uses[identity].plus(grown) if identity in uses else grown
        reset = before.partition("\t")[2] != said.partition("\t")[2]
        return Interval(uses=uses, complete=complete, reset=reset)

    def forget(self) -> None:
        """The server was restarted, or not reached for a while: the next look is the first."""
        self._last, self._resets = {}, None


def keep_largest(uses: Mapping[str, StatementUse]) -> Mapping[str, StatementUse]:
    """The statements with most time, and the sum of the others."""
    ranked = sorted(uses.items(), key=lambda item: -item[1].seconds)
    kept = dict(ranked[:MOST_KEPT])
    for _, use in ranked[MOST_KEPT:]:
        kept[REST] = kept.get(REST, StatementUse()).plus(use)
    return kept


def by_key(uses: Mapping[str, StatementUse], texts: Mapping[str, str], version: int) -> Mapping[str, StatementUse]:
    """What was counted by `key_of`; several ids may have one text."""
    keyed: dict[str, StatementUse] = {}
    for identity, use in uses.items():
        key = key_of(identity, texts.get(identity, ""), version)
        keyed[key] = keyed[key].plus(use) if key in keyed else use
    return keyed


def key_of(identity: str, text: str, version: int) -> str:
    """How a statement is told apart: by the id where sessions show it too, else by its text."""
    return identity if version >= IDENTITIES_SINCE or not text else hash_query(text)
