"""Where a source is: a folder, a tarball, or a commit of a git repository of the user's, which is only read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pgstrata.errors import UsageError
from pgstrata.ports.host import Host
from pgstrata.servers.commits import Repository, open_repository
from pgstrata.servers.recipes import TELLING_FILES
from pgstrata.servers.toolchain import require_programs
from pgstrata.servers.tree import UNPACKERS, Archive, BuildUser, Folder, Source, owned, unpack
from pgstrata.system.ways import find_reader


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """A commit; implements `tree.Source`.

    Args:
        builder: who unpacks it.
        repository: where it is.
        name: as it was asked for, such as a branch.
        commit: its full hash, which stays when the branch moves on.
    """

    builder: BuildUser
    repository: Repository
    name: str
    commit: str

    @property
    def _where(self) -> str:
        return f"build:{self.repository.folder}@{self.name}"

    @property
    def origin(self) -> str:
        return f"commit {self.commit}"

    def require(self) -> None:
        require_programs(self.builder.host, ("tar", "gzip"), self._where)

    def holds(self) -> frozenset[str]:
        return self.repository.holds(self.commit, TELLING_FILES)

    def digest(self) -> str:
        """The name of its tree, by which commits with the same content are the same."""
        return f"git tree {self.repository.tree(self.commit)}{owned(self.repository.reader)}"

    def copy(self, target: Path) -> None:
        unpack(self.builder.host, self.repository.export(self.commit), "gzip", target, self._where)


def find_source(here: Host, value: str, builder: BuildUser) -> Source:
    """The source that the part behind `build:` names: DIR, FILE.tar.gz, or DIR@COMMIT.

    What is there under the whole name is meant first; otherwise the longest folder before an @.

    Args:
        here: the coordinator, as the user that pgstrata runs as.
        value: the part behind `build:`.
        builder: who builds.

    Raises:
        UsageError: nothing is there, it is no source, or the repository has no such commit.
        HostNotFitError: there is no git, or several users could replace the source.
    """
    where = f"build:{value}"
    if not value.startswith("/"):
        raise UsageError(
            "the path of a source must be absolute", where=where, remedy="write the whole path: build:/DIR"
        )
    path = Path(value)
    if path.is_dir():
        return Folder(builder=builder, path=value, reader=find_reader(value))
    if path.is_file() and value.endswith(tuple(UNPACKERS)):
        return Archive(builder=builder, path=value, reader=find_reader(value))
    if path.exists():
        what = "this is neither a folder nor a .tar.gz, .tar.bz2 or .tar.xz"
        raise UsageError(what, where=where, remedy="name the top folder of PostgreSQL's source, or a tarball")
    for folder, name in _splits(value):
        if Path(folder).is_dir():
            repository = open_repository(here, folder)
            return Revision(builder=builder, repository=repository, name=name, commit=repository.find(name, where))
    raise UsageError(
        "there is nothing at this path",
        where=where,
        remedy="name the top folder of PostgreSQL's source, a tarball, or a commit: build:DIR@COMMIT",
    )


def _splits(value: str) -> Iterator[tuple[str, str]]:
    """At each @, the last one first: names of commits may hold some as well (HEAD@{1})."""
    for place in range(len(value) - 1, 0, -1):
        if value[place] == "@" and value[place + 1 :]:
            yield value[:place], value[place + 1 :]
