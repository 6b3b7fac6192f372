"""From the accounts of two sides to what each row adds to their difference, with intervals, and its causes.

Of a statement's CPU only bounds are known: the kernel counts it and the run queue by process, not by statement.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

import numpy as np

from pgstrata.diagnosis.account import Seen, choose_method
from pgstrata.diagnosis.counting import Key
from pgstrata.diagnosis.processes import contribute_processes
from pgstrata.diagnosis.profiles import use_profiles
from pgstrata.diagnosis.scale import account_in_seconds, attribution_in_seconds, choose_unit, in_unit
from pgstrata.diagnosis.window_accounts import Accounts, make_accounts
from pgstrata.model.attribution import Account, AccountRow, Attribution, Contribution, Method, Part, ValueInterval
from pgstrata.stats.moderated import moderated_error, resolve_holm
from pgstrata.stats.ranks import FloatArray
from pgstrata.stats.student import two_sided_point, two_sided_tail


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How far a value may lie below and above of what is said, both >= 0, in its unit."""

    below: float
    above: float

    def less(self, other: Bounds) -> Bounds:
        """Bounds of the difference to another one."""
        return Bounds(below=self.below + other.above, above=self.above + other.below)


def bound(keys: Sequence[Key], values: FloatArray, rows: Sequence[int]) -> Bounds:
    """Bounds of the sum of some rows of an account.

    Samples show in which statements sessions computed or queued for a CPU, not which of the two; queueing is shown as
    if it were divided like both. But sessions queue when they wake up, so that a statement which waits may have all of
    it and one that computes may have none. Whatever a statement's queue is, it is part of the samples of that statement
    and of all queueing. So a statement's CPU alone, or its queue alone, is known between bounds only (Manski, Partial
    Identification of Probability Distributions, 2003), while both together are known, and each over all statements as
    far as what lies in waits is CPU and queue in the ratio of both.

    Args:
        keys: of all rows of the account.
        values: seconds by row, shape (rows,).
        rows: which of them are summed.
    """
    cpu = {key[2]: values[row] for row, key in enumerate(keys) if key[0] is Part.CPU}
    queue = {key[2]: values[row] for row, key in enumerate(keys) if key[0] is Part.QUEUE}
    summed = {part: {keys[row][2] for row in rows if keys[row][0] is part} for part in (Part.CPU, Part.QUEUE)}
    below = above = 0.0
    for part, other in ((Part.CPU, Part.QUEUE), (Part.QUEUE, Part.CPU)):
        alone = [query for query in queue if query in summed[part] - summed[other]]
        if len(alone) in {0, len(queue)}:
            continue  # nothing to divide; rounding must not make a little of it
        shown, waited = sum(queue[query] for query in alone), sum(queue.values())
        within = sum(cpu[query] for query in alone) + shown
        most = min(waited, within)
        least = max(0.0, waited - (sum(cpu.values()) + waited - within))
        less, more = max(0.0, shown - least), max(0.0, most - shown)
        below += more if part is Part.CPU else less
        above += less if part is Part.CPU else more
    return Bounds(below=below, above=above)


_Name = TypeVar("_Name", bound=Hashable)

LEVEL: Final = 0.05
FEWEST_BLOCKS: Final = 2
_Place = tuple[Part | None, str, str]
_DIVIDED: Final = frozenset({Part.CPU, Part.QUEUE})
_DECISIVE: Final = 0.1
"""Share of the difference from which on a part of the server's comes before client and network."""


