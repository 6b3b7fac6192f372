"""Missing shared libraries, taken from the distribution's packages without installing anything.

A package is downloaded and unpacked into the cache, which needs no root; programs find it by LD_LIBRARY_PATH. Which
package holds which library is known to `libraries`.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pgstrata.errors import HostNotFitError, PgstrataError
from pgstrata.model import sizes
from pgstrata.ports.host import Command, Completed
from pgstrata.servers.libraries import Missing, debian_packages, parse_missing
from pgstrata.servers.shelf import ServerSite, cache_errors
from pgstrata.system import files

SERVER_PROGRAMS: Final = ("postgres", "initdb", "pg_ctl")
"""Programs that every supplier ships; the others are taken from the embedded build."""

_TIMEOUT: Final = 300.0
_ROUNDS: Final = 6  # a library of a library of a library ...
_SHARED: Final = re.compile(r"\.so(\.|$)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Packages:
    """Finds missing libraries and brings them.

    Args:
        site: where servers run, and the cache.
        bring: whether missing libraries are fetched; not on another machine, where they have to be installed.
        drivers: programs of PostgreSQL's that load generators run.
    """

    site: ServerSite
    bring: bool = True
    drivers: tuple[str, ...] = ()

    @property
    def programs(self) -> tuple[str, ...]:
        """Programs that pgstrata runs; others may lack what they want."""
        return (*SERVER_PROGRAMS, "pg_controldata", "pg_checksums", *self.drivers, "psql")

    def ensure(self, prefix: str, environment: Mapping[str, str]) -> Mapping[str, str]:
        """What the programs below a prefix need in their environment to start, libraries fetched if they must be.

        Raises:
            HostNotFitError: a library is missing and cannot be had without root.
            DiskFullError: no room.
        """
        missing = self.missing(prefix, environment)
        if not missing:
            return environment
        if not self.bring:
            raise _cannot(f"{self.site.host.name}:{prefix}", missing)
        with cache_errors(self.site.cache):
            return self._bring(prefix, environment, missing)

    def _bring(self, prefix: str, environment: Mapping[str, str], missing: Missing) -> Mapping[str, str]:
        folder = self._folder()
        files.make_folders(folder, mode=0o755)
        environment = {**environment, "LD_LIBRARY_PATH": _joined(environment.get("LD_LIBRARY_PATH", ""), str(folder))}
        for _ in range(_ROUNDS):
            missing = self.missing(prefix, environment)
            if not missing:
                return environment
            if missing.glibc or not all(self._fetch(name, folder) for name in missing.libraries):
                break
        raise _cannot(prefix, missing)

    def missing(self, prefix: str, environment: Mapping[str, str]) -> Missing:
        """What keeps the programs below a prefix from starting."""
        there = set(self.site.host.list_folder(f"{prefix}/bin"))
        paths = tuple(f"{prefix}/bin/{name}" for name in self.programs if name in there)
        found = [self._ask(("ldd", *paths), environment)]
        if not found[0]:
            found = [self._ask((path, "--version"), environment) for path in paths]
        return parse_missing("\n".join(found))

    def _ask(self, argv: tuple[str, ...], environment: Mapping[str, str]) -> str:
        """What a program prints, empty if there is no such program."""
        try:
            done = self.site.host.run(
                Command(argv=argv, environment={**environment, "LC_ALL": "C"}, folder="/"), timeout=60.0, check=False
            )
        except PgstrataError:
            return ""
        return done.text + done.complaints

    def _folder(self) -> Path:
        """One folder for each release of each distribution: a cache outlives an upgrade of the machine."""
        release = self.site.here.read_files(("/etc/os-release",)).get("/etc/os-release", b"").decode("utf-8", "replace")
        facts = dict(line.split("=", 1) for line in release.splitlines() if "=" in line)
        name = f"{facts.get('ID', 'linux')}-{facts.get('VERSION_ID', '0')}".replace('"', "").replace("/", "")
        return Path(self.site.cache, "libraries", name)

    def _fetch(self, library: str, folder: Path) -> bool:
        self.site.note(f"fetching the library {library}")
        return any(self._fetch_package(package, folder) for package in debian_packages(library))

    def _fetch_package(self, package: str, folder: Path) -> bool:
        scratch = folder.with_name(f".{folder.name}.{package}")
        files.remove_rest(scratch)
        files.make_folder(scratch)
        try:
            if not (self._download(package, scratch, ()) or self._download_anew(package, scratch)):
                return False
            for archive in scratch.glob("*.deb"):
                self._run(("dpkg", "-x", str(archive), str(scratch / "tree")), scratch)
            return _take_libraries(scratch / "tree", folder)
        finally:
            files.remove_rest(scratch)

    def _download_anew(self, package: str, scratch: Path) -> bool:
        """With package lists of our own: containers are shipped without any, and only root may fetch the system's."""
        apt = Path(self.site.cache, "apt")
        for name in ("lists/partial", "archives/partial"):
            files.make_folders(apt / name)
        options = (
            "-o", f"Dir::State::Lists={apt}/lists", "-o", f"Dir::Cache={apt}", "-o", "Debug::NoLocking=1",
        )  # fmt: skip
        if any((apt / "lists").glob("*_Packages*")) and self._download(package, scratch, options):
            return True
        self._run(("apt-get", *options, "update"), scratch)
        return self._download(package, scratch, options)

    def _download(self, package: str, scratch: Path, options: Sequence[str]) -> bool:
        done = self._run(("apt-get", *options, "download", package), scratch)
        return done is not None and done.code == 0 and any(scratch.glob("*.deb"))

    def _run(self, argv: tuple[str, ...], folder: Path) -> Completed | None:
        try:
            command = Command(argv=argv, environment={"LC_ALL": "C"}, folder=str(folder), memory=sizes.PROGRAM)
            done = self.site.here.run(command, timeout=_TIMEOUT, check=False)
        except HostNotFitError:
            return None  # no such program: another distribution
        if b"No space left on device" in done.stderr:
            raise OSError(errno.ENOSPC, "No space left on device")
        return done


