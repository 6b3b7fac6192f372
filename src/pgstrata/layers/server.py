"""The layer `server`: starts a build's postgres on a clone, stops it, and asserts from inside what runs.

A server is a child of the host's transport and is told to stop when the coordinator dies. Its marker beside the data
says which pgstrata started it, so that a leftover can be recognised.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from contextlib import suppress
from ipaddress import ip_network
from typing import Final

from pgstrata.errors import DiskFullError, LevelNotTakenError, ServerFailedError, find_disk_full
from pgstrata.layers.needs import find_needs
from pgstrata.layers.settings import render_settings
from pgstrata.model import sizes
from pgstrata.model.experiment import ConnectionKind, Environment, HostSpec, ServerKind
from pgstrata.model.launch import Launch, Needs
from pgstrata.model.old_servers import CHECKSUMS_SINCE, WAL_BLOCK_SIZE_SINCE, settings_of_its_time
from pgstrata.model.secret import Secret
from pgstrata.model.server import Address, Build, TcpRoute
from pgstrata.ports.host import Clock, Command, Host, Process, StopSignal
from pgstrata.ports.server import Clone, Dataset, RunningServer, Sql
from pgstrata.ports.steps import Steps, finish

USER: Final = "pgstrata"
SETTINGS_FILE: Final = "pgstrata.conf"
ACCESS_FILE: Final = "pg_hba.conf"
PASSWORD_FILE: Final = "pgstrata.password"  # noqa: S105 - a name, no password
_START_TIMEOUT: Final = 120.0
# What layers put in front of the server may first write back a clone of many gigabytes to a slow disk.
_WORDS_TIMEOUT: Final = 1800.0
_STOP_TIMEOUT: Final = 120.0
_POLL: Final = 0.02
_PORT_TRIES: Final = 5
# Below Linux's default range of ephemeral ports, so that an outgoing connection rarely holds one.
_PORTS: Final = range(15432, 32000)
_FATAL: Final = ("FATAL:", "PANIC:")
"""Severities with which a server logs why it ended."""
_ENDED: Final = "database system is shut down"
_LOG_TAIL: Final = 8
# The kind of key that most certificates have today; the same for every arm.
_CERTIFICATE: Final = (
    "openssl", "req", "-new", "-x509", "-nodes", "-days", "3650", "-subj", "/CN=localhost",
    "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
)  # fmt: skip
_WAL_SEGMENT_BYTES: Final = 16 * 1024 * 1024
_STATUS_LINE: Final = 7
_CRASHED: Final = b"all server processes terminated; reinitializing"
_READY: Final = b"ready to accept connections"


def render_access(way: TcpRoute) -> bytes:
    """Who may come in by TCP: with a password, from the clients' addresses and from the server's own machine.

    md5 takes SCRAM too, where a dataset's password is stored as such.
    """
    clients = dict.fromkeys(("127.0.0.1", *way.clients))
    lines = (f"host all all {ip_network(client)} md5\n" for client in clients)
    return "".join(("local all all trust\n", *lines)).encode()


class ClusterControl:
    """Implements `ports.ServerControl` for clusters of our own.

    Args:
        host: where they run, as the user that they run as.
        clock: of the coordinator.
        socket_root: a folder for their unix sockets, below one whose path is short enough (`servers.places`).
        ways: how clients reach them by TCP, by `Environment.client_hosts`; those on their own machine need no entry.
    """

    def __init__(
        self,
        host: Host,
        clock: Clock,
        socket_root: str,
        ways: Mapping[tuple[HostSpec, ...], TcpRoute] | None = None,
    ) -> None:
        self._host = host
        self._clock = clock
        self._socket_root = socket_root
        self._ways = ways or {}
        self._processes: dict[int, Process] = {}

    def needs(self, environment: Environment, build: Build, dataset: Dataset) -> Needs:
        """The shared memory that the server will ask for, as it says itself; ServerFailedError if it does not."""
        return find_needs(self._host, environment, build, dataset)

    def start(
        self, environment: Environment, build: Build, clone: Clone, launch: Launch | None = None
    ) -> RunningServer:
        return finish(self.starting(environment, build, clone, launch))

    def starting(
        self, environment: Environment, build: Build, clone: Clone, launch: Launch | None = None
    ) -> Steps[RunningServer]:
        launch = launch or Launch()
        build = build.moved(launch.prefix) if launch.prefix else build
        for _ in range(_PORT_TRIES - 1):
            with suppress(_PortTakenError):
                return (yield from self._start_once(environment, build, clone, launch))
        return (yield from self._start_once(environment, build, clone, launch))

    def _start_once(self, environment: Environment, build: Build, clone: Clone, launch: Launch) -> Steps[RunningServer]:
        way = self._ways.get(environment.client_hosts, TcpRoute())
        address = self._address(environment.connection, clone, way)
        folder = address.host if environment.connection is ConnectionKind.SOCKET else ""
        settings = {
            **environment.settings,
            **launch.settings,
            "port": str(address.port),
            "listen_addresses": "" if folder else way.listen or address.host,
            "unix_socket_directories": folder,
            **self._encryption(environment, clone),
        }
        suited = settings_of_its_time(settings, build.version.number)
        self._host.write(f"{clone.location}/{SETTINGS_FILE}", render_settings(suited).encode())
        if not folder:
            # datasets know nothing of clients
            self._host.write(f"{clone.location}/{ACCESS_FILE}", render_access(way))
        try:
            process = self._spawn(build, clone, folder, launch)
        except BaseException:
            if folder:
                self._host.remove_tree(folder)
            raise
        self._processes[process.pid] = process
        server = RunningServer(
            environment=environment,
            build=build,
            clone=clone,
            address=address,
            postmaster_pid=process.pid,
            launch=launch,
        )
        try:
            yield
            self._await_ready(server, process)
        except BaseException:
            # also when the user interrupts: nobody else knows of this server yet
            self.stop(server)
            raise
        return server

    def _spawn(self, build: Build, clone: Clone, socket_folder: str, launch: Launch) -> Process:
        if socket_folder:
            self._host.make_folder(socket_folder)
        # one log for each start: what an earlier one said must not be held against this one
        self._host.remove_tree(f"{clone.folder}/server.log")
        return self._host.spawn(
            Command(
                argv=(*launch.server, build.program("postgres"), "-D", clone.location),
                environment={**build.process_environment, "LC_ALL": "C", "TZ": "GMT"},
                folder=clone.location,
            ),
            stdout=f"{clone.folder}/server.log",
            stderr=f"{clone.folder}/server.log",
            on_parent_death=StopSignal.INT,
        )

    def _address(self, kind: ConnectionKind, clone: Clone, way: TcpRoute) -> Address:
        """A socket in a folder that nobody else can enter; over TCP a password, because anybody can knock."""
        port = secrets.choice(way.ports or _PORTS)
        if kind is ConnectionKind.SOCKET:
            host = f"{self._socket_root}/{secrets.token_hex(4)}"
            return Address(host=host, port=port, user=USER, database=clone.database)
        password = Secret(self._host.read(f"{clone.location}/{PASSWORD_FILE}").decode().strip())
        # without it libpq would ask each server first whether it has TLS
        encryption = {"sslmode": "require" if kind is ConnectionKind.TLS else "disable"}
        return Address(
            host=way.server,
            port=port,
            user=USER,
            database=clone.database,
            password=password,
            parameters=encryption,
        )

    def _encryption(self, environment: Environment, clone: Clone) -> Mapping[str, str]:
        """Settings for TLS, with a certificate of the clone's own beside its data."""
        if environment.connection is not ConnectionKind.TLS:
            return {}
        key, certificate = "server.key", "server.crt"
        files = ("-keyout", f"{clone.location}/{key}", "-out", f"{clone.location}/{certificate}")
        self._host.run(Command(argv=(*_CERTIFICATE, *files), memory=sizes.PROGRAM))
        # found in the data directory by their names alone: the settings are the same for all clones
        return {"ssl": "on", "ssl_cert_file": certificate, "ssl_key_file": key}

    def _await_ready(self, server: RunningServer, process: Process) -> None:
        patience = _START_TIMEOUT + (_WORDS_TIMEOUT if server.launch.server else 0)
        deadline = self._clock.monotonic() + patience
        began = False
        pid_file = f"{server.clone.location}/postmaster.pid"
        while self._clock.monotonic() < deadline:
            if process.poll() is not None:
                self._raise_failed(server, "the server did not start")
            content = self._host.read_files((pid_file,)).get(pid_file, b"")
            # From 10 on the eighth line says "ready" (pidfile.h); before, the log says so.
            if _status_line(content) == b"ready" or (
                server.build.version.number < 100000 and _READY in self.log(server)  # noqa: PLR2004
            ):
                return
            if content and not began:
                # the words in front of it are done
                began, patience = True, _START_TIMEOUT
                deadline = self._clock.monotonic() + patience
            self._clock.sleep(_POLL)
        self.stop(server)
        self._raise_failed(server, f"the server was not ready after {patience:.0f} s")

    def _raise_failed(self, server: RunningServer, what: str) -> None:
        lines = self.log(server).decode("utf-8", "replace").strip().splitlines()
        if server.postmaster_pid is not None:
            self._processes.pop(server.postmaster_pid, None)
        self._remove_socket(server)
        details = tuple(lines[-_LOG_TAIL:])
        # If the disk is full, the server may end without having written why. It needs a segment of WAL to start.
        untold = not lines or (
            lines[-1].endswith(_ENDED) and not any(word in line for line in lines for word in _FATAL)
        )
        full = find_disk_full("\n".join(lines)) or (
            untold and self._host.free_bytes(server.clone.folder) < _WAL_SEGMENT_BYTES
        )
        if full:
            raise DiskFullError(
                "the disk is full: the server cannot start",
                where=server.clone.folder,
                details=details,
                remedy="free space there, or set PGSTRATA_DATA to a folder on a larger file system",
            )
        if any("could not bind IPv" in line or "Address already in use" in line for line in lines):
            what = f"no free TCP port was found in {_PORT_TRIES} tries"
            raise _PortTakenError(what, where=server.build.prefix, remedy="free a TCP port")
        raise ServerFailedError(
            what,
            where=f"environment {server.environment.name}, {server.build.program('postgres')}",
            remedy="see the end of its log above; a setting that this version does not know is the usual cause",
            details=details or ("its log is empty",),
        )

    def alive(self, server: RunningServer) -> bool:
        process = self._processes.get(server.postmaster_pid or -1)
        return process is not None and process.poll() is None

    def stop(self, server: RunningServer) -> None:
        finish(self.stopping(server))

    def stopping(self, server: RunningServer) -> Steps[None]:
        """Fast shutdown; immediate after a while; the process group at last."""
        process = self._processes.get(server.postmaster_pid or -1)
        if process is not None:
            # one that somebody stopped (SIGSTOP) would heed no other signal but KILL
            process.signal(StopSignal.CONT)
            gently = () if _recovering(self.log(server)) else ((StopSignal.INT, False),)
            for signal, group in (*gently, (StopSignal.QUIT, False), (StopSignal.KILL, True)):
                process.signal(signal, group=group)
                yield
                if self._has_ended(process):
                    break
            # not before it has ended: whoever is interrupted here must be able to stop it again
            self._processes.pop(process.pid, None)
        self._remove_socket(server)

    def _has_ended(self, process: Process) -> bool:
        """Within the time that it is given."""
        deadline = self._clock.monotonic() + _STOP_TIMEOUT
        while self._clock.monotonic() < deadline:
            if process.poll() is not None:
                return True
            self._clock.sleep(_POLL)
        return False

    def _remove_socket(self, server: RunningServer) -> None:
        if server.environment.connection is ConnectionKind.SOCKET:
            self._host.remove_tree(server.address.host)

    def log(self, server: RunningServer) -> bytes:
        path = f"{server.clone.folder}/server.log"
        return self._host.read_files((path,)).get(path, b"")


