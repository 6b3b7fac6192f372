"""Plans of a live server's statements for parameters of any value, by EXPLAIN (GENERIC_PLAN). Pure.

Nothing is executed. Texts are those of pg_stat_statements, which have $1, $2 ... for constants. Only the nodes of a
plan are kept, with their relations and indexes: no conditions, costs or estimates.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

from pgstrata.collectors.lines import whole_lines
from pgstrata.collectors.live.statements import EXPLAIN
from pgstrata.collectors.plans import parse_shape
from pgstrata.errors import ParseError
from pgstrata.libpq import quote_literal
from pgstrata.model.query_plans import LivePlan, PlanProblem

GENERIC_SINCE: Final = 160000
"""Version from which on EXPLAIN takes a statement with parameters."""
NO_PLAN: Final = "kind"
"""What is in the way of a statement that has no plan, such as VACUUM or COPY."""
_LONGEST: Final = 8000
_MOST_LINES: Final = 100
_LONGEST_LINE: Final = 200
_HASHED: Final = 12
_COLUMNS: Final = 3
# pg_stat_statements writes interval $1 for interval '1 day', which no parser takes
_TYPED: Final = re.compile(r"\b(interval|date|time|timestamp|timestamptz)\s+(\$[0-9]+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explainable:
    """The text of a statement as EXPLAIN takes it, or what is in the way: a `PlanProblem` or `NO_PLAN`."""

    text: str = ""
    problem: str = ""


@cache
def _template() -> str:
    text = (files(__package__) / "sql" / "explainable.sql").read_text("utf-8")
    return text.replace("@longest@", str(_LONGEST))


def explainable_statement(identities: Iterable[str], schema: str) -> str:
    """Texts of statements with these ids; `schema` is that of pg_stat_statements."""
    ids = quote_literal(" ".join(sorted(identities)))
    return _template().replace("@ids@", ids).replace("@schema@", schema)


def read_explainable(rows: bytes, asked: Iterable[str]) -> Mapping[str, Explainable]:
    """An entry for each id that was asked for; ParseError where a row has an unknown shape."""
    found = {identity: Explainable(problem=PlanProblem.TEXT) for identity in asked}
    for line in whole_lines(rows):
        words = line.split("\t")
        if len(words) != _COLUMNS or bool(words[1]) == bool(words[2]):
            raise ParseError(f"unknown shape of a text of pg_stat_statements: {line[:200]!r}")
        found[words[0]] = Explainable(text=words[2], problem=words[1])
    return found


def explain_statement(text: str) -> str:
    """What a server is asked for the plan of a statement."""
    castable = _TYPED.sub(r"\2::\1", text)
    return f"{EXPLAIN} {castable}"


def read_generic_plan(rows: bytes) -> LivePlan:
    """The plan that a server gave; ParseError where it has no node."""
    text = rows.decode("utf-8", "replace")
    shape = parse_shape(text)
    if not shape:
        raise ParseError(f"unknown shape of a plan: {text[:200]!r}")
    return outline_plan(shape)


def outline_plan(shape: Sequence[str]) -> LivePlan:
    """A plan of these nodes, as `parse_shape` gives them; of very many the first are kept, and all tell it apart."""
    hashed = hashlib.sha256("\n".join(shape).encode("utf-8", "replace")).hexdigest()[:_HASHED]
    left = len(shape) - _MOST_LINES
    outline = [line[:_LONGEST_LINE] for line in shape[:_MOST_LINES]]
    if left > 0:
        outline.append(f"... and {left} more")
    return LivePlan(shape=hashed, outline=tuple(outline))
