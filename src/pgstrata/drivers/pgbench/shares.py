"""How the clients of one execution are shared among processes of pgbench: one, or one for each CPU with sessions. Pure.

Threads of one pgbench cannot be told apart from outside: which of its sockets is whose is seen by nobody. So sessions
that are paired with CPUs have a pgbench for each CPU, started on it, with a name that the server shows of its sessions.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pgstrata.ports.driver import DriverResult, ProgressPoint

NAME: Final = "pgbench"
_EVIDENCE: Final = re.compile(rf"(?P<part>.*\.)?{NAME}\.(?:(?P<share>\d+)\.)?(?P<kind>out|err)")
# Two processes with one seed would draw the same rows at the same time.
_SEEDS_APART: Final = 1009


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """The clients of one process; `cpu` is None for a process that runs wherever the kernel puts it."""

    number: int
    clients: int
    threads: int
    seed: int
    cpu: int | None = None

    @property
    def session_name(self) -> str:
        """How its sessions call themselves (application_name); empty where they have the driver's own name."""
        return "" if self.cpu is None else f"{NAME} on CPU {self.cpu}"

    def file(self, kind: str) -> str:
        """Name of its output (`out`) or complaints (`err`); that of the first is the one of a single process."""
        return f"{NAME}.{self.number}.{kind}" if self.number else f"{NAME}.{kind}"


def share_out(clients: int, threads: int, seed: int, cpus: tuple[int, ...]) -> tuple[Share, ...]:
    """The processes of one execution.

    Args:
        clients: of the whole load.
        threads: of the whole load; each share has its part of them, at least one.
        seed: of the first share.
        cpus: the CPU of each client, or nothing where the kernel decides.
    """
    if not cpus:
        return (Share(number=0, clients=clients, threads=threads, seed=seed),)
    return tuple(
        Share(
            number=number,
            clients=count,
            threads=min(count, max(1, round(threads * count / clients))),
            seed=seed + number * _SEEDS_APART,
            cpu=cpu,
        )
        for number, (cpu, count) in enumerate(sorted(Counter(cpus).items()))
    )


def is_own_file(name: str) -> bool:
    """Whether a file of an execution is the output or the complaints of one of its processes."""
    return _EVIDENCE.fullmatch(name) is not None


def by_share(evidence: Mapping[str, bytes], part: str = "") -> tuple[Mapping[str, bytes], ...]:
    """Output and complaints of each process, by `out` and `err`, in order of shares; `part` precedes their names."""
    found: dict[int, dict[str, bytes]] = {}
    for name, content in evidence.items():
        match = _EVIDENCE.fullmatch(name)
        if match is not None and (match["part"] or "") == part:
            found.setdefault(int(match["share"] or 0), {})[match["kind"]] = content
    return tuple(found[number] for number in sorted(found))


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
        by_script=dict(sum((Counter(result.by_script) for result in results), Counter())),
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
        latency=sum(point.tps * (point.latency or 0.0) for point in points) / tps if tps else 0.0,
        failed=sum(point.failed for point in points),
        lag=sum(late) / len(late) if late else None,
    )
