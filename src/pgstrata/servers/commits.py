"""Commits of sources in a git repository of the user's, which is only read: of PostgreSQL, or of Linux."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from pgstrata.errors import DiskFullError, HostFileError, HostNotFitError, PgstrataError, UsageError, find_disk_full
from pgstrata.model import sizes
from pgstrata.model.bisect import Commit
from pgstrata.ports.host import Command, Completed, Host
from pgstrata.servers.shelf import DISK_REMEDY
from pgstrata.system.users import UserIds
from pgstrata.system.ways import find_reader

_TIMEOUT: Final = 600.0
_FIELDS: Final = 4
_FORMAT: Final = "--format=%H%x00%aI%x00%P%x00%s"
# Whatever the user's environment says, it is this repository, and it is not written to.
_ENVIRONMENT: Final = {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
_NOT_INHERITED: Final = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY")


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """A git repository on the coordinator.

    Args:
        here: the coordinator, as a user who may read it. git runs what its configuration names: that is no place for
            root unless root alone can write there (`open_repository`).
        folder: the repository or a folder in it, absolute.
        reader: that user where it is not pgstrata's own.
        of: what it holds, in words.
    """

    here: Host
    folder: str
    reader: UserIds | None = None
    of: str = "PostgreSQL"

    def range(self, text: str) -> tuple[Commit, ...]:
        """GOOD, then the first-parent commits of BAD that GOOD does not have, the oldest first.

        Args:
            text: GOOD..BAD.

        Raises:
            UsageError: this is no repository or no range, a commit is unknown, or GOOD is no ancestor of BAD.
            HostNotFitError: there is no git.
        """
        good, dots, bad = text.partition("..")
        if not (good and dots and bad) or bad.startswith("."):
            raise UsageError(f"{text!r} is not a valid range of commits", where="--git", remedy="write GOOD..BAD")
        self._require()
        first, last = self._commit(good, "--git"), self._commit(bad, "--git")
        if self._git("merge-base", "--is-ancestor", first, last).code != 0:
            raise UsageError(f"{good} is not an ancestor of {bad}", where="--git", remedy=self._base(first, last))
        found = self._checked("log", "--first-parent", "--reverse", _FORMAT, f"{first}..{last}").text
        head = self._checked("log", "-1", _FORMAT, first).text
        commits = tuple(_read_commit(line) for line in (head + found).split("\n") if line)
        if len(commits) == 1:
            raise UsageError(f"there is no commit in {text}", where="--git", remedy="name two that are apart")
        return commits

    def find(self, name: str, where: str) -> str:
        """The full hash of a commit, by what people call it.

        Args:
            name: a branch, a tag, a hash, whatever git takes for a commit.
            where: what asked for it, for errors.

        Raises:
            UsageError: this is no repository, or has no such commit.
            HostNotFitError: there is no git.
        """
        self._require()
        return self._commit(name, where)

    def tree(self, commit: str) -> str:
        """The name of what is in a commit; HostFileError where the repository is damaged."""
        return self._inside("rev-parse", "--verify", f"{commit}^{{tree}}").text.strip()

    def holds(self, commit: str, names: Collection[str]) -> frozenset[str]:
        """Which of these files a commit has, as paths from its top; HostFileError where it cannot be read."""
        return frozenset(self._inside("ls-tree", "--full-tree", "--name-only", commit, "--", *names).text.splitlines())

    def text(self, commit: str, name: str) -> str:
        """A file of a commit, by its path from the top; HostFileError where it cannot be read."""
        return self._inside("cat-file", "blob", f"{commit}:{name}").text

    def names(self, commit: str) -> tuple[str, ...]:
        """Names of files and folders at the top of a commit; HostFileError where it cannot be read."""
        listed = self._inside("ls-tree", "--full-tree", "--name-only", "-z", commit).text
        return tuple(name for name in listed.split("\0") if name)

    def export(self, commit: str, only: str = "") -> bytes:
        """A commit as a tarball (gzip) with one folder in it. The work tree of the repository plays no part.

        Args:
            commit: its full hash.
            only: one of its `names`. A whole kernel would take 300 MB of memory, packed.

        Raises:
            HostFileError: git cannot read the commit.
        """
        # as it is written: names are patterns otherwise
        path = ("--", f":(top,literal){only}") if only else ()
        return self._inside("archive", "--format=tar.gz", "-1", "--prefix=source/", commit, *path).stdout

    def _require(self) -> None:
        done = self._git("rev-parse", "--git-dir")
        if done.code != 0:
            raise UsageError(
                "there is no git repository that can be read",
                where=self.folder,
                details=done.last_words(),
                remedy=f"name a clone of the repository of {self.of}",
            )

    def _commit(self, name: str, where: str) -> str:
        # what begins with a hyphen would be an option, and is no name of a commit either
        done = None if name.startswith("-") else self._git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
        if done is None or done.code != 0:
            raise UsageError(
                f"there is no commit {name!r} in {self.folder}",
                where=where,
                remedy="`git log` lists commits, `git branch -a` and `git tag` names; perhaps `git fetch` brings it",
            )
        return done.text.strip()

    def _base(self, first: str, last: str) -> str:
        if self._git("merge-base", "--is-ancestor", last, first).code == 0:
            return "swap them: the older one comes first"
        done = self._git("merge-base", first, last)
        return f"both descend from {done.text.strip()[:12]}" if done.code == 0 else "name commits of one history"

    def _inside(self, *arguments: str) -> Completed:
        """Said of the whole repository, whichever folder of its work tree was named."""
        folder = self._checked("rev-parse", "--absolute-git-dir").text.strip()
        return self._checked(f"--git-dir={folder}", *arguments)

    def _checked(self, *arguments: str) -> Completed:
        done = self._git(*arguments)
        if done.code == 0:
            return done
        lines, what = done.last_words(), "git cannot read the repository"
        if find_disk_full("\n".join(lines)):
            raise DiskFullError(what, where=self.folder, details=lines, remedy=DISK_REMEDY)
        raise HostFileError(what, where=self.folder, details=lines, remedy="see what `git fsck` says of it")

    def _git(self, *arguments: str) -> Completed:
        clean = ("env", *(word for name in _NOT_INHERITED for word in ("-u", name)))
        command = Command(
            argv=(*clean, "git", "-c", "log.showSignature=false", "-C", self.folder, *arguments),
            environment=_ENVIRONMENT,
            folder="/",
            memory=sizes.PROGRAM,
        )
        done = self.here.run(command, timeout=_TIMEOUT, check=False)
        if done.code == 127:  # noqa: PLR2004 - what env says of a program that is not there
            raise HostNotFitError("git is missing on this machine", remedy="install the package git")
        return done


def open_repository(here: Host, folder: str, of: str = "PostgreSQL") -> Repository:
    """A repository, which root reads as the user who could replace it; HostNotFitError if there are several."""
    reader = find_reader(folder)
    return Repository(here=here.as_user(reader.name) if reader else here, folder=folder, reader=reader, of=of)


def _read_commit(line: str) -> Commit:
    fields = line.split("\0")
    if len(fields) != _FIELDS:
        raise PgstrataError("git lists commits in an unknown form", where=line[:80], remedy="report it as a defect")
    return Commit(hash=fields[0], date=fields[1], subject=fields[3], merged=" ".join(fields[2].split()[1:]))
