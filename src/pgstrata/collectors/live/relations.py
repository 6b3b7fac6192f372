"""Counters of tables and indexes, and what came to them between two looks. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Final

from pgstrata.collectors.lines import whole_lines
from pgstrata.errors import ParseError
from pgstrata.model.archive import RELATION_COUNTERS, RELATION_FIELDS, REST, Relation, RelationUse

MOST_KEPT: Final = 30
"""Tables, and as many indexes, of an interval that stand alone, the busiest; the others are summed up."""
MOST_ASKED: Final = 1000
"""Tables, and as many indexes, that a server is asked for: those with most blocks since their statistics began."""
_FEW_TABLES: Final = 524_288
"""Bytes of pg_class up to which looking at all tables is cheap."""
_MANY_TABLES: Final = 16 << 20
_OFTEN: Final = 60
_SELDOM: Final = 600
_KINDS: Final = frozenset({"table", "index"})
_NAMES: Final = 3


@cache
def relations_statement() -> str:
    """What a server is asked, a row for each relation."""
    text = (files(__package__) / "sql" / "relations.sql").read_text("utf-8")
    return text.replace("@most@", str(MOST_ASKED))


def relations_period(catalogue: int) -> int | None:
    """Seconds between two looks; None where there are so many tables that none is affordable.

    Args:
        catalogue: bytes of pg_class.
    """
    if catalogue > _MANY_TABLES:
        return None
    return _OFTEN if catalogue <= _FEW_TABLES else _SELDOM


def read_relations(rows: bytes) -> Mapping[Relation, RelationUse]:
    """Counters by relation; ParseError where a row has an unknown shape."""
    found: dict[Relation, RelationUse] = {}
    for line in whole_lines(rows):
        kind, *words = line.split("\t")
        try:
            numbers = [float(word) for word in words[_NAMES - 1 :]]
        except ValueError:
            numbers = []
        if kind not in _KINDS or len(numbers) != len(RELATION_FIELDS):
            raise ParseError(f"unknown shape of a row of pg_stat_user_tables: {line[:200]!r}")
        relation = Relation(name=words[0], table=words[1])
        use = RelationUse(**dict(zip(RELATION_FIELDS, numbers, strict=True)))
        found[relation] = found[relation].plus(use) if relation in found else use
    return found


@dataclass(slots=True)
class RelationsReader:
    """Keeps the last look; `looks` is how many there were."""

    looks: int = 0
    _last: Mapping[Relation, RelationUse] | None = field(default=None)

    def read(self, rows: bytes) -> Mapping[Relation, RelationUse] | None:
        """What came since the last look, of those that were used; None at the first.

        A relation that is new, or whose statistics were reset, counts from its beginning. One that is new because it
        was not among those that were asked for does not: it may have counted for months.
        """
        now, last = read_relations(rows), self._last
        self._last = now
        self.looks += 1
        if last is None:
            return None
        numbers = Counter(relation.is_index for relation in last)
        grown = {
            relation: (use.since(last[relation]) or use) if relation in last else use
            for relation, use in now.items()
            if relation in last or numbers[relation.is_index] < MOST_ASKED
        }
        return {
            relation: use for relation, use in grown.items() if any(getattr(use, name) for name in RELATION_COUNTERS)
        }

    def forget(self) -> None:
        """The next look is the first."""
        self._last = None


def keep_busiest(uses: Mapping[Relation, RelationUse]) -> Mapping[Relation, RelationUse]:
    """The busiest tables and indexes, and the sum of the others of each."""
    kept: dict[Relation, RelationUse] = {}
    for others in (Relation(name=REST), Relation(name=REST, table=REST)):
        ranked = sorted(
            (item for item in uses.items() if item[0].is_index == others.is_index), key=lambda item: -item[1].work
        )
        kept |= dict(ranked[:MOST_KEPT])
        for _, use in ranked[MOST_KEPT:]:
            kept[others] = kept.get(others, RelationUse()).plus(use)
    return kept
