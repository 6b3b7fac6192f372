"""The accounts of several windows side by side: rows of part, event and query by window, as arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

import numpy as np

from pgstrata.diagnosis.account import Seen, has_unnamed
from pgstrata.diagnosis.counting import CLIENT, Counted, Key, count_side, find_commonest, fold, name_unknown
from pgstrata.model.activity import SessionState
from pgstrata.model.attribution import Method, Part
from pgstrata.stats.ranks import FloatArray

_FEWEST_TO_DIVIDE: Final = 20
_PSEUDO: Final = 0.5
"""Samples that a class has beforehand, so that one that was never seen has an error too (after Jeffreys)."""
_STEP: Final = 1e-3
"""Step of a share with which slopes are taken from differences."""
_WITHOUT_EVENT: Final = frozenset({Part.RUNNING, Part.REST})
_AS_WAITS: Final = frozenset({Part.WAIT, Part.CONNECT})
_Values = TypeVar("_Values", FloatArray, tuple[Key, ...])
_SPLIT: Final[Mapping[Method, tuple[Part, ...]]] = {
    Method.COUNTED: (Part.CPU, Part.QUEUE),
    Method.ASLEEP: (Part.CPU, Part.QUEUE, Part.REST),
    Method.UNNAMED: (Part.CPU, Part.QUEUE, Part.REST),
    Method.SAMPLED: (Part.RUNNING,),
}
"""What the time in statements without an event is split into."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowAccounts:
    """The accounts of some windows: `values` in seconds per transaction, shape (rows, windows), add up to `seconds`.

    `counts` are the samples behind each row, shape (rows,), and `samples` all there are. For sampling errors: `shares`
    of the samples by class, pooled over the windows, shape (classes,); `slopes`, how a row grows with the share of a
    class, shape (rows, windows, classes); `sizes`, the number of samples, and `told`, the number of those that tell
    statements apart, shape (windows,); `events`, which classes differ by their statement only, as a matrix of ones,
    shape (events, classes).
    """

    seconds: FloatArray
    values: FloatArray
    counts: FloatArray
    samples: int
    shares: FloatArray
    slopes: FloatArray
    sizes: FloatArray
    told: FloatArray
    events: FloatArray

    def sampling_variance(self, rows: Sequence[int]) -> FloatArray:
        """Sampling variance of the sum of some rows in each window, shape (windows,).

        Multinomial in two stages, by the law of total variance: which event was seen, and in which statement.
        """
        slopes = self.slopes[rows].sum(axis=0)
        by_event = (slopes * self.shares) @ self.events.T
        between = (by_event**2 / (self.events @ self.shares)).sum(axis=1)
        variance = (between - (slopes @ self.shares) ** 2) / self.sizes
        variance += (slopes**2 @ self.shares - between) / self.told
        return np.asarray(variance, dtype=np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Accounts:
    """Several sides with the same rows.

    `blockers` and `places` are the commonest of each row, empty where there is none; `together` are the parts of a
    statement, without an event, that have the same samples.
    """

    keys: tuple[Key, ...]
    sides: tuple[WindowAccounts, ...]
    blockers: tuple[str, ...]
    places: tuple[str, ...]
    together: frozenset[Part]


def make_accounts(sides: Sequence[Sequence[Seen]], method: Method) -> Accounts:
    """The accounts of all windows, split alike.

    With T the time of a transaction, C + R what the kernel counted, and W the sampled waits, COUNTED has T - C - R off
    the CPU, of which client and network gets its share of the samples that are labelled client or wait; waits are as
    sampled; CPU and run queue are what is left, in the ratio of C to R. So of what was counted while something else was
    shown the same share lies in each label, waits keep what lies in them, and without waits nothing is sampled at all.
    In ASLEEP, to sleep without an event is a label like a wait, and the rest.

    UNNAMED holds for the sides that have such time (`has_unnamed`): their client and network is as sampled, and the
    rest is what was sampled without an event, less C + R. CPU and run queue are divided among statements as the samples
    without an event are; where there is a rest, as those are that did not sleep, as far as is known. Events with fewer
    than `FEWEST_SAMPLES` in all sides are put together in each statement, and statements with fewer in an event.

    Args:
        sides: the windows of each environment, each with samples.
        method: as chosen for all of them.
    """
    counted = name_unknown([count_side(side) for side in sides])
    windows = [seen for side in sides for seen in side]
    coarse = sum(seen.samples for seen in windows) / sum(seen.told for seen in windows)
    folded = fold(counted)
    classes = _Classes.of(folded.values())
    statements = [query for part, _, query in classes.keys if part is Part.RUNNING]
    waits = classes.waits(classes.keys)
    keys = [CLIENT, *((part, "", query) for part in _SPLIT[method] for query in statements), *waits]
    seen = [_matrix(rows, classes.keys, folded) for rows in counted]
    made = [
        _make_side(side, each, classes, _method_of(side, method), len(_SPLIT[method]), coarse)
        for side, each in zip(sides, seen, strict=True)
    ]
    blockers = find_commonest(sides, lambda count: count.blocker, folded)
    places = find_commonest(sides, lambda count: count.event if count.state is SessionState.ASLEEP else "", folded)
    return Accounts(
        keys=tuple(keys),
        sides=tuple(made),
        blockers=tuple(blockers.get(key, "") for key in keys),
        places=tuple(places.get(key, "") for key in keys),
        together=frozenset(_SPLIT[method]) - ({Part.REST} if method is Method.ASLEEP else frozenset()),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Classes:
    """What samples are told apart by: the client, statements awake and perhaps the same asleep, waits.

    Without an event are `statements` classes that are awake, and `asleep` = `statements` that are not, or 0 where the
    kernel was not asked. All of `values` have one place, or row, for each class.
    """

    keys: tuple[Key, ...]
    statements: int
    asleep: int

    @staticmethod
    def of(keys: Iterable[Key]) -> _Classes:
        """The classes of the keys under which everything that was seen is shown."""
        found = tuple(dict.fromkeys(keys))
        statements = tuple(dict.fromkeys(query for part, _, query in found if part in _WITHOUT_EVENT)) or ("",)
        asleep = statements if any(part is Part.REST for part, _, _ in found) else ()
        return _Classes(
            keys=(
                CLIENT,
                *((Part.RUNNING, "", query) for query in statements),
                *((Part.REST, "", query) for query in asleep),
                *(key for key in found if key[0] in _AS_WAITS),
            ),
            statements=len(statements),
            asleep=len(asleep),
        )

    def awake(self, values: FloatArray) -> FloatArray:
        """The part of each statement that is known not to have slept."""
        return values[1 : 1 + self.statements]

    def sleeping(self, values: FloatArray) -> FloatArray:
        """The part of each statement that is known to have slept without a wait event."""
        if not self.asleep:
            return np.zeros_like(self.awake(values))
        return values[1 + self.statements : 1 + self.statements + self.asleep]

    def without_event(self, values: FloatArray) -> FloatArray:
        """The part of each statement without a wait event."""
        return np.asarray(self.awake(values) + self.sleeping(values))

    def waits(self, values: _Values) -> _Values:
        """The values of wait events."""
        return values[1 + self.statements + self.asleep :]


def _method_of(side: Sequence[Seen], method: Method) -> Method:
    return Method.COUNTED if method is Method.UNNAMED and not has_unnamed(side) else method


def _matrix(windows: Sequence[Counted], keys: Sequence[Key], folded: Mapping[Key, Key]) -> FloatArray:
    """Samples by key and window, shape (keys, windows)."""
    places = {key: place for place, key in enumerate(keys)}
    seen = np.zeros((len(keys), len(windows)))
    for window, rows in enumerate(windows):
        for key, samples in rows.items():
            seen[places[folded[key]], window] += samples
    return seen


def _make_side(
    side: Sequence[Seen], seen: FloatArray, classes: _Classes, method: Method, splits: int, coarse: float
) -> WindowAccounts:
    """The accounts of one side.

    Args:
        side: the windows.
        seen: samples by class and window.
        classes: what they are.
        method: of this side.
        splits: into how many parts time without an event is split on all sides: the last may be nothing here.
        coarse: samples that stand for one that tells a statement.
    """
    size = np.array([window.samples for window in side], dtype=np.float64)
    divided = classes.without_event
    if method is not Method.COUNTED and classes.awake(seen).sum() >= _FEWEST_TO_DIVIDE * coarse:
        divided = classes.awake
    drawn = _Drawn(
        classes=classes,
        divided=divided,
        seconds=np.array([window.seconds for window in side]),
        cpu=np.array([window.cpu or 0.0 for window in side]),
        queue=np.array([window.queue or 0.0 for window in side]),
        shares=seen / size,
        among=_divide(divided(seen), coarse),
    )
    counts = seen.sum(axis=1)
    pooled = (counts + _PSEUDO) / (counts + _PSEUDO).sum()
    running = [classes.without_event(counts)] * splits
    if method is Method.ASLEEP:
        running = [*[classes.awake(counts)] * (splits - 1), classes.sleeping(counts)]
    return WindowAccounts(
        seconds=drawn.seconds,
        values=drawn.split(method, splits),
        counts=np.concatenate([counts[:1], *running, classes.waits(counts)]),
        samples=int(size.sum()),
        shares=pooled,
        slopes=_slopes(drawn, pooled, method, splits) if len(side) else np.empty((0, 0, 0)),
        sizes=size,
        told=np.array([window.told for window in side], dtype=np.float64),
        events=_events(classes.keys),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Drawn:
    """What the accounts of some windows are made of: seconds, shape (windows,), and shares, shape (classes, windows).

    `among` is how CPU and run queue are divided among statements, shape (statements, windows): as the samples that
    `divided` takes of all are.
    """

    classes: _Classes
    divided: Callable[[FloatArray], FloatArray]
    seconds: FloatArray
    cpu: FloatArray
    queue: FloatArray
    shares: FloatArray
    among: FloatArray

    def split(self, method: Method, splits: int) -> FloatArray:
        """Seconds by row, shape (rows, windows): the client, the parts by statement, the waits."""
        sampled = self.shares * self.seconds
        client, running, waits = sampled[:1], self.classes.without_event(sampled), self.classes.waits(sampled)
        asleep = self.classes.sleeping(sampled)
        counted = self.cpu + self.queue
        match method:
            case Method.COUNTED | Method.ASLEEP:
                shown = waits.sum(axis=0) + (asleep.sum(axis=0) if method is Method.ASLEEP else 0.0)
                labels = client + shown
                share = np.divide(client, labels, out=np.ones_like(client), where=labels > 0)
                client = (self.seconds - counted) * share
                left = self.seconds - client[0] - shown
                on_cpu = np.divide(self.cpu, counted, out=np.ones_like(counted), where=counted > 0)
                parts = [self.among * left * on_cpu, self.among * left * (1 - on_cpu)]
                parts += [asleep] * (method is Method.ASLEEP)
            case Method.UNNAMED:
                parts = [self.among * self.cpu, self.among * self.queue, running - self.among * counted]
            case Method.SAMPLED:
                parts = [running]
        parts += [np.zeros_like(self.among)] * (splits - len(parts))
        return np.vstack([client, *parts, waits])


def _slopes(drawn: _Drawn, pooled: FloatArray, method: Method, splits: int) -> FloatArray:
    """How each row grows with the share of each class around the pooled ones, shape (rows, windows, classes)."""
    windows = drawn.among.shape[1]
    base = np.repeat(pooled[:, np.newaxis], windows, axis=1)

    def split(shares: FloatArray) -> FloatArray:
        divided = drawn.divided(shares)
        moved = replace(drawn, shares=shares, among=divided / divided.sum(axis=0))
        return moved.split(method, splits)

    found = []
    for place in range(len(pooled)):
        step = _STEP * pooled[place]
        up, down = base.copy(), base.copy()
        up[place] += step
        down[place] -= step
        found.append((split(up) - split(down)) / (2 * step))
    return np.stack(found, axis=2)


def _events(classes: Sequence[Key]) -> FloatArray:
    """Which classes differ by their statement only, or by being asleep, shape (events, classes)."""
    names = [(Part.RUNNING if part is Part.REST else part, event) for part, event, _ in classes]
    return np.array([[name == each for each in names] for name in dict.fromkeys(names)], dtype=np.float64)


def _divide(running: FloatArray, coarse: float) -> FloatArray:
    """How the samples without an event are divided among statements, shape (statements, windows); columns add up to 1.

    A window with few of them takes the division of all windows of its side.
    """
    total = running.sum(axis=0)
    pooled = running.sum(axis=1, keepdims=True)
    everywhere = pooled / pooled.sum() if pooled.sum() else np.full_like(pooled, 1 / len(pooled))
    own = np.divide(running, total, out=np.zeros_like(running), where=total > 0)
    return np.asarray(np.where(total >= _FEWEST_TO_DIVIDE * coarse, own, everywhere), dtype=np.float64)
