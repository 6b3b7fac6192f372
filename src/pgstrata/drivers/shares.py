"""What several processes of one execution left, as one: files by process, summaries and progress added up. Pure.

Processes share the clients of a load: among CPUs where sessions are paired with them, among machines where the load
comes from several.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from pgstrata.ports.driver import DriverResult, ProgressPoint

SEEDS_APART = 1009
"""Two processes with one seed would draw the same rows at the same time."""


@lru_cache(maxsize=10)
def _evidence(driver: str) -> re.Pattern[str]:
    return re.compile(rf"(?P<part>.*\.)?{re.escape(driver)}\.(?:(?P<share>\d+)\.)?(?P<kind>out|err)")


def is_own_file(driver: str, name: str) -> bool:
    """Whether a file of an execution is the output or the complaints of one of its processes."""
    return _evidence(driver).fullmatch(name) is not None


def by_share(driver: str, evidence: Mapping[str, bytes], part: str = "") -> tuple[Mapping[str, bytes], ...]:
    """Output and complaints of each process, by `out` and `err`, in order of shares; `part` precedes their names."""
    found: dict[int, dict[str, bytes]] = {}
    for name, content in evidence.items():
        match = _evidence(driver).fullmatch(name)
        if match is not None and (match["part"] or "") == part:
            found.setdefault(int(match["share"] or 0), {})[match["kind"]] = content
    return tuple(found[number] for number in sorted(found))


def join_evidence(parts: Sequence[Mapping[str, bytes]]) -> Mapping[str, bytes]:
    """The evidence of processes in folders of their own, as if they had been in one: names are numbered by process.

    Args:
        parts: the evidence of one process each, in order of shares.
    """
    return {number_name(name, number): content for number, part in enumerate(parts) for name, content in part.items()}


def number_name(name: str, number: int) -> str:
    """What a file of a process is called beside those of others: pgbench.1.out; those of the first have no number."""
    first, _, rest = name.partition(".")
    return f"{first}.{number}.{rest}" if number else name


def add_results(results: Sequence[DriverResult]) -> DriverResult:
    """The summaries of all processes of one execution as one: counts and throughputs add up, latencies are averaged.

    Mean and standard deviation are those of all transactions together, from their first two moments.
    """
    if len(results) == 1:
        return results[0]
    complete = all(result.complete for result in results)
    counts = [result.transactions for result in results]
    means = [result.latency_mean for result in results]
    mean = spread = None
    if sum(counts) and all(each is not None for each in means):
        mean = sum(n * (m or 0.0) for n, m in zip(counts, means, strict=True)) / sum(counts)
        if all(result.latency_stddev is not None for result in results):
            squares = ((result.latency_stddev or 0.0) ** 2 + (result.latency_mean or 0.0) ** 2 for result in results)
            total = sum(n * square for n, square in zip(counts, squares, strict=True))
            spread = math.sqrt(max(0.0, total / sum(counts) - mean**2))
    return replace(
        results[0],
        complete=complete,
        transactions=sum(counts),
        tps=sum(result.tps or 0.0 for result in results) if complete else None,
        latency_mean=mean,
        latency_stddev=spread,
        failed=sum(result.failed for result in results),
        retried=sum(result.retried for result in results),
        skipped=sum(result.skipped for result in results),
        errors=tuple(error for result in results for error in result.errors),
        statements=_add_statements(results),
        by_script=dict(sum((Counter(result.by_script) for result in results), Counter())),
    )


def _add_statements(results: Sequence[DriverResult]) -> tuple[tuple[float, str], ...]:
    """Mean seconds of each statement, weighted by the transactions of the processes, which run the same scripts."""
    made = sum(result.transactions for result in results)
    if not made or len({tuple(text for _, text in result.statements) for result in results}) > 1:
        return results[0].statements
    columns = zip(*(result.statements for result in results), strict=True)
    return tuple(
        (
            sum(result.transactions * mean for result, (mean, _) in zip(results, column, strict=True)) / made,
            column[0][1],
        )
        for column in columns
    )


def add_points(each: Sequence[Sequence[ProgressPoint]]) -> tuple[ProgressPoint, ...]:
    """Progress of all processes of one execution, second by second, as far as all of them have reported."""
    return tuple(_add(points) for points in zip(*each, strict=False))


def _add(points: Sequence[ProgressPoint]) -> ProgressPoint:
    if len(points) == 1:
        return points[0]
    tps = sum(point.tps for point in points)
    late = [point.lag for point in points if point.lag is not None]
    return ProgressPoint(
        time=max(point.time for point in points),
        tps=tps,
        latency=_mean_latency(points, tps),
        failed=sum(point.failed for point in points),
        lag=sum(late) / len(late) if late else None,
    )


def _mean_latency(points: Sequence[ProgressPoint], tps: float) -> float | None:
    if all(point.latency is None for point in points):
        return None
    return sum(point.tps * (point.latency or 0.0) for point in points) / tps if tps else 0.0
