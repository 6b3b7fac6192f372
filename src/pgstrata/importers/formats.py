"""The formats that can be imported, by the name that `--format` has for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from pgstrata.importers.documents import read_benchbase, read_commits, read_postgresbench
from pgstrata.importers.generators import read_hammerdb, read_pgbench, read_sysbench
from pgstrata.importers.results import Contents, ReadingTerms
from pgstrata.importers.tables import read_long, read_otava, read_pgbent, read_wide


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A kind of foreign file: its name for messages, its reader, and whether pgbench's logs may be in its folder."""

    title: str
    read: Callable[[str, ReadingTerms], Contents]
    has_logs: bool = False


FORMATS: Final[Mapping[str, Format]] = {
    "pgbench": Format(title="output of pgbench", read=read_pgbench, has_logs=True),
    "sysbench": Format(title="output of sysbench", read=read_sysbench),
    "hammerdb": Format(title="logs or job results of HammerDB (TPROC-C)", read=read_hammerdb),
    "benchbase": Format(title="summaries of BenchBase (JSON)", read=read_benchbase),
    "postgresbench": Format(title="results of ClickHouse's PostgresBench (JSON)", read=read_postgresbench),
    "pgbent": Format(title="table tests of pgbent or pgbench-tools (CSV)", read=read_pgbent),
    "table": Format(title="a table with one row for each run", read=read_long),
    "wide": Format(title="a table with one column for each environment", read=read_wide),
    "commits": Format(title="one value for each commit (JSON)", read=read_commits),
    "otava": Format(title="a history as Otava reads it (CSV)", read=read_otava),
}