def attribute(
    value: Sequence[Seen], reference: Sequence[Seen], *, environment: str, reference_name: str, cell: str
) -> Attribution:
    """Split the difference of two environments that were seen in the same blocks.

    Blocks are weighted by the inverse of their level, the geometric mean of both times of a transaction, because what
    slows a whole block down enlarges its differences too; all rows have the same weights, so that they add up.
    Intervals are those of 95 % for each row alone (`_Errors`). Rows and parts are resolved where Holm's procedure over
    all of them rejects zero at 5 %. `bench/attribution.py` has what comes of it.

    Args:
        value: the environment's windows, one for each block, at least `FEWEST_BLOCKS`, each with samples.
        reference: the reference's, of the same blocks in the same order.
        environment: its name.
        reference_name: that of the reference.
        cell: where both were measured.
    """
    unit = choose_unit((value, reference))
    windows = in_unit((value, reference), unit)
    sides, origin = use_profiles(windows)
    method = choose_method(sides)
    accounts = make_accounts(sides, method)
    errors = _Errors.of(accounts)
    rows = _contribute(errors, lambda key: key)
    parts = _contribute(errors, lambda key: (key[0], key[1], ""))
    queries = _contribute(errors, lambda key: (None, "", key[2]))
    (total,) = _resolve(_contribute(errors, lambda _: (None, "", "")))
    family = _resolve([*parts, *rows])
    parts, rows = family[: len(parts)], family[len(parts) :]
    found = Attribution(
        environment=environment,
        reference=reference_name,
        cell=cell,
        method=method,
        blocks=len(value),
        samples=sum(side.samples for side in accounts.sides),
        total=total.shown,
        parts=_by_size(parts),
        queries=_by_size(_resolve(queries)),
        rows=_by_size(rows),
        causes=_find_causes(total.shown, [item.shown for item in rows], [item.shown for item in parts]),
        origin=origin,
        processes=contribute_processes(*windows),
    )
    return attribution_in_seconds(found, unit)


def average(sides: Sequence[Sequence[Seen]]) -> tuple[Method, tuple[Account, ...]]:
    """The mean account of each side by part and event, all of them split alike; every side needs a window."""
    unit = choose_unit(sides)
    sides, origin = use_profiles(in_unit(sides, unit))
    method = choose_method(sides)
    accounts = make_accounts(sides, method)
    groups = _group(accounts.keys, lambda key: (key[0], key[1], ""))
    found = (
        Account(
            seconds=float(side.seconds.mean()),
            samples=side.samples,
            rows=tuple(
                AccountRow(
                    part=part,
                    event=event,
                    query="",
                    seconds=float(side.values[rows].sum(axis=0).mean()),
                    samples=round(side.counts[rows].sum()),
                )
                for (part, event, _), rows in groups.items()
            ),
            origin=origin,
        )
        for side in accounts.sides
    )
    return method, tuple(account_in_seconds(account, unit) for account in found)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tested:
    """A contribution with its p value against zero."""

    shown: Contribution
    p: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Errors:
    """Two sides by block, weighted: `values`, shape (sides, rows, blocks), and what their errors are made of.

    The variance of a group's difference between blocks is known twice: from its blocks, and beforehand from its samples
    (binomial) and from by how much of itself a row fluctuates, `fluctuation` being the square of that, one for all rows
    of a comparison. Both are averaged, except for rows that come in bursts (`stats.moderated`). The total has no
    samples, and a plain t. Where a group's value is known between bounds only (`bounds`), its interval reaches as far
    beyond both, and zero is rejected where it is for all values between them.
    """

    accounts: Accounts
    weights: FloatArray
    values: FloatArray
    fluctuation: float

    @staticmethod
    def of(accounts: Accounts) -> _Errors:
        first, second = accounts.sides
        weights = 1 / np.sqrt(first.seconds * second.seconds)
        weights /= weights.mean()
        values = np.array([side.values * weights for side in accounts.sides])
        sampled = [_sampling(accounts, weights, [row]) for row in range(len(accounts.keys))]
        beyond = (values[0] - values[1]).var(axis=1, ddof=1) - sampled
        sizes = (values.mean(axis=2) ** 2).sum()
        whole = values.sum(axis=1)
        shared = (whole[0] - whole[1]).var(ddof=1) / (whole.mean(axis=1) ** 2).sum()
        return _Errors(
            accounts=accounts,
            weights=weights,
            values=values,
            fluctuation=max(float(beyond.sum() / sizes), float(shared)),
        )

    def measure(self, rows: Sequence[int], name: _Place) -> _Tested:
        """The sum of some rows."""
        value, reference = self.values[:, rows].sum(axis=1)
        centre = float((value - reference).mean())
        error, freedom = self._error(rows)
        unknown = self._bound(0, rows).less(self._bound(1, rows))
        if unknown.below or unknown.above:
            # at a bound, CPU or queue is nothing, so the bound scatters as the sum of the two
            error = max(error, self._error(self._with_partners(rows))[0])
        half = two_sided_point(LEVEL, freedom) * error
        nearest = max(0.0, centre - unknown.below, -centre - unknown.above)
        part, event, query = name
        shown = Contribution(
            part=part, event=event, query=query, value=float(value.mean()), reference=float(reference.mean()),
            difference=centre, resolved=False,
            interval=ValueInterval(low=centre - unknown.below - half, high=centre + unknown.above + half),
            samples=round(sum(side.counts[self._own(rows)].sum() for side in self.accounts.sides)),
            blocker=self.accounts.blockers[rows[0]] if len(rows) == 1 else "",
            place=self.accounts.places[rows[0]] if len(rows) == 1 else "",
        )  # fmt: skip
        return _Tested(shown=shown, p=two_sided_tail(nearest / error, freedom) if error > 0 else float(nearest == 0))

    def _error(self, rows: Sequence[int]) -> tuple[float, int]:
        """Standard error of the mean difference of the sum of some rows, and its degrees of freedom."""
        value, reference = self.values[:, rows].sum(axis=1)
        d = value - reference
        between = float(d.var(ddof=1))
        if len(rows) == len(self.accounts.keys):
            return math.sqrt(between / d.size), d.size - 1
        sampled = _sampling(self.accounts, self.weights, rows)
        size = float(value.mean() ** 2 + reference.mean() ** 2)
        return moderated_error(between, sampled, self.fluctuation, size, d.size)

    def _with_partners(self, rows: Sequence[int]) -> list[int]:
        """CPU and run queue of the statements of which one is among the rows."""
        keys = self.accounts.keys
        shared = {keys[row][2] for row in rows if keys[row][0] in _DIVIDED}
        partners = {row for row, key in enumerate(keys) if key[0] in _DIVIDED and key[2] in shared}
        return sorted(partners.union(rows))

    def _bound(self, side: int, rows: Sequence[int]) -> Bounds:
        return bound(self.accounts.keys, self.values[side].mean(axis=1), rows)

    def _own(self, rows: Sequence[int]) -> list[int]:
        """One of the rows for each class of samples: CPU and run queue of a statement share theirs."""
        keys, together = self.accounts.keys, self.accounts.together
        shared = {keys[row][2]: row for row in rows if keys[row][0] in together}
        return [*shared.values(), *(row for row in rows if keys[row][0] not in together)]


