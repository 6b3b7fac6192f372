"""Data of the user's own into an empty database: by pg_restore, psql, COPY, or a command of the user's.

Files are read by these programs, never by pgstrata, so that they may be larger than memory. A server on another machine
is filled there, with files that were sent. Everything runs as the user of servers, who must be able to read the files;
a command of the user's never runs as root.
"""

from __future__ import annotations

import hashlib
import itertools
import posixpath
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final

from pgstrata.errors import CommandFailedError, HostNotFitError, ServerFailedError
from pgstrata.libpq import compose_connection, quote_literal
from pgstrata.model.own_data import CopiedFile, DataFile, DumpForm, OwnData
from pgstrata.model.server import Address, Build
from pgstrata.ports.host import Command, Host
from pgstrata.ports.server import Sql
from pgstrata.ports.steps import finish_all

PG_RESTORE: Final = "pg_restore"
_TIMEOUT: Final = 12 * 3600.0
_JOBS: Final = 4  # each table is still filled by one session
_SIDE_BY_SIDE: Final = 8
_SUM: Final = 'sha256sum < "$1"'
_SUMS: Final = 'cd -- "$1" && find . -type f -print0 | xargs -0 sha256sum --'
_STAMP: Final = "%d:%i:%s:%Y"
_PARALLEL: Final = frozenset({DumpForm.CUSTOM, DumpForm.DIRECTORY})


def load_own_data(host: Host, sql: Sql, tools: Build, address: Address, data: OwnData) -> None:
    """Fill an empty database; whoever calls this throws it away if anything is raised.

    Raises:
        HostNotFitError: a file cannot be read there, or has changed since its digest was taken; the command would run
            as root.
        CommandFailedError, ServerFailedError, DiskFullError: a loader failed, with its last lines.
    """
    _require_unchanged(host, data.inputs)
    if data.dump is not None:
        _restore(host, tools, address, data.dump)
    if data.sql is not None:
        sql.execute(address, include(data.sql.path))
    for first in range(0, len(data.copies), _SIDE_BY_SIDE):
        several = data.copies[first : first + _SIDE_BY_SIDE]
        finish_all([sql.executing(address, copy_in(copy)) for copy in several])
    if data.command:
        _run_command(host, address, data)
    _require_unchanged(host, data.inputs)


def bring_files(data: OwnData, bring: Callable[[DataFile, str], DataFile], folder: str) -> OwnData:
    """The same data with the files that are loaded where `bring` puts them, each into a folder of its own."""
    places = (f"{folder}/{number}" for number in itertools.count())
    return replace(
        data,
        dump=data.dump and bring(data.dump, next(places)),
        sql=data.sql and bring(data.sql, next(places)),
        copies=tuple(replace(copy, file=bring(copy.file, next(places))) for copy in data.copies),
        files=(),
    )


def digest_there(host: Host, file: DataFile) -> str:
    """The digest of a file's contents where it lies now, as `DataFile` has it."""
    if file.form is not DumpForm.DIRECTORY:
        return host.run(Command(argv=("sh", "-c", _SUM, "sh", file.path)), timeout=_TIMEOUT).text.split()[0]
    said = host.run(Command(argv=("sh", "-c", _SUMS, "sh", file.path)), timeout=_TIMEOUT).text
    sums = sorted((name, digest) for digest, _, name in (line.partition("  ./") for line in said.splitlines()))
    whole = "".join(f"{name}\0{digest}\0" for name, digest in sums)
    return hashlib.sha256(whole.encode("utf-8", "surrogateescape")).hexdigest()


def include(path: str) -> str:
    """A script that has psql work through a file, as psql reads it: with its line in errors, and never as a whole."""
    return "\\i '{}'\n".format(path.replace("\\", "\\\\").replace("'", "''"))


def copy_in(copy: CopiedFile) -> str:
    """A script that copies a file into its table, through the client; psql takes the path as a literal of SQL."""
    return f"\\copy {copy.table} FROM {quote_literal(copy.file.path)} WITH ({copy.options})\n"


def _witness(file: DataFile) -> str:
    """The file that is looked at for changes: of a folder that pg_dump makes the one that it writes last."""
    return f"{file.path}/toc.dat" if file.form is DumpForm.DIRECTORY else file.path


def _require_unchanged(host: Host, files: Sequence[DataFile]) -> None:
    for file in files:
        path = _witness(file)
        found = host.run(Command(argv=("stat", "-L", "-c", _STAMP, "--", path)), check=False)
        if found.code or host.run(Command(argv=("test", "-r", path)), check=False).code:
            raise HostNotFitError(
                f"the file {file.name} cannot be read by the user {host.user}, who loads data",
                where=path,
                remedy=f"let that user read it and enter all folders above it, or put it where {host.user} may",
            )
        if file.stamp and found.text.strip() != file.stamp:
            raise HostNotFitError(
                f"the file {file.name} has changed since its digest was taken",
                where=path,
                remedy="wait until it is complete, and start again",
            )


def _restore(host: Host, tools: Build, address: Address, dump: DataFile) -> None:
    connection = compose_connection(address)
    parallel = ("--jobs", str(_JOBS)) if dump.form in _PARALLEL else ()
    options = ("--no-owner", "--no-privileges", "--exit-on-error", *parallel)
    command = Command(
        argv=(tools.program(PG_RESTORE), *options, "--dbname", *connection.arguments, dump.path),
        environment={**tools.process_environment, **connection.environment, "PGAPPNAME": "pgstrata", "LC_ALL": "C"},
        password=connection.password,
        memory=tools.memory,
    )
    try:
        host.run(command, timeout=_TIMEOUT)
    except CommandFailedError as error:
        raise ServerFailedError(
            f"the dump {dump.name} could not be restored: {error.what}",
            where=dump.path,
            details=error.details,
            remedy=_remedy_of_restore(error.details, tools),
        ) from error


def _remedy_of_restore(said: Iterable[str], tools: Build) -> str:
    text = "\n".join(said)
    if "unsupported version" in text:
        return (
            f"pg_restore {tools.version.text} does not know this format: make the dump with the pg_dump of the oldest "
            "server that is compared"
        )
    return "the dump must restore into an empty database without errors: leave out what does not (pg_dump -n, -T)"


def _run_command(host: Host, address: Address, data: OwnData) -> None:
    program, *words = data.command
    if host.user == "root":
        raise HostNotFitError(
            "a command that makes data is never run as root",
            where=program,
            remedy="start pgstrata as an ordinary user",
        )
    path = posixpath.normpath(posixpath.join(data.folder, program)) if "/" in program else program
    connection = compose_connection(address)
    command = Command(
        argv=(path, *words),
        environment={**connection.environment, "PGAPPNAME": "pgstrata"},
        password=connection.password,
        folder=data.folder or None,
    )
    try:
        host.run(command, timeout=_TIMEOUT)
    except CommandFailedError as error:
        raise ServerFailedError(
            f"the command that makes the data failed: {error.what}",
            where=program,
            details=error.details,
            remedy="correct it, and start again: nothing of what it made is used",
        ) from error
