"""Servers that somebody else runs (dsn:): restarted by the user's own command where there is one, else left alone."""

from __future__ import annotations

import shlex
from typing import Final

from pgstrata.errors import CommandFailedError, ServerFailedError, SqlError
from pgstrata.model.experiment import Environment
from pgstrata.model.launch import Launch, Needs
from pgstrata.model.server import Address, Build
from pgstrata.ports.host import Clock, Command, Host
from pgstrata.ports.server import Clone, Dataset, RunningServer, Sql
from pgstrata.ports.steps import Steps

RESTART_TIMEOUT: Final = 600.0
"""Seconds that the user's command may take; a server with much to write back stops slowly."""
_READY_TIMEOUT: Final = 120.0
_POLL: Final = 0.2
_STARTED: Final = "SELECT pg_postmaster_start_time()"
# Not through a pipe: a server that the command starts inherits its output, and would keep the pipe open.
_RUN: Final = """\
said=$(mktemp) || exit
trap 'rm -f "$said"' EXIT
"$@" >"$said" 2>&1 </dev/null
code=$?
tail -c 2000 "$said" >&2
exit $code
"""


class RunningControl:
    """Implements `ports.ServerControl` for a server that somebody else runs.

    Args:
        address: how it is reached.
        sql: statements to it.
        here: this machine, as the user who started pgstrata; restart commands are executed there.
        clock: of the coordinator.
    """

    def __init__(self, address: Address, *, sql: Sql, here: Host, clock: Clock) -> None:
        self._address = address
        self._sql = sql
        self._here = here
        self._clock = clock

    def needs(self, environment: Environment, build: Build, dataset: Dataset) -> Needs:  # noqa: ARG002 - the Protocol's
        """Nothing: it has its memory already."""
        return Needs()

    def start(
        self, environment: Environment, build: Build, clone: Clone, launch: Launch | None = None
    ) -> RunningServer:
        """The address of the clone's database, once the server has been restarted if there is a command for it."""
        address = self._address.with_database(clone.database)
        if environment.server.restart:
            self._restart(environment, address)
        return RunningServer(
            environment=environment,
            build=build,
            clone=clone,
            address=address,
            postmaster_pid=None,
            launch=launch or Launch(),
        )

    def starting(
        self, environment: Environment, build: Build, clone: Clone, launch: Launch | None = None
    ) -> Steps[RunningServer]:
        """In one step: a restart is the user's command, which runs alone."""
        yield from ()
        return self.start(environment, build, clone, launch)

    def _restart(self, environment: Environment, address: Address) -> None:
        before = self._sql.query(address, _STARTED).value()
        argv = environment.server.restart
        where = f"environment {environment.name}, {shlex.join(argv)}"
        try:
            self._here.run(Command(argv=("sh", "-c", _RUN, "sh", *argv)), timeout=RESTART_TIMEOUT)
        except CommandFailedError as error:
            raise ServerFailedError(
                "the restart command of [restart] failed",
                where=where,
                details=error.details or (error.what,),
                remedy="run it by hand as the user who starts pgstrata; it must return once the server has restarted",
            ) from error
        if self._await_answer(address, where) == before:
            raise ServerFailedError(
                "the restart command of [restart] succeeded, but the server was not restarted",
                where=where,
                remedy="check that it restarts the server of this connection string",
            )

    def _await_answer(self, address: Address, where: str) -> str:
        """When the server was started, as soon as it says so."""
        deadline = self._clock.monotonic() + _READY_TIMEOUT
        while True:
            try:
                return self._sql.query(address, _STARTED).value()
            except SqlError as error:
                if self._clock.monotonic() >= deadline:
                    raise ServerFailedError(
                        f"the server did not answer within {_READY_TIMEOUT:.0f} s after its restart",
                        where=where,
                        details=(error.what,),
                        remedy="see its log",
                    ) from error
            self._clock.sleep(_POLL)

    def alive(self, server: RunningServer) -> bool:  # noqa: ARG002 - the Protocol's
        """Unknown from here; a statement that fails will tell."""
        return True

    def stop(self, server: RunningServer) -> None:
        """Nothing: it is not ours."""

    def stopping(self, server: RunningServer) -> Steps[None]:  # noqa: ARG002 - the Protocol's
        """Nothing: it is not ours."""
        yield from ()

    def log(self, server: RunningServer) -> bytes:  # noqa: ARG002 - the Protocol's
        """Nothing: its log is not ours to read."""
        return b""
