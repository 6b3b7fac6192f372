"""The structure of the experiment file: which keys there are, where, and what they are for.

What belongs here: pydantic models, and the JSON Schema that is generated from them
(`python -m pgstrata.experiment.schema`). What the values mean together belongs to the modules that read them.
"""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, WithJsonSchema

from pgstrata.experiment import values
from pgstrata.experiment.values import MAX_BLOCKS, MAX_SWEEP, Levels, Scalar
from pgstrata.model.experiment import ControlKind, Interleave, Protocol, Reset
from pgstrata.model.metrics import METRICS
from pgstrata.model.thresholds import DEFAULT_THRESHOLD

_SCALAR: Final[dict[str, Any]] = {"type": ["string", "integer", "number", "boolean"]}
_DURATION: Final[dict[str, Any]] = {"type": "string", "examples": ["60s", "10m", "1h30m"]}
_LEVELS: Final[dict[str, Any]] = {
    "anyOf": [
        {"type": "array", "minItems": 1, "items": _SCALAR},
        {"type": "object", "minProperties": 1, "additionalProperties": _SCALAR},
    ]
}
_COUNTS: Final[tuple[dict[str, Any], ...]] = (
    {"type": "integer", "minimum": 1},
    {"type": "array", "minItems": 1, "uniqueItems": True, "items": {"type": "integer", "minimum": 1}},
)
_SWEEP: Final[dict[str, Any]] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["from", "to", "steps"],
    "properties": {
        "from": {"type": "integer", "minimum": 1},
        "to": {"type": "integer", "minimum": 2},
        "steps": {"type": "integer", "minimum": 2, "maximum": MAX_SWEEP},
        "shape": {"type": "string", "enum": ["exponential", "linear"], "default": "exponential"},
    },
}
_BASELINE: Final[dict[str, Any]] = {
    "anyOf": [{"type": "string"}, {"type": "object", "minProperties": 1}],
    "examples": [{"server": "16"}],
}


def _words(choices: object) -> dict[str, Any]:
    return {"type": "string", "enum": [str(choice) for choice in choices]}  # type: ignore[attr-defined]


def _count(low: int, high: int | None = None) -> dict[str, Any]:
    limits: dict[str, Any] = {"type": "integer", "minimum": low}
    return limits if high is None else {**limits, "maximum": high}


Table = Annotated[dict[str, Any], PlainValidator(values.read_table), WithJsonSchema({"type": "object"})]
ScalarValue = Annotated[Scalar, PlainValidator(values.read_scalar), WithJsonSchema(_SCALAR)]
LevelsValue = Annotated[Levels, PlainValidator(values.read_levels), WithJsonSchema(_LEVELS)]
Text = Annotated[str, PlainValidator(values.read_text), WithJsonSchema({"type": "string", "minLength": 1})]
Flag = Annotated[bool, PlainValidator(values.read_flag), WithJsonSchema({"type": "boolean"})]
Connection = Annotated[
    str,
    PlainValidator(values.read_choice("connection", ("socket", "tcp", "tls"))),
    WithJsonSchema(_words(("socket", "tcp", "tls"))),
]
_DOTTED: Final = r"^(settings|initdb|options|cpu|limits|storage|sysctl)\..+$"
_HOST: Final = (
    "Machine on which the server runs: local, or ssh:DESTINATION as your own ssh takes it; the client stays here."
)
_PAGES: Final = "Memory pages of the server's shared memory: 4kB, 2MB, 1GB; reserved for each run."
_THP: Final = "Transparent huge pages, for anonymous and shared memory: always, madvise, never."
_FILESYSTEM: Final = (
    "File system of the data, made anew on a loop device wherever the data are cloned anew: ext4, xfs, btrfs."
)
_CPU: Final = "CPUs: server, client (lists such as 0-3), quota (CPUs), policy, governor, turbo."
_LIMITS: Final = "Around the server: memory; read_bytes, write_bytes, read_operations, write_operations per second."
_STORAGE: Final = (
    "Of the data's storage: mkfs, mount (options), size, device (on the list), scheduler, read_ahead. Of WAL and "
    "installation: wal, installation (same, loop, memory, a device on the list)."
)
_SYSCTL: Final = "Kernel parameters by name, as sysctl -a writes them."
_BUILD: Final = (
    "How build:DIR is built: compiler (a program), flags (such as -O2; they replace PostgreSQL's own), "
    "system (meson or configure)."
)


