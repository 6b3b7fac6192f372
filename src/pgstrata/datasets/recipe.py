"""How the data of a workload come into an empty database: loaded, set up, verified, frozen; and its role's password.

Clients have one over TCP only, and SCRAM makes both sides hash it 4096 times: milliseconds for each connection, far
more than the way there. Connections would be compared by that. The password is drawn at random, so that nobody guesses
it whatever it is hashed by. It is hashed here, so that no server reads it in a statement that it could log.
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pgstrata.datasets.own import bring_files, load_own_data
from pgstrata.errors import ServerFailedError, SqlError
from pgstrata.model.experiment import Cell, ControlKind, Environment, digests
from pgstrata.model.own_data import DataFile, OwnData
from pgstrata.model.server import Address, Build
from pgstrata.model.workload import DataKind
from pgstrata.ports.host import Host
from pgstrata.ports.server import Sql
from pgstrata.ports.steps import finish_all

# Servers take a password that the client has hashed, of whatever kind new ones are; from 19 on they complain of md5 at
# each connection.
_SCRAM_FROM: Final = 190000


def render_password(role: str, password: str, version: int) -> str:
    """The statement that gives a role its password.

    Args:
        role: its name, which needs no quoting.
        password: letters and digits.
        version: the server's `server_version_num`.
    """
    if version >= _SCRAM_FROM:
        # the same password has the same salt, which tells nothing: it is as random as the password
        hashed = hash_scram(password, hashlib.sha256(f"{role}:{password}".encode()).digest()[:16], iterations=1)
    else:
        hashed = "md5" + hashlib.md5(f"{password}{role}".encode(), usedforsecurity=False).hexdigest()
    return f"ALTER ROLE {role} PASSWORD '{hashed}';"


def hash_scram(password: str, salt: bytes, *, iterations: int) -> str:
    """A password as PostgreSQL stores it for SCRAM-SHA-256 (RFC 5803, RFC 7677)."""
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, iterations)
    stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    server = hmac.digest(salted, b"Server Key", "sha256")
    salt64, stored64, server64 = (b64encode(key).decode() for key in (salt, stored, server))
    return f"SCRAM-SHA-256${iterations}:{salt64}${stored64}:{server64}"


_NO_PRIVILEGE: Final = "42501"
"""insufficient_privilege"""
_NO_TABLE: Final = "42P01"
"""undefined_table"""
_PREWARMING: Final = """\
SELECT pg_catalog.count(*) AS n FROM pg_catalog.pg_available_extensions
WHERE name OPERATOR(pg_catalog.=) 'pg_prewarm'"""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataRecipe:
    """How the data of a workload are made.

    Where their kind has no SQL that makes them, `load` does in an empty database, with programs that are on the given
    host and files in a folder there, and `verify` gives the statement that checks them, for a cell; `marker` is a
    script. `bring` puts a file of the user's into a folder of the machine where the data are made, None where it is the
    client's.
    """

    load: Callable[[Host, Build, Address, Cell, str], None]
    verify: Callable[[Cell], str]
    marker: str
    bring: Callable[[DataFile, str], DataFile] | None = None

    def fill(
        self,
        host: Host,
        sql: Sql,
        tools: Build,
        address: Address,
        environment: Environment,
        cell: Cell,
        kind: DataKind,
        folder: str,
    ) -> None:
        """Make, verify and freeze the data in an empty database; errors as `load_own_data` and drivers raise them.

        `tools` are a driver's, or for data of the user's own those with pg_restore. `folder` is made for files of the
        driver, and removed again.
        """
        sql.execute(address, self.marker)
        if _has_prewarming(sql, address):
            _allow_prewarming(sql, address)
        for step in kind.steps_at(cell.scale):
            # each table is filled by one session, so that it has the same pages whenever it is made
            finish_all([sql.executing(address, script) for script in step])
        if cell.data is not None:
            self._load_own(host, sql, tools, address, cell.data, folder)
        elif not kind.steps:
            self._load(host, tools, address, cell, folder)
        checks = kind.checks_at(cell.scale) or self.verify(cell)
        for script in setup_scripts(environment, cell):
            sql.execute(address, script)
        remedy = _OWN_REMEDY if cell.data is not None else _REMEDY
        _verify_counts(sql, address, checks, remedy)
        if consistency := kind.consistency_at(cell.scale):
            _verify_counts(sql, address, consistency, remedy)
        sql.execute(address, "VACUUM FREEZE ANALYZE;")  # options in brackets came with 9.0

    def _load_own(self, host: Host, sql: Sql, tools: Build, address: Address, data: OwnData, folder: str) -> None:
        if self.bring is None:
            load_own_data(host, sql, tools, address, data)
            return
        host.make_folder(folder)
        try:
            load_own_data(host, sql, tools, address, bring_files(data, self.bring, folder))
        finally:
            host.remove_tree(folder)

    def _load(self, host: Host, tools: Build, address: Address, cell: Cell, folder: str) -> None:
        host.make_folder(folder)
        try:
            self.load(host, tools, address, cell, folder)
        finally:
            host.remove_tree(folder)


def digest_of(kind: DataKind, cell: Cell) -> tuple[str, ...]:
    """What makes the data, for the identity of datasets: hashes of SQL and of a user's files, number of copies.

    Empty where a driver makes them by itself.
    """
    if kind.digest:
        return (kind.digest,)
    texts = [text for step in kind.steps for text in step]
    found = [hashlib.sha256("\0".join(texts).encode()).hexdigest()] if texts else []
    found += [f"{name} {digest}" for name, digest in digests(cell.checkout).items()]
    return (*found, f"{kind.copies} copies") if kind.copies != 1 else tuple(found)


def _has_prewarming(sql: Sql, address: Address) -> bool:
    try:
        return sql.query(address, _PREWARMING).value() == "1"
    except SqlError as error:
        if error.sqlstate != _NO_TABLE:
            raise
        return False  # before 9.1 there are no extensions


def _allow_prewarming(sql: Sql, address: Address) -> None:
    """Create pg_prewarm; without the privilege, relations are warmed by reading them."""
    try:
        sql.execute(address, "CREATE EXTENSION pg_prewarm;")
    except SqlError as error:
        if error.sqlstate != _NO_PRIVILEGE:
            raise


def built_again(environment: Environment) -> tuple[str, ...]:
    """What sets the data of a control by rebuild apart: they are made as the baseline's, a second time."""
    return (str(ControlKind.REBUILD),) if environment.control is ControlKind.REBUILD else ()


def setup_scripts(environment: Environment, cell: Cell) -> tuple[str, ...]:
    """SQL that runs once on the dataset before it is frozen: the cell's first, then the environment's."""
    return tuple(options["setup_sql"] for options in (cell.options, environment.options) if "setup_sql" in options)


_REMEDY: Final = "build it again; report this if it happens twice"
_OWN_REMEDY: Final = "correct the data or the check in the experiment file, and start again"


def _verify_counts(sql: Sql, address: Address, statement: str, remedy: str) -> None:
    """Every row of the check must say ok; ServerFailedError names those that do not."""
    rows = tuple(sql.query(address, statement).records())
    wrong = tuple(", ".join(f"{k} {v}" for k, v in row.items()) for row in rows if row.get("ok") != "t")
    if wrong or not rows:
        raise ServerFailedError(
            "the dataset is not what it must be",
            where=address.database,
            details=wrong,
            remedy=remedy,
        )