def _recovering(log: bytes) -> bool:
    """Whether the server is at work on a crash of one of its own: 18.6 forgets a fast shutdown that comes then."""
    return log.rfind(_CRASHED) > log.rfind(_READY)


def _status_line(content: bytes) -> bytes:
    lines = content.split(b"\n")
    return lines[_STATUS_LINE].strip() if len(lines) > _STATUS_LINE else b""


def _shown(setting: str, version: int, since: int, before: str) -> str:
    """An expression for a setting; `before` it was there, a constant that says what was so."""
    return f"current_setting('{setting}')" if not version or version >= since else f"'{before}'::text"


class _PortTakenError(ServerFailedError):
    """Somebody else holds the port that was drawn."""


class ServerLayer:
    """Asserts that the server that answers is the build that was asked for, with the asked data checksums."""

    name = "server"

    def observe(self, server: RunningServer, sql: Sql) -> Mapping[str, str]:
        """Version, compiler line and checksums as the server says them; LevelNotTakenError where they differ."""
        number = server.build.version.number
        table = sql.query(
            server.address,
            "SELECT version() AS version, current_setting('server_version_num') AS number, "
            f"{_shown('data_checksums', number, CHECKSUMS_SINCE, 'off')} AS checksums, "
            "current_setting('block_size') AS block_size, "
            f"{_shown('wal_block_size', number, WAL_BLOCK_SIZE_SINCE, '8192')} AS wal_block_size",
        )
        (row,) = table.records()
        where = f"environment {server.environment.name}"
        build = server.build
        if build.version.number and int(row["number"]) != build.version.number:
            raise LevelNotTakenError(
                f"the server says {row['number']}, its binary said {build.version.number}",
                where=where,
                remedy="the installation changed under the experiment: start a new study",
            )
        wanted = "on" if server.environment.checksums else "off"
        if server.environment.server.kind is not ServerKind.DSN and row["checksums"] != wanted:
            raise LevelNotTakenError(
                f"data checksums {wanted} were asked for, the server says {row['checksums']}",
                where=where,
                remedy="remove the dataset, it will be built again",
            )
        return {
            "server.version": row["version"],
            "server.version_num": row["number"],
            "server.supplier": build.supplier,
            "server.compiler": build.compiler,
            "server.configure": build.configure,
            "server.cflags": build.cflags,
            "server.assertions": "on" if build.assertions else "off",
            "server.system": dict(build.spec.build).get("system", ""),
            "server.digest": build.digest,
            **({"server.origin": build.origin} if build.origin else {}),
            **({"server.fork": build.version.fork} if build.version.fork else {}),
            "server.block_size": row["block_size"],
            "server.wal_block_size": row["wal_block_size"],
            "initdb.data_checksums": row["checksums"],
        }
