"""Takes what pg_stat_statements has counted of the statements of a database, and never resets it.

The statements that ask for it lie beside as `sql/statements.VERSION.sql`: the highest that is not newer than the server
is used, and an older one where the extension is an older one. It is used where its library is loaded: in servers of our
own where the experiment loads it in all of them, in running ones where somebody did. Constants, which servers before 16
keep in statements that are no query, are replaced on the server.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pgstrata.collectors.queries.parse import parse_window
from pgstrata.collectors.statements import constants_expression, statements_for
from pgstrata.errors import SqlError
from pgstrata.model.experiment import Experiment, ServerKind
from pgstrata.model.metrics import Measurement
from pgstrata.model.queries import QueryCounts
from pgstrata.ports.collector import Subject, Window
from pgstrata.ports.server import Table

EXTENSION: Final = "pg_stat_statements"
# A library that is loaded has its own settings, which every user may see.
_CREATE: Final = (
    f"SELECT 'CREATE EXTENSION IF NOT EXISTS {EXTENSION}' FROM pg_settings WHERE name = '{EXTENSION}.max' \\gexec\n"
)
_WHERE: Final = (
    "SELECT quote_ident(n.nspname) AS schema FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace "
    f"WHERE e.extname = '{EXTENSION}'"
)
_UNDEFINED: Final = frozenset({"42703", "42P01", "42883"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """In which servers the extension is looked for: in our own ones, in those that somebody runs."""

    own: bool = False
    running: bool = False


class QueriesCollector:
    """Implements `ports.Collector` and `ports.CountsQueries` with pg_stat_statements.

    Args:
        use: in which servers.
    """

    def __init__(self, use: Use | None = None) -> None:
        self._use = use or Use()

    @property
    def name(self) -> str:
        return "queries"

    def prepare(self, subject: Subject) -> None:
        if not self._concerns(subject):
            return
        try:
            subject.sql.execute(subject.server.address, _CREATE)
        except SqlError:
            # not allowed, or not installed: without the extension there is nothing to capture
            return

    def capture(self, subject: Subject) -> bytes:
        if not self._concerns(subject):
            return b""
        address = subject.server.address
        found = subject.sql.query(address, _WHERE).rows
        if not found:
            return b""
        table = _query(subject, found[0][0])
        return "".join("\t".join(row) + "\n" for row in (table.columns, *table.rows)).encode() if table else b""

    def parse(self, before: bytes, after: bytes, window: Window) -> tuple[Measurement, ...]:  # noqa: ARG002
        return ()

    def parse_queries(self, before: bytes, after: bytes, window: Window) -> QueryCounts | None:
        return parse_window(before, after, window)

    def _concerns(self, subject: Subject) -> bool:
        running = subject.server.environment.server.kind is ServerKind.DSN
        return self._use.running if running else self._use.own


def use_of_extension(experiment: Experiment | None) -> Use:
    """Nowhere without diagnosis or texts; in servers of our own only where all load it: it has its cost."""
    if experiment is None or not (experiment.diagnosis and experiment.query_text):
        return Use()
    own = [each for each in experiment.environments if each.server.kind is not ServerKind.DSN]
    return Use(own=all(_loads(each.settings) for each in own), running=True)


def _loads(settings: Mapping[str, str]) -> bool:
    libraries = settings.get("shared_preload_libraries", "").split(",")
    return any(library.strip(" '\"").rpartition("/")[2].removesuffix(".so") == EXTENSION for library in libraries)


def _query(subject: Subject, schema: str) -> Table | None:
    """The answer to the first statement whose columns the extension has; None where it may not or cannot be asked."""
    version = subject.server.build.version.number
    for _, statement in statements_for(__package__, "statements", version):
        text = statement.replace("@schema@", schema).replace("@constant@", constants_expression())
        try:
            return subject.sql.query(subject.server.address, text)
        except SqlError as error:
            if error.sqlstate not in _UNDEFINED:
                return None
    return None
