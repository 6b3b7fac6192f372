"""The formats that can be imported, by the name that `--format` has for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from pgstrata.importers.commits import read_commits
from pgstrata.importers.documents import read_benchbase, read_postgresbench
from pgstrata.importers.generators import read_pgbench, read_sysbench
from pgstrata.importers.hammerdb import read_hammerdb
from pgstrata.importers.pgbent import read_pgbent
from pgstrata.importers.prefixes import read_by_stream
from pgstrata.importers.results import Contents, FormatName, ReadingTerms
from pgstrata.importers.tables import read_long, read_otava, read_wide


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A kind of foreign file: its name for messages, and its reader.

    `has_logs`: pgbench's logs may be in its folder. `ending` is the end of the names that the tool itself gives its
    results, if it writes further files beside them.
    """

    title: str
    read: Callable[[str, ReadingTerms], Contents]
    has_logs: bool = False
    ending: str = ""


FORMATS: Final[Mapping[str, Format]] = {
    FormatName.PGBENCH: Format(title="output of pgbench", read=read_by_stream(read_pgbench), has_logs=True),
    FormatName.SYSBENCH: Format(title="output of sysbench", read=read_by_stream(read_sysbench)),
    FormatName.HAMMERDB: Format(
        title="logs, job results or job reports of HammerDB", read=read_by_stream(read_hammerdb)
    ),
    FormatName.BENCHBASE: Format(title="summaries of BenchBase (JSON)", read=read_benchbase, ending=".summary.json"),
    FormatName.POSTGRESBENCH: Format(
        title="results of ClickHouse's PostgresBench (JSON)", read=read_postgresbench, ending=".json"
    ),
    FormatName.PGBENT: Format(title="table tests of pgbent or pgbench-tools (CSV or dump)", read=read_pgbent),
    FormatName.TABLE: Format(title="a table with one row for each run", read=read_long),
    FormatName.WIDE: Format(title="a table with one column for each environment", read=read_wide),
    FormatName.COMMITS: Format(title="one value for each commit (JSON)", read=read_commits),
    FormatName.OTAVA: Format(title="a history as Otava reads it (CSV)", read=read_otava),
}
