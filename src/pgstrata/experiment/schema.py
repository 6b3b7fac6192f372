"""The structure of the experiment file: which keys there are, where, what they are for and which values they take.

What belongs here: the tables of the file, read by `structure`, and the JSON Schema that is made of them
(`python -m pgstrata.experiment.schema`). Keys of environments are declared in `registry`; what the values mean together
belongs to the modules that read them.
"""

# ruff: noqa: RUF009  calls make the fields: each with its kind, meaning and default

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, TypeVar

from pgstrata.experiment.clients import CLIENTS, THREADS, Clients
from pgstrata.experiment.prices import PRICE, PRICES
from pgstrata.experiment.registry import factor_keys
from pgstrata.experiment.synthetic import SYNTHETIC
from pgstrata.experiment.tiers import SCALE, Tier
from pgstrata.experiment.values import (
    BASELINE,
    COMMANDS,
    COPIES,
    FLAG,
    LEVELS,
    OBJECTIVE,
    RATE,
    RUN,
    SCALAR,
    SECONDS,
    SIZE,
    TABLE,
    TEXT,
    THRESHOLD,
    WARMUP,
    WORDS,
    Kind,
    Rate,
    choice,
    count,
)
from pgstrata.model.experiment import ControlKind, Interleave, Order, Placement, Protocol, Reset
from pgstrata.model.metrics import METRICS
from pgstrata.model.objective import Objective
from pgstrata.model.plan import HORIZON
from pgstrata.model.price import Price
from pgstrata.model.synthetic import Synthetic
from pgstrata.model.thresholds import DEFAULT_THRESHOLD

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A key of a table: what its value must be, what it is for, and what stands for it where it is left out.

    `table` is the path without indices of the table that its value is, or of those that it lists with `listed`.
    """

    meaning: str
    kind: Kind[Any] = TABLE
    usual: object = None
    table: str = ""
    listed: bool = False


def _key(kind: Kind[_T], meaning: str, *, usual: object = None, absent: Any = ...) -> _T:
    """A field with a value of a kind: where the file has none, `absent`, or else what `usual` would be in the file."""
    if absent is ...:
        absent = None if usual is None else kind.read(usual)
    key = Key(meaning=meaning, kind=kind, usual=usual)
    return field(default_factory=lambda: absent, metadata={"key": key})  # type: ignore[no-any-return]


def _list(meaning: str, *, of: str = "", kind: Kind[Any] = TABLE) -> Any:
    return field(default=(), metadata={"key": Key(meaning=meaning, kind=kind, table=of, listed=True)})


def _table(path: str, meaning: str, default: Any) -> Any:
    return field(default_factory=default, metadata={"key": Key(meaning=meaning, table=path)})


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptTable:
    """A pgbench script of the author's own."""

    file: str | None = _key(TEXT, "Path of the script, relative to the experiment file.")
    weight: int = _key(count("weight", 1), "Its share of the transactions, relative to the other scripts.", usual=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class DataTable:
    """Data of your own: a dump, SQL (with files for COPY), or a command; paths are relative to the experiment file."""

    dump: str | None = _key(
        TEXT, "A dump of pg_dump in custom, directory or tar format. pg_restore of the server's build restores it."
    )
    sql: str | None = _key(TEXT, "A file of SQL that psql runs in an empty database. It stops at the first error.")
    copy: Mapping[str, tuple[str, str]] = _key(
        COPIES,
        "Files that COPY reads into tables that `sql` makes, by table. The format is csv if the name ends in .csv, "
        "else text; { file, options } gives other options, as in the parentheses of COPY.",
        absent={},
    )
    command: tuple[str, ...] = _key(
        WORDS,
        "A program with its arguments that fills an empty database, which PGHOST, PGPORT, PGUSER and PGDATABASE name. "
        "It runs in the folder of the experiment file, never as root.",
        absent=(),
    )
    files: tuple[str, ...] = _list(
        "Other files that the data depend on, such as the program and the files that it reads.", kind=TEXT
    )
    checks: str | None = _key(
        TEXT, "A query that checks the fresh data: a row for each check, with columns item, expected, found, ok."
    )
    consistency: str | None = _key(
        TEXT, "A query with the same columns that runs on the fresh data and after each run."
    )
    size: int | None = _key(SIZE, "Size on disk, for forecasts; otherwise guessed from the sizes of the files.")


@dataclass(frozen=True, slots=True, kw_only=True)
class CellTable:
    """What is measured in every environment; lists expand to one cell for each combination."""

    workload: str | None = _key(TEXT, "Name of a built-in workload; with `scripts` a name of your own.")
    driver: str | None = _key(TEXT, "Load generator, pgbench or sysbench, if the workload can be run by both.")
    checkout: str | None = _key(
        TEXT,
        "Folder with your checkout of sysbench-tpcc, relative to the experiment file. Only for the workload "
        "sysbench-tpcc.",
    )
    scale: tuple[int | Tier, ...] = _key(
        SCALE,
        "Size of the data, in units of the workload; or a multiple of the baseline's memory, "
        '"0.5 × shared_buffers" or "1.5 × memory limit" (`limits.memory`). All environments have the same scale.',
        absent=(),
    )
    clients: Clients = _key(
        CLIENTS,
        "Number of connections: one, a list, or a sweep. With until, the sweep ends where all environments have lost a "
        "tenth of their best throughput, which is measured before the first block.",
        absent=Clients(),
    )
    threads: int | None = _key(
        THREADS, "Threads of the client; auto: one per client, with pgbench at most eight per CPU.", usual="auto"
    )
    protocol: Protocol = _key(
        choice("protocol", Protocol), "Query protocol; sysbench knows simple and prepared.", usual="prepared"
    )
    run: float = _key(RUN, "Length of one run, whole seconds.", usual="60s")
    warmup: float | None = _key(
        WARMUP, "Load before the run that is not measured; auto: a tenth of the run, 1 s to 60 s.", usual="auto"
    )
    rate: tuple[Rate, ...] = _key(
        RATE,
        "Fixed rate in transactions per second, with sysbench a whole number; or a share of the maximum of the slowest "
        "environment, which is measured before the first block. A list makes a cell for each rate.",
        absent=(),
    )
    latency_limit: float | None = _key(
        SECONDS, "Transactions that take longer are counted. At a fixed rate, late ones are skipped. Not with sysbench."
    )
    objective: Objective | None = _key(
        OBJECTIVE,
        "Limit of a latency percentile, or of the mean latency. A run searches for the highest rate that keeps it, in "
        "12 steps of whole seconds. Not with rate, latency_limit, profile or sysbench.",
    )
    scripts: tuple[ScriptTable, ...] = _list(
        "pgbench scripts of your own, instead of a built-in workload.", of="cells.scripts"
    )
    data: DataTable | None = _table(
        "cells.data", "Data of your own for `scripts`, instead of `scale` and pgbench's tables.", lambda: None
    )
    options: Mapping[str, Any] = _key(TABLE, "Options of the workload by name.", absent={})
    profile: bool = _key(
        FLAG, "Whether the latency of each statement is kept (pgbench's option -r; not with sysbench).", usual=False
    )
    placement: Placement = _key(
        choice("placement", Placement),
        "CPUs of sessions: free, or paired (client and backend on one CPU, the same in all environments of a visit); "
        "auto: paired where that is known to help.",
        usual="auto",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowTable:
    """What the author knowingly allows."""

    mixed_suppliers: bool = _key(FLAG, "Servers from different suppliers in one comparison.", usual=False)
    mixed_compilers: bool = _key(FLAG, "Servers built by different compilers in one comparison.", usual=False)
    assertions: bool = _key(FLAG, "Servers built with assertions.", usual=False)
    failed_transactions: bool = _key(FLAG, "Runs in which transactions fail.", usual=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentFile:
    """A question about PostgreSQL's performance.

    `factors`, `common` and `environments` hold their keys in the order of the file, and values that are not read yet.
    """

    question: str | None = _key(TEXT, "What is asked, as one sentence; reports begin with it.")
    baseline: str | Mapping[str, Any] | None = _key(
        BASELINE, "Environment to compare with: its levels, or its name; default first levels."
    )
    metric: str = _key(
        choice("metric", tuple(METRICS)),
        "Primary metric; its direction is known. Of cells with an objective it is sustained_rate.",
        usual="tps",
    )
    threshold: float | None = _key(
        THRESHOLD,
        "Smallest difference that matters in practice. Without it latency has its own from p60 on: "
        "5 % for latency_p95, 15 % for latency_p99.",
        usual=f"{DEFAULT_THRESHOLD * 100:g} %",
        absent=None,
    )
    blocks: int = _key(count("blocks", 1, HORIZON), "Most blocks that are measured.", usual=HORIZON)
    budget: float | None = _key(SECONDS, "Time after which no further block is begun.")
    controls: tuple[ControlKind, ...] = _list(
        "Environments that must not differ from the baseline. Available: same, reboot, rebuild.",
        kind=choice("control", ControlKind),
    )
    reset: Reset = _key(choice("reset", Reset), "What happens to the data between runs.", usual="clone")
    interleave: Interleave = _key(
        choice("interleave", Interleave),
        "How environments alternate; auto: in slices where that is honest.",
        usual="auto",
    )
    order: Order = _key(
        choice("order", Order),
        "Order of the cells within a visit. rising: fewer clients first; effects of time and of load then cannot be "
        "told apart.",
        usual="random",
    )
    seed: int = _key(count("seed", 0, 2**63 - 1), "What the order of the runs is drawn from.", usual=1)
    diagnosis: bool = _key(
        FLAG,
        "Whether sessions, host and server are sampled during runs, plans taken and statements counted: "
        "without it nobody knows why.",
        usual=True,
    )
    profile_cpu: bool = _key(
        FLAG, "Whether perf samples the stacks of the servers' processes, for flame graphs.", usual=False
    )
    query_text: bool = _key(
        FLAG,
        "Whether texts of sampled queries are kept, without their constants; otherwise hashes of them are, and "
        "neither plans nor counts of statements.",
        usual=True,
    )
    factors: Mapping[str, Any] = _table("factors", "What varies.", dict)
    common: Mapping[str, Any] = _table("common", "What all environments share.", dict)
    environments: tuple[Mapping[str, Any], ...] = _list(
        "Environments one by one, instead of [factors].", of="environments"
    )
    cells: tuple[CellTable, ...] = _list("What is measured in every environment.", of="cells")
    restart: Mapping[str, tuple[str, ...]] = _key(
        COMMANDS,
        "Commands that restart running servers (dsn:) before each of their runs, by level of the factor server. "
        "They are executed on this machine as the user who started pgstrata.",
        absent={},
    )
    prices: Mapping[str, Price] = _key(
        PRICES,
        "Prices of an hour of a machine, by host or by the name of an environment: per_hour, as_of, includes, source. "
        "All are in one currency. Prices have no influence on measurements.",
        absent={},
    )
    synthetic: Synthetic | None = _key(
        SYNTHETIC,
        "Values that are declared instead of measured, to try a search out: from `kernel` on they are changed by "
        "`change`, and scatter by `scatter`. The metric is then synthetic, and there is no verdict on speed.",
    )
    allow: AllowTable = _table("allow", "What is knowingly allowed.", AllowTable)


TYPES: Final[Mapping[str, type]] = {
    "": ExperimentFile,
    "cells": CellTable,
    "cells.scripts": ScriptTable,
    "cells.data": DataTable,
    "allow": AllowTable,
}
"""The type of each table whose keys are its own, by its path without indices."""

STACKS: Final = {
    "factors": ("FactorsTable", "What varies: every key is one factor; environments are the full cross of the levels."),
    "common": ("StackTable", "What all environments are made of, beneath their factors."),
    "environments": (
        "EnvironmentTable",
        "One environment that is listed by itself; what it does not say is taken from [common].",
    ),
}
"""Tables whose keys are those of environments, with the name and meaning that they have in the schema."""


def table_keys(table: str) -> Mapping[str, Key]:
    """The keys of a table by its path without indices; values of environments' keys are not read with the structure."""
    if table in TYPES:
        return {each.name: each.metadata["key"] for each in fields(TYPES[table])}
    keys = {}
    for name, one in factor_keys().items():
        kind = LEVELS if table == "factors" and one.kind is not TABLE else one.kind
        kind = kind if kind is TABLE else replace(kind, read=lambda value: value)
        keys[name] = Key(meaning=(table == "factors" and one.levels) or one.meaning, kind=kind)
    if table == "environments":
        keys["name"] = Key(meaning="Its name in answers; identities of runs are made from it.", kind=TEXT)
        keys["price"] = Key(
            meaning="Price of an hour of it, as under [prices]: { per_hour, as_of, includes, source }.", kind=PRICE
        )
    return keys


TABLES: Final = ("", "factors", "common", "environments", "cells", "cells.scripts", "cells.data", "allow")
"""Paths of all tables without indices."""


def json_schema() -> str:
    """The JSON Schema (2020-12) of the experiment file, as text."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **_describe_table(""),
        "title": "pgstrata experiment",
        "required": ["cells"],
        "$defs": {_title(table): _describe_table(table) for table in TABLES if table},
    }
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _title(table: str) -> str:
    return TYPES[table].__name__ if table in TYPES else STACKS[table][0]


def _describe_table(table: str) -> dict[str, Any]:
    keys = table_keys(table)
    meaning = (TYPES[table].__doc__ or "").partition("\n")[0] if table in TYPES else STACKS[table][1]
    node: dict[str, Any] = {"description": meaning, "additionalProperties": False}
    dotted = [name for name, key in keys.items() if key.kind is TABLE and not key.table]
    if dotted:
        # quoted keys such as "settings.work_mem" stand for the table and its key
        values = LEVELS if table == "factors" else SCALAR
        names = dotted[0] if len(dotted) == 1 else f"({'|'.join(dotted)})"
        node["patternProperties"] = {rf"^{names}\..+$": values.schema}
    properties = {name: _describe_key(key) for name, key in keys.items()}
    return {"title": _title(table), **node, "type": "object", "properties": properties}


def _describe_key(key: Key) -> dict[str, Any]:
    value = {"$ref": f"#/$defs/{_title(key.table)}"} if key.table else dict(key.kind.schema)
    if key.listed:
        value = {"type": "array", "items": value}
    usual = {} if key.usual is None else {"default": key.usual}
    return {"description": key.meaning, **value, **usual}


if __name__ == "__main__":
    sys.stdout.write(json_schema())
