"""Datasets in a running server: template databases that pgstrata made and marked; a clone is CREATE ... TEMPLATE.

The name of a clone, and of a dataset until it is complete, says which pgstrata made it, on which machine: the server
may complete `CREATE DATABASE` after that pgstrata was killed, when nobody can mark it any more.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from pgstrata.datasets.marker import observe_machine, observe_owner
from pgstrata.datasets.recipe import DataRecipe, built_again, setup_scripts
from pgstrata.errors import HostNotFitError, SqlError
from pgstrata.model.experiment import Cell, Environment
from pgstrata.model.server import Address, Build
from pgstrata.model.workload import Workload
from pgstrata.plan import workload_of
from pgstrata.ports.host import Clock, Command, Host
from pgstrata.ports.processes import observe_boot, start_times
from pgstrata.ports.server import Clone, Dataset, Sql

_PREFIX: Final = "pgstrata_"
_OWNED: Final = re.compile(
    r"pgstrata_(?:run|new)_(?P<machine>[0-9a-f]{8})_(?P<boot>[0-9a-f]{8})"
    r"_(?P<pid>[0-9a-f]+)_(?P<started>[0-9a-f]+)_[0-9a-f]{8}"
)
_FIRST_OF_USERS: Final = 16384
"""Lowest object id that is not the server's own (FirstNormalObjectId of access/transam.h)."""


def observe_coordinator(host: Host, state: str) -> str:
    """Eight digits that tell this machine from all others that may use the same server.

    Machines may have the same name and id, such as those made of one image: hence a number in the state folder is
    drawn for each. Containers that share that folder differ in their process ids' namespace.
    """
    file = f"{state}/coordinator"
    if not host.exists(file):
        host.write(file, secrets.token_hex(8).encode(), mode=0o644)
    namespace = host.run(Command(argv=("readlink", "/proc/self/ns/pid"))).text.strip()
    return _shorten(f"{host.read(file).hex()}/{observe_machine(host)}/{namespace}")


def _shorten(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


@dataclass(slots=True, kw_only=True)
class DatabaseDatasets:
    """Implements `ports.Datasets` in databases of one running server; only marked databases are ever dropped.

    `coordinator` is what `observe_coordinator` gives.
    """

    host: Host
    sql: Sql
    address: Address
    tools: Build
    workloads: Mapping[str, Workload]
    recipe: DataRecipe
    clock: Clock
    scratch: str
    coordinator: str
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
        partial = self._draw_name("new")
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
        database = self._draw_name("run")
        clone = Clone(dataset=dataset, location=database, database=database, folder=f"{self.scratch}/{database}")
        self.sql.execute(self.address, f"CREATE DATABASE {database} TEMPLATE {dataset.location};")
        self.host.make_folder(clone.folder)
        return clone

    def discard(self, clone: Clone) -> None:
        """DROP DATABASE, if it carries the marker."""
        self.host.remove_tree(clone.folder)
        if self._exists(clone.location):
            self._require_marker(clone.location)
            self.sql.execute(self.address, f"DROP DATABASE {clone.location};")

    def sweep(self) -> tuple[str, ...]:
        """Drop clones and incomplete datasets of a pgstrata of this machine that has ended.

        Returns a sentence for each of them, also for those that could not be dropped. SqlError: the server cannot be
        asked.
        """
        found = self.sql.query(self.address, f"SELECT datname FROM pg_database WHERE datname LIKE '{_PREFIX}%'")
        return tuple(self._sweep(name) for (name,) in found.rows if self._is_left_over(name))

    def _is_left_over(self, name: str) -> bool:
        owner = _OWNED.fullmatch(name)
        if owner is None or owner["machine"] != self.coordinator:
            return False
        pid = int(owner["pid"], 16)
        started = start_times(self.host, (pid,)).get(pid, "-1")
        return owner["boot"] != _shorten(observe_boot(self.host)) or int(owner["started"], 16) != int(started)

    def _sweep(self, name: str) -> str:
        try:
            if not self._is_marked(name) and not self._is_empty(name):
                return f"left alone, because it has no table pgstrata_marker: database {name}"
            self.sql.execute(self.address, f"DROP DATABASE {name};")
        except SqlError as error:
            return f"what a killed pgstrata left cannot be removed: database {name}: {error.what}"
        return f"removed what a killed pgstrata left: database {name}"

    def _draw_name(self, kind: str) -> str:
        owner = observe_owner(self.host)
        parts = (self.coordinator, _shorten(owner.boot), f"{owner.pid:x}", f"{owner.started:x}", secrets.token_hex(4))
        return f"{_PREFIX}{kind}_{'_'.join(parts)}"

    def _exists(self, name: str) -> bool:
        found = self.sql.query(self.address, f"SELECT count(*) AS n FROM pg_database WHERE datname = '{name}'")
        return found.value() == "1"

    def _is_marked(self, name: str) -> bool:
        """Whether the database carries the table that pgstrata puts into everything it makes."""
        return self._count(name, "pg_class WHERE relname = 'pgstrata_marker' AND relkind = 'r'") == 1

    def _is_empty(self, name: str) -> bool:
        """Whether nobody has made anything in the database, as in one that was to become a dataset."""
        catalogues = ("pg_class", "pg_proc", "pg_type", "pg_namespace")
        return not any(self._count(name, f"{catalogue} WHERE oid >= {_FIRST_OF_USERS}") for catalogue in catalogues)

    def _count(self, name: str, rows: str) -> int:
        return int(self.sql.query(self.address.with_database(name), f"SELECT count(*) AS n FROM {rows}").value())

    def _require_marker(self, name: str) -> None:
        """HostNotFitError unless the database is marked."""
        if not self._is_marked(name):
            raise HostNotFitError(
                "this database has the name of one of pgstrata's, but not its marker: it is not touched",
                where=f"database {name}",
                remedy="rename or drop it yourself",
            )