class _Edge(BaseModel):
    model_config = ConfigDict(extra="forbid")


class StackTable(_Edge):
    """What all environments are made of, beneath their factors."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"patternProperties": {_DOTTED: _SCALAR}})

    server: ScalarValue | None = Field(
        None,
        description="embedded (default), 14 to 18, maven:9.6 to maven:18, build:DIR, build:FILE.tar.gz, "
        "build:DIR@COMMIT, prefix:DIR, a folder, dsn:SERVICE or dsn:CONNECTION-STRING.",
    )
    host: ScalarValue | None = Field(None, description=_HOST)
    connection: Connection | None = Field(
        None, description="How the client reaches the server; default socket, or tcp where a host is another machine."
    )
    checksums: Flag | None = Field(None, description="Whether clusters are made with data checksums; default true.")
    pages: ScalarValue | None = Field(None, description=_PAGES)
    thp: ScalarValue | None = Field(None, description=_THP)
    filesystem: ScalarValue | None = Field(None, description=_FILESYSTEM)
    settings: Table = Field(
        default_factory=dict, description="PostgreSQL settings by name: strings, numbers, booleans."
    )
    initdb: Table = Field(default_factory=dict, description="Options of initdb by name, without the leading hyphens.")
    options: Table = Field(default_factory=dict, description="Options of the workload by name.")
    build: Table = Field(default_factory=dict, description=_BUILD)
    cpu: Table = Field(default_factory=dict, description=_CPU)
    limits: Table = Field(default_factory=dict, description=_LIMITS)
    storage: Table = Field(default_factory=dict, description=_STORAGE)
    sysctl: Table = Field(default_factory=dict, description=_SYSCTL)


class EnvironmentTable(StackTable):
    """One environment that is listed by itself; what it does not say is taken from [common]."""

    name: Text | None = Field(None, description="Its name; identities of runs are made from it.")


class FactorsTable(_Edge):
    """What varies: every key is one factor; environments are the full cross of the levels."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"patternProperties": {_DOTTED: _LEVELS}})

    server: LevelsValue = Field(default_factory=tuple, description="Servers: a list, or a table of named levels.")
    host: LevelsValue = Field(default_factory=tuple, description=_HOST)
    connection: LevelsValue = Field(default_factory=tuple, description="Ways to connect.")
    checksums: LevelsValue = Field(default_factory=tuple, description="Data checksums: [true, false].")
    pages: LevelsValue = Field(default_factory=tuple, description=_PAGES)
    thp: LevelsValue = Field(default_factory=tuple, description=_THP)
    filesystem: LevelsValue = Field(default_factory=tuple, description=_FILESYSTEM)
    settings: Table = Field(
        default_factory=dict, description="Named sets of settings as tables; or levels of single settings as lists."
    )
    initdb: Table = Field(default_factory=dict, description="Levels of options of initdb.")
    options: Table = Field(default_factory=dict, description="Levels of options of the workload.")
    build: Table = Field(default_factory=dict, description=_BUILD)
    cpu: Table = Field(default_factory=dict, description=_CPU)
    limits: Table = Field(default_factory=dict, description=_LIMITS)
    storage: Table = Field(default_factory=dict, description=_STORAGE)
    sysctl: Table = Field(default_factory=dict, description=_SYSCTL)


class ScriptTable(_Edge):
    """A pgbench script of the author's own."""

    file: Text | None = Field(None, description="Path of the script, relative to the experiment file.")
    weight: Annotated[int, PlainValidator(values.read_count("weight", 1)), WithJsonSchema(_count(1))] = Field(
        1, description="Its share of the transactions, relative to the other scripts."
    )


