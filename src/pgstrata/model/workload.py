"""Descriptions of workloads and of their data."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from pgstrata.model.driver import DEFAULT_DRIVER
from pgstrata.model.experiment import Script
from pgstrata.model.own_data import OwnData


@dataclass(frozen=True, slots=True, kw_only=True)
class DataKind:
    """The data of workloads; workloads on one kind share datasets.

    `unit` names one unit of scale, such as "warehouse". `bytes_per_scale` is the size on disk per unit, indexes
    included; `fixed_bytes` come on top at any scale. `relations` are warmed in this order. `steps` are SQL scripts that
    make the data, one step after the other, those of a step side by side; without any a driver makes them. `checks` is
    a query of freshly made data, and `consistency` one of the same data whatever was done to them since: a row for each
    check, with the columns item, expected, found, ok. @scale@ stands for the scale in all of them. `digest` stands for
    all that makes the data where neither steps nor a driver do. `copies` is the number of equal sets of tables; in both
    queries @copy@ stands for the number of one. `seconds_per_scale` and `fixed_seconds` are how long it takes to make
    the data, measured, for loaders that are slower than the usual bytes per second.
    """

    name: str
    title: str
    unit: str
    bytes_per_scale: int
    fixed_bytes: int = 0
    relations: tuple[str, ...] = ()
    steps: tuple[tuple[str, ...], ...] = ()
    checks: str = ""
    consistency: str = ""
    sources: tuple[str, ...] = ()
    digest: str = ""
    copies: int = 1
    seconds_per_scale: float = 0.0
    fixed_seconds: float = 0.0

    def least_seconds(self, scale: int) -> float:
        """How long it takes at least to make the data of that scale; 0 where nothing is known but their size."""
        return self.fixed_seconds + self.copies * self.seconds_per_scale * scale

    def size(self, scale: int) -> int:
        """Bytes on disk at that scale, without those of an empty cluster."""
        return self.copies * (self.fixed_bytes + self.bytes_per_scale * scale)

    def steps_at(self, scale: int) -> tuple[tuple[str, ...], ...]:
        """The scripts that make the data of that scale."""
        return tuple(tuple(_at(script, scale) for script in step) for step in self.steps)

    def checks_at(self, scale: int) -> str:
        """The query of freshly made data, empty where a driver knows it."""
        return self._of_each_copy(_at(self.checks, scale))

    def consistency_at(self, scale: int) -> str:
        """The query of data at any time, empty where nothing is known of them."""
        return self._of_each_copy(_at(self.consistency, scale))

    def _of_each_copy(self, query: str) -> str:
        if "@copy@" not in query:
            return query
        return " UNION ALL ".join(f"({query.replace('@copy@', str(copy))})" for copy in range(1, self.copies + 1))


_SOME_TABLE: Final = """\
SELECT 'tables' AS item, 'at least 1' AS expected, pg_catalog.count(*) AS found, pg_catalog.count(*) > 0 AS ok
FROM pg_catalog.pg_class AS c
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'm') AND c.relnatts > 0 AND c.relname <> 'pgstrata_marker'
    AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
"""
"""The check of data of which nothing else is known: a loader that made nothing has failed."""


def own_kind(data: OwnData) -> DataKind:
    """Data of the user's own as a kind, whose name tells different ones apart; @scale@ stands for 1 in its queries."""
    return DataKind(
        name=f"own_{data.digest[:8]}",
        title=data.title,
        unit="",
        bytes_per_scale=0,
        fixed_bytes=data.estimate,
        checks=data.checks or _SOME_TABLE,
        consistency=data.consistency,
        digest=data.digest,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """An option of a workload, which may be a factor.

    `default` stands for it where nobody gives it. `choices` are the only values of an option that has them; each says
    what stands in the scripts for names between @ signs. Without choices any number may be given. `copies`: it is the
    number of equal sets of tables (`DataKind.copies`), so that it is given in cells only.
    """

    default: str
    meaning: str = ""
    choices: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    copies: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadScript:
    """One of a workload's scripts.

    `when` are values of options with which it runs. `only_with` names options of which one must be given: then it runs
    instead of the driver's own script. `driver` is the key of the load generator that runs it.
    """

    script: Script
    driver: str = DEFAULT_DRIVER
    when: Mapping[str, str] = field(default_factory=dict)
    only_with: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A load: its data, its scripts, and the facts that plans depend on.

    `builtin` is the name of a script that the driver brings, empty where it runs `scripts` alone.
    `hot_row_per_scale`: every transaction updates one of `scale` rows. `reconnects`: each transaction has a connection
    of its own. `retries`: maximum number of tries of a transaction after deadlocks and serialization failures.
    `settings` are given to servers where nobody gives them. `driver` is the key of its load generator where the cell
    names none; others run it if they have scripts of it. `long_transactions`: a transaction may last longer than a
    slice. `profile`: the latency of each statement is kept. `checkout` is the script with which files of a user's own
    begin that the cell must name, empty without any.
    """

    name: str
    title: str
    data: DataKind
    writes: bool
    builtin: str = ""
    hot_row_per_scale: bool = False
    options: Mapping[str, Option] = field(default_factory=dict)
    scripts: tuple[WorkloadScript, ...] = ()
    reconnects: bool = False
    retries: int = 1
    settings: Mapping[str, str] = field(default_factory=dict)
    driver: str = DEFAULT_DRIVER
    long_transactions: bool = False
    profile: bool = False
    checkout: str = ""

    @property
    def drivers(self) -> tuple[str, ...]:
        """Keys of the load generators that run it, its usual one first."""
        return tuple(dict.fromkeys((self.driver, *(each.driver for each in self.scripts))))

    def data_for(self, given: Mapping[str, str]) -> DataKind:
        """The workload's data with options as a cell gives them."""
        counts = [int(value) for name, value in self.values(given).items() if self.options[name].copies]
        return replace(self.data, copies=counts[0]) if counts else self.data

    def fixed_options(self, driver: str) -> Mapping[str, frozenset[str]]:
        """The values that options must have for scripts of that driver, by the names of options that are so limited."""
        known = [each.when for each in self.scripts if each.driver == driver]
        names = [name for name in self.options if known and all(name in when for when in known)]
        return {name: frozenset(when[name] for when in known) for name in names}

    def values(self, given: Mapping[str, str]) -> Mapping[str, str]:
        """All its options by name: those that are given, and the defaults of the others."""
        return {name: given.get(name, option.default) for name, option in self.options.items()}

    def scripts_for(self, given: Mapping[str, str], driver: str = "") -> tuple[Script, ...]:
        """The workload's own scripts with the options given, for its usual driver unless another one is named.

        None where the driver's own script runs, or where the driver cannot run it with these options.
        """
        values, driver = self.values(given), driver or self.driver
        texts: dict[str, str] = {}
        for name, option in self.options.items():
            texts |= option.choices.get(values[name], {})
        return tuple(
            Script(file=each.script.file, text=_fill(each.script.text, texts), weight=each.script.weight)
            for each in self.scripts
            if each.driver == driver
            and all(values.get(name) == value for name, value in each.when.items())
            and (not each.only_with or given.keys() & set(each.only_with))
        )


def _at(script: str, scale: int) -> str:
    return script.replace("@scale@", str(int(scale)))


def _fill(text: str, texts: Mapping[str, str]) -> str:
    for name, meant in texts.items():
        text = text.replace(f"@{name}@", meant)
    return text
