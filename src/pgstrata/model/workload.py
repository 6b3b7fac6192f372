"""What the clients do, described."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Data(StrEnum):
    """Kinds of data that workloads share."""

    PGBENCH = "pgbench"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What the clients do, described: which data, whether it writes, how large the data are.

    `builtin` is the name of pgbench's built-in script, empty for custom scripts. `bytes_per_scale` is the size on disk
    per unit of scale, indexes included. `hot_row_per_scale`: every transaction updates one of `scale` rows.
    """

    name: str
    title: str
    data: Data
    writes: bool
    builtin: str
    bytes_per_scale: int
    hot_row_per_scale: bool = False
    relations: tuple[str, ...] = ()