class CellTable(_Edge):
    """What is measured in every environment; lists expand to one cell for each combination."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"patternProperties": {r"^options\..+$": _SCALAR}})

    workload: Text | None = Field(None, description="Name of a workload; a name of your own with `scripts`.")
    scale: Annotated[
        tuple[int, ...], PlainValidator(values.read_counts("scale")), WithJsonSchema({"anyOf": list(_COUNTS)})
    ] = Field(default_factory=tuple, description="Size of the data, in units of the workload.")
    clients: Annotated[
        tuple[int, ...], PlainValidator(values.read_clients), WithJsonSchema({"anyOf": [*_COUNTS, _SWEEP]})
    ] = Field(default_factory=tuple, description="Number of connections: one, a list, or a sweep.")
    threads: Annotated[
        int | None,
        PlainValidator(values.read_threads),
        WithJsonSchema({"anyOf": [_count(1), {"const": "auto"}], "default": "auto"}),
    ] = Field(None, description="Threads of the client; auto: one per client, at most eight per CPU.")
    protocol: Annotated[
        str, PlainValidator(values.read_choice("protocol", tuple(Protocol))), WithJsonSchema(_words(Protocol))
    ] = Field("prepared", description="Query protocol.")
    run: Annotated[float, PlainValidator(values.read_run), WithJsonSchema({**_DURATION, "default": "60s"})] = Field(
        60.0, description="Length of one run, whole seconds."
    )
    warmup: Annotated[
        float | None, PlainValidator(values.read_warmup), WithJsonSchema({**_DURATION, "default": "auto"})
    ] = Field(None, description="Load before the run that is not measured; auto: a tenth of the run, 1 s to 60 s.")
    rate: Annotated[
        float | None, PlainValidator(values.read_rate), WithJsonSchema({"type": "number", "exclusiveMinimum": 0})
    ] = Field(None, description="Fixed rate in transactions per second; left out: as fast as it goes.")
    latency_limit: Annotated[float | None, PlainValidator(values.read_seconds), WithJsonSchema(_DURATION)] = Field(
        None, description="Transactions that take longer are counted; at a fixed rate, late ones are skipped."
    )
    scripts: list[ScriptTable] = Field(
        default_factory=list, description="pgbench scripts of your own instead of a built-in workload."
    )
    options: Table = Field(default_factory=dict, description="Options of the workload by name.")
    profile: Flag = Field(
        default=False, description="Whether pgbench keeps the latency of each statement (its option -r)."
    )


class AllowTable(_Edge):
    """What the author knowingly allows."""

    mixed_suppliers: Flag = Field(default=False, description="Servers from different suppliers in one comparison.")
    mixed_compilers: Flag = Field(default=False, description="Servers built by different compilers in one comparison.")
    assertions: Flag = Field(default=False, description="Servers built with assertions.")
    failed_transactions: Flag = Field(default=False, description="Runs in which transactions fail.")


class ExperimentFile(_Edge):
    """A question about PostgreSQL's performance."""

    model_config = ConfigDict(extra="forbid", title="pgstrata experiment", json_schema_extra={"required": ["cells"]})

    question: Text | None = Field(None, description="What is asked, as one sentence; reports begin with it.")
    baseline: Annotated[
        str | dict[str, Any] | None, PlainValidator(values.read_baseline), WithJsonSchema(_BASELINE)
    ] = Field(None, description="Environment to compare with: its levels, or its name; default first levels.")
    metric: Annotated[
        str, PlainValidator(values.read_choice("metric", tuple(METRICS))), WithJsonSchema(_words(METRICS))
    ] = Field("tps", description="Primary metric; its direction is known.")
    threshold: Annotated[
        float,
        PlainValidator(values.read_threshold),
        WithJsonSchema({"type": ["string", "number"], "examples": ["3 %"], "default": "3 %"}),
    ] = Field(
        DEFAULT_THRESHOLD,
        description="Smallest difference that matters in practice. Without it latency has its own from p60 on: "
        "5 % for latency_p95, 15 % for latency_p99.",
    )
    blocks: Annotated[
        int, PlainValidator(values.read_count("blocks", 1, MAX_BLOCKS)), WithJsonSchema(_count(1, MAX_BLOCKS))
    ] = Field(MAX_BLOCKS, description="Most blocks that are measured.")
    budget: Annotated[float | None, PlainValidator(values.read_seconds), WithJsonSchema(_DURATION)] = Field(
        None, description="Time after which no further block is begun."
    )
    controls: list[
        Annotated[
            str, PlainValidator(values.read_choice("control", tuple(ControlKind))), WithJsonSchema(_words(ControlKind))
        ]
    ] = Field(
        default_factory=list,
        description="Environments that must not differ from the baseline. Available: same, rebuild.",
    )
    reset: Annotated[str, PlainValidator(values.read_choice("reset", tuple(Reset))), WithJsonSchema(_words(Reset))] = (
        Field("clone", description="What happens to the data between runs.")
    )
    interleave: Annotated[
        str, PlainValidator(values.read_choice("interleave", tuple(Interleave))), WithJsonSchema(_words(Interleave))
    ] = Field("auto", description="How environments alternate; auto: in slices where that is honest.")
    seed: Annotated[
        int, PlainValidator(values.read_count("seed", 0, 2**63 - 1)), WithJsonSchema(_count(0, 2**63 - 1))
    ] = Field(1, description="What the order of the runs is drawn from.")
    diagnosis: Flag = Field(
        default=True,
        description=(
            "Whether sessions, host and server are sampled during runs, plans taken and statements counted: "
            "without it nobody knows why."
        ),
    )
    profile_cpu: Flag = Field(
        default=False, description="Whether perf samples the stacks of the servers' processes, for flame graphs."
    )
    query_text: Flag = Field(
        default=True,
        description=(
            "Whether texts of sampled queries are kept, without their constants; otherwise hashes of them are, and "
            "neither plans nor counts of statements."
        ),
    )
    factors: FactorsTable = Field(default_factory=FactorsTable, description="What varies.")
    common: StackTable = Field(default_factory=StackTable, description="What all environments share.")
    environments: list[EnvironmentTable] = Field(
        default_factory=list, description="Environments one by one, instead of [factors]."
    )
    cells: list[CellTable] = Field(default_factory=list, description="What is measured in every environment.")
    allow: AllowTable = Field(default_factory=AllowTable, description="What is knowingly allowed.")


