"""Which series of a live server move together: findings, no words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pgstrata.model.archive import ArchiveFacts, Span
from pgstrata.model.attribution import ValueInterval


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveSeries:
    """A window of an archive in equal steps of `step` seconds, in order of time.

    `looks` are those at sessions, by step. `load` is sessions in a statement by wait event as TYPE/EVENT, empty for
    those that run, summed over the looks of each step. `rates` are means by metric and step, NaN where nothing is
    known. `unit` is that of what was read, 1 or 60 s.
    """

    span: Span
    step: int
    unit: int
    looks: tuple[int, ...]
    load: Mapping[str, tuple[int, ...]]
    rates: Mapping[str, tuple[float, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Association:
    """How the load by a wait event (empty: running) goes with a rate of server or host.

    `rho` is the rank correlation of what is new in each step, at the lag at which it is largest, with an interval of
    95 % that takes all lags into account. `lead` are the seconds by which the rate leads the load, negative where it
    follows; `leads` the shortest and the longest that cannot be told from it. `p` takes all lags into account,
    `adjusted` all pairs of the window. `steps` are those in which both are known. `held`: what throughput tells of both
    was taken out before; it is not where throughput falls as both grow.
    """

    event: str
    rate: str
    held: bool
    rho: float
    interval: ValueInterval
    lead: int
    leads: tuple[int, int]
    p: float
    adjusted: float
    resolved: bool
    steps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Associations:
    """All pairs of a window, those that are resolved first, the largest first.

    `steps` of `step` seconds have looks, of all that the window has; `longest` is the longest lag in seconds. `held`:
    throughput is known, and what it tells of both series was taken out where it stands for demand. `shapes`: the
    periods in seconds with which a part of all series comes again, which was taken out, too. `parts` are pairs that
    were not tested because one is a part of the other, `constant` the series left out because they hardly change.
    `limit` is the correlation that would be found in 80 % of such windows, None where nothing was tested.
    """

    span: Span
    step: int
    unit: int
    steps: int
    all_steps: int
    longest: int
    held: bool
    shapes: tuple[int, ...]
    rows: tuple[Association, ...]
    parts: int
    constant: tuple[str, ...]
    limit: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Associated:
    """Associations with what their words need."""

    archive: str
    facts: ArchiveFacts
    clipped: bool
    found: Associations
