"""Datasets in a running server: template databases that pgstrata made and marked; a clone is CREATE ... TEMPLATE.

The name of a clone, and of a dataset until it is complete, says which pgstrata made it, on which machine: the server
may complete `CREATE DATABASE` after that pgstrata was killed, when nobody can mark it any more.

Name and marker can be forged by every role that may create databases, and whoever owns a database decides what runs in
it: triggers, views before the catalogues in the search path. So none is entered that another role owns. Names in the
statements are qualified, operators too, for the search path of the database where pgstrata logs in is somebody else's.
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
from pgstrata.datasets.recipe import DataRecipe, built_again, digest_of, setup_scripts
from pgstrata.errors import HostNotFitError, SqlError
from pgstrata.model.experiment import Cell, Environment
from pgstrata.model.server import Address, Build
from pgstrata.model.workload import DataKind, Workload
from pgstrata.plan import data_of
from pgstrata.ports.host import Clock, Command, Host, observe_boot, start_times
from pgstrata.ports.server import Clone, Dataset, Sql
from pgstrata.ports.steps import Steps

_PREFIX: Final = "pgstrata_"
_OWNED: Final = re.compile(
    r"pgstrata_(?:run|new)_(?P<machine>[0-9a-f]{8})_(?P<boot>[0-9a-f]{8})"
    r"_(?P<pid>[0-9a-f]+)_(?P<started>[0-9a-f]+)_[0-9a-f]{8}"
)
_FIRST_OF_USERS: Final = 16384
"""Lowest object id that is not the server's own (FirstNormalObjectId of access/transam.h)."""
_FIND: Final = """\
SELECT d.datname AS name, pg_catalog.pg_get_userbyid(d.datdba) AS owner, r.oid IS NOT NULL AS ours
FROM pg_catalog.pg_database AS d
LEFT JOIN pg_catalog.pg_roles AS r
    ON r.oid OPERATOR(pg_catalog.=) d.datdba AND r.rolname OPERATOR(pg_catalog.=) current_user
WHERE d.datname OPERATOR(pg_catalog."""
"""Asks for what `_Database` holds; operator, bracket and operand are to be appended."""


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


