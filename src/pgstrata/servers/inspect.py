"""An installation becomes a Build: it is entered, its libraries are complete, its programs start, its facts are read.

What was found out is kept in the cache, because looking at one takes several programs and half a second. An entry
counts while bin/postgres has the same name, size and time. Losing the file costs time, nothing else.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import PurePosixPath
from typing import Final

from pgstrata.errors import (
    DiskFullError,
    HostFileError,
    HostNotFitError,
    PgstrataError,
    ServerUnusableError,
    UsageError,
)
from pgstrata.model.codec import decode, encode
from pgstrata.model.experiment import ServerKind, ServerSpec
from pgstrata.model.server import Build, ServerVersion
from pgstrata.ports.host import Command, Completed
from pgstrata.servers.packages import SERVER_PROGRAMS, Packages
from pgstrata.servers.shelf import ServerSite
from pgstrata.servers.version import has_assertions, parse_postgres_binary, parse_server_version


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """A build without what its user calls it; `stamp` is the size and time of bin/postgres."""

    stamp: str
    version: ServerVersion
    compiler: str
    configure: str
    cflags: str
    digest: str
    assertions: bool
    process_environment: Mapping[str, str]


_FACTS: Final = tuple(each.name for each in fields(_Entry) if each.name != "stamp")


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Builds by where they are, and on which host and as which user that was found out."""

    site: ServerSite

    def recall(self, spec: ServerSpec, prefix: str, supplier: str, stamp: str) -> Build | None:
        """The build, if it has not changed and what it needs is still there."""
        entry = self._load().get(self._key(prefix))
        if entry is None or not stamp or entry.stamp != stamp:
            return None
        folders = entry.process_environment.get("LD_LIBRARY_PATH", "").split(":")
        if not all(self.site.here.exists(folder) for folder in folders if folder):
            return None
        facts = {name: getattr(entry, name) for name in _FACTS}
        return Build(spec=spec, prefix=prefix, supplier=supplier, **facts)

    def keep(self, build: Build, stamp: str) -> None:
        """Remember a build; nothing happens if the cache cannot be written."""
        entry = _Entry(stamp=stamp, **{name: getattr(build, name) for name in _FACTS})
        entries = {**self._load(), self._key(build.prefix): entry}
        try:
            self.site.here.make_folder(self.site.cache, mode=0o755)
            self.site.here.write(self._file, json.dumps(encode(entries), indent=1).encode(), mode=0o644)
        except (HostFileError, DiskFullError):
            return  # looking again is slower, not wrong

    @property
    def _file(self) -> str:
        return f"{self.site.cache}/builds.json"

    def _key(self, prefix: str) -> str:
        return f"{self.site.host.name}:{self.site.host.user}:{prefix}"

    def _load(self) -> Mapping[str, _Entry]:
        content = self.site.here.read_files((self._file,)).get(self._file, b"{}")
        try:
            return decode(dict[str, _Entry], json.loads(content))
        except (ValueError, TypeError, KeyError, RecursionError):
            return {}  # damaged, or of another version of pgstrata


