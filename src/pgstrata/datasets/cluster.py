"""Datasets that are data directories of our own: initdb, data, freeze, clean stop, sync; then cloned file by file.

The WAL of a clone may lie on other storage than its data: it is moved there, with a link in its place, as by
`initdb --waldir`.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from pgstrata.datasets.control_file import CONTROL_FILE, SHUT_DOWN, parse_cluster_state
from pgstrata.datasets.marker import (
    MARKER,
    Marker,
    holds_nothing,
    load_marker,
    observe_owner,
    owner_alive,
    remove_marked,
    save_marker,
)
from pgstrata.datasets.own import PG_RESTORE
from pgstrata.datasets.recipe import DataRecipe, built_again, digest_of, render_password, setup_scripts
from pgstrata.errors import (
    LARGER_FILE_SYSTEM,
    CommandFailedError,
    DiskFullError,
    HostNotFitError,
    PgstrataError,
    ServerFailedError,
    UsageError,
    find_disk_full,
)
from pgstrata.model.changes import ShellScript
from pgstrata.model.experiment import Cell, ConnectionKind, Environment
from pgstrata.model.old_servers import CHECKSUMS_SINCE, INCLUDE_IF_EXISTS_SINCE, NO_SYNC_SINCE
from pgstrata.model.server import Build
from pgstrata.model.workload import DataKind, Workload
from pgstrata.plan import data_of
from pgstrata.ports.host import Clock, Command, Host
from pgstrata.ports.server import Clone, Dataset, RunningServer, ServerControl, Sql
from pgstrata.ports.steps import Steps, finish
from pgstrata.units import render_bytes

# pg_xlog before 10. The pristine segments are copied and not left out: a server that recycles some starts faster than
# one that must make them all.
_MOVE: Final = """
for name in pg_wal pg_xlog; do
    [ -d "$1/$name" ] || continue
    [ ! -L "$1/$name" ] || { echo "$1/$name is a link already" >&2; exit 1; }
    cp -a -- "$1/$name" "$2/$name" && rm -rf -- "$1/$name" && ln -s -- "$2/$name" "$1/$name" || exit
    exit 0
