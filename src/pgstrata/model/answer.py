"""Verdicts, comparisons and other findings, and the answer that they make."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from pgstrata.model.anomaly import Anomaly
from pgstrata.model.attribution import Attribution, LevelAccount, RunStacks, Unattributed, ValueInterval
from pgstrata.model.doubts import Doubt
from pgstrata.model.objective import Objective
from pgstrata.model.plan import HORIZON
from pgstrata.model.price import Worth
from pgstrata.model.server import ChangedSetting
from pgstrata.model.study import Study

ALL_CELLS: Final = "all"
"""The cell of a headline: the geometric mean over all cells of a block."""


class Lane(StrEnum):
    """How a comparison was judged."""

    SEQUENTIAL = "sequential"
    ONE_LOOK = "one look"


class Verdict(StrEnum):
    """What a comparison came to; the glossary defines each."""

    BETTER = "better"
    WORSE = "worse"
    EQUIVALENT = "equivalent"
    NEGLIGIBLE = "negligible"
    INCONCLUSIVE = "inconclusive"
    UNSTABLE = "unstable"
    COLLAPSED = "collapsed"
    INSUFFICIENT = "insufficient"


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """An interval of a ratio: value / baseline value."""

    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One environment against the baseline (or against `reference`) in one cell (or `ALL_CELLS`), one metric.

    `effect` and `interval` are ratios, value / baseline value, never turned round; `equivalence_interval` is the one
    at the level of "no difference". `value` and `baseline_value` are medians over the runs of the pairs used. `runs`
    are all that were made in both arms, `invalid` those of them that are kept out.

    `decided_at` is the number of blocks at which the verdict fell, None while it is open; `repeated_p` the smallest
    level whose boundary was crossed; `adjusted_p` the same after Benjamini-Hochberg over the exploratory cells; `level`
    is the error probability that the interval belongs to (`confidence` = 1 - level), spent over `horizon` blocks. Of
    what others measured, `values` and `baseline_values` count those of either arm, and `blocks` are 0 where it is not
    paired.
    """

    environment: str
    cell: str
    metric: str
    verdict: Verdict
    effect: float | None
    interval: Interval | None
    equivalence_interval: Interval | None
    confidence: float
    blocks: int
    planned_blocks: int
    runs: int
    invalid: int
    value: float | None
    baseline_value: float | None
    exploratory: bool
    control: bool
    warnings: tuple[Doubt, ...] = ()
    lane: Lane = Lane.SEQUENTIAL
    decided_at: int | None = None
    repeated_p: float | None = None
    adjusted_p: float | None = None
    level: float = 0.045
    horizon: int = HORIZON
    reference: str = ""
    """The environment that this one is compared with, for pairs on request. Empty: the baseline."""
    values: int = 0
    baseline_values: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantileShift:
    """The change of one percentile of latency in one environment and cell: a point of the shift function.

    `metric` names the percentile, `quantile` is the same between 0 and 1, `threshold` its own as a ratio. `effect` and
    `interval` are ratios, as in `Comparison`; the interval is part of a band that holds for all percentiles of this
    environment and cell together, at 1 - `level`.
    """

    environment: str
    cell: str
    metric: str
    quantile: float
    threshold: float
    verdict: Verdict
    effect: float | None
    interval: Interval | None
    level: float
    blocks: int
    value: float | None
    baseline_value: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How far one metric moved: ratios and a verdict, as in `Comparison`."""

    metric: str
    verdict: Verdict
    effect: float | None
    interval: Interval | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuFinding:
    """What the ratio of server CPU to client CPU says of an environment against the baseline, in `cells` together.

    The cells are those that only read. `verdict` is `better` where the server needs less CPU for each second of client
    CPU, else `worse`, `inconclusive` or `insufficient`. `effect` and `interval` are those of the ratio. They show that
    something differs; how much it is, the sizes say. `level` is this comparison's share of an error probability that
    is spent beside that of verdicts; `repeated_p` and `decided_at` as in `Comparison`.
    """

    environment: str
    cells: tuple[str, ...]
    verdict: Verdict
    effect: float | None
    interval: Interval | None
    level: float
    repeated_p: float | None
    blocks: int
    decided_at: int | None
    control: bool
    server_cpu: Size
    client_cpu: Size
    throughput: Size

    @property
    def found(self) -> bool:
        """Whether there is a difference."""
        return self.verdict in {Verdict.BETTER, Verdict.WORSE}

    @property
    def alone(self) -> bool:
        """Whether there is a difference of which throughput shows nothing."""
        shown = {Verdict.BETTER, Verdict.WORSE, Verdict.NEGLIGIBLE, Verdict.COLLAPSED}
        return self.found and self.throughput.verdict not in shown


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementShift:
    """The change of the mean latency of one statement in one environment and cell with a profile.

    `statement` is its text as the driver gives it, `number` tells statements of the same text apart, from 0. `metric`
    is that whose threshold holds. `effect` and `interval` are ratios, as in `Comparison`; `level` is the statement's
    share of the error probability that those of this environment and cell have together. `value` and `baseline_value`
    are medians over the runs used, in seconds.
    """

    environment: str
    cell: str
    statement: str
    number: int
    metric: str
    verdict: Verdict
    effect: float | None
    interval: Interval | None
    level: float
    blocks: int
    decided_at: int | None
    value: float | None
    baseline_value: float | None


class EffectKind(StrEnum):
    """What a contrast of crossed factors is."""

    MAIN = "main"
    INTERACTION = "interaction"


@dataclass(frozen=True, slots=True, kw_only=True)
class FactorEffect:
    """A contrast of crossed factors, judged by the same rule as comparisons; always exploratory.

    A main effect compares `level` of `factor` with `reference`, over all combinations of the other factors. An
    interaction says how that effect at `given` = (factor, level, reference) differs from the one at its reference.
    `effect` and `interval` are ratios, as in `Comparison`.
    """

    kind: EffectKind
    factor: str
    level: str
    reference: str
    given: tuple[str, str, str] | None
    cell: str
    metric: str
    verdict: Verdict
    effect: float | None
    interval: Interval | None
    blocks: int
    repeated_p: float | None
    decided_at: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AxisStep:
    """A step along an ordered axis, between two neighbouring levels: ratio after / before, with what is known of it.

    `effect` is that of all levels up to the next step against all levels since the one before; `beside` that of the
    two levels alone, None where no block has both. `p` is that of a step anywhere; `verdict` goes by the size of this
    one, as for a pair: inconclusive where the interval holds no difference, so that the place is unsure, or where there
    is none and the step is small.
    """

    before: str
    after: str
    effect: float
    interval: Interval | None
    p: float
    verdict: Verdict
    beside: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderedAxis:
    """Where along an ordered factor (versions, kernels) the metric changed, in one cell, all else equal.

    `p` is the permutation test's for any step at all, `trend_p` Page's; both None where nothing could be tested.
    `smallest_p` is what the clearest step in so few values would have: above 5 % none could have been found.
    `out_of_reach` are levels at which no step could have been found, however large. `blocks` is 0 where the values were
    not measured in blocks.
    """

    factor: str
    levels: tuple[str, ...]
    cell: str
    metric: str
    steps: tuple[AxisStep, ...]
    p: float | None
    trend_p: float | None
    blocks: int
    smallest_p: float | None = None
    out_of_reach: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadRange:
    """Neighbouring numbers of clients, from `first` to `last`, over which the difference from the baseline is constant.

    The verdict is that of a comparison over its cells; ratios as in `Comparison`.
    """

    first: int
    last: int
    verdict: Verdict
    effect: float | None
    interval: Interval | None
    blocks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadDrop:
    """A decline of one environment from `fewer` to `more` clients; ratios are value at `more` / value at `fewer`."""

    fewer: int
    more: int
    effect: float
    interval: Interval | None
    blocks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SustainedRate:
    """The highest rate of one environment within the objective of a cell, 1/s: that at which its runs together keep it.

    All but `runs` is None where there are too few of them.
    """

    environment: str
    cell: str
    objective: Objective
    runs: int
    value: float | None
    interval: ValueInterval | None
    confidence: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadFinding:
    """One environment along one curve over clients; exploratory.

    `ranges` are in order of clients: one where the difference does not depend on the load; none for the baseline, or
    with fewer than three comparable cells. `p` is that of any change, None without a test. `reachable` is false where
    so few blocks could not have shown a change. `collapsed_from` is the least number of clients at which it collapsed.
    """

    environment: str
    cells: tuple[str, ...]
    clients: tuple[int, ...]
    metric: str
    ranges: tuple[LoadRange, ...] = ()
    drops: tuple[LoadDrop, ...] = ()
    collapsed_from: int | None = None
    p: float | None = None
    reachable: bool = False
    blocks: int = 0

    @property
    def turns(self) -> bool:
        """Whether the environment is ahead at some loads and behind at others."""
        return {Verdict.BETTER, Verdict.WORSE} <= {each.verdict for each in self.ranges}

    @property
    def changes(self) -> bool:
        """Whether the difference depends on the load."""
        return len(self.ranges) > 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadTrend:
    """How the difference of one environment from the baseline changes along clients or scale (`axis`); exploratory.

    `levels` are those of `cells`, ascending. `effect` is a ratio of ratios: (value / baseline value) at the last level
    divided by that at the first, along a line through all levels; with `interval` as in `Comparison`. The `verdict` is
    of that change: BETTER where the environment gains along the axis. `first` and `last` are the median ratios at
    either end. `blocks` are those that have all levels.
    """

    environment: str
    axis: str
    cells: tuple[str, ...]
    levels: tuple[int, ...]
    metric: str
    verdict: Verdict
    effect: float
    interval: Interval | None
    first: float
    last: float
    blocks: int

    @property
    def changes(self) -> bool:
        """Whether the difference certainly depends on the level, by more than is negligible."""
        return self.verdict in {Verdict.BETTER, Verdict.WORSE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A study with its comparisons: what `show` and `report` render."""

    study: Study
    comparisons: tuple[Comparison, ...]
    warnings: tuple[Doubt, ...]
    effects: tuple[FactorEffect, ...] = ()
    axes: tuple[OrderedAxis, ...] = ()
    load_findings: tuple[LoadFinding, ...] = ()
    """Ordered by curve over clients, then by environment, the baseline first."""
    load_trends: tuple[LoadTrend, ...] = ()
    """Ordered by axis (clients, then scale), curve and environment."""
    anomalies: tuple[Anomaly, ...] = ()
    """Kinks of curves, then runs that stray, the largest first."""
    shifts: tuple[QuantileShift, ...] = ()
    """Ordered by environment, cell and percentile, the lowest first; none where nobody asked for them."""
    statement_shifts: tuple[StatementShift, ...] = ()
    """Ordered by cell, environment and script; none without a profile."""
    pairs: tuple[Comparison, ...] = ()
    """All pairs of environments, each against its `reference`; none where nobody asked for them."""
    attributions: tuple[Attribution, ...] = ()
    """Ordered by environment and cell, each against the baseline; none where nobody asked why."""
    unattributed: tuple[Unattributed, ...] = ()
    """Differences that have no attribution, where somebody asked."""
    accounts: tuple[LevelAccount, ...] = ()
    """Ordered by cell and environment; none where nobody asked why."""
    cpu_findings: tuple[CpuFinding, ...] = ()
    """One for each environment, found or not; none where no cell only reads, or CPU is not known."""
    worth: Worth | None = None
    """Costs and values for the money; None if the experiment has no prices."""
    stacks: tuple[RunStacks, ...] = ()
    """Of the runs in which perf was at work, for a report."""
    changed_settings: tuple[tuple[str, ChangedSetting], ...] = ()
    """Environments with the settings of their servers that differ from PostgreSQL's defaults, for a report."""