_ENOUGH_LINES: Final = 5
_WITHOUT_CLIENTS: Final = (ServerKind.MAVEN, ServerKind.BUILD)
"""Kinds of servers that need not have psql and pgbench: those of the embedded build are used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramCheck:
    """Whether one program of a build starts: what it says of its version, or why it does not."""

    program: str
    works: bool
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspector:
    """Looks at installations as the user that servers run as.

    Args:
        packages: brings missing libraries to where servers run.
    """

    packages: Packages

    @property
    def _site(self) -> ServerSite:
        return self.packages.site

    @property
    def _memory(self) -> Memory:
        return Memory(site=self._site)

    def enterable(self, prefix: str) -> bool:
        """Whether the server's user may run what is there."""
        return self._passes(f"{prefix}/bin/postgres")

    def require_enterable(self, prefix: str) -> None:
        """Refuse a prefix that the server's user cannot enter, naming the folder that is closed.

        Raises:
            HostNotFitError: it cannot be entered.
        """
        if self.enterable(prefix):
            return
        closed = next((str(path) for path in _ancestors(prefix) if not self._passes(str(path))), "")
        if not closed and self._site.host.exists(f"{prefix}/bin/postgres"):
            raise ServerUnusableError(
                f"the user that servers run as, {self._site.host.user}, may not execute it",
                where=f"{prefix}/bin/postgres",
                remedy=f"make it executable (chmod a+x {prefix}/bin/*), or use another installation",
            )
        raise HostNotFitError(
            f"the user that servers run as, {self._site.host.user}, cannot enter the folder",
            where=closed or prefix,
            remedy="put it where everybody may enter (PGSTRATA_CACHE moves pgstrata's own), "
            "or name another user in PGSTRATA_USER",
        )

    def inspect(self, spec: ServerSpec, prefix: str, supplier: str, environment: Mapping[str, str]) -> Build:
        """The build at a prefix that can be entered.

        Raises:
            UsageError: there is no server in it.
            HostNotFitError: a library is missing, or a program does not start.
            ParseError: the server says nothing that is known.
        """
        stamp = self._stamp(prefix)
        remembered = self._memory.recall(spec, prefix, supplier, stamp)
        if remembered is not None:
            return remembered
        needed = dict(self.packages.ensure(prefix, environment))
        printed = self._require_starts(prefix, needed)
        content = self._site.host.read(f"{prefix}/bin/postgres")
        facts = parse_postgres_binary(content)
        configure = facts.configure or self._pg_config(prefix, "--configure", needed)
        build = Build(
            spec=spec,
            prefix=prefix,
            version=facts.version if facts.version.fork else replace(facts.version, fork=printed.fork),
            supplier=supplier,
            compiler=facts.compiler,
            configure=configure,
            cflags=facts.cflags or self._pg_config(prefix, "--cflags", needed),
            digest=hashlib.sha256(content).hexdigest(),
            assertions=facts.assertions or has_assertions(configure),
            process_environment=needed,
        )
        self._memory.keep(build, stamp)
        return build

    def check(self, build: Build) -> tuple[ProgramCheck, ...]:
        """Whether each program that pgstrata uses of it starts and says its version; nothing else is started."""
        names = SERVER_PROGRAMS if build.spec.kind in _WITHOUT_CLIENTS else self.packages.programs
        return tuple(self._check_program(build, name) for name in names)

    def _check_program(self, build: Build, name: str) -> ProgramCheck:
        path = build.program(name)
        if not self._site.host.exists(path):
            return ProgramCheck(program=name, works=False, text="not there")
        try:
            done = self._run(path, "--version", environment=build.process_environment)
        except PgstrataError as error:
            return ProgramCheck(program=name, works=False, text=error.what)
        text = done.text.strip() or done.complaints.strip()
        return ProgramCheck(program=name, works=done.code == 0, text=text.partition("\n")[0])

    def _require_starts(self, prefix: str, environment: Mapping[str, str]) -> ServerVersion:
        for name in ("postgres", "initdb"):
            path = f"{prefix}/bin/{name}"
            if not self._site.host.exists(path):
                raise UsageError(
                    f"there is no bin/{name}",
                    where=prefix,
                    remedy="name the folder that holds bin/postgres and bin/initdb, such as /usr/lib/postgresql/16",
                )
            self._require_version(path, environment)
        return parse_server_version(self._run(f"{prefix}/bin/postgres", "--version", environment=environment).text)

    def _require_version(self, path: str, environment: Mapping[str, str]) -> None:
        name = path.rpartition("/")[2]
        try:
            done = self._run(path, "--version", environment=environment)
        except HostNotFitError as error:
            raise _unusable(f"{name} does not start on this machine", path, (error.what,)) from error
        if done.code != 0:
            what = f"{name} does not start on this machine (status {done.code})"
            raise _unusable(what, path, done.last_words(_ENOUGH_LINES))

    def _pg_config(self, prefix: str, option: str, environment: Mapping[str, str]) -> str:
        """Empty where there is no pg_config: distributions put it into a package of its own."""
        path = f"{prefix}/bin/pg_config"
        if not self._site.host.exists(path):
            return ""
        done = self._run(path, option, environment=environment)
        return done.text.strip() if done.code == 0 else ""

    def _run(self, *argv: str, environment: Mapping[str, str]) -> Completed:
        # Some programs look at their working folder, which the server's user may be unable to enter.
        return self._site.host.run(Command(argv=argv, environment=environment, folder="/"), timeout=60.0, check=False)

    def _passes(self, path: str) -> bool:
        return self._site.host.run(Command(argv=("test", "-x", path), folder="/"), check=False).code == 0

    def _stamp(self, prefix: str) -> str:
        path = f"{prefix}/bin/postgres"
        done = self._site.host.run(Command(argv=("stat", "-L", "-c", "%s %i %y", path), folder="/"), check=False)
        return done.text.strip() if done.code == 0 else ""


def _unusable(what: str, path: str, lines: tuple[str, ...]) -> ServerUnusableError:
    remedy = "use an installation that was made for this machine; `pgstrata servers check prefix:DIR` looks at one"
    return ServerUnusableError(what, where=path, details=lines, remedy=remedy)


def _ancestors(prefix: str) -> tuple[PurePosixPath, ...]:
    path = PurePosixPath(prefix)
    return (*reversed(path.parents), path, path / "bin")
