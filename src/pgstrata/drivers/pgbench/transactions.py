"""pgbench's transaction log: latencies of the transactions that came to their end, and their percentiles. Pure.

One line per transaction, separated by single spaces (pgbench's documentation, "Per-Transaction Logging"):
`client_id transaction_no time script_no time_epoch time_us [schedule_lag] [retries]`. `time` is microseconds, counted
from the scheduled start under a rate, or a word for a transaction that has no latency. Logs reach millions of lines,
so the columns are cut by numpy: one pass over the bytes, no Python object per line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from pgstrata.drivers.quantiles import grouped_quantiles, quantiles_over_time
from pgstrata.errors import ParseError
from pgstrata.model.metrics import Series
from pgstrata.ports.driver import StepCounts

MICROSECOND: Final = 1e-6
WORDS: Final = (b"failed", b"serialization", b"deadlock", b"skipped")
"""What stands in place of a latency. Failed by kind if pgbench was asked for details, skipped under a limit."""

_LINE = re.compile(rb"\d+ \d+ (?:\d+|[a-z]+) \d+ \d{9,} \d{1,6}(?: -?\d+){0,2}")
_CHUNK: Final = 16 * 1024 * 1024
_DIGITS: Final = 15
_LATENCY, _EPOCH, _FRACTION = 2, 4, 5
"""Columns, counted from 0."""
_FEWEST_IN_A_THIRD: Final = 10
_NEWLINE, _SPACE, _ZERO, _NINE = b"\n"[0], b" "[0], b"0"[0], b"9"[0]

_Bytes = npt.NDArray[np.uint8]
_Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionLatencies:
    """Latencies in microseconds, as logged; transactions that have none are left out."""

    microseconds: _Integers = field(repr=False)

    @property
    def samples(self) -> int:
        """Number of latencies."""
        return int(self.microseconds.size)

    def quantiles(self) -> Mapping[float, float]:
        """Latencies in seconds below which these shares lie; those with enough samples.

        pgbench takes the difference of two times in whole microseconds: what it logs is right to half of one.
        """
        values, counts = np.unique(self.microseconds, return_counts=True)
        edges = np.stack((np.maximum(values - 0.5, 0.0), values + 0.5), axis=-1)
        return {quantile: value * MICROSECOND for quantile, value in grouped_quantiles(edges, counts).items()}


def parse_transactions(log: bytes) -> TransactionLatencies:
    """Latencies of a transaction log; a last line without its end, left by a killed pgbench, is not counted.

    Raises:
        ParseError: a line has an unknown shape or another number of columns than the first.
    """
    return TransactionLatencies(microseconds=_columns(log, (_LATENCY,))[0])


def parse_courses(logs: Sequence[bytes]) -> tuple[Series, ...]:
    """Percentiles of latency by the seconds of a run, from the logs of all its processes.

    Each log begins where its first transaction did: clocks of several machines may differ.

    Raises:
        ParseError: as `parse_transactions`.
    """
    parts = []
    for log in logs:
        latency, seconds, fraction = _columns(log, (_LATENCY, _EPOCH, _FRACTION))
        if latency.size:
            ended = seconds * 1_000_000 + fraction
            parts.append((ended - (ended - latency).min(), latency))
    if not parts:
        return ()
    since, latencies = (np.concatenate(columns) * MICROSECOND for columns in zip(*parts, strict=True))
    return quantiles_over_time(since, latencies)


def count_late(log: bytes, *, limit: float, lead: float) -> StepCounts:
    """Transactions of a log at a fixed rate, those that were to begin in the first `lead` seconds left out.

    Args:
        log: a whole transaction log; its threads one after the other.
        limit: latency in seconds, from the scheduled start, above which a transaction is late.
        lead: seconds after the first scheduled start.

    Raises:
        ParseError: as `parse_transactions`.
    """
    latency, seconds, fraction = _columns(log, (_LATENCY, _EPOCH, _FRACTION))
    ended = seconds * 1_000_000 + fraction
    begun = ended - latency
    counted = begun >= begun.min(initial=np.iinfo(np.int64).max) + lead / MICROSECOND
    latency, begun = latency[counted], begun[counted]
    if not latency.size:
        return StepCounts(transactions=0, late=0, mean=0.0, growth=0.0)
    return StepCounts(
        transactions=int(latency.size),
        late=int(np.count_nonzero(latency > limit / MICROSECOND)),
        mean=float(latency.mean()) * MICROSECOND,
        growth=_growth(begun, latency),
    )


def add_counts(each: Sequence[StepCounts]) -> StepCounts:
    """What was counted on several machines, whose clocks may differ, as one; latency grows as it does on average."""
    total = sum(counts.transactions for counts in each)
    if len(each) == 1 or not total:
        return each[0]
    return StepCounts(
        transactions=total,
        late=sum(counts.late for counts in each),
        mean=sum(counts.transactions * counts.mean for counts in each) / total,
        growth=sum(counts.transactions * counts.growth for counts in each) / total,
    )


def _growth(begun: _Integers, latency: _Integers) -> float:
    """Seconds by which latency grows in a second, between the medians of the first and the last third; 0 for few."""
    third = latency.size // 3
    if third < _FEWEST_IN_A_THIRD:
        return 0.0
    ordered = latency[np.argsort(begun, kind="stable")]
    times = np.sort(begun)
    passed = float(np.median(times[-third:]) - np.median(times[:third]))
    return float(np.median(ordered[-third:]) - np.median(ordered[:third])) / passed if passed > 0 else 0.0


def _columns(log: bytes, wanted: tuple[int, ...]) -> tuple[_Integers, ...]:
    """Columns of the transactions that have a latency, each of shape (samples,)."""
    end = log.rfind(b"\n") + 1
    if end == 0:
        return tuple(np.empty(0, dtype=np.int64) for _ in wanted)
    first = log[: log.find(b"\n")]
    if _LINE.fullmatch(first) is None:
        raise _unknown(first)
    spaces = first.count(b" ")
    found = [
        _cut(np.frombuffer(log, dtype=np.uint8, count=stop - start, offset=start), spaces, wanted)
        for start, stop in _chunks(log, end)
    ]
    return tuple(np.concatenate(parts) for parts in zip(*found, strict=True))


def _chunks(log: bytes, end: int) -> list[tuple[int, int]]:
    """Stretches of whole lines, so that a long log needs little memory beside itself."""
    found = []
    start = 0
    while start < end:
        stop = end if end - start <= _CHUNK else log.rfind(b"\n", start, start + _CHUNK) + 1
        if stop <= start:
            raise _unknown(log[start : start + 200])
        found.append((start, stop))
        start = stop
    return found


def _cut(text: _Bytes, spaces: int, wanted: tuple[int, ...]) -> tuple[_Integers, ...]:
    ends = np.flatnonzero(text == _NEWLINE)
    gaps = np.flatnonzero(text == _SPACE)
    rows = ends.size
    # As many gaps as the lines need together, and the first and last of each share inside its line: each has its own.
    if gaps.size != rows * spaces:
        raise _odd_line(text, ends, gaps, spaces)
    table = gaps.reshape(rows, spaces)
    starts = np.concatenate((np.zeros(1, dtype=np.int64), ends[:-1] + 1))
    if bool(np.any(table[:, 0] < starts) or np.any(table[:, -1] > ends)):
        raise _odd_line(text, ends, gaps, spaces)
    empty = (table[:, 0] == starts) | (np.diff(table, axis=1) == 1).any(axis=1)
    if bool(empty.any()):
        row = int(np.flatnonzero(empty)[0])
        raise _unknown(text[starts[row] : ends[row]].tobytes())
    stops = np.column_stack((table, ends))
    rows_with = _with_latency(text, table, starts, ends)
    return tuple(
        _integers(
            text, table[rows_with, column - 1] + 1, stops[rows_with, column], (starts[rows_with], ends[rows_with])
        )
        for column in wanted
    )


def _with_latency(text: _Bytes, table: _Integers, starts: _Integers, ends: _Integers) -> _Integers:
    """Rows whose latency is a number; ParseError where a word stands there that nobody knows."""
    begins, stops = table[:, _LATENCY - 1] + 1, table[:, _LATENCY]
    numeric = (text[begins] >= _ZERO) & (text[begins] <= _NINE)
    for row in np.flatnonzero(~numeric):
        if text[begins[row] : stops[row]].tobytes() not in WORDS:
            raise _unknown(text[starts[row] : ends[row]].tobytes())
    return np.flatnonzero(numeric)


def _integers(text: _Bytes, begins: _Integers, stops: _Integers, lines: tuple[_Integers, _Integers]) -> _Integers:
    """The numbers between begins and stops; `lines` are begins and ends of their lines, for errors."""
    widths = stops - begins
    values = np.zeros(begins.size, dtype=np.int64)
    bad = (widths > _DIGITS) | (widths < 1)
    for position in range(min(int(widths.max(initial=0)), _DIGITS)):
        within = position < widths
        digits = text[np.where(within, begins + position, 0)].astype(np.int64) - _ZERO
        bad |= within & ((digits < 0) | (digits > 9))  # noqa: PLR2004 - the largest digit
        values = np.where(within, values * 10 + digits, values)
    if bool(bad.any()):
        odd = int(np.flatnonzero(bad)[0])
        raise _unknown(text[lines[0][odd] : lines[1][odd]].tobytes())
    return values


def _odd_line(text: _Bytes, ends: _Integers, gaps: _Integers, spaces: int) -> ParseError:
    """The first line whose number of columns is not that of the log's first line."""
    before = np.searchsorted(gaps, ends)
    row = int(np.flatnonzero(np.diff(before, prepend=0) != spaces)[0])
    start = int(ends[row - 1]) + 1 if row else 0
    return _unknown(text[start : int(ends[row])].tobytes())


def _unknown(line: bytes) -> ParseError:
    return ParseError(f"unknown shape of a line in the transaction log: {line[:200].decode('utf-8', 'replace')!r}")
