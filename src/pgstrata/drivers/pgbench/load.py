"""Has pgbench make its own tables and data, and says how to check them."""

from __future__ import annotations

from importlib.resources import files
from typing import Final

from pgstrata.errors import DiskFullError, ServerFailedError, find_disk_full
from pgstrata.libpq import compose_connection
from pgstrata.model.server import Address, Build
from pgstrata.ports.host import Command, Host

_BUILD_TIMEOUT: Final = 6 * 3600.0


def load_pgbench(host: Host, tools: Build, address: Address, scale: int) -> None:
    """pgbench's own tables and data at that scale; its VACUUM is left out because FREEZE follows."""
    connection = compose_connection(address)
    done = host.run(
        Command(
            argv=(tools.program("pgbench"), "-i", "-q", "-I", "dtgp", "-s", str(scale), *connection.arguments),
            environment={**tools.process_environment, **connection.environment, "LC_ALL": "C"},
            password=connection.password,
        ),
        timeout=_BUILD_TIMEOUT,
        check=False,
    )
    if done.code != 0:
        lines = done.complaints.strip().splitlines()
        full = find_disk_full("\n".join(lines))
        raise (DiskFullError if full else ServerFailedError)(
            "the disk is full while a dataset is built" if full else "pgbench could not build the dataset",
            where=f"scale {scale}",
            remedy="free space where the server's data lie, or use a smaller scale" if full else "",
            details=tuple(lines[-5:]),
        )


def verify_sql(scale: int) -> str:
    """A query with one row per check of freshly made data: columns item, expected, found, ok (boolean)."""
    return (files(__package__) / "verify.sql").read_text("utf-8").replace("@scale@", str(int(scale)))