TABLES: Final[dict[str, type[BaseModel]]] = {
    "": ExperimentFile,
    "factors": FactorsTable,
    "common": StackTable,
    "environments": EnvironmentTable,
    "cells": CellTable,
    "cells.scripts": ScriptTable,
    "allow": AllowTable,
}
"""The model of each table, by its path without indices."""


def json_schema() -> str:
    """The JSON Schema (2020-12) of the experiment file, as text."""
    schema = _tidy(ExperimentFile.model_json_schema())
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return json.dumps({**head, **schema}, indent=2, ensure_ascii=False) + "\n"


def _tidy(node: Any) -> Any:
    """Without what only Python sees: null for keys that are left out, titles made from the names of keys."""
    if isinstance(node, list):
        return [_tidy(item) for item in node if item != {"type": "null"}]
    if not isinstance(node, dict):
        return node
    tidy = {key: _tidy(value) for key, value in node.items() if not (key == "default" and value is None)}
    if isinstance(tidy.get("title"), str) and "description" in tidy and "properties" not in tidy:
        del tidy["title"]
    choices = tidy.get("anyOf")
    if isinstance(choices, list) and len(choices) == 1:
        del tidy["anyOf"]
        tidy = {**choices[0], **tidy}
    return tidy


if __name__ == "__main__":
    sys.stdout.write(json_schema())
