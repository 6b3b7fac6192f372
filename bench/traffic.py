"""Made-up traffic of a live server, second by second, with slowdowns that are known: for `detection`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pgstrata.model.archive import ArchiveWindow, SessionClass, Span
from pgstrata.model.incidents import LoadStep

BEGIN = 1_793_577_600
"""2026-11-02 00:00 UTC, a Monday."""
DAY = 86_400
KINDS = ("steady", "alike", "daily", "noisy")
_CPU = SessionClass(kind="client backend", state="active", statement="q")


@dataclass(frozen=True, slots=True, kw_only=True)
class Slow:
    """Throughput is smaller by `fall` for so many seconds, under the same load."""

    begin: int
    seconds: int
    fall: float


@dataclass(frozen=True, slots=True)
class Traffic:
    """By second from `BEGIN` on: sessions seen, transactions, seconds of execution."""

    load: np.ndarray
    commits: np.ndarray
    spent: np.ndarray

    def steps(self, seconds: int = 10) -> list[LoadStep]:
        """Steps of so many seconds."""
        size = self.load.size // seconds * seconds
        load, commits, spent = (
            series[:size].reshape(-1, seconds).sum(axis=1) for series in (self.load, self.commits, self.spent)
        )
        return [
            LoadStep(
                end=BEGIN + (place + 1) * seconds - 1, seconds=seconds, looks=seconds, load=float(load[place]),
                commits=float(commits[place]) / seconds, spent=float(spent[place]) / seconds,
            )
            for place in range(load.size)
        ]  # fmt: skip

    def window(self, span: Span) -> ArchiveWindow | None:
        """As the archive would give it."""
        begin, end = max(0, span.begin - BEGIN), min(self.load.size, span.end - BEGIN)
        if begin >= end:
            return None
        return ArchiveWindow(
            span=Span(begin=BEGIN + begin, end=BEGIN + end), unit=1, cell=1, looks=(1,) * (end - begin),
            sessions={_CPU: tuple(self.load[begin:end].astype(int).tolist())},
            rates={"commits": tuple(self.commits[begin:end].tolist())},
        )  # fmt: skip


def make_traffic(kind: str, seconds: int, slow: list[Slow], seed: int) -> Traffic:
    """Traffic of a kind.

    steady: 500 transactions per second arrive at random, of 8 ms each. alike: eight clients that are always at work,
    whose throughput is an autoregression with 0.8 from second to second and a scatter of 10 %. daily: arrivals at
    random with a course of the day from 150 to 500 per second, whose transactions take a fifth longer at noon. noisy:
    eight clients on a machine like that of docs/noise.md: slow noise of 5 %, and for one to six seconds once a minute
    another load that slows them by a fifth to two and a half times.
    """
    draws = np.random.default_rng(seed)
    moments = np.arange(seconds)
    rate, time = np.full(seconds, 1000.0), np.full(seconds, 0.008)
    sessions = draws.binomial(8, 0.97, seconds).astype(float)
    if kind in {"steady", "daily"}:
        course = (1 - np.cos(2 * np.pi * moments / DAY)) / 2 if kind == "daily" else np.ones(seconds)
        rate = 150 + 350 * course
        time = 0.008 * (1 + 0.2 * course)
        sessions = rate * time
    elif kind == "alike":
        rate = rate * np.exp(_autoregression(draws, seconds, 0.8, 0.1))
    else:
        rate = rate * np.exp(_autoregression(draws, seconds, 0.9, 0.05)) / _bursts(draws, seconds)
    keep = np.ones(seconds)
    for each in slow:
        keep[each.begin : each.begin + each.seconds] = 1 - each.fall
    commits = draws.poisson(rate * keep).astype(float)
    if kind in {"steady", "daily"}:
        load = draws.poisson(sessions).astype(float)
        spent = draws.gamma(np.maximum(commits, 1e-9), time / keep)
    else:
        load = sessions
        spent = sessions * draws.normal(0.95, 0.01, seconds)
    return Traffic(load, commits, spent)


def _autoregression(draws: np.random.Generator, size: int, alike: float, scatter: float) -> np.ndarray:
    steps = draws.normal(0, scatter * np.sqrt(1 - alike**2), size)
    for place in range(1, size):
        steps[place] += alike * steps[place - 1]
    return steps


def _bursts(draws: np.random.Generator, size: int) -> np.ndarray:
    slower = np.ones(size)
    for begin in np.nonzero(draws.random(size) < 1 / 60)[0]:
        length = 1 + int(min(5, draws.exponential(2)))
        slower[begin : begin + length] *= draws.uniform(1.2, 2.5)
    return slower


def draw_slow(seconds: int, number: int, least: float, most: float, seed: int) -> list[Slow]:
    """Slowdowns of one to fifteen minutes, far enough from each other, after an hour."""
    draws = np.random.default_rng(seed)
    room = (seconds - 3600) // number
    return [
        Slow(
            begin=3600 + place * room + int(draws.integers(0, room - 2000)),
            seconds=int(60 * 15 ** draws.random()),
            fall=float(draws.uniform(least, most)),
        )
        for place in range(number)
    ]