done
echo "there is no WAL in $1" >&2
exit 1
"""


def move_wal(host: Host, data: str, folder: str, *, timeout: float) -> None:
    """Move the WAL of a stopped cluster into an existing folder; CommandFailedError, DiskFullError."""
    host.run(Command(argv=ShellScript(text=_MOVE, arguments=(data, folder)).argv), timeout=timeout)


DATABASE: Final = "bench"
_RECIPE: Final = "3"  # another one wherever datasets are made otherwise than before
_PASSWORD_FILE: Final = "pgstrata.password"  # noqa: S105 - a name, no password
# The socket's folder admits nobody else; md5 takes SCRAM too; what the server stores is said in `password`.
_ACCESS: Final = b"local all all trust\nhost all all 127.0.0.1/32 md5\n"
_SUPERUSER: Final = "pgstrata"
_CHECKSUMS_OPTION_FROM: Final = 180000  # initdb --no-data-checksums; off is the default before
_CHECKSUMS: Final = "pg_checksums"
_NO_SYNC: Final = "-N"  # of initdb; its long name is another one in 9.6
_COPY_TIMEOUT: Final = 3600.0
_HEADROOM: Final = 1.3
# Only while a dataset is built: it is synced as a whole afterwards, and thrown away if anything fails before.
_BUILD_SETTINGS: Final[Mapping[str, str]] = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "autovacuum": "off",
    "shared_buffers": "256MB",
    "maintenance_work_mem": "256MB",
    "max_wal_size": "2GB",
    "checkpoint_timeout": "1h",
    # few recycled segments: each would be copied with every clone
    "min_wal_size": "32MB",
}


@dataclass(slots=True, kw_only=True)
class ClusterDatasets:
    """Implements `ports.Datasets` with data directories below `root` on a host.

    Args:
        host: where data and servers are.
        sql: statements to the servers.
        control: starts the server that builds the data.
        tools: the build whose programs make the data.
        workloads: descriptions by name.
        recipe: how the data are made.
        clock: the coordinator's time.
        root: folder for datasets and clones.
        study: name of the study, for markers and the clones' folder.
    """

    host: Host
    sql: Sql
    control: ServerControl
    tools: Build
    workloads: Mapping[str, Workload]
    recipe: DataRecipe
    clock: Clock
    root: str
    study: str
    _known: dict[str, Dataset] = field(init=False, default_factory=dict)

    # ------------------------------------------------------------------------------------------- ensure

    def ensure(self, environment: Environment, build: Build, cell: Cell) -> Dataset:
        identity = dataset_identity(environment, build, cell, data_of(cell, self.workloads))
        if identity not in self._known:
            folder = f"{self.root}/datasets/{identity}"
            marker = load_marker(self.host, folder)
            if marker is None:
                self._refuse_foreign(folder)
                marker = self._build(folder, identity, environment, build, cell)
            self._verify_stopped(f"{folder}/data")
            self._known[identity] = Dataset(
                identity=identity, location=f"{folder}/data", bytes=marker.bytes, seconds_building=marker.seconds
            )
        return self._known[identity]

    def _refuse_foreign(self, folder: str) -> None:
        if self.host.exists(folder):
            raise HostNotFitError(
                f"this folder has no readable {MARKER}, so it is not used and not removed",
                where=folder,
                remedy="remove it yourself if it is a broken dataset",
            )

    def _build(self, folder: str, identity: str, environment: Environment, build: Build, cell: Cell) -> Marker:
        self._check_space(cell)
        twin = self._twin(environment, build, cell)
        started = self.clock.monotonic()
        partial = f"{folder}.partial"
        self._clear_partial(partial)
        marker = Marker(purpose="dataset", subject=identity, study=self.study, owner=observe_owner(self.host))
        try:
            self.host.make_folder(partial)
            save_marker(self.host, partial, marker)
            if twin is not None:
                self._switch_off(twin, build, f"{partial}/data")
            else:
                self._initdb(environment, build, f"{partial}/data")
                self._fill(partial, environment, build, cell)
            size = self._sync_and_size(partial)
            marker = replace(marker, bytes=size, seconds=self.clock.monotonic() - started)
            save_marker(self.host, partial, marker)
            self.host.rename(partial, folder)
        except BaseException as error:
            remove_marked(self.host, partial)
            if isinstance(error, DiskFullError):
                raise self._disk_full(f"a dataset ({cell.size}) is built", error) from error
            raise
        return marker

    def _twin(self, environment: Environment, build: Build, cell: Cell) -> Dataset | None:
        """The same data with checksums, of which data without are made: both then have the same physical pages.

        None where they are made by initdb: with checksums, and where the build has no pg_checksums (before 12).
        """
        if environment.checksums or not self.host.exists(build.program(_CHECKSUMS)):
            return None
        return self.ensure(replace(environment, checksums=True), build, cell)

    def _switch_off(self, twin: Dataset, build: Build, data: str) -> None:
        self.host.run(Command(argv=("cp", "-a", "--reflink=auto", twin.location, data)), timeout=_COPY_TIMEOUT)
        switch = (build.program(_CHECKSUMS), "--disable", "--no-sync", "-D", data)
        environment = {**build.process_environment, "LC_ALL": "C"}
        self.host.run(Command(argv=switch, environment=environment, memory=build.memory))

    def _disk_full(self, doing: str, error: PgstrataError, folder: str = "") -> DiskFullError:
        """`folder` is in a file system that was made for the clone, empty for that of all data."""
        if folder:
            return DiskFullError(
                f"the file system that was made for the data is full while {doing}",
                where=folder,
                details=(error.what, *error.details[-5:]),
                remedy=LARGER_FILE_SYSTEM,
            )
        return DiskFullError(
            f"the disk is full while {doing}",
            where=self.root,
            details=(error.what, *error.details[-5:]),
            remedy="free space there, use a smaller scale, or set PGSTRATA_DATA to a folder on a larger file system; "
            "the same command then goes on",
        )

    def _check_space(self, cell: Cell) -> None:
        needed = data_of(cell, self.workloads).size(cell.scale) * _HEADROOM
        free = self.host.free_bytes(self.root)
        if free < needed:
            raise HostNotFitError(
                f"a dataset ({cell.size}) needs about {render_bytes(needed)}, {render_bytes(free)} are free",
                where=self.root,
                remedy="free space, use a smaller scale, or set PGSTRATA_DATA to a folder on a larger file system",
            )

    def _clear_partial(self, partial: str) -> None:
        marker = load_marker(self.host, partial)
        if marker is not None and owner_alive(self.host, marker.owner) and marker.owner != observe_owner(self.host):
            raise HostNotFitError(
                f"another pgstrata (process {marker.owner.pid}) is building this dataset",
                where=partial,
                remedy="wait until it is done",
            )
        if marker is None and not holds_nothing(self.host, partial):
            self._refuse_foreign(partial)
        remove_marked(self.host, partial)

    def _initdb(self, environment: Environment, build: Build, data: str) -> None:
        if environment.checksums and build.version.number < CHECKSUMS_SINCE:
            raise UsageError(
                f"PostgreSQL {build.version.text} has no data checksums: they came with 9.3",
                where=f"environment {environment.name}, {build.prefix}",
                remedy="write checksums = false in all environments",
            )
        checksums: tuple[str, ...] = ("--data-checksums",) if environment.checksums else ()
        if not environment.checksums and build.version.number >= _CHECKSUMS_OPTION_FROM:
            checksums = ("--no-data-checksums",)
        options = tuple(f"--{key.replace('_', '-')}={value}" for key, value in sorted(environment.initdb.items()))
        no_sync = (_NO_SYNC,) if build.version.number >= NO_SYNC_SINCE else ()
        plain = ("-U", _SUPERUSER, "-A", "trust", "--locale=C", "-E", "UTF8", *no_sync)
        command = Command(
            argv=(build.program("initdb"), "-D", data, *plain, *checksums, *options),
            environment={**build.process_environment, "LC_ALL": "C", "TZ": "GMT"},
            memory=build.memory,
        )
        try:
            self.host.run(command)
        except CommandFailedError as error:
            raise ServerFailedError(
                "initdb failed",
                where=build.program("initdb"),
                details=(error.what, *error.details),
                remedy="check the initdb options and `pgstrata servers check`",
            ) from error
        conf = self.host.read(f"{data}/postgresql.conf")
        self.host.write(f"{data}/pg_hba.conf", _ACCESS)
        include = b"include_if_exists" if build.version.number >= INCLUDE_IF_EXISTS_SINCE else b"include"
        self.host.write(f"{data}/postgresql.conf", conf + b"\n" + include + b" = 'pgstrata.conf'\n")

    def _fill(self, partial: str, environment: Environment, build: Build, cell: Cell) -> None:
        building = replace(environment, settings=_BUILD_SETTINGS, connection=ConnectionKind.SOCKET)
        clone = Clone(
            dataset=Dataset(identity="", location="", bytes=0, seconds_building=0),
            location=f"{partial}/data",
            database="postgres",
            folder=partial,
        )
        server = self.control.start(building, build, clone)
        try:
            self._load(server, environment, cell)
        except PgstrataError as error:
            # a server that dies of it says so in its log only
            log = self.control.log(server).decode("utf-8", "replace")
            if full := find_disk_full("\n".join((error.what, *error.details, log))):
                raise DiskFullError(full, where=partial) from error
            raise
        finally:
            self.control.stop(server)
        self.host.remove_tree(f"{partial}/data/pgstrata.conf")

    def _load(self, server: RunningServer, environment: Environment, cell: Cell) -> None:
        password = secrets.token_hex(16)
        self.host.write(f"{server.clone.location}/{_PASSWORD_FILE}", password.encode())
        self.sql.execute(server.address, render_password(_SUPERUSER, password, server.build.version.number))
        self.sql.execute(server.address, f"CREATE DATABASE {DATABASE};")
        address = server.address.with_database(DATABASE)
        kind, folder = data_of(cell, self.workloads), f"{server.clone.folder}/loading"
        tools = self._restoring(server.build) if cell.data is not None else self.tools
        self.recipe.fill(self.host, self.sql, tools, address, environment, cell, kind, folder)
        self.sql.execute(address, "CHECKPOINT;")

    def _restoring(self, build: Build) -> Build:
        """The server's own build, or the tools where it has no pg_restore, as those of `maven:` have none."""
        return build if self.host.exists(build.program(PG_RESTORE)) else self.tools

    def _sync_and_size(self, folder: str) -> int:
        self.host.run(Command(argv=("sync", "-f", folder)), timeout=_COPY_TIMEOUT)
        done = self.host.run(Command(argv=("du", "-s", "--block-size=1", f"{folder}/data")))
        return int(done.text.split()[0])

    def _verify_stopped(self, data: str) -> None:
        state = parse_cluster_state(self.host.read(f"{data}/{CONTROL_FILE}"))
        if state != SHUT_DOWN:
            raise HostNotFitError(
                f"the dataset was not stopped cleanly ({state})",
                where=data,
                remedy="remove the dataset's folder; it will be built again",
            )

    # -------------------------------------------------------------------------------------------- clone

    def clone(self, dataset: Dataset, name: str, folder: str = "", wal: str = "") -> Clone:
        return finish(self.cloning(dataset, name, folder, wal))

    def cloning(self, dataset: Dataset, name: str, folder: str = "", wal: str = "") -> Steps[Clone]:
        """A copy by reflink where the file system has it, else byte by byte: one `cp` decides, the same for all."""
        own, folder = folder, f"{folder or f'{self.root}/clones/{self.study}'}/{name}"
        clone = Clone(dataset=dataset, location=f"{folder}/data", database=DATABASE, folder=folder,
                      wal=f"{wal}/{name}" if wal else "")  # fmt: skip
        if self.host.exists(folder) or (wal and self.host.exists(clone.wal)):
            self.discard(clone)
        marker = Marker(purpose="clone", subject=name, study=self.study, owner=observe_owner(self.host))
        try:
            for place in _marked_folders(clone):
                self.host.make_folder(place)
                save_marker(self.host, place, marker)
            copy = ("cp", "-a", "--reflink=auto", dataset.location, clone.location)
            yield from self.host.running(Command(argv=copy), timeout=_COPY_TIMEOUT)
            if wal:
                own = wal
                move_wal(self.host, clone.location, clone.wal, timeout=_COPY_TIMEOUT)
        except BaseException as error:
            self._remove_clone(clone)
            if isinstance(error, DiskFullError):
                raise self._disk_full("a dataset is cloned", error, own) from error
            raise
        return clone

    def discard(self, clone: Clone) -> None:
        """Remove a clone; only if it carries the marker, or nothing is in it."""
        self._refuse_unmarked(clone)
        self._remove_clone(clone)

    def discarding(self, clone: Clone) -> Steps[None]:
        self._refuse_unmarked(clone)
        for folder in _marked_folders(clone):
            # the marker last, as always: what is left of a kill can be recognised
            rest = (f"{folder}/{name}" for name in self.host.list_folder(folder) if name != MARKER)
            yield from self.host.running(Command(argv=("rm", "-rf", "--", *rest)), timeout=_COPY_TIMEOUT, check=False)
        self._remove_clone(clone)

    def _refuse_unmarked(self, clone: Clone) -> None:
        for folder in _marked_folders(clone):
            if load_marker(self.host, folder) is None and not holds_nothing(self.host, folder):
                self._refuse_foreign(folder)

    def _remove_clone(self, clone: Clone) -> None:
        for folder in _marked_folders(clone):
            remove_marked(self.host, folder)
        together = f"{self.root}/clones/{self.study}"
        if not self.host.list_folder(together):
            self.host.remove_tree(together)


def _marked_folders(clone: Clone) -> tuple[str, ...]:
    return (clone.folder, clone.wal) if clone.wal else (clone.folder,)


def dataset_identity(environment: Environment, build: Build, cell: Cell, kind: DataKind) -> str:
    """Readable, and different wherever data could differ: kind, scale, build, initdb options, set-up, a second time."""
    options = (f"{key}={value}" for key, value in sorted(environment.initdb.items()))
    parts = (
        _RECIPE,
        build.digest,
        "checksums" if environment.checksums else "checksums switched off",
        *options,
        *setup_scripts(environment, cell),
        *built_again(environment),
        *digest_of(kind, cell),
    )
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:10]
    scale = "" if cell.data is not None else f"-s{cell.scale}"
    return f"{kind.name}{scale}-pg{build.version.major}-{digest}"