_SUPERUSER: Final = "SELECT pg_catalog.current_setting('is_superuser') AS said"
_CLOSE: Final = """\
SELECT 'REVOKE CREATE ON SCHEMA public FROM PUBLIC' FROM pg_catalog.pg_namespace
WHERE nspname OPERATOR(pg_catalog.=) 'public' AND pg_catalog.pg_has_role(nspowner, 'USAGE') \\gexec
"""
"""Before 15 every user may make functions in the schema public of a new database, even some that are called there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Database:
    """A database as the server's catalogue has it; it is `ours` if the very role owns it that pgstrata connects as.

    Being a member of the owner, or a superuser, is not enough.
    """

    name: str
    owner: str
    ours: bool

    @property
    def stranger(self) -> str:
        """Why a database that is not ours is left alone."""
        return f"it belongs to the role {self.owner}, not to the one that pgstrata connects as"


@dataclass(slots=True, kw_only=True)
class DatabaseDatasets:
    """Implements `ports.Datasets` in databases of one running server.

    Only databases of the role that pgstrata connects as are entered, and only marked ones among them ever dropped.

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
        kind = data_of(cell, self.workloads)
        apart = (*setup_scripts(environment, cell), *built_again(environment), *digest_of(kind, cell))
        digest = hashlib.sha256("\0".join(apart).encode()).hexdigest()[:8] if apart else "plain"
        name = f"{_PREFIX}{kind.name}_s{cell.scale}_{digest}"
        if name not in self._known:
            started = self.clock.monotonic()
            if self._look_up(name) is None:
                self._build(name, environment, cell, kind)
            self._require_ours(name)
            size = self.sql.query(self.address, f"SELECT pg_catalog.pg_database_size('{name}') AS size").value()
            self._known[name] = Dataset(
                identity=name, location=name, bytes=int(size), seconds_building=self.clock.monotonic() - started
            )
        return self._known[name]

    def _build(self, name: str, environment: Environment, cell: Cell, kind: DataKind) -> None:
        partial = self._draw_name("new")
        # a superuser passes the limit, so nobody else is in the database before it is closed to what others make
        closed = self.sql.query(self.address, _SUPERUSER).value() == "on"
        self.sql.execute(self.address, f"CREATE DATABASE {partial}{' CONNECTION LIMIT 0' if closed else ''};")
        address = self.address.with_database(partial)
        try:
            self.sql.execute(address, _CLOSE)
            if closed:
                self.sql.execute(self.address, f"ALTER DATABASE {partial} CONNECTION LIMIT -1;")
            folder = f"{self.scratch}/{partial}"
            self.recipe.fill(self.host, self.sql, self.tools, address, environment, cell, kind, folder)
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

    def cloning(self, dataset: Dataset, name: str, folder: str = "", wal: str = "") -> Steps[Clone]:
        """In one step: templates are copied one at a time."""
        yield from ()
        return self.clone(dataset, name, folder, wal)

    def discarding(self, clone: Clone) -> Steps[None]:
        """Discard in one step."""
        yield from ()
        self.discard(clone)

    def discard(self, clone: Clone) -> None:
        """DROP DATABASE, if it is ours and carries the marker."""
        self.host.remove_tree(clone.folder)
        if self._look_up(clone.location) is not None:
            self._require_ours(clone.location)
            self.sql.execute(self.address, f"DROP DATABASE {clone.location};")

    def sweep(self) -> tuple[str, ...]:
        """Drop clones and incomplete datasets of a pgstrata of this machine that has ended.

        Returns a sentence for each of them, also for those that could not be dropped. SqlError: the server cannot be
        asked.
        """
        found = self._find(f"~~) '{_PREFIX}%'")
        return tuple(self._sweep(database) for database in found if self._is_left_over(database.name))

    def _is_left_over(self, name: str) -> bool:
        owner = _OWNED.fullmatch(name)
        if owner is None or owner["machine"] != self.coordinator:
            return False
        pid = int(owner["pid"], 16)
        started = start_times(self.host, (pid,)).get(pid, "-1")
        return owner["boot"] != _shorten(observe_boot(self.host)) or int(owner["started"], 16) != int(started)

    def _sweep(self, database: _Database) -> str:
        name = database.name
        if not database.ours:
            return f"left alone, because {database.stranger} (drop it, if nobody needs it): database {name}"
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

    def _find(self, condition: str) -> tuple[_Database, ...]:
        found = self.sql.query(self.address, f"{_FIND}{condition}")
        return tuple(
            _Database(name=row["name"], owner=row["owner"], ours=row["ours"] == "t") for row in found.records()
        )

    def _look_up(self, name: str) -> _Database | None:
        return next(iter(self._find(f"=) '{name}'")), None)

    def _is_marked(self, name: str) -> bool:
        """Whether the database, which is ours, carries the table that pgstrata puts into everything it makes."""
        tables = "relname OPERATOR(pg_catalog.=) 'pgstrata_marker' AND relkind OPERATOR(pg_catalog.=) 'r'"
        return self._count(name, "pg_class", tables) == 1

    def _is_empty(self, name: str) -> bool:
        """Whether nobody has made anything in the database, which is ours, as in one that was to become a dataset."""
        catalogues = ("pg_class", "pg_proc", "pg_type", "pg_namespace")
        made = f"oid OPERATOR(pg_catalog.>=) {_FIRST_OF_USERS}"
        return not any(self._count(name, catalogue, made) for catalogue in catalogues)

    def _count(self, name: str, catalogue: str, condition: str) -> int:
        statement = f"SELECT pg_catalog.count(*) AS n FROM pg_catalog.{catalogue} WHERE {condition}"
        return int(self.sql.query(self.address.with_database(name), statement).value())

    def _require_ours(self, name: str) -> None:
        """HostNotFitError unless the database belongs to the role that pgstrata connects as, and is marked."""
        database = self._look_up(name)
        if database is not None and not database.ours:
            raise HostNotFitError(
                f"this database has the name of one of pgstrata's, but {database.stranger}: it is not touched",
                where=f"database {name}",
                remedy=f"rename or drop it yourself, or let pgstrata connect as {database.owner}",
            )
        if database is None or not self._is_marked(name):
            raise HostNotFitError(
                "this database has the name of one of pgstrata's, but not its marker: it is not touched",
                where=f"database {name}",
                remedy="rename or drop it yourself",
            )
