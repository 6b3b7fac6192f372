"""Statements to a server through psql: the same libpq, the same path and the same host as the load generator's.

A database library in this process would need every server's socket to be reachable from here, which is not so for a
unix socket on another host; psql runs wherever `ports.Host` can run a command.
"""

from __future__ import annotations

import csv
import io
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from pgstrata.errors import DatabaseFullError, PgstrataError, SqlError, find_disk_full
from pgstrata.libpq import compose_connection
from pgstrata.model.server import Address, Build
from pgstrata.ports.host import Command, Completed, Host, Process, StopSignal
from pgstrata.ports.server import BACKEND, PartAnswer, QueryResult
from pgstrata.ports.steps import Steps

# Large data take their time: reading them all, VACUUM, a checkpoint.
_QUERY_TIMEOUT = 3600.0
_SCRIPT_TIMEOUT = 12 * 3600.0
_OPTIONS = ("-X", "-v", "VERBOSITY=verbose")
_STOPPING = ("-v", "ON_ERROR_STOP=1")
_AS_SCRIPT = ("-q", "-f", "-")
_ERROR = re.compile(r"(?:ERROR|FATAL|PANIC):\s+(?P<what>.*)")
_STATED = re.compile(r": {2}(?P<state>[0-9A-Z]{5}): (?P<what>.*)")
"""The SQLSTATE and the text of an error, whatever the language of the word before it."""
_NO_ERROR = ("00", "01")
"""Beginnings of the SQLSTATEs of notices and warnings, which may stand before the error."""
_PLACE = re.compile(r"^psql:(?!<stdin>)(?P<place>.+:\d+): (?:ERROR|FATAL|PANIC|error):", re.MULTILINE)
"""File and line of a script that psql was told to include."""
_NO_CONNECTION = 2
"""Exit code of psql where there was no connection, or it was lost."""
_NO_SLOT = ("too many clients", "too many connections", "connection slots are reserved")
"""What 53300 says, which psql tells without its SQLSTATE while it connects."""
_WITHOUT_JIT = """\
SELECT CASE WHEN pg_catalog.current_setting('server_version_num')::int >= 110000
            THEN pg_catalog.set_config('jit', 'off', false) END AS jit \\gset
"""


@dataclass(frozen=True, slots=True)
class PsqlSql:
    """Implements `ports.Sql` with the psql of a build on a host."""

    host: Host
    tools: Build

    def query(self, address: Address, statement: str) -> QueryResult:
        done = self._psql(address, ("--csv", "-c", statement), b"", _QUERY_TIMEOUT)
        lines = list(csv.reader(io.StringIO(done.text)))
        if not lines:
            return QueryResult(columns=(), rows=())
        return QueryResult(columns=tuple(lines[0]), rows=tuple(tuple(line) for line in lines[1:]))

    def execute(self, address: Address, script: str) -> None:
        self._psql(address, _AS_SCRIPT, script.encode(), _SCRIPT_TIMEOUT)

    def executing(self, address: Address, script: str) -> Steps[None]:
        command = self._command(address, _AS_SCRIPT, script.encode())
        _checked(address, (yield from self.host.running(command, timeout=_SCRIPT_TIMEOUT, check=False)))

    def answers(self, address: Address, parts: Sequence[str]) -> tuple[PartAnswer, ...]:
        mark = f"@{secrets.token_hex(8)}."
        script = "".join(f"{part}\n\\echo {mark}{place}\n\\warn {mark}{place}\n" for place, part in enumerate(parts))
        options = ("-q", "-t", "-A", "-v", "ON_ERROR_STOP=0", "-f", "-")
        done = self._psql(address, options, script.encode(), _QUERY_TIMEOUT)
        marks = re.compile(rf"^{re.escape(mark)}[0-9]+\n", re.MULTILINE)
        outputs, complaints = marks.split(done.text), marks.split(done.stderr.decode("utf-8", "replace"))
        found = [_answer(*each) for each in zip(outputs[:-1], complaints[:-1], strict=False)]
        return (*found, *[PartAnswer()] * (len(parts) - len(found)))

    def watch(self, address: Address, script: str, *, folder: str, name: str) -> Process:
        path = f"{folder}/{name}.sql"
        self.host.write(path, f"{_begin_watch(f'{folder}/{name}{BACKEND}')}{script}".encode())
        command = self._command(address, ("-q", "-t", "-A", "-F", "\t", "-f", path), b"")
        return self.host.spawn(
            command, stdout=f"{folder}/{name}", stderr=f"{folder}/{name}.err", on_parent_death=StopSignal.KILL
        )

    def _psql(self, address: Address, arguments: tuple[str, ...], stdin: bytes, timeout: float) -> Completed:
        return _checked(address, self.host.run(self._command(address, arguments, stdin), timeout=timeout, check=False))

    def _command(self, address: Address, arguments: tuple[str, ...], stdin: bytes) -> Command:
        return compose_psql(self.tools, address, (*_STOPPING, *arguments), stdin)


