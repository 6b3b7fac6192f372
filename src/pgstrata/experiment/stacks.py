"""What one environment is made of, read from single keys and values.

What belongs here: server, host, connection, checksums, settings, initdb and options, wherever they stand in the file.
How environments are made of them belongs to `environments`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pgstrata.errors import PgstrataError
from pgstrata.experiment.findings import Findings
from pgstrata.experiment.hosts import HostLevelError, parse_host
from pgstrata.experiment.keys import SERVER_LEVELS, SETTING_NAME, Path, suggest
from pgstrata.experiment.layers import LAYER_TABLES, PLAIN_LAYERS, LayerLevelError, read_level
from pgstrata.experiment.schema import StackTable
from pgstrata.experiment.servers import ServerLevelError, mask_conninfo, parse_server
from pgstrata.experiment.values import Scalar, kind_of
from pgstrata.model.experiment import ConnectionKind, HostSpec, ServerSpec
from pgstrata.model.secret import Secret

_OWN_SETTINGS: Final = {
    "config_file",
    "data_directory",
    "external_pid_file",
    "hba_file",
    "ident_file",
    "listen_addresses",
    "port",
    "unix_socket_directories",
}
_OWN_INITDB: Final = {"pgdata", "auth", "auth-host", "auth-local", "username", "pwfile", "pwprompt", "set"}

# The second is its name before 10; getopt_long(3) takes an option's beginning too. Clones would share that folder.
_WAL_FOLDER: Final = ("waldir", "xlogdir")


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentStack:
    """A part of what an environment is made of; None and empty where nothing is said."""

    server: ServerSpec | None = None
    host: HostSpec | None = None
    connection: ConnectionKind | None = None
    checksums: bool | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    initdb: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    layers: Mapping[str, str] = field(default_factory=dict)

    def over(self, other: EnvironmentStack) -> EnvironmentStack:
        """This one, and what `other` says where this one says nothing."""
        return EnvironmentStack(
            server=self.server or other.server,
            host=self.host or other.host,
            connection=self.connection or other.connection,
            checksums=other.checksums if self.checksums is None else self.checksums,
            settings={**other.settings, **self.settings},
            initdb={**other.initdb, **self.initdb},
            options={**other.options, **self.options},
            layers={**other.layers, **self.layers},
        )


def render_scalar(value: Scalar) -> str:
    """A value as PostgreSQL writes it: on and off, plain numbers, texts as they are."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return repr(value) if isinstance(value, float) else str(value)


