"""Datasets in a running server: template databases that pgstrata made and marked; a clone is CREATE ... TEMPLATE."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from pgstrata.datasets.marker import observe_machine
from pgstrata.datasets.recipe import DataRecipe, built_again, setup_scripts
from pgstrata.errors import HostNotFitError, SqlError
from pgstrata.model.experiment import Cell, Environment
from pgstrata.model.server import Address, Build
from pgstrata.model.workload import Workload
from pgstrata.plan import workload_of
from pgstrata.ports.host import Clock, Host
from pgstrata.ports.server import Clone, Dataset, Sql

_PREFIX: Final = "pgstrata_"
_IDENTIFIER_LIMIT: Final = 63


@dataclass(slots=True, kw_only=True)
class DatabaseDatasets:
    """Implements `ports.Datasets` in databases of one running server; only marked databases are ever dropped."""

    host: Host
    sql: Sql
    address: Address
    tools: Build
    workloads: Mapping[str, Workload]
    recipe: DataRecipe
    clock: Clock
    scratch: str
    study: str
    _known: dict[str, Dataset] = field(init=False, default_factory=dict)

    def ensure(self, environment: Environment, build: Build, cell: Cell) -> Dataset:  # noqa: ARG002 - the Protocol's
        """The template database; built, verified and marked if there is none yet."""
        apart = (*setup_scripts(environment, cell), *built_again(environment))
        digest = hashlib.sha256("\0".join(apart).encode()).hexdigest()[:8] if apart else "plain"
        name = f"{_PREFIX}{workload_of(cell, self.workloads).data}_s{cell.scale}_{digest}"
        if name not in self._known:
            started = self.clock.monotonic()
            if not self._exists(name):
                self._build(name, environment, cell)
            self._require_marker(name)
            size = self.sql.query(self.address, f"SELECT pg_database_size('{name}') AS size").value()
            self._known[name] = Dataset(
                identity=name, location=name, bytes=int(size), seconds_building=self.clock.monotonic() - started
            )
        return self._known[name]

    def _build(self, name: str, environment: Environment, cell: Cell) -> None:
        partial = f"{name}_{secrets.token_hex(4)}"[:_IDENTIFIER_LIMIT]
        self.sql.execute(self.address, f"CREATE DATABASE {partial};")
        address = self.address.with_database(partial)
        try:
            self.recipe.fill(self.host, self.sql, self.tools, address, environment, cell)
            self.sql.execute(self.address, f"ALTER DATABASE {partial} RENAME TO {name};")
        except BaseException:
            # made a moment ago under a name drawn at random: it is ours with or without the marker's table
            with suppress(SqlError):
                self.sql.execute(self.address, f"DROP DATABASE IF EXISTS {partial};")
            raise

    def clone(self, dataset: Dataset, name: str, folder: str = "", wal: str = "") -> Clone:  # noqa: ARG002 - the Protocol's
        """CREATE DATABASE ... TEMPLATE."""
        # the machine is part of the name: the same study folder on two machines must not share a database
        digest = hashlib.sha256(f"{observe_machine(self.host)}/{self.study}/{name}".encode()).hexdigest()[:12]
        database = f"{_PREFIX}run_{digest}"
        clone = Clone(dataset=dataset, location=database, database=database, folder=f"{self.scratch}/{digest}")
        if self._exists(database):
            self.discard(clone)
        self.sql.execute(self.address, f"CREATE DATABASE {database} TEMPLATE {dataset.location};")
        self.host.make_folder(clone.folder)
        return clone

    def discard(self, clone: Clone) -> None:
        """DROP DATABASE, if it carries the marker."""
        self.host.remove_tree(clone.folder)
        if self._exists(clone.location):
            self._require_marker(clone.location)
            self.sql.execute(self.address, f"DROP DATABASE {clone.location};")

    def _exists(self, name: str) -> bool:
        found = self.sql.query(self.address, f"SELECT count(*) AS n FROM pg_database WHERE datname = '{name}'")
        return found.value() == "1"

    def _require_marker(self, name: str) -> None:
        """HostNotFitError unless the database carries the table that pgstrata puts into everything it makes."""
        found = self.sql.query(
            self.address.with_database(name),
            "SELECT count(*) AS n FROM pg_class WHERE relname = 'pgstrata_marker' AND relkind = 'r'",
        )
        if found.value() != "1":
            raise HostNotFitError(
                "this database has the name of one of pgstrata's, but not its marker: it is not touched",
                where=f"database {name}",
                remedy="rename or drop it yourself",
            )
