"""Tables and indexes of two windows. Pure."""

from __future__ import annotations

from typing import Final

from pgstrata.model.archive import RELATION_COUNTERS, ArchiveWindow, RelationUse
from pgstrata.model.explanation import RelationChange

_NOTHING: Final = RelationUse()


def change_relations(value: ArchiveWindow, reference: ArchiveWindow) -> tuple[RelationChange, ...]:
    """Each relation in both windows, the one whose work changed most first; nothing where one window has no counts."""
    if not value.relations_counted or not reference.relations_counted:
        return ()
    found = [
        RelationChange(
            relation=relation,
            value=per_second(value.relations.get(relation, _NOTHING), value.relations_counted),
            reference=per_second(reference.relations.get(relation, _NOTHING), reference.relations_counted),
        )
        for relation in dict.fromkeys((*value.relations, *reference.relations))
    ]
    return tuple(sorted(found, key=lambda each: -abs(each.value.work - each.reference.work)))


def per_second(use: RelationUse, seconds: float) -> RelationUse:
    """Counters of a relation per second; its estimates of rows as they are."""
    rates = {name: getattr(use, name) / seconds for name in RELATION_COUNTERS}
    return RelationUse(**rates, live_rows=use.live_rows, dead_rows=use.dead_rows)
