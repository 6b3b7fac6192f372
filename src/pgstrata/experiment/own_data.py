"""The table `data` of a cell: files are looked at, never read here; secrets are refused where they would be kept."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from pgstrata.errors import PgstrataError
from pgstrata.experiment.findings import Findings
from pgstrata.experiment.keys import Path
from pgstrata.experiment.schema import CellTable, DataTable
from pgstrata.experiment.servers import mask_conninfo
from pgstrata.experiment.stacks import StackReader, reason_of
from pgstrata.model.experiment import Cell, Environment
from pgstrata.model.own_data import CopiedFile, DataFile, DumpForm, OwnData
from pgstrata.units import render_bytes

_TABLE: Final = re.compile(r'(?:[A-Za-z_][\w$]*|"[^"\0]+")(?:\.(?:[A-Za-z_][\w$]*|"[^"\0]+"))?', re.ASCII)
_OPTIONS: Final = re.compile(r"[^\n\r\0\\()]*(?:\([^\n\r\0\\()]*\)[^\n\r\0\\()]*)*")
_SECRET: Final = re.compile(
    r"-{0,2}(?:\w+[-_])*(?:pg)?(?:password|passwd|pass|pwd|passphrase|secret|token|api[-_]?key)(?:=.*)?",
    re.IGNORECASE | re.DOTALL,
)
_ONE: Final = 'write one of { dump = "prod.dump" }, { sql = "make.sql" }, { command = ["./fill"] }'


def read_data(table: CellTable, path: Path, reader: StackReader) -> OwnData | None:
    """Data of the user's own; None where the cell has none or they cannot be read, which is noted."""
    data, place = table.data, (*path, "data")
    if data is None:
        return None
    if not table.scripts and not reader.findings.touches((*path, "scripts")):
        remedy = 'add scripts = [{ file = "script.sql", weight = 1 }], which run on these data'
        reader.findings.add(place, "data of your own need scripts of your own", remedy)
    if table.scale:
        what = "the scale does not apply to data of your own: their size is fixed"
        reader.findings.add((*path, "scale"), what, "take scale out of this cell")
    return _Data(reader, place).read(data)


class _Data:
    def __init__(self, reader: StackReader, place: Path) -> None:
        self._reader = reader
        self._place = place

    def read(self, data: DataTable) -> OwnData | None:
        ways = [name for name in ("dump", "sql", "command") if getattr(data, name)]
        if len(ways) != 1:
            given = f"are given by {' and '.join(ways)} at once" if ways else "have neither dump, sql nor command"
            if ways or not self._reader.findings.touches(self._place):
                self._note((), f"the data {given}", _ONE)
            return None
        if data.copy and data.sql is None:
            remedy = f'write sql = "schema.sql" instead of {ways[0]}'
            self._note(("copy",), "copy needs sql, which makes the tables", remedy)
        self._check_words(data.command)
        return OwnData(
            dump=self._look_at_dump(data.dump),
            sql=self._look_at_sql(data.sql),
            copies=tuple(self._copies(data.copy)),
            command=data.command,
            files=tuple(file for name in data.files if (file := self._look_at(name, ("files",))) is not None),
            checks=self._query(data.checks, "checks"),
            consistency=self._query(data.consistency, "consistency"),
            size=data.size or 0,
        )

    def _note(self, keys: Sequence[str], what: str, remedy: str) -> None:
        self._reader.findings.add((*self._place, *keys), what, remedy)

    def _look_at(self, name: str, keys: Sequence[str]) -> DataFile | None:
        try:
            return self._reader.look_at(name)
        except (OSError, ValueError, PgstrataError) as error:
            what = f"the file {mask_conninfo(name)!r} {reason_of(error)}"
            self._note(keys, what, "paths are relative to the experiment file")
            return None

    def _look_at_dump(self, name: str | None) -> DataFile | None:
        file = None if name is None else self._look_at(name, ("dump",))
        if file is not None and file.form is DumpForm.NONE:
            self._note(
                ("dump",),
                f"{file.name!r} is not a dump in the custom, directory or tar format of pg_dump",
                'give a dump in plain SQL as sql = "..."; a folder that pg_dump -Fd made contains toc.dat',
            )
        return file

    def _look_at_sql(self, name: str | None) -> DataFile | None:
        file = None if name is None else self._look_at(name, ("sql",))
        if file is not None and file.form is not DumpForm.NONE:
            what = f"{file.name!r} is not SQL but a dump in the {file.form} format"
            self._note(("sql",), what, "write dump = ... instead of sql")
        return file

    def _copies(self, given: Mapping[str, tuple[str, str]]) -> Iterable[CopiedFile]:
        for table, (name, options) in given.items():
            if not _TABLE.fullmatch(table):
                self._note(("copy",), f"{table!r} is not the name of a table", 'write orders, or "schema.orders"')
                continue
            if not _OPTIONS.fullmatch(options):
                what = "the options of COPY contain a line break, a backslash or unbalanced parentheses"
                remedy = "write them as in the parentheses of COPY: \"FORMAT csv, HEADER, DELIMITER ';'\""
                self._note(("copy", table), what, remedy)
            if (file := self._look_at(name, ("copy", table))) is not None:
                usual = "FORMAT csv" if name.lower().endswith(".csv") else "FORMAT text"
                yield CopiedFile(table=table, file=file, options=options or usual)

    def _query(self, name: str | None, key: str) -> str:
        return "" if name is None else self._reader.read_text(name, (*self._place, key)) or ""

    def _check_words(self, words: Sequence[str]) -> None:
        for index, word in enumerate(words):
            if mask_conninfo(word) != word or (index and _SECRET.fullmatch(word)):
                self._note(
                    ("command",),
                    "a word of the command looks like a password (it is not shown)",
                    "let the command read it from a file or an environment variable: its words are kept with the study",
                )
                return


def check_hosts(tables: Sequence[CellTable], environments: Iterable[Environment], findings: Findings) -> None:
    """Note a command that would have to run on another machine; files are sent there."""
    apart = next((each.host.text for each in environments if each.host.remote), None)
    index = next((index for index, table in enumerate(tables) if table.data is not None and table.data.command), None)
    if apart is not None and index is not None:
        findings.add(
            ("cells", index, "data", "command"),
            f"a command of your own is not run on other hosts, and a server runs on {apart}",
            "start pgstrata on that host, or give a dump, SQL or files for COPY, which are sent there",
        )


def notes_on_data(cells: Iterable[Cell]) -> tuple[str, ...]:
    """Sizes that are guessed, and files that were not read."""
    known = {cell.data.digest: cell.data for cell in cells if cell.data is not None}
    notes = []
    for data in known.values():
        if not data.size:
            guess = f"about {render_bytes(data.estimate)} on disk, which is a guess"
            notes.append(f'data by {data.title}: {guess}; size = "..." in data replaces it')
        unread = ", ".join(file.name for file in data.inputs if not file.digest)
        if unread:
            notes.append(f"too large to be read for a plan: {unread}; `run` reads it, which fixes the plan's identity")
    return tuple(notes)
