"""Takes what pg_stat_statements has counted of the statements of a database, and never resets it.

What is asked lies beside as `sql/statement.sql`, its columns as `sql/columns.VERSION.sql`: the highest that is not
newer than the server, or an older one where the extension is an older one. It is used where its library is loaded: in
servers of our own where the experiment loads it in all of them, in running ones where somebody did. Constants, which
servers before 16 keep in statements that are no query, are replaced on the server.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Final

from pgstrata.collectors.extensions import Use, create_extension, find_schema, use_where_all_load
from pgstrata.collectors.queries.parse import parse_window
from pgstrata.collectors.statements import constants_expression, query_first, statements_for
from pgstrata.errors import SqlError
from pgstrata.model.experiment import Experiment
from pgstrata.model.metrics import Measurement
from pgstrata.model.queries import QueryCounts
from pgstrata.ports.collector import CaptureSubject, Window
from pgstrata.ports.server import QueryResult

EXTENSION: Final = "pg_stat_statements"


class QueriesCollector:
    """Implements `ports.Collector` and `ports.CountsQueries` with pg_stat_statements.

    Args:
        use: in which servers.
    """

    name = "queries"
    with_clients = False

    def __init__(self, use: Use | None = None) -> None:
        self._use = use or Use()

    def prepare(self, subject: CaptureSubject) -> None:
        if self._use.concerns(subject):
            create_extension(subject, EXTENSION, f"{EXTENSION}.max")

    def capture(self, subject: CaptureSubject) -> bytes:
        if not self._use.concerns(subject):
            return b""
        schema = find_schema(subject, EXTENSION)
        table = _query(subject, schema) if schema else None
        return "".join("\t".join(row) + "\n" for row in (table.columns, *table.rows)).encode() if table else b""

    def parse(self, before: bytes, after: bytes, window: Window) -> tuple[Measurement, ...]:  # noqa: ARG002
        return ()

    def parse_queries(self, before: bytes, after: bytes, window: Window) -> QueryCounts | None:
        return parse_window(before, after, window)


def use_of_extension(experiment: Experiment | None) -> Use:
    """Nowhere without diagnosis or texts."""
    if experiment is None or not (experiment.diagnosis and experiment.query_text):
        return Use()
    return use_where_all_load(experiment, EXTENSION)


def _query(subject: CaptureSubject, schema: str) -> QueryResult | None:
    """The answer to the first statement whose columns the extension has; None where it may not or cannot be asked."""
    whole = (files(__package__) / "sql" / "statement.sql").read_text("utf-8")
    whole = whole.replace("@constant@", constants_expression())
    known = statements_for(__package__, "columns", subject.server.build.version.number)
    asked = [(number, whole.replace("@columns@", text.rstrip()).replace("@schema@", schema)) for number, text in known]
    try:
        return query_first(subject, asked)[1]
    except SqlError:
        return None