def compose_psql(tools: Build, address: Address, arguments: tuple[str, ...], stdin: bytes = b"") -> Command:
    """How psql is started for a server."""
    connection = compose_connection(address)
    return Command(
        argv=(tools.program("psql"), *_OPTIONS, *arguments, *connection.arguments),
        environment={
            **tools.process_environment,
            "PGCONNECT_TIMEOUT": "10",
            **connection.environment,
            "PGAPPNAME": "pgstrata",
            "PGCLIENTENCODING": "UTF8",
            "LC_ALL": "C",
        },
        password=connection.password,
        stdin=stdin,
        memory=tools.memory,
    )


def _begin_watch(path: str) -> str:
    """A script that writes the process id of its session into a file of psql's host.

    The session compiles nothing, where its server can at all (from 11 on): with a low jit_above_cost a statement that
    is given again and again would be compiled each time.
    """
    quoted = path.replace("\\", "\\\\").replace("'", "''")
    return f"\\o '{quoted}'\nSELECT pg_catalog.pg_backend_pid();\n\\o\n{_WITHOUT_JIT}"


def _checked(address: Address, done: Completed) -> Completed:
    if done.code != 0:
        raise explain_failure(address, done.stderr, lost=done.code == _NO_CONNECTION)
    return done


def _answer(output: str, complaints: str) -> PartAnswer:
    found = find_error(complaints)
    return PartAnswer(output=output, sqlstate=found[0], error=found[1]) if found else PartAnswer(output=output)


def find_error(complaints: str) -> tuple[str, str] | None:
    """The SQLSTATE and the text of the first error that psql complains of in its verbose way; None without one.

    Its variables do not tell of a statement that was sent on by psql itself.
    """
    for match in _STATED.finditer(complaints):
        if not match["state"].startswith(_NO_ERROR):
            return match["state"], match["what"].strip()
    return None


def explain_failure(address: Address, complaints: bytes, *, lost: bool = False) -> PgstrataError:
    """The error that psql's complaints tell of; `lost`: there was no connection, or it was lost."""
    text = complaints.decode("utf-8", "replace").strip()
    state, what = find_error(text) or ("", _unstated(text))
    service = f"the service {address.parameters['service']}" if "service" in address.parameters else "the server"
    place = f"database {address.database} at {address.host or 'service'}" if address.database else service
    if included := _PLACE.search(text):
        place = f"{included['place']}, {place}"
    if find_disk_full(text):
        remedy = "free space where the server's data lie"
        return DatabaseFullError(what, host=address.host, port=address.port, where=place, remedy=remedy)
    return SqlError(what, sqlstate=state, where=place, remedy=_remedy(state, what, lost=lost))


def _unstated(text: str) -> str:
    """The error in complaints that have no SQLSTATE."""
    if match := _ERROR.search(text):
        return match["what"].strip()
    return (text.splitlines() or ["psql failed without a message"])[0].removeprefix("psql: error: ")


def _remedy(state: str, what: str, *, lost: bool) -> str:
    if state.startswith("28") or "password" in what:
        return "check user, password (PGPASSWORD, ~/.pgpass or the service file) and pg_hba.conf"
    if state == "53300" or any(words in what for words in _NO_SLOT):
        return "raise max_connections, or use fewer clients"
    if what.startswith("definition of service"):
        return "write host=NAME dbname=NAME for a machine, or add the service to ~/.pg_service.conf (or PGSERVICEFILE)"
    if lost and what.startswith("database ") and what.endswith(" does not exist"):
        return "check the name of the database; psql -l lists those that there are"
    if lost:
        return "check that the server runs and that host and port are right"
    return ""
