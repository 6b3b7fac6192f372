"""The accounts of several windows side by side: rows of part, event and query by window, as arrays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from pgstrata.diagnosis.account import Seen, identify_query
from pgstrata.model.activity import SessionState
from pgstrata.model.attribution import Method, Part
from pgstrata.stats.ranks import FloatArray

Key = tuple[Part, str, str]
"""Part, event and query of a row."""
FEWEST_SAMPLES: Final = 5
"""Samples of all sides together below which an event or a statement does not stand alone."""
_FEWEST_TO_DIVIDE: Final = 20
_CLIENT: Final = (Part.CLIENT, "", "")
_SPLIT: Final[Mapping[Method, tuple[Part, ...]]] = {
    Method.COUNTED: (Part.CPU, Part.QUEUE),
    Method.UNNAMED: (Part.CPU, Part.QUEUE, Part.REST),
    Method.OVERLAPPING: (Part.CPU, Part.QUEUE),
    Method.SAMPLED: (Part.RUNNING,),
}
"""What the time in statements without an event is split into."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """The accounts of some windows: `values` in seconds per transaction, shape (rows, windows), add up to `seconds`.

    `counts` are the samples behind each row, shape (rows,), and `samples` all there are. For sampling errors: `shares`,
    the pooled shares of the samples that rows were taken from, shape (rows,); by part `scales`, the seconds that a
    share of one is worth, and `sizes`, the number of samples, shape (windows,).
    """

    seconds: FloatArray
    values: FloatArray
    counts: FloatArray
    samples: int
    shares: FloatArray
    scales: Mapping[Part, FloatArray]
    sizes: Mapping[Part, FloatArray]


@dataclass(frozen=True, slots=True, kw_only=True)
class Accounts:
    """Several sides with the same rows."""

    keys: tuple[Key, ...]
    sides: tuple[Side, ...]

    def sampling_variance(self, side: Side, rows: Sequence[int]) -> FloatArray:
        """Of the sum of some rows in each window, binomial within a part, shape (windows,).

        Rows of several parts exclude each other, so that the sum over parts is rather too large.
        """
        found = np.zeros(side.seconds.size)
        for part in {self.keys[row][0] for row in rows}:
            share = min(1.0, sum(float(side.shares[row]) for row in rows if self.keys[row][0] is part))
            found += side.scales[part] ** 2 * share * (1 - share) / side.sizes[part]
        return found


def make_accounts(sides: Sequence[Sequence[Seen]], method: Method) -> Accounts:
    """The accounts of all windows, split alike.

    CPU and run queue are divided among statements as the samples without an event are. Waits and statements with fewer
    than `FEWEST_SAMPLES` in all sides together are put together.

    Args:
        sides: the windows of each environment, each with samples.
        method: as chosen for all of them.
    """
    texts: dict[str, str] = {}
    counted = [[_count(seen, texts) for seen in side] for side in sides]
    folded = _fold(counted)
    waits = tuple(dict.fromkeys(key for key in folded.values() if key[0] is Part.WAIT))
    running = tuple(dict.fromkeys(key for key in folded.values() if key[0] is Part.RUNNING)) or (
        (Part.RUNNING, "", ""),
    )
    keys = [_CLIENT, *((part, "", query) for part in _SPLIT[method] for _, _, query in running), *waits]
    seen = [_matrix(rows, (*running, *waits), folded) for rows in counted]
    return Accounts(
        keys=tuple((part, event, texts.get(query, "")) for part, event, query in keys),
        sides=tuple(_make_side(side, each, len(running), method) for side, each in zip(sides, seen, strict=True)),
    )


def _count(seen: Seen, texts: dict[str, str]) -> Counter[Key]:
    """Samples by key, statements by what they are known by; `texts` collects how they are shown."""
    found: Counter[Key] = Counter()
    for count in seen.sessions:
        query = identify_query(count.query)
        texts.setdefault(query, count.query)
        match count.state:
            case SessionState.CLIENT:
                found[_CLIENT] += count.samples
            case SessionState.RUNNING:
                found[Part.RUNNING, "", query] += count.samples
            case SessionState.WAITING:
                found[Part.WAIT, f"{count.wait_type}/{count.event}", query] += count.samples
    return found


def _fold(counted: Sequence[Sequence[Counter[Key]]]) -> Mapping[Key, Key]:
    """Under which key each one is shown."""
    total: Counter[Key] = Counter()
    for side in counted:
        for window in side:
            total.update(window)
    events: Counter[str] = Counter()
    for (_, event, _), samples in total.items():
        events[event] += samples
    folded: dict[Key, Key] = {}
    for key, samples in total.most_common():
        part, event, _ = key
        if part is Part.WAIT and events[event] < FEWEST_SAMPLES:
            folded[key] = (part, "", "")
        else:
            folded[key] = key if samples >= FEWEST_SAMPLES else (part, event, "")
    return folded


def _matrix(windows: Sequence[Counter[Key]], keys: Sequence[Key], folded: Mapping[Key, Key]) -> FloatArray:
    """Samples by key and window, shape (keys, windows)."""
    places = {key: place for place, key in enumerate(keys)}
    seen = np.zeros((len(keys), len(windows)))
    for window, rows in enumerate(windows):
        for key, samples in rows.items():
            if key != _CLIENT:
                seen[places[folded[key]], window] += samples
    return seen


def _make_side(side: Sequence[Seen], seen: FloatArray, statements: int, method: Method) -> Side:
    """`seen` holds the samples without an event by statement, then those of the waits: shape (keys, windows)."""
    size = np.array([seen.samples for seen in side], dtype=np.float64)
    seconds = np.array([seen.seconds for seen in side])
    cpu = np.array([seen.cpu or 0.0 for seen in side])
    queue = np.array([seen.queue or 0.0 for seen in side])
    sampled = seen * (seconds / size)
    running, waiting = sampled[:statements], sampled[statements:]
    among = _divide(seen[:statements])
    match method:
        case Method.COUNTED:
            split = [among * cpu, among * queue]
        case Method.UNNAMED:
            split = [among * cpu, among * queue, running - among * (cpu + queue)]
        case Method.OVERLAPPING:
            on_cpu = np.divide(cpu, cpu + queue, out=np.ones_like(cpu), where=cpu + queue > 0)
            split = [running * on_cpu, running * (1 - on_cpu)]
        case Method.SAMPLED:
            split = [running]
    rows = np.vstack([*split, waiting])
    counts = seen.sum(axis=1)
    total = float(size.sum())
    idle = total - float(counts.sum())
    shares = (counts + 0.5) / (total + 1)
    named = seen[:statements].sum(axis=0)
    within = (counts[:statements] + 0.5) / (float(named.sum()) + 0.5 * statements)
    exact = {Part.CPU: cpu, Part.QUEUE: queue} if method in {Method.COUNTED, Method.UNNAMED} else {}
    beyond = shares[statements:].sum() if method is Method.COUNTED else shares.sum()
    return Side(
        seconds=seconds,
        values=np.vstack([seconds - rows.sum(axis=0), rows]),
        counts=np.concatenate([[idle], *(counts[:statements] for _ in split), counts[statements:]]),
        samples=int(total),
        shares=np.concatenate(
            [[max(0.0, 1 - beyond)], *(within if part in exact else shares[:statements] for part in _SPLIT[method]),
             shares[statements:]]
        ),
        scales=dict.fromkeys(Part, seconds) | exact,
        sizes=dict.fromkeys(Part, size) | dict.fromkeys(exact, np.maximum(named, 1.0)),
    )  # fmt: skip


def _divide(running: FloatArray) -> FloatArray:
    """How the samples without an event are divided among statements, shape (statements, windows); columns add up to 1.

    A window with few of them takes the division of all windows of its side.
    """
    total = running.sum(axis=0)
    pooled = running.sum(axis=1, keepdims=True)
    everywhere = pooled / pooled.sum() if pooled.sum() else np.full_like(pooled, 1 / len(pooled))
    own = np.divide(running, total, out=np.zeros_like(running), where=total > 0)
    return np.asarray(np.where(total >= _FEWEST_TO_DIVIDE, own, everywhere), dtype=np.float64)