def _sampling(accounts: Accounts, weights: FloatArray, rows: Sequence[int]) -> float:
    """Mean over the blocks of the variance that samples alone give to the difference of a sum of rows."""
    return sum(float((side.sampling_variance(rows) * weights**2).mean()) for side in accounts.sides)


def _group(keys: Sequence[Key], name: Callable[[Key], _Name]) -> dict[_Name, list[int]]:
    """Places of the rows by a name of their group."""
    groups: dict[_Name, list[int]] = {}
    for place, key in enumerate(keys):
        groups.setdefault(name(key), []).append(place)
    return groups


def _contribute(errors: _Errors, name: Callable[[Key], _Place]) -> list[_Tested]:
    """What each group of rows adds, not yet resolved."""
    return [errors.measure(rows, place) for place, rows in _group(errors.accounts.keys, name).items()]


def _resolve(tested: Sequence[_Tested]) -> list[_Tested]:
    """Which of them are not zero."""
    certain = resolve_holm([item.p for item in tested], LEVEL)
    return [
        replace(item, shown=replace(item.shown, resolved=resolved))
        for item, resolved in zip(tested, certain, strict=True)
    ]


def _by_size(tested: Sequence[_Tested]) -> tuple[Contribution, ...]:
    return tuple(sorted((item.shown for item in tested), key=lambda item: -abs(item.difference)))


def _find_causes(
    total: Contribution, rows: Sequence[Contribution], parts: Sequence[Contribution]
) -> tuple[Contribution, ...]:
    """Resolved rows in the direction of the total, by what they add at least; parts where none of their rows is.

    Client and network comes behind parts of the server's that add a tenth of the difference at least: a server that
    sleeps lets its client and the CPUs between them sleep too, and that is no cause of its own.
    """
    if not total.resolved:
        return ()
    sign = math.copysign(1.0, total.difference)
    found = [row for row in rows if row.resolved and row.difference * sign > 0]
    named = {(row.part, row.event) for row in found}
    found += [
        part for part in parts if part.resolved and part.difference * sign > 0 and (part.part, part.event) not in named
    ]
    decisive = _DECISIVE * abs(total.difference)

    def rank(item: Contribution) -> tuple[bool, float]:
        assert item.interval is not None
        least = min(sign * item.interval.low, sign * item.interval.high)
        return item.part is Part.CLIENT or least < decisive, -least

    return tuple(sorted(found, key=rank))
