"""Tables, indexes and what holds back vacuum: in sentences, as tables, for programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from pgstrata.model.archive import RELATION_COUNTERS, RELATION_FIELDS, REST, HolderKind, Horizon, Relation, RelationUse
from pgstrata.model.explanation import RelationChange
from pgstrata.report.blocks.model import Block, Column, ColumnPlace, Details, Paragraph, Section, Table, Tone, begin
from pgstrata.report.json.documents import pick_fields
from pgstrata.report.sentences.causes import readable
from pgstrata.units import render_count, render_duration, render_rate

_MOST: Final = 12
_NARROWEST: Final = 20
_MUCH: Final = 0.5
"""Share of all additional rows and blocks that a table has to have, to be told in words."""
_TIMES: Final = 3.0
"""Times as many sequential scans from which on they are told in words."""
_LEAST: Final = 0.05
"""Sequential scans a second below which nothing is said of them."""
_COUNTED: Final = (
    "Counted by the server's statistics of this database, read once a minute, or every ten minutes where there are "
    "thousands of tables. No error is known for these figures."
)


def say_relations(changes: Sequence[RelationChange]) -> Iterator[str]:
    """The table that is read sequentially and was not, if it has most of the additional work."""
    extra = sum(each.value.work - each.reference.work for each in changes if not each.relation.is_index)
    summed = any(each.relation.name == REST and each.reference.work > 0 for each in changes)
    for each in changes:
        ours, theirs = each.value.sequential_scans, each.reference.sequential_scans
        work = each.value.work - each.reference.work
        if each.relation.is_index or extra <= 0 or work < _MUCH * extra:
            continue
        if ours >= max(_LEAST, _TIMES * theirs):
            # one that is not among the busiest is in the sum of the others
            known = each.reference != RelationUse() or not summed
            before = f"instead of {render_rate(theirs)}" if known else "and was not among the busiest before"
            yield (
                f"The table {name_relation(each.relation)} was scanned sequentially {render_rate(ours)} times per "
                f"second {before}, which is {work / extra * 100:.0f} % of the additional rows and blocks: "
                "look for a dropped index or a changed plan"
            )


def name_relation(relation: Relation) -> str:
    """public.stock, or public.stock_pkey on public.stock."""
    name = readable(relation.name)
    return f"{name} on {readable(relation.table)}" if relation.is_index and relation.table != relation.name else name


def relation_changes(changes: Sequence[RelationChange]) -> Iterator[Block]:
    """Tables and indexes whose work changed, both windows beside each other."""
    rows = [each for each in changes if _differs(each)]
    tables = [each for each in rows if not each.relation.is_index][:_MOST]
    indexes = [each for each in rows if each.relation.is_index][:_MOST]
    if tables:
        yield Section("Tables", (_table_of_changes(tables, _OF_TABLES, "table"), Paragraph(_COUNTED, Tone.NOTE)))
    if indexes:
        yield Details("Indexes", (_table_of_changes(indexes, _OF_INDEXES, "index"),))


def _differs(change: RelationChange) -> bool:
    return any(getattr(change.value, name) != getattr(change.reference, name) for name in RELATION_COUNTERS)


def relation_shares(relations: Sequence[tuple[Relation, RelationUse]]) -> Iterator[Block]:
    """The busiest tables and indexes of one window."""
    tables = [each for each in relations if not each[0].is_index][:_MOST]
    indexes = [each for each in relations if each[0].is_index][:_MOST]
    if tables:
        yield Section("Tables", (_table(tables, _OF_TABLES, "table"), Paragraph(_COUNTED, Tone.NOTE)))
    if indexes:
        yield Details("Indexes", (_table(indexes, _OF_INDEXES, "index"),))


_Figures = tuple[tuple[str, tuple[str, ...], ColumnPlace], ...]
_OF_TABLES: Final[_Figures] = (
    ("sequential scans/s", ("sequential_scans",), ColumnPlace.MAIN),
    ("rows of these/s", ("sequential_rows",), ColumnPlace.MAIN),
    ("index scans/s", ("index_scans",), ColumnPlace.MAIN),
    ("rows written/s", ("inserted", "updated", "deleted"), ColumnPlace.MAIN),
    ("HOT updates/s", ("hot_updated",), ColumnPlace.MORE),
    ("blocks/s", ("blocks_hit", "blocks_read"), ColumnPlace.MORE),
    ("blocks read/s", ("blocks_read",), ColumnPlace.MORE),
)
_OF_INDEXES: Final[_Figures] = (
    ("scans/s", ("index_scans",), ColumnPlace.MAIN),
    ("entries/s", ("index_rows",), ColumnPlace.MAIN),
    ("blocks/s", ("blocks_hit", "blocks_read"), ColumnPlace.MAIN),
)


def _amount(use: RelationUse, names: tuple[str, ...]) -> float:
    return sum(float(getattr(use, name)) for name in names)


def _table_of_changes(rows: Sequence[RelationChange], figures: _Figures, title: str) -> Table:
    columns = [
        Column(
            title=name,
            cells=tuple(
                f"{render_rate(_amount(row.reference, of))} → {render_rate(_amount(row.value, of))}" for row in rows
            ),
            place=place,
        )
        for name, of, place in figures
    ]
    if title == "table":
        dead = tuple(f"{_dead(row.reference)} → {_dead(row.value)}" for row in rows)
        columns.append(Column(title="dead rows", cells=dead, place=ColumnPlace.MORE))
    names = Column(title=title, cells=tuple(name_relation(row.relation) for row in rows))
    return Table(names=names, columns=tuple(columns), breaks=_NARROWEST)


def _table(rows: Sequence[tuple[Relation, RelationUse]], figures: _Figures, title: str) -> Table:
    columns = [
        Column(title=name, cells=tuple(render_rate(_amount(use, of)) for _, use in rows), place=place)
        for name, of, place in figures
    ]
    if title == "table":
        columns.append(
            Column(
                title="dead rows", cells=tuple(render_rate(use.dead_rows) for _, use in rows), place=ColumnPlace.MORE
            )
        )
    names = Column(title=title, cells=tuple(name_relation(relation) for relation, _ in rows))
    return Table(names=names, columns=tuple(columns), breaks=_NARROWEST)


def _dead(use: RelationUse) -> str:
    """Nothing is read of a table that was not used."""
    return render_rate(use.dead_rows) if any(getattr(use, name) for name in RELATION_COUNTERS) else "-"


def name_holder(horizon: Horizon) -> str:
    """A session of the application reports (process 77), idle in transaction."""
    holder = horizon.holder
    name = readable(holder.name)
    if holder.kind is HolderKind.SESSION:
        state = f", {readable(holder.state)}" if holder.state else ""
        return f"a session of the application {name or '(without a name)'} (process {holder.pid}){state}"
    return f"the {holder.kind.value} {name or '(without a name)'}"


def horizon_blocks(horizons: Sequence[Horizon], title: str = "What held back vacuum") -> Iterator[Block]:
    """What held back vacuum, the one that held back most first."""
    rows = horizons[:_MOST]
    if not rows:
        return
    table = Table(
        names=Column(title="oldest snapshot", cells=tuple(begin(name_holder(row)) for row in rows)),
        columns=(
            Column(title="age", cells=tuple(render_count(row.age, "transaction") for row in rows)),
            Column(title="open for", cells=tuple(render_duration(row.held) if row.held else "" for row in rows)),
        ),
        breaks=_NARROWEST,
    )
    note = Paragraph("Vacuum cannot remove rows that died after the oldest snapshot was taken.", Tone.NOTE)
    yield Details(title, (table, note))


def change_json(change: RelationChange) -> Mapping[str, Any]:
    """A relation in both windows, for programs."""
    fields = " ".join(RELATION_FIELDS)
    return {
        **pick_fields(change.relation, "name table"),
        "value": pick_fields(change.value, fields),
        "reference": pick_fields(change.reference, fields),
    }


def use_json(relation: Relation, use: RelationUse) -> Mapping[str, Any]:
    """A relation in one window, for programs."""
    return {**pick_fields(relation, "name table"), **pick_fields(use, " ".join(RELATION_FIELDS))}


def horizon_json(horizon: Horizon) -> Mapping[str, Any]:
    """A holder of the oldest snapshot, for programs."""
    return pick_fields(horizon, "kind=holder.kind name=holder.name pid=holder.pid state=holder.state age held")
