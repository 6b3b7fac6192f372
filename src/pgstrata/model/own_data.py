"""Data of the user's own: a dump, SQL, files to be copied, or a command that fills an empty database."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final


class DumpForm(StrEnum):
    """How a dump of pg_dump is stored, as its first bytes tell it; NONE is anything else."""

    CUSTOM = "custom"
    TAR = "tar"
    DIRECTORY = "directory"
    NONE = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """A file that data are made of, or a folder of such files.

    `name` is as written, `path` absolute on the machine of the client. `digest` is the SHA-256 of its contents, empty
    while it was not read; `bytes` the size; `stamp` changes with each change of the file, as far as its times tell.
    """

    name: str
    path: str
    digest: str
    bytes: int
    stamp: str = ""
    form: DumpForm = DumpForm.NONE

    @property
    def content(self) -> str:
        """What stands for its contents."""
        return self.digest or self.stamp


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedFile:
    """A file that COPY reads into a table; `options` stand in the brackets behind WITH."""

    table: str
    file: DataFile
    options: str


_GROWTH: Final[Mapping[DumpForm, float]] = {
    DumpForm.CUSTOM: 6.0,  # compressed, and without indexes
    DumpForm.DIRECTORY: 6.0,
    DumpForm.TAR: 1.5,
    DumpForm.NONE: 1.5,
}
"""Bytes of data with indexes for each byte of a file: guesses, which `size` replaces."""
_UNKNOWN: Final = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnData:
    """How data of the user's own come into an empty database: one of `dump`, `sql` and `command`.

    `copies` follow `sql`. `files` are others that the data depend on. `checks` and `consistency` are queries as in
    `DataKind`. `size` is bytes on disk, 0 where nobody gave it. `folder` is where the experiment file lies, and where
    the command works; its first word is as written.
    """

    dump: DataFile | None = None
    sql: DataFile | None = None
    copies: tuple[CopiedFile, ...] = ()
    command: tuple[str, ...] = ()
    files: tuple[DataFile, ...] = ()
    checks: str = ""
    consistency: str = ""
    size: int = 0
    folder: str = field(default="")

    @property
    def inputs(self) -> tuple[DataFile, ...]:
        """All files that the data are made of."""
        main = (each for each in (self.dump, self.sql) if each is not None)
        return (*main, *(copy.file for copy in self.copies), *self.files)

    @property
    def digest(self) -> str:
        """SHA-256 of all that the data depend on: contents and words, not names of files."""
        return hashlib.sha256("\0".join(self._parts()).encode("utf-8", "surrogateescape")).hexdigest()

    def _parts(self) -> Iterator[str]:
        yield self.dump.content if self.dump else ""
        yield self.sql.content if self.sql else ""
        for copy in self.copies:
            yield from (copy.table, copy.options, copy.file.content)
        yield from ("", *self.command, "")
        yield from (file.content for file in self.files)
        yield from (self.checks, self.consistency)

    @property
    def estimate(self) -> int:
        """Bytes on disk: as given, or a guess by the sizes of the files."""
        if self.size or self.command:
            return self.size or _UNKNOWN
        read = (file for file in self.inputs if file not in self.files)
        return round(sum(file.bytes * _GROWTH[file.form] for file in read))

    @property
    def title(self) -> str:
        """For people: where the data come from."""
        if self.dump is not None:
            return f"the dump {self.dump.name}"
        if self.sql is not None:
            tables = ", ".join(copy.table for copy in self.copies)
            return f"{self.sql.name} with files for {tables}" if tables else self.sql.name
        return f"the command {self.command[0]}" if self.command else ""
