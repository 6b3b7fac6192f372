"""Drafts of what pg_stat_statements of each version shows: columns and rows of real servers, without the servers."""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from pgstrata.app import draft
from pgstrata.model.draft import LOOK
from pgstrata.ports.server import QueryResult

CAPTURES = Path(__file__).parents[1] / "captures" / "pg_stat_statements"
CASES = sorted(CAPTURES.glob("*/*.json"))
IDS = [f"{case.parent.name}-{case.stem}" for case in CASES]
UNTOLD = "this server does not distinguish statements in functions from those of clients"
COLUMNS = ("given", "schema", "table", "column", "type", "numeric", "whole", "distinct", "low", "high", "unique")
FACTS = {
    "orders": [("id", "integer", "-1", "1", "5000", "t"), ("customer", "integer", "500", "1", "500", "f"),
               ("kind", "smallint", "3", "0", "2", "f"), ("amount", "numeric", "90", "0", "92", "f")],
    "customers": [("id", "integer", "-1", "1", "500", "t")],
}  # fmt: skip


class Captured:
    """Answers as the server of a capture did; a statement that names a column that is not there is refused."""

    def __init__(self, capture):
        self.capture = capture

    def query(self, _, statement):
        match statement:
            case _ if "default_transaction_read_only" in statement:
                return table("said", ["on"])
            case _ if "pg_database_size" in statement:
                number = self.capture["server"]
                return QueryResult(
                    columns=("name", "version", "number", "size"), rows=(("shop", "?", number, "9000000"),)
                )
            case _ if "pg_extension" in statement:
                return table("name", ["public"])
            case _ if "FROM pg_catalog.pg_attribute WHERE" in statement:
                return table("name", self.capture["columns"])
            case _ if "FROM public.pg_stat_statements AS s" in statement:
                assert set(re.findall(r"\bs\.(\w+)", statement)) <= set(self.capture["columns"])
                return self.rows(told="s.toplevel AS top" in statement)
            case _:
                return QueryResult(columns=COLUMNS, rows=tuple(facts(statement)))

    def rows(self, *, told):
        rows = self.capture["rows"]
        assert told == any(row["top"] == "f" for row in rows)
        return QueryResult(columns=tuple(rows[0]), rows=tuple(tuple(row.values()) for row in rows))


def table(column, values):
    return QueryResult(columns=(column,), rows=tuple((value,) for value in values))


def facts(statement):
    for number, name in re.findall(r"""\((\d+), E?'"(\w+)"'\)""", statement):
        for column, type_, distinct, low, high, unique in FACTS.get(name, ()):
            whole = "f" if type_ == "numeric" else "t"
            yield number, "public", name, column, type_, "t", whole, distinct, low, high, unique


@pytest.fixture
def drafted(tmp_path, monkeypatch):
    def make(case):
        sql = Captured(json.loads(case.read_text()))

        @contextmanager
        def machine(_):
            yield SimpleNamespace(here=None, servers=SimpleNamespace(client_tools=lambda tls: None))

        monkeypatch.setattr(draft, "open_machine", machine)
        monkeypatch.setattr(draft, "PsqlSql", lambda *_: sql)
        folder, made = draft.draft_workload("host=/tmp dbname=shop", tmp_path / "shop", 20)
        return made, {path.name: path.read_text() for path in (folder / "scripts").iterdir()}

    return make


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_the_view_of_every_version_gives_scripts(drafted, case):
    _, scripts = drafted(case)
    texts = "".join(scripts.values())
    assert "UPDATE orders SET amount = amount + :amount WHERE id = :id;" in texts
    assert "WHERE customer BETWEEN :customer AND :customer_2 AND kind = :kind;" in texts
    assert "\\set id random(1, 5000)\n" in texts
    assert f"{LOOK} limit is the number of rows" in texts
    statements = [line for text in scripts.values() for line in text.splitlines() if not line.startswith(("--", "\\"))]
    assert not any("?" in line or re.search(r"\$\d", line) for line in statements)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_statements_in_functions_are_left_out_where_the_view_tells_them(drafted, case):
    made, _ = drafted(case)
    within = [left.text for left in made.left_out if left.reason.startswith("it runs in a function")]
    told = "toplevel" in json.loads(case.read_text())["columns"]
    assert bool(within) == told
    assert (UNTOLD in made.warnings) == (not told)


def test_captures_have_every_shape_of_the_view():
    shapes = {
        frozenset({"total_time", "total_exec_time", "toplevel"} & set(json.loads(case.read_text())["columns"]))
        for case in CASES
    }
    assert shapes == {
        frozenset({"total_time"}),
        frozenset({"total_exec_time"}),
        frozenset({"total_exec_time", "toplevel"}),
    }
