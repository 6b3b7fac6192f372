"""Datasets in a running server: template databases that pgstrata made and marked; a clone is CREATE ... TEMPLATE."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from pgstrata.datasets.cluster import (
    DataRecipe,
    built_again,
    has_extension,
    setup_scripts,
    verify_counts,
)
from pgstrata.datasets.marker import observe_machine
from pgstrata.errors import HostNotFitError, SqlError
from pgstrata.model.experiment import Cell, Environment
from pgstrata.model.server import Address, Build
from pgstrata.model.workload import Workload
from pgstrata.plan import workload_of
from pgstrata.ports.host import Clock, Host
from pgstrata.ports.server import Clone, Dataset, Sql

_PREFIX: Final = "pgstrata_"
_IDENTIFIER_LIMIT: Final = 63


class DatabaseDatasets:
    """Implements `ports.Datasets` in databases of one running server; only marked databases are ever dropped."""

    def __init__(  # noqa: PLR0913 - what it works with, each named
        self,
        *,
        host: Host,
        sql: Sql,
        address: Address,
        tools: Build,
        workloads: Mapping[str, Workload],
        recipe: DataRecipe,
        clock: Clock,
        scratch: str,
        study: str,
    ) -> None:
        self._host = host
        self._sql = sql
        self._address = address
        self._tools = tools
        self._workloads = workloads
        self._recipe = recipe
        self._clock = clock
        self._scratch = scratch
        self._study = study
        self._known: dict[str, Dataset] = {}

    def ensure(self, environment: Environment, build: Build, cell: Cell) -> Dataset:  # noqa: ARG002 - the Protocol's
        """The template database; built, verified and marked if there is none yet."""
        scripts = setup_scripts(environment, cell)
        apart = (*scripts, *built_again(environment))
        digest = hashlib.sha256("\0".join(apart).encode()).hexdigest()[:8] if apart else "plain"
        name = f"{_PREFIX}{workload_of(cell, self._workloads).data}_s{cell.scale}_{digest}"
        if name not in self._known:
            started = self._clock.monotonic()
            if not self._exists(name):
                self._build(name, cell, scripts)
            self._require_marker(name)
            size = self._sql.query(self._address, f"SELECT pg_database_size('{name}') AS size").value()
            self._known[name] = Dataset(
                identity=name, location=name, bytes=int(size), seconds_building=self._clock.monotonic() - started
            )
        return self._known[name]

    def _build(self, name: str, cell: Cell, scripts: tuple[str, ...]) -> None:
        partial = f"{name}_{secrets.token_hex(4)}"[:_IDENTIFIER_LIMIT]
        self._sql.execute(self._address, f"CREATE DATABASE {partial};")
        address = self._address.with_database(partial)
        try:
            self._sql.execute(address, self._recipe.marker)
            self._prewarm_if_allowed(address)
            self._recipe.load(self._host, self._tools, address, cell)
            for script in scripts:
                self._sql.execute(address, script)
            verify_counts(self._sql, address, self._recipe.verify(cell))
            self._sql.execute(address, "VACUUM (FREEZE, ANALYZE);")
            self._sql.execute(self._address, f"ALTER DATABASE {partial} RENAME TO {name};")
        except BaseException:
            # made a moment ago under a name drawn at random: it is ours with or without the marker's table
            with suppress(SqlError):
                self._sql.execute(self._address, f"DROP DATABASE IF EXISTS {partial};")
            raise

    def _prewarm_if_allowed(self, address: Address) -> None:
        if has_extension(self._sql, address, "pg_prewarm"):
            try:
                self._sql.execute(address, "CREATE EXTENSION pg_prewarm;")
            except SqlError:
                return  # not a superuser: relations are warmed by reading them

    def clone(self, dataset: Dataset, name: str, folder: str = "", wal: str = "") -> Clone:  # noqa: ARG002 - the Protocol's
        """CREATE DATABASE ... TEMPLATE."""
        # the machine is part of the name: the same study folder on two machines must not share a database
        digest = hashlib.sha256(f"{observe_machine(self._host)}/{self._study}/{name}".encode()).hexdigest()[:12]
        database = f"{_PREFIX}run_{digest}"
        clone = Clone(dataset=dataset, location=database, database=database, folder=f"{self._scratch}/{digest}")
        if self._exists(database):
            self.discard(clone)
        self._sql.execute(self._address, f"CREATE DATABASE {database} TEMPLATE {dataset.location};")
        self._host.make_folder(clone.folder)
        return clone

    def discard(self, clone: Clone) -> None:
        """DROP DATABASE, if it carries the marker."""
        self._host.remove_tree(clone.folder)
        if self._exists(clone.location):
            self._require_marker(clone.location)
            self._sql.execute(self._address, f"DROP DATABASE {clone.location};")

    def _exists(self, name: str) -> bool:
        found = self._sql.query(self._address, f"SELECT count(*) AS n FROM pg_database WHERE datname = '{name}'")
        return found.value() == "1"

    def _require_marker(self, name: str) -> None:
        """HostNotFitError unless the database carries the table that pgstrata puts into everything it makes."""
        found = self._sql.query(
            self._address.with_database(name),
            "SELECT count(*) AS n FROM pg_class WHERE relname = 'pgstrata_marker' AND relkind = 'r'",
        )
        if found.value() != "1":
            raise HostNotFitError(
                "this database has the name of one of pgstrata's, but not its marker: it is not touched",
                where=f"database {name}",
                remedy="rename or drop it yourself",
            )