def flatten(table: Mapping[str, Any]) -> dict[str, Any]:
    """Nested tables as one, with dotted names: unquoted `a.b = 1` and "a.b" = 1 mean the same."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            flat.update({f"{key}.{name}": item for name, item in flatten(value).items()})
        else:
            flat[key] = value
    return flat


@dataclass(frozen=True, slots=True, kw_only=True)
class StackReader:
    """Reads keys of environments; what cannot be is noted in `findings` and comes back as None."""

    findings: Findings
    read_file: Callable[[str], str]
    conninfo: Mapping[str, Secret]

    def read_table(self, table: StackTable, path: Path) -> EnvironmentStack:
        """All that one table says."""
        stack = EnvironmentStack(checksums=table.checksums)
        if table.server is not None:
            stack = (self.read_server(table.server, (*path, "server")) or EnvironmentStack()).over(stack)
        if table.host is not None:
            stack = (self.read_host(table.host, (*path, "host")) or EnvironmentStack()).over(stack)
        if table.connection is not None:
            stack = (self.read_connection(table.connection, (*path, "connection")) or EnvironmentStack()).over(stack)
        for name in PLAIN_LAYERS:
            if (level := getattr(table, name)) is not None:
                stack = (self.read_layer(name, level, (*path, name)) or EnvironmentStack()).over(stack)
        for kind in ("settings", "initdb", "options", *LAYER_TABLES):
            for name, value in flatten(getattr(table, kind)).items():
                stack = (self.read_entry(kind, name, value, (*path, kind, name)) or EnvironmentStack()).over(stack)
        return stack

    def read_server(self, value: Scalar, path: Path) -> EnvironmentStack | None:
        """A level of `server`."""
        if isinstance(value, bool):
            self.findings.add(path, "a boolean is no server", f"allowed: {SERVER_LEVELS}")
            return None
        try:
            return EnvironmentStack(server=parse_server(str(value), self.conninfo))
        except ServerLevelError as error:
            self.findings.add(path, error.what, error.remedy)
            return None

    def read_host(self, value: Scalar, path: Path) -> EnvironmentStack | None:
        """A level of `host`."""
        try:
            return EnvironmentStack(host=parse_host(value if isinstance(value, str) else render_scalar(value)))
        except HostLevelError as error:
            self.findings.add(path, error.what, error.remedy)
            return None

    def read_connection(self, value: Scalar, path: Path) -> EnvironmentStack | None:
        """A level of `connection`."""
        if value not in tuple(ConnectionKind):
            self.findings.add(path, f"{value!r} is no connection", suggest(str(value), ConnectionKind))
            return None
        return EnvironmentStack(connection=ConnectionKind(str(value)))

    def read_checksums(self, value: Scalar, path: Path) -> EnvironmentStack | None:
        """A level of `checksums`."""
        if not isinstance(value, bool):
            self.findings.add(path, f"must be true or false, not {kind_of(value)}", "write [true, false]")
            return None
        return EnvironmentStack(checksums=value)

    def read_layer(self, key: str, value: Scalar, path: Path) -> EnvironmentStack | None:
        """A level of a host layer."""
        try:
            return EnvironmentStack(layers={key: read_level(key, value)})
        except LayerLevelError as error:
            self.findings.add(path, error.what, error.remedy)
            return None

    def read_entry(self, kind: str, name: str, value: object, path: Path) -> EnvironmentStack | None:
        """One setting, option of initdb, option of the workload, or level in the table of a host layer."""
        if not isinstance(value, str | int | float):
            remedy = "write one value; several levels belong under [factors]"
            self.findings.add(path, f"{kind_of(value)} is no value of {name!r}", remedy)
            return None
        if any(character in str(value) for character in "\0\n\r"):
            self.findings.add(path, "the value holds a line break or a NUL", "write it on one line")
            return None
        match kind:
            case "settings":
                return self._read_setting(name, value, path)
            case "initdb":
                return self._read_initdb(name, value, path)
            case _ if kind in LAYER_TABLES:
                return self.read_layer(f"{kind}.{name}", value, path)
            case _:
                return self._read_option(name, value, path)

    def _read_setting(self, name: str, value: Scalar, path: Path) -> EnvironmentStack | None:
        lower = name.lower()
        if not SETTING_NAME.fullmatch(lower):
            remedy = "settings are written as in postgresql.conf: shared_buffers, pg_stat_statements.max"
            self.findings.add(path, f"{name!r} cannot be the name of a setting", remedy)
            return None
        if lower in _OWN_SETTINGS:
            self.findings.add(path, f"pgstrata itself chooses {lower}, for every start", "take it out")
            return None
        return EnvironmentStack(settings={lower: render_scalar(value)})

    def _read_initdb(self, name: str, value: Scalar, path: Path) -> EnvironmentStack | None:
        option = name.removeprefix("--").replace("_", "-")
        if option in {"data-checksums", "no-data-checksums", "k"}:
            self.findings.add(path, "checksums have a key of their own", "write checksums = true or false instead")
            return None
        if any(long.startswith(option) for long in _WAL_FOLDER):
            self.findings.add(path, "the place of the WAL has a key of its own", 'write storage.wal = "loop" instead')
            return None
        if option in _OWN_INITDB:
            self.findings.add(path, f"pgstrata itself chooses initdb's --{option}", "take it out")
            return None
        if isinstance(value, bool):
            remedy = 'options of initdb take a value here: wal-segsize = 64, locale = "C"'
            self.findings.add(path, f"a boolean is no value of initdb's --{option}", remedy)
            return None
        return EnvironmentStack(initdb={option: render_scalar(value)})

    def _read_option(self, name: str, value: Scalar, path: Path) -> EnvironmentStack | None:
        if name != "setup_sql":
            return EnvironmentStack(options={name: render_scalar(value)})
        text = self.read_text(str(value), path)
        return None if text is None else EnvironmentStack(options={name: text})

    def read_text(self, file: str, path: Path) -> str | None:
        """Text of a file that the experiment names."""
        try:
            return self.read_file(file)
        except (OSError, UnicodeDecodeError, PgstrataError) as error:
            remedy = "paths are relative to the experiment file"
            self.findings.add(path, f"the file {mask_conninfo(file)!r} {_reason(error)}", remedy)
            return None


def _reason(error: OSError | UnicodeDecodeError | PgstrataError) -> str:
    if isinstance(error, FileNotFoundError):
        return "does not exist"
    if isinstance(error, UnicodeDecodeError):
        return "is not UTF-8 text"
    if isinstance(error, PgstrataError):
        return f"cannot be read: {error.what}"
    return f"cannot be read: {error.strerror or type(error).__name__}"
