"""Has sysbench make its data, starts it on a host and collects what it leaves; reading that is `parse`'s part.

One folder holds one execution: sysbench.out, sysbench.err, and the script of the least load. sysbench is told where to
connect by libpq's environment and password file, as psql is: given as empty, its own options leave that to libpq
(PQsetdbLogin).
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from typing import Final

from pgstrata.drivers.sysbench import CAPABILITIES, NAME
from pgstrata.drivers.sysbench.parse import ERRORS, OUTPUT, SysbenchParser, hide_query, parse_progress
from pgstrata.errors import (
    DiskFullError,
    HostFileError,
    HostNotFitError,
    ServerFailedError,
    UsageError,
    find_disk_full,
)
from pgstrata.libpq import compose_connection
from pgstrata.model import sizes
from pgstrata.model.experiment import Cell, Protocol, Script
from pgstrata.model.server import Address
from pgstrata.ports.clients import ClientProcesses
from pgstrata.ports.driver import Load, ProgressPoint, Statement
from pgstrata.ports.host import Command, Host, Process, StopSignal
from pgstrata.ports.steps import Steps

ROWS: Final = 100_000
"""Rows per table; a cell has as many tables as its scale."""
_PREPARES: Final = "oltp_read_write"
"""Script for `prepare`; all scripts use the same tables."""
_LEAST: Final = "least.lua"
_FREE_PLACES: Final = ("--pgsql-host=", "--pgsql-port=", "--pgsql-user=", "--pgsql-password=")
_MODES: Final = {Protocol.SIMPLE: "disable", Protocol.PREPARED: "auto"}
_LARGEST_SEED: Final = 2**31 - 1
_LOADING_SEED: Final = 1
_ENGLISH: Final[Mapping[str, str]] = {"LC_ALL": "C"}
_ASK_TIMEOUT: Final = 60.0
_BUILD_TIMEOUT: Final = 6 * 3600.0
_KNOWS_POSTGRESQL = re.compile(r"^ +pgsql +- ", re.MULTILINE)
_FOUND = re.compile(r"/\S+")


class SysbenchDriver(SysbenchParser):
    """sysbench of the client's host, found by its PATH.

    Args:
        host: where sysbench runs.
    """

    capabilities = CAPABILITIES

    def __init__(self, host: Host) -> None:
        self._host = host
        self._facts: Mapping[str, str] | None = None

    def facts(self) -> Mapping[str, str]:
        """Keys `version` and `sha256`; asked of the binary once."""
        if self._facts is None:
            said = self._host.run(_asking(NAME, "--version"), timeout=_ASK_TIMEOUT).text
            self._facts = {
                "version": said.strip().removeprefix(f"{NAME} "),
                "sha256": hashlib.sha256(self._host.read(find_sysbench(self._host))).hexdigest(),
            }
        return self._facts

    def statements(self, load: Load) -> tuple[Statement, ...]:  # noqa: ARG002 - the Protocol's
        return ()  # they stand in Lua code of its package

    def least_load(self, load: Load) -> Load | None:
        text = (files(__package__) / _LEAST).read_text("utf-8")
        bare = replace(load.cell, scripts=(Script(file=_LEAST, text=text),), rate=None, options={})
        return replace(load, cell=bare)

    def session_names(self, load: Load) -> Mapping[str, int]:  # noqa: ARG002 - the Protocol's
        return {}

    def start(self, load: Load, folder: str, *, on_parent_death: StopSignal = StopSignal.TERM) -> ClientProcesses:
        script = load.workload.builtin
        for own in load.cell.scripts:
            script = f"{folder}/{_LEAST}"
            self._host.write(script, own.text.encode())
        command = _command(load.address, (*_options(load), script, "run"), launch=load.launch, folder=folder)
        process = self._host.spawn(
            command, stdout=f"{folder}/{OUTPUT}", stderr=f"{folder}/{ERRORS}", on_parent_death=on_parent_death
        )
        return ClientProcesses(processes=[process])

    def end(self, process: Process) -> None:  # noqa: ARG002 - the Protocol's
        raise AssertionError("a driver that is not pausable is measured run by run")

    def counting(self, folder: str, marks: str, arm: int) -> Steps[Mapping[str, bytes]]:  # noqa: ARG002 - the Protocol's
        raise AssertionError("a driver that is not pausable is measured run by run")

    def progress(self, folder: str, offset: int) -> tuple[tuple[ProgressPoint, ...], int]:
        try:
            tail = self._host.read(f"{folder}/{OUTPUT}", offset=offset)
        except HostFileError:
            return (), offset
        whole = tail[: tail.rfind(b"\n") + 1]
        return parse_progress(whole.decode("utf-8", "replace")), offset + len(whole)

    def collect(self, folder: str) -> Mapping[str, bytes]:
        """Output and complaints, as far as they are there; all but the constants of statements that failed."""
        read = self._host.read_files([f"{folder}/{name}" for name in (OUTPUT, ERRORS)])
        found = {path.rpartition("/")[2]: content for path, content in read.items()}
        if OUTPUT in found:
            said = found[OUTPUT].decode("utf-8", "surrogateescape")
            found[OUTPUT] = hide_query(said).encode("utf-8", "surrogateescape")
        return found


def find_sysbench(host: Host) -> str:
    """Path of sysbench on a host.

    Raises:
        HostNotFitError: it is not there, or knows no PostgreSQL.
    """
    found = host.run(Command(argv=("sh", "-c", f"command -v {NAME}")), timeout=_ASK_TIMEOUT, check=False).text.strip()
    if _FOUND.fullmatch(found) is None:
        raise HostNotFitError(
            f"{NAME} is not installed, and a workload of the experiment is driven by it",
            where=host.name,
            remedy=f"install the package {NAME} of your distribution (Debian: apt-get install {NAME}), or measure "
            "other workloads",
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


def _options(load: Load) -> tuple[str, ...]:
    cell = load.cell
    options = [*_tables(cell.scale), f"--threads={cell.clients}", f"--rand-seed={_seed(load.seed)}"]
    options += [f"--db-ps-mode={_MODES[cell.protocol]}", "--histogram=on", "--percentile=99"]
    access = load.workload.values(cell.options).get("access")
    if access is not None:
        options.append(f"--rand-type={access}")
    if load.transactions is not None:
        options += [f"--events={load.transactions * cell.clients}", "--time=0"]
    else:
        options.append(f"--time={max(1, math.ceil(load.seconds))}")
    if load.progress is not None:
        options.append(f"--report-interval={load.progress}")
    if cell.rate is not None:
        if not cell.rate.is_integer():
            raise UsageError(f"{NAME} keeps rates of whole numbers only", where=cell.identity, remedy="round the rate")
        options.append(f"--rate={cell.rate:.0f}")
    return _without_tables(options) if cell.scripts else tuple(options)


def _without_tables(options: Sequence[str]) -> tuple[str, ...]:
    """Options that every script accepts; sysbench refuses unknown ones."""
    return tuple(option for option in options if not option.startswith("--table"))


def _tables(scale: int) -> tuple[str, str]:
    return f"--tables={scale}", f"--table-size={ROWS}"


def _seed(seed: int) -> int:
    """sysbench takes 0 for the time of day, and nothing beyond 31 bits."""
    return (seed - 1) % _LARGEST_SEED + 1


def _command(
    address: Address, words: Sequence[str], *, launch: Sequence[str] = (), folder: str = "/", memory: int | None = None
) -> Command:
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


def load_sysbench(host: Host, address: Address, scale: int) -> None:
    """sysbench's own tables and rows, as many tables as the scale says, in several threads where there are CPUs.

    Raises:
        HostNotFitError: sysbench is not there, or knows no PostgreSQL.
        DiskFullError, ServerFailedError: the tables could not be made.
    """
    find_sysbench(host)
    cpus = host.run(Command(argv=("nproc",)), timeout=_ASK_TIMEOUT).text.strip()
    threads = min(scale, int(cpus) if cpus.isdecimal() else 1)
    options = (*_tables(scale), f"--threads={max(1, threads)}", f"--rand-seed={_LOADING_SEED}", "--rand-type=uniform")
    command = _command(address, (*options, _PREPARES, "prepare"), memory=sizes.PROGRAM)
    done = host.run(command, timeout=_BUILD_TIMEOUT, check=False)
    if done.code != 0:
        said = {OUTPUT: done.stdout, ERRORS: done.stderr}
        lines = SysbenchParser().messages(said)
        full = find_disk_full("\n".join(lines))
        raise (DiskFullError if full else ServerFailedError)(
            "the disk is full while a dataset is built" if full else f"{NAME} could not build the dataset",
            where=f"scale {scale}",
            remedy="free space where the server's data lie, or use a smaller scale" if full else "",
            details=lines[-5:],
        )


def verify_sysbench(cell: Cell) -> str:
    """A query with one row per check of freshly made data: columns item, expected, found, ok (boolean).

    Only what no script changes is checked: the rows of each table, and their first and last key.
    """
    single = (files(__package__) / "verify.sql").read_text("utf-8").replace("@rows@", str(ROWS))
    tables = " UNION ALL ".join(
        f"SELECT '{table}', count(*), min(id), max(id) FROM {table}"
        for table in (f"sbtest{number}" for number in range(1, cell.scale + 1))
    )
    return single.replace("@tables@", tables)
