"""Data that sysbench makes: its own tables for its OLTP scripts, and those of a user's checkout of sysbench-tpcc."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import Final

from pgstrata.drivers.sysbench import NAME
from pgstrata.drivers.sysbench.parse import ERRORS, OUTPUT, SysbenchParser
from pgstrata.drivers.sysbench.program import compose_command, find_sysbench, put_scripts
from pgstrata.errors import DiskFullError, ServerFailedError, find_disk_full
from pgstrata.model import sizes
from pgstrata.model.experiment import Cell
from pgstrata.model.server import Address
from pgstrata.ports.host import Command, Host

ROWS: Final = 100_000
"""Rows per table of the OLTP scripts; a cell has as many tables as its scale."""
_PREPARES: Final = "oltp_read_write"
"""Script for `prepare`; all OLTP scripts use the same tables."""
_LOADING_SEED: Final = 1
_ASK_TIMEOUT: Final = 60.0
_BUILD_TIMEOUT: Final = 6 * 3600.0


def table_options(scale: int) -> tuple[str, str]:
    """Options of the OLTP scripts for the data of that scale."""
    return f"--tables={scale}", f"--table-size={ROWS}"


def checkout_options(cell: Cell) -> tuple[str, str]:
    """Options of a checkout's script for the data of a cell."""
    return f"--scale={cell.scale}", f"--tables={cell.options.get('tables', '1')}"


def load_sysbench(host: Host, address: Address, cell: Cell, folder: str) -> None:
    """Make the data of a cell: by the files of its checkout, or as many tables for OLTP scripts as its scale says.

    The latter in several threads where there are CPUs, one for each table. sysbench-tpcc would have several sessions
    fill one table, whose pages were others each time: so there it is one.

    Args:
        host: where sysbench runs.
        address: of the empty database.
        cell: whose data they are.
        folder: an empty one on the host, for files of the checkout.

    Raises:
        HostNotFitError: sysbench is not there, or knows no PostgreSQL.
        DiskFullError, ServerFailedError: the tables could not be made.
    """
    find_sysbench(host)
    seeded = (f"--rand-seed={_LOADING_SEED}", "--rand-type=uniform")
    if cell.checkout:
        script = put_scripts(host, folder, cell.checkout)
        words: Sequence[str] = (*checkout_options(cell), "--threads=1", *seeded, script, "prepare")
    else:
        cpus = host.run(Command(argv=("nproc",)), timeout=_ASK_TIMEOUT).text.strip()
        threads = max(1, min(cell.scale, int(cpus) if cpus.isdecimal() else 1))
        words = (*table_options(cell.scale), f"--threads={threads}", *seeded, _PREPARES, "prepare")
    command = compose_command(address, words, folder=folder, memory=sizes.PROGRAM)
    done = host.run(command, timeout=_BUILD_TIMEOUT, check=False)
    if done.code != 0:
        said = {OUTPUT: done.stdout, ERRORS: done.stderr}
        lines = SysbenchParser().messages(said)
        full = find_disk_full("\n".join(lines))
        raise (DiskFullError if full else ServerFailedError)(
            "the disk is full while a dataset is built" if full else f"{NAME} could not build the dataset",
            where=f"scale {cell.scale}",
            remedy="free space where the server's data lie, or use a smaller scale" if full else "",
            details=lines[-5:],
        )


def verify_sysbench(cell: Cell) -> str:
    """A query with one row per check of fresh tables of OLTP scripts: columns item, expected, found, ok (boolean).

    Only what no script changes is checked: the rows of each table, and their first and last key.
    """
    single = (files(__package__) / "verify.sql").read_text("utf-8").replace("@rows@", str(ROWS))
    tables = " UNION ALL ".join(
        f"SELECT '{table}', count(*), min(id), max(id) FROM {table}"
        for table in (f"sbtest{number}" for number in range(1, cell.scale + 1))
    )
    return single.replace("@tables@", tables)
