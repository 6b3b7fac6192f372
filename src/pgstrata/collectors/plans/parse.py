"""Plans as evidence, and what makes one plan another. Pure.

Evidence is a text: `statement (planned with WHAT)`, then its lines behind `> `, what EXPLAIN said behind `| ` as it is,
or why there is no plan behind `! `.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from pgstrata.diagnosis.queries import JIT
from pgstrata.errors import ParseError
from pgstrata.model.query_plans import PlannedWith, QueryPlan
from pgstrata.ports.collector import PLANS

_HEAD: Final = re.compile(r"statement \(planned with (?P<with>[a-z]+)\)")
# a node's line ends like "(cost=0.29..8.31 rows=1 width=97)"
_NODE: Final = re.compile(r"(?P<indent>\s*)(?:->\s+)?(?P<node>\S.*?)\s+\(cost=[^()]*\)")
# "InitPlan 1 (returns $0)" up to 16, "InitPlan 1" from 17 on; what is numbered has no other name
_PART: Final = re.compile(r"\s*(?P<part>InitPlan|SubPlan|CTE (?P<name>.+?))(?: \d+)?(?: \(returns .*\))?")
_WORKERS: Final = re.compile(r"\s*Workers Planned: (?P<number>\d+)")
_JIT: Final = "JIT:"


@dataclass(slots=True, kw_only=True)
class _Entry:
    planned_with: PlannedWith
    statement: list[str] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    error: list[str] = field(default_factory=list)


def render_plans(plans: Iterable[QueryPlan]) -> bytes:
    """Plans as evidence; their shapes are not in it, because they are read from their texts."""
    lines: list[str] = []
    for plan in plans:
        lines.append(f"statement (planned with {plan.planned_with})")
        for sign, text in ((">", plan.statement), ("|", plan.text), ("!", plan.error)):
            lines += [f"{sign} {line}" for line in text.splitlines() if text]
    return "".join(f"{line}\n" for line in lines).encode()


def parse_plans(evidence: bytes) -> tuple[QueryPlan, ...]:
    """Plans from evidence, with their shapes.

    Raises:
        ParseError: a line has an unknown shape.
    """
    return tuple(_plan(entry) for entry in _entries(evidence.decode("utf-8", "replace")))


def parse_shape(text: str) -> tuple[str, ...]:
    """What makes a plan another one, from what EXPLAIN says in its format TEXT, costs included.

    One line for each node, indented by its depth; below a Gather the number of workers planned; last JIT.
    """
    found: list[tuple[int, str]] = []
    for line in text.splitlines():
        if match := _NODE.fullmatch(line):
            found.append((len(match["indent"]), match["node"]))
        elif match := _PART.fullmatch(line):
            found.append((len(line) - len(line.lstrip()), match["part"]))
        elif match := _WORKERS.fullmatch(line):
            found.append((len(line) - len(line.lstrip()), f"{match['number']} workers planned"))
        elif line.rstrip() == _JIT:
            found.append((0, JIT))
    return tuple(_indented(found))


def _indented(lines: Iterable[tuple[int, str]]) -> Iterator[str]:
    """Depths instead of columns: these differ between versions."""
    above: list[int] = []
    for column, text in lines:
        while above and above[-1] >= column:
            above.pop()
        yield "  " * len(above) + text
        above.append(column)


def _plan(entry: _Entry) -> QueryPlan:
    statement, text, error = ("\n".join(lines) for lines in (entry.statement, entry.text, entry.error))
    return QueryPlan(
        statement=statement, planned_with=entry.planned_with, shape=parse_shape(text), text=text, error=error
    )


def _entries(text: str) -> list[_Entry]:
    found: list[_Entry] = []
    for line in text.split("\n")[:-1]:
        head = _HEAD.fullmatch(line)
        if head is not None:
            found.append(_Entry(planned_with=_planned_with(head["with"])))
            continue
        sign, content = line[:1], line[2:]
        if not found or line[1:2] != " " or sign not in {">", "|", "!"}:
            raise ParseError(f"unknown shape of a line: {line[:200]!r}", where=PLANS)
        entry = found[-1]
        {">": entry.statement, "|": entry.text, "!": entry.error}[sign].append(content)
    return found


def _planned_with(text: str) -> PlannedWith:
    try:
        return PlannedWith(text)
    except ValueError:
        raise ParseError(f"plans with {text!r} are not known", where=PLANS) from None
