"""A server's full disk, said with the folder that is full and what to do.

It is no property of an environment: it ends the experiment, and nothing is committed of what was under way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from pgstrata.errors import LARGER_FILE_SYSTEM, SMALLER_WAL, DatabaseFullError, DiskFullError
from pgstrata.model.experiment import Environment
from pgstrata.model.storage import Medium, Role, medium_of
from pgstrata.ports.server import RunningServer

_WAL: Final = re.compile(r"\b(pg_wal|pg_xlog|xlogtemp)\b")
_FREE: Final = (
    "free space where datasets and clones lie (PGSTRATA_DATA names another place), then give the same command again to "
    "go on"
)


def disk_full(environment: Environment, server: RunningServer | None, doing: str, said: str) -> DiskFullError:
    """`doing` ends the sentence "the disk was full ..."; `said` is a line of the server or of the driver."""
    remedy = _FREE
    if _WAL.search(said) and medium_of(environment, Role.WAL) is not Medium.SAME:
        remedy = SMALLER_WAL
    elif medium_of(environment, Role.DATA) is not Medium.SAME:
        remedy = LARGER_FILE_SYSTEM
    where = server.clone.location if server else environment.name
    return DiskFullError(f"the disk was full {doing}", where=where, details=(said,), remedy=remedy)


@contextmanager
def naming_the_disk(
    up: Mapping[str, RunningServer], doing: str = "during the run {}, which is not kept"
) -> Iterator[None]:
    """A statement that finds no room names the folder of the server that said so, by run or environment in `doing`.

    `up` may grow within the context.
    """
    try:
        yield
    except DatabaseFullError as error:
        for name, server in up.items():
            if (server.address.host, server.address.port) == (error.host, error.port):
                raise disk_full(server.environment, server, doing.format(name), error.what) from error
        raise
