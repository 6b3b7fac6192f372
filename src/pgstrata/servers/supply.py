"""All servers behind one interface: resolve a level, list what there is, fetch ahead, name the client's tools.

What a server is made of and where it comes from stands in the neighbours; running servers (`dsn:`) are not ours.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self, assert_never

from pgstrata.errors import HostNotFitError, PgstrataError, UsageError
from pgstrata.model.experiment import ServerKind, ServerSpec
from pgstrata.model.server import Build
from pgstrata.ports.host import Command, Host
from pgstrata.ports.server import ServerSource
from pgstrata.servers.build import Builder
from pgstrata.servers.catalogue import CATALOGUE, EMBEDDED, JAR_SUPPLIER, JARS, NEWEST, Jar, Wheel
from pgstrata.servers.copy import Copier
from pgstrata.servers.fetch import Fetcher
from pgstrata.servers.inspect import Inspector, ProgramCheck
from pgstrata.servers.maven import MavenFetcher
from pgstrata.servers.packages import Packages
from pgstrata.servers.sources import (
    PREFIX_SUPPLIER,
    BuildSource,
    CatalogueSource,
    EmbeddedSource,
    MavenSource,
    PrefixSource,
)

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

    host: Host
    fetcher: Fetcher
    maven: MavenFetcher
    builder: Builder
    inspector: Inspector
    prefixes: PrefixSource

    @classmethod
    def make(
        cls,
        *,
        here: Host,
        host: Host,
        cache: str,
        machine: str,
        python: str,
        note: Callable[[str], None],
        drivers: tuple[str, ...] = (),
    ) -> Self:
        """Put the parts together.

        Args:
            here: the coordinator, as the user that pgstrata runs as.
            host: where servers run, as the user that they run as; the same as `here` for an ordinary user.
            cache: folder on the coordinator for what can be fetched again (`Places.cache`).
            machine: what `uname -m` prints.
            python: the interpreter whose pip is asked first (`sys.executable`).
            note: is told in one line what takes a while.
            drivers: programs of PostgreSQL's that load generators run.
        """
        packages = Packages(here=here, host=host, cache=cache, note=note, drivers=drivers)
        inspector = Inspector(here=here, host=host, cache=cache, packages=packages)
        copier = Copier(cache=cache, note=note)
        return cls(
            host=host,
            fetcher=Fetcher(here=here, cache=cache, machine=machine, python=python, note=note),
            maven=MavenFetcher(here=here, cache=cache, machine=machine, note=note),
            builder=Builder(here=here, cache=cache, cpus=os.cpu_count() or 1, note=note),
            inspector=inspector,
            prefixes=PrefixSource(here=here, inspector=inspector, copier=copier),
        )

    def resolve(self, spec: ServerSpec) -> Build:
        """The installed build of a level, fetched first if it must be.

        Raises:
            UsageError: the level names nothing, or a kind that is not an installation.
            PgstrataError: it cannot be fetched, entered or started; every error names a remedy.
        """
        return self._source(spec).resolve(spec)

    def alike(self, specs: Iterable[ServerSpec]) -> Mapping[str, ServerSpec]:
        """What is to be built, by one system where it can be (`Builder.alike`); by the former text of the level."""
        return self.builder.alike(spec for spec in specs if spec.kind is ServerKind.BUILD)

    def _source(self, spec: ServerSpec) -> ServerSource:
        match spec.kind:
            case ServerKind.EMBEDDED:
                return EmbeddedSource(fetcher=self.fetcher, inspector=self.inspector)
            case ServerKind.CATALOGUE:
                return CatalogueSource(fetcher=self.fetcher, inspector=self.inspector)
            case ServerKind.MAVEN:
                return MavenSource(fetcher=self.maven, inspector=self.inspector)
            case ServerKind.PREFIX:
                return self.prefixes
            case ServerKind.BUILD:
                return BuildSource(builder=self.builder, inspector=self.inspector)
            case ServerKind.DSN:
                raise UsageError(
                    f"a server of the kind {spec.kind} is no installation",
                    where=spec.text,
                    remedy="use embedded, a major version, maven:MAJOR or prefix:DIR",
                )
            case _ as never:
                assert_never(never)

    def list(self) -> tuple[ServerRow, ...]:
        """Everything that an experiment could name here: fetched, to be fetched, installed. Nothing is fetched."""
        wheels = _possible(self._wheel_row(wheel) for wheel in (EMBEDDED, *reversed(CATALOGUE)))
        jars = _possible(self._jar_row(jar) for jar in reversed(JARS))
        return (*wheels, *jars, *(self._installed_row(prefix) for prefix in installed_prefixes(self.host)))

    def _wheel_row(self, wheel: Wheel) -> ServerRow:
        return ServerRow(
            level=wheel.level,
            version=_two_parts(wheel),
            supplier=wheel.supplier,
            where=self.fetcher.prefix(wheel),
            fetched=self.fetcher.fetched(wheel),
        )

    def _jar_row(self, jar: Jar) -> ServerRow:
        return ServerRow(
            level=jar.level,
            version=_version_of(jar),
            supplier=JAR_SUPPLIER,
            where=self.maven.prefix(jar),
            fetched=self.maven.fetched(jar),
        )

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


def _version_of(jar: Jar) -> str:
    """PostgreSQL's version; the third part is the packager's from 10 on."""
    return jar.version if jar.version.startswith("9.") else jar.version.rpartition(".")[0]


def _two_parts(wheel: Wheel) -> str:
    """PostgreSQL's version; the third part of a wheel's version is the packager's."""
    return wheel.version.rpartition(".")[0]


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
