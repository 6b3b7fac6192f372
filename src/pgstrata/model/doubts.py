"""Doubts that travel with a result: codes and what was found; `report.sentences.findings` makes sentences of them.

What each code is against stands in `model.guards`. Ratios are value / baseline value, shares between 0 and 1; of two
environments the one that is compared comes first.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from pgstrata.model.reasons import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainDoubt:
    """One that its code alone tells."""

    code: Literal["small_and_early", "baseline_collapsed", "both_collapsed", "thp_always"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedDoubt:
    """One about what has these names: cells, environments, machines, servers, columns, levels, a clock, a governor.

    `of` is the environment that the cells belong to, the metric that they lack, the setting that hides the answer, or
    how repeats were measured.
    """

    code: Literal[
        "built_with_assertions",
        "cells_left_out",
        "checkpoint_free",
        "clock_source",
        "collapsed_cells",
        "cpu_governor",
        "cut_cycles",
        "direction_assumed",
        "few_samples",
        "huge_pages_fallback",
        "identical",
        "ignored_columns",
        "measured_once",
        "no_blocks",
        "repeated_cells",
        "repeated_environments",
        "these_instances",
        "these_machines",
        "turns_contradicted",
    ]
    names: tuple[str, ...]
    of: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedDoubt:
    """One about so many blocks, `of` the planned ones; or about so many runs of an environment, `of` all of its own.

    Or about so many of the headlines of an answer.
    """

    code: Literal[
        "collapsed_runs",
        "equivalences_uncorrected",
        "imbalance",
        "incomplete",
        "measured_apart",
        "neighbours_differ",
        "suspect_runs",
    ]
    number: int
    of: int
    environment: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SidesDiffer:
    """What happened beside the runs of two environments: means, or the runs that stray, of so many."""

    code: Literal["anomalies_differ", "autovacuums_differ", "checkpoints_differ", "wal_differs"]
    environments: tuple[str, str]
    values: tuple[float, float]
    of: tuple[int, int] = (0, 0)


# ------------------------------------------------------------------------------------------------ of a verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class TooFewBlocks:
    """No interval yet: `needed` blocks give one, None where no number does.

    `level` is what is left to each of several headlines, None where nobody shares it; `planned` is there where it is
    less than what is needed.
    """

    code: ClassVar = "insufficient_blocks"
    blocks: int
    needed: int | None
    level: float | None = None
    planned: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TooFewValues:
    """No interval yet of so many values of two environments; `needed` in each give one."""

    code: ClassVar = "insufficient_values"
    values: tuple[int, int]
    needed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DependentValues:
    """Values that follow each other as the seconds of one run do, with the largest correlation of neighbours.

    Without blocks those of each of the environments count as one value; of blocks it is their differences.
    """

    code: ClassVar = "dependent_values"
    environments: tuple[str, ...]
    correlation: float
    blocks: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Undecided:
    """The ratio lies between these."""

    code: ClassVar = "undecided"
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Unstable:
    """Differences that fall apart: into two groups, or with too many `strays` of the `blocks`.

    `groups` are the share and the middle ratio of the lower and of the upper one, or empty; `limit` is how far from the
    median a stray is at least, as a share. `alone` is the environment whose own runs do so, where it is one of the two.
    `estimated`: whether effect and interval stand beside it.
    """

    code: ClassVar = "unstable"
    environments: tuple[str, str]
    groups: tuple[tuple[float, float], ...]
    strays: int
    blocks: int
    limit: float
    one_look: bool
    alone: str | None = None
    estimated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlDiffers:
    """A control whose verdict is a difference."""

    code: ClassVar = "control_differs"
    control: str
    verdict: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NotSteady:
    """Throughput in the first fifth of an environment's runs differs from the rest.

    `opening` is a share of the rest (-0.1: 10 % lower), `seconds` the length of a run.
    """

    code: ClassVar = "not_steady"
    environment: str
    opening: float
    seconds: float


# ------------------------------------------------------------------------------------------------ of tables and studies


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderOfFile:
    """Levels as they are in the file, and in the order of their numbers."""

    code: ClassVar = "order_of_file"
    levels: tuple[str, ...]
    by_number: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BlocksLeftOut:
    """Blocks by the rows that they lack: an environment and the cell, None where no cell has one; `used` lack none."""

    code: ClassVar = "blocks_left_out"
    environments: tuple[str, str]
    lacking: Mapping[tuple[tuple[str, str | None], ...], tuple[str, ...]]
    used: int
    many: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Outliers:
    """Blocks far from the others."""

    code: ClassVar = "outliers"
    environments: tuple[str, str]
    blocks: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ColdStart:
    """The first value of environments is far worse than their others.

    `change` is the middle ratio of the first value to the others. Where many series together show it, `worst` is the
    number of those whose first value is their worst, of `of`, and `environments` are all of theirs.
    """

    code: ClassVar = "cold_start"
    environments: tuple[str, ...]
    change: float
    worst: int = 0
    of: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class InSequence:
    """Environments of which all runs began before, or after, all runs of the baseline, in every cell that both have.

    `of` is the number of environments that could be checked by time stamps.
    """

    code: ClassVar = "measured_in_sequence"
    environments: tuple[str, ...]
    baseline: str
    of: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftingRepeats:
    """Repeats that rise or fall from the first to the last, in more series (environment and cell) than chance explains.

    `change` is the median ratio of the last value of a series to its first; `alike` of the `of` series changed in that
    direction. `timed`: whether the order is by time stamps; otherwise it is that of the file.
    """

    code: ClassVar = "repeats_drift"
    change: float
    alike: int
    of: int
    timed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildsDiffer:
    """How two servers were made: suppliers or compilers, with build systems and flags that differ; empty: unknown."""

    code: Literal["compilers_differ", "suppliers_differ"]
    environments: tuple[str, str]
    makers: tuple[str, str]
    systems: tuple[str, str] = ("", "")
    flags: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())


@dataclass(frozen=True, slots=True, kw_only=True)
class UndeclaredDifference:
    """A fact that nothing explains: who has each value."""

    code: ClassVar = "undeclared_difference"
    fact: str
    holders: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultsDiffer:
    """Settings that nobody set: the servers that have each value, and how many only some servers have."""

    code: ClassVar = "defaults_differ"
    settings: Mapping[str, Mapping[str, tuple[str, ...]]]
    exclusive: Mapping[tuple[str, ...], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class FewClients:
    """Cells with fewer clients than a virtual machine has CPUs."""

    code: ClassVar = "few_clients"
    cpus: int
    machine: str
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unseen:
    """What samplers or counters missed in so many runs of an environment; or, of very many, how many kinds are left."""

    code: str
    environment: str
    number: int
    of: int
    reason: Reason
    first: str
    kinds: int = 0


VerdictDoubt = TooFewBlocks | TooFewValues | DependentValues | Undecided | Unstable | ControlDiffers | NotSteady
StudyDoubt = (
    OrderOfFile
    | BlocksLeftOut
    | Outliers
    | ColdStart
    | InSequence
    | DriftingRepeats
    | BuildsDiffer
    | UndeclaredDifference
    | DefaultsDiffer
    | FewClients
    | Unseen
)
Doubt = PlainDoubt | NamedDoubt | CountedDoubt | SidesDiffer | VerdictDoubt | StudyDoubt