def _take_libraries(tree: Path, folder: Path) -> bool:
    """Copy shared libraries out of an unpacked package into one flat folder; links become the files that they name."""
    found = [path for path in sorted(tree.rglob("*.so*")) if _is_library(path)]
    linked = {path.resolve() for path in found if path.is_symlink()}
    taken = False
    for path in found:
        if path in linked:
            continue  # programs ask for the link's name
        partial = folder / f".{path.name}"
        with path.open("rb") as library:
            files.save_for_all(library, partial, executable=True)
        files.rename(partial, folder / path.name)
        taken = True
    return taken


def _is_library(path: Path) -> bool:
    """Whether the loader would find it: plug-ins of libraries lie in folders further down."""
    beside = path.parent.name in {"lib", "lib64"} or path.parent.name.endswith("-linux-gnu")
    return beside and path.is_file() and _SHARED.search(path.name) is not None


def _joined(first: str, second: str) -> str:
    return f"{first}:{second}" if first else second


def _cannot(prefix: str, missing: Missing) -> HostNotFitError:
    if missing.glibc:
        return HostNotFitError(
            f"this machine's C library is too old: {', '.join(missing.glibc)} is needed",
            where=prefix,
            remedy="use the server `embedded`, which needs less, or an installed one: prefix:DIR",
        )
    packages = sorted({debian_packages(name)[0] for name in missing.libraries if debian_packages(name)})
    capabilities = " ".join(f"'{name}()(64bit)'" for name in missing.libraries)
    return HostNotFitError(
        f"shared libraries are missing: {', '.join(missing.libraries)}",
        where=prefix,
        remedy=f"apt-get install {' '.join(packages)} (Debian, Ubuntu; some names end in t64), "
        f"dnf install {capabilities} (Fedora, RHEL); or use the server `embedded`, which needs none of them",
    )
