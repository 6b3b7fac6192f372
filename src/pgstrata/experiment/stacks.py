"""What one environment is made of, read from single keys and values.

What belongs here: server, host, client, connection, checksums, settings, initdb and options,
wherever they stand in the file. How environments are made of them belongs to `environments`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pgstrata.errors import PgstrataError
from pgstrata.experiment.findings import Findings
from pgstrata.experiment.hosts import parse_host
from pgstrata.experiment.keys import MOST, SERVER_LEVELS, SETTING_NAME, Path, WrongValueError
from pgstrata.experiment.layers import read_level
from pgstrata.experiment.registry import factor_keys
from pgstrata.experiment.servers import mask_conninfo, parse_server
from pgstrata.experiment.values import TABLE, Scalar, kind_of
from pgstrata.model.own_data import DataFile
from pgstrata.model.secret import Secret

# Characters of a single value
_LONGEST: Final = 4000
_OWN_SETTINGS: Final = {
    "config_file",
    "data_directory",
    "external_pid_file",
    "hba_file",
    "ident_file",
    "listen_addresses",
    "port",
    "unix_socket_directories",
    "unix_socket_directory",
}
_OWN_INITDB: Final = {"pgdata", "auth", "auth-host", "auth-local", "username", "pwfile", "pwprompt", "set"}

# The second is its name before 10; getopt_long(3) takes an option's beginning too. Clones would share that folder.
_WAL_FOLDER: Final = ("waldir", "xlogdir")


Stack = Mapping[str, Any]
"""What is said of an environment, by key such as server, pages or settings.work_mem.

Values are ServerSpec, HostSpec, ClientLevel, ConnectionKind, Placement, whether there are checksums, and texts for all
others.
"""


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


def _look_at_nothing(name: str) -> DataFile:
    raise FileNotFoundError(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class StackReader:
    """Reads keys of environments; what cannot be is noted in `findings`.

    `read_file` gives the text of a file that the experiment names, `look_at` what is known of one with data.
    """

    findings: Findings
    read_file: Callable[[str], str]
    conninfo: Mapping[str, Secret]
    read_program: Callable[[str], str]
    look_at: Callable[[str], DataFile] = _look_at_nothing

    def read_table(self, table: Mapping[str, Any], path: Path) -> Stack:
        """All that one table says."""
        stack: dict[str, Any] = {}
        for name, factor in factor_keys().items():
            entries = {name: table[name]} if name in table else {}
            if factor.kind is TABLE:
                entries = {f"{name}.{key}": value for key, value in flatten(table.get(name, {})).items()}
                if len(entries) > MOST:
                    what, remedy = f"too many keys: {len(entries):,}", f"write at most {MOST}"
                    self.findings.add((*path, name), what, remedy)
                    continue
            for key, value in entries.items():
                stack.update(self.read(key, value, (*path, *key.split(".", 1))))
        return stack

    def read(self, key: str, value: object, path: Path) -> Stack:
        """A level of any factor, such as `server`, `cpu.quota` or `settings.work_mem`; empty where it is none."""
        table, dot, name = key.partition(".")
        try:
            if dot:
                key, value = _read_entry(table, name, value)
            else:
                value = self._read_plain(key, factor_keys()[key].kind.read(value))
        except WrongValueError as error:
            self.findings.add(path, error.what, error.remedy)
            return {}
        if key == "options.setup_sql":
            value = self.read_text(str(value), path)
        return {} if value is None else {key: value}

    def _read_plain(self, key: str, level: Any) -> object:
        match key:
            case "server" if isinstance(level, bool):
                raise WrongValueError("a boolean is not a server", f"allowed: {SERVER_LEVELS}")
            case "server":
                return parse_server(str(level), self.conninfo)
            case "host":
                return parse_host(level if isinstance(level, str) else render_scalar(level))
            case "client" | "connection" | "checksums" | "placement":
                return level
            case _:
                return read_level(key, level)

    def read_text(self, file: str, path: Path, *, runs: bool = False) -> str | None:
        """Text of a file that the experiment names; `runs`: it will be executed."""
        try:
            return (self.read_program if runs else self.read_file)(file)
        except (OSError, ValueError, PgstrataError) as error:
            remedy = "paths are relative to the experiment file"
            self.findings.add(path, f"the file {mask_conninfo(file)!r} {reason_of(error)}", remedy)
            return None


def _read_entry(table: str, name: str, value: object) -> tuple[str, str]:
    """The key and text of one setting, option of initdb, option of the workload, or level in the table of a layer."""
    if not isinstance(value, str | int | float):
        remedy = "write one value; several levels belong under [factors]"
        raise WrongValueError(f"{kind_of(value)} is not a valid value of {name!r}", remedy)
    if (table, name) == ("options", "setup_sql") and not isinstance(value, str):
        raise WrongValueError(
            f"{name!r} takes a file name, not {kind_of(value)}", 'write for instance setup_sql = "setup.sql"'
        )
    if len(str(value)) > _LONGEST:
        raise WrongValueError(f"the value has {len(str(value)):,} characters", f"write at most {_LONGEST:,}")
    if any(character in str(value) for character in "\0\n\r"):
        raise WrongValueError("the value holds a line break or a NUL", "write it on one line")
    match table:
        case "settings":
            return f"settings.{_read_setting(name)}", render_scalar(value)
        case "initdb":
            return f"initdb.{_read_initdb(name, value)}", render_scalar(value)
        case "options":
            return f"options.{name}", render_scalar(value)
        case _:
            return f"{table}.{name}", read_level(f"{table}.{name}", value)


def _read_setting(name: str) -> str:
    """The name of a setting that an experiment may give."""
    lower = name.lower()
    if not SETTING_NAME.fullmatch(lower):
        remedy = "settings are written as in postgresql.conf: shared_buffers, pg_stat_statements.max"
        raise WrongValueError(f"{name!r} cannot be the name of a setting", remedy)
    if lower in _OWN_SETTINGS:
        raise WrongValueError(f"pgstrata itself chooses {lower}, for every start", "take it out")
    return lower


def _read_initdb(name: str, value: Scalar) -> str:
    """The name of an option of initdb that an experiment may give."""
    option = name.removeprefix("--").replace("_", "-")
    if option in {"data-checksums", "no-data-checksums", "k"}:
        raise WrongValueError("checksums have a key of their own", "write checksums = true or false instead")
    if any(long.startswith(option) for long in _WAL_FOLDER):
        raise WrongValueError("the place of the WAL has a key of its own", 'write storage.wal = "loop" instead')
    if option in _OWN_INITDB:
        raise WrongValueError(f"pgstrata itself chooses initdb's --{option}", "take it out")
    if isinstance(value, bool):
        remedy = 'options of initdb take a value here: wal-segsize = 64, locale = "C"'
        raise WrongValueError(f"a boolean is not a valid value of initdb's --{option}", remedy)
    return option


def reason_of(error: OSError | ValueError | PgstrataError) -> str:
    """The reason why a file cannot be read, as the end of a sentence that begins with its name."""
    if isinstance(error, FileNotFoundError):
        return "does not exist"
    if isinstance(error, UnicodeDecodeError):
        return "is not UTF-8 text"
    if isinstance(error, PgstrataError):
        return f"cannot be read: {error.what}"
    if isinstance(error, ValueError):
        return "cannot be opened: its name is not valid"
    return f"cannot be read: {error.strerror or type(error).__name__}"
