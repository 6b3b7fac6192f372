"""How the data of a workload come into an empty database: loaded, set up, verified, frozen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pgstrata.errors import ServerFailedError, SqlError
from pgstrata.model.experiment import Cell, ControlKind, Environment
from pgstrata.model.server import Address, Build
from pgstrata.ports.host import Host
from pgstrata.ports.server import Sql

_NO_PRIVILEGE: Final = "42501"
"""insufficient_privilege"""
_PREWARMING: Final = """\
SELECT pg_catalog.count(*) AS n FROM pg_catalog.pg_available_extensions
WHERE name OPERATOR(pg_catalog.=) 'pg_prewarm'"""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataRecipe:
    """How the data of a workload are made.

    `load` makes them in an empty database, with programs that are on the given host; `verify` gives the statement that
    checks them, for a cell; `marker` is a script.
    """

    load: Callable[[Host, Build, Address, Cell], None]
    verify: Callable[[Cell], str]
    marker: str

    def fill(self, host: Host, sql: Sql, tools: Build, address: Address, environment: Environment, cell: Cell) -> None:
        """Make, verify and freeze the data in an empty database; SqlError, ServerFailedError."""
        sql.execute(address, self.marker)
        found = sql.query(address, _PREWARMING)
        if found.value() == "1":
            _allow_prewarming(sql, address)
        self.load(host, tools, address, cell)
        for script in setup_scripts(environment, cell):
            sql.execute(address, script)
        _verify_counts(sql, address, self.verify(cell))
        sql.execute(address, "VACUUM (FREEZE, ANALYZE);")


def _allow_prewarming(sql: Sql, address: Address) -> None:
    """Create pg_prewarm; without the privilege, relations are warmed by reading them."""
    try:
        sql.execute(address, "CREATE EXTENSION pg_prewarm;")
    except SqlError as error:
        if error.sqlstate != _NO_PRIVILEGE:
            raise


def built_again(environment: Environment) -> tuple[str, ...]:
    """What sets the data of a control by rebuild apart: they are made as the baseline's, a second time."""
    return (str(ControlKind.REBUILD),) if environment.control is ControlKind.REBUILD else ()


def setup_scripts(environment: Environment, cell: Cell) -> tuple[str, ...]:
    """SQL that runs once on the dataset before it is frozen: the cell's first, then the environment's."""
    return tuple(options["setup_sql"] for options in (cell.options, environment.options) if "setup_sql" in options)


def _verify_counts(sql: Sql, address: Address, statement: str) -> None:
    """Every row of the check must say ok; ServerFailedError names those that do not."""
    rows = tuple(sql.query(address, statement).records())
    wrong = tuple(", ".join(f"{k} {v}" for k, v in row.items()) for row in rows if row.get("ok") != "t")
    if wrong or not rows:
        raise ServerFailedError(
            "the dataset is not what it must be",
            where=address.database,
            details=wrong,
            remedy="build it again; report this if it happens twice",
        )
