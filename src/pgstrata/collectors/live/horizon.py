"""What keeps vacuum from removing dead rows: the row of one look. Pure."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from pgstrata.collectors.lines import whole_lines
from pgstrata.errors import ParseError
from pgstrata.model.archive import Holder, HolderKind, Horizon


@cache
def horizon_statement() -> str:
    """What a server is asked; it answers with at most one row."""
    return (files(__package__) / "sql" / "horizon.sql").read_text("utf-8")


def read_horizon(rows: bytes) -> Horizon | None:
    """The oldest snapshot; None where there is none. ParseError where the row has an unknown shape."""
    for line in whole_lines(rows):
        words = line.split("\t")
        try:
            kind, name, pid, state, age, held = words
            holder = Holder(kind=HolderKind(kind), name=name, pid=int(pid), state=state)
            return Horizon(holder=holder, age=int(age), held=max(0, int(held)))
        except ValueError:
            raise ParseError(f"unknown shape of the oldest snapshot: {line[:200]!r}") from None
    return None
