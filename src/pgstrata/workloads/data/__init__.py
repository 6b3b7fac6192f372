"""SQL around the data of workloads: into memory, are they ours. The statements lie beside as files."""

from __future__ import annotations

from importlib.resources import files

from pgstrata.libpq import quote_literal
from pgstrata.model.workload import Workload


def warm_sql(workload: Workload) -> str:
    """A script that brings the workload's relations into shared_buffers, as far as they fit; 9.6 to 18.

    With the extension pg_prewarm whole relations are read block by block. Without it every table is read through its
    primary key, because a sequential scan of a large table passes through a ring of a few buffers only. The two leave
    different cache states where the relations do not fit: have the extension in all arms or in none.
    """
    names = ", ".join(quote_literal(name) for name in workload.data.relations)
    return _read("warm.sql").replace("@relations@", f"ARRAY[{names}]::text[]")


def marker_sql() -> str:
    """A script that makes the table pgstrata_marker, without which no database is ever dropped or overwritten."""
    return _read("marker.sql")


def _read(name: str) -> str:
    return (files(__package__) / name).read_text("utf-8")
