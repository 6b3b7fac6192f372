"""The program sysbench on a host: where it is, whether it can be used, how it is told where to connect.

It is told by libpq's environment and password file, as psql is: given as empty, its own options leave that to libpq
(PQsetdbLogin).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Final

from pgstrata.drivers.sysbench import NAME
from pgstrata.errors import HostNotFitError
from pgstrata.libpq import compose_connection
from pgstrata.model.experiment import Script
from pgstrata.model.server import Address
from pgstrata.ports.host import Command, Host

_FREE_PLACES: Final = ("--pgsql-host=", "--pgsql-port=", "--pgsql-user=", "--pgsql-password=")
_ENGLISH: Final[Mapping[str, str]] = {"LC_ALL": "C"}
_ASK_TIMEOUT: Final = 60.0
_KNOWS_POSTGRESQL = re.compile(r"^ +pgsql +- ", re.MULTILINE)
_FOUND = re.compile(r"/\S+")
_VERSION = re.compile(rf"^{NAME} (?P<version>(?P<major>\d+)\.(?P<minor>\d+)\S*)")
_FIRST_VERSION: Final = (1, 0)
_SEARCHED = re.compile(rb"(/[!-~]{1,200}?)/\?\.lua;")
_COMMON: Final = "oltp_common.lua"
_SCRIPTS = re.compile(r"oltp_\w+\.lua")


def find_sysbench(host: Host) -> str:
    """Path of sysbench on a host.

    Raises:
        HostNotFitError: it is not there, is too old, or knows no PostgreSQL.
    """
    found = host.run(Command(argv=("sh", "-c", f"command -v {NAME}")), timeout=_ASK_TIMEOUT, check=False).text.strip()
    if _FOUND.fullmatch(found) is None:
        raise HostNotFitError(
            f"{NAME} is not installed, and a workload of the experiment needs it",
            where=host.name,
            remedy=f"install the package {NAME} of your distribution (Debian: apt-get install {NAME}), or measure "
            "other workloads",
        )
    version = _VERSION.match(host.run(_asking(found, "--version"), timeout=_ASK_TIMEOUT, check=False).text)
    if version is not None and (int(version["major"]), int(version["minor"])) < _FIRST_VERSION:
        raise HostNotFitError(
            f"this {NAME} is {version['version']}, whose scripts and output differ from those of 1.0",
            where=f"{host.name}: {found}",
            remedy="install 1.0.20, such as Debian's package",
        )
    said = host.run(_asking(found, "--help"), timeout=_ASK_TIMEOUT, check=False).text
    if _KNOWS_POSTGRESQL.search(said) is None:
        raise HostNotFitError(
            f"this {NAME} was compiled without its PostgreSQL driver",
            where=f"{host.name}: {found}",
            remedy=f"install one that lists pgsql in `{NAME} --help`, such as Debian's package {NAME}, or compile it "
            "with ./configure --with-pgsql",
        )
    return found


def observe_sysbench(host: Host) -> Mapping[str, str]:
    """Facts of sysbench on a host: `version`, `sha256` of the program, `lua_sha256` of its own OLTP scripts.

    The latter are not in the program: a digest of all of them with their names, left out where they are not found.
    """
    said = host.run(_asking(NAME, "--version"), timeout=_ASK_TIMEOUT).text
    program = host.read(find_sysbench(host))
    facts = {
        "version": said.strip().removeprefix(f"{NAME} "),
        "sha256": hashlib.sha256(program).hexdigest(),
    }
    lua = _own_scripts(host, program)
    if lua:
        digest = hashlib.sha256()
        for name, content in sorted(lua.items()):
            digest.update(f"{name} {hashlib.sha256(content).hexdigest()}\n".encode())
        facts["lua_sha256"] = digest.hexdigest()
    return facts


def _own_scripts(host: Host, program: bytes) -> Mapping[str, bytes]:
    """sysbench's own OLTP scripts by name, from the first folder named in the program that has them."""
    for searched in dict.fromkeys(_SEARCHED.findall(program)):
        folder = searched.decode()
        names = host.list_folder(folder)
        if _COMMON in names:
            paths = [f"{folder}/{name}" for name in names if _SCRIPTS.fullmatch(name)]
            return {path.rpartition("/")[2]: content for path, content in host.read_files(paths).items()}
    return {}


def put_scripts(host: Host, folder: str, scripts: Sequence[Script]) -> str:
    """Write scripts into a folder, where they find each other; the path of the first."""
    for script in scripts:
        host.write(f"{folder}/{script.file.rpartition('/')[2]}", script.text.encode())
    return f"{folder}/{scripts[0].file.rpartition('/')[2]}"


def compose_command(
    address: Address, words: Sequence[str], *, launch: Sequence[str] = (), folder: str, memory: int | None = None
) -> Command:
    """sysbench with a connection; Lua code that a script requires is looked for in the folder first."""
    connection = compose_connection(address)
    # what libpq takes as last argument: the name of a database, or a connection string
    database = f"--pgsql-db={''.join(connection.arguments)}"
    return Command(
        argv=(*launch, NAME, "--db-driver=pgsql", *_FREE_PLACES, database, *words),
        environment={"PGAPPNAME": NAME, **connection.environment, **_ENGLISH},
        password=connection.password,
        folder=folder,
        memory=memory,
    )


def _asking(program: str, option: str) -> Command:
    return Command(argv=(program, option), environment=_ENGLISH, folder="/")
