"""Made-up seconds of a live server, as steps and as windows: what a detector is given."""

import numpy as np

from archives import session
from pgstrata.model.archive import ArchiveWindow, Span
from pgstrata.model.incidents import LoadStep

BEGIN = 1_793_577_600
"""2026-11-02 00:00 UTC."""
CPU = session("select")


class Seconds:
    """Series by second from `BEGIN` on: sessions by class, commits, seconds of execution."""

    def __init__(self, size, *, rate=1000.0, load=8, scatter=0.05, seed=1):
        draws = np.random.default_rng(seed)
        self.sessions = {CPU: draws.binomial(load, 0.95, size)}
        self.commits = np.round(rate * np.exp(draws.normal(0, scatter, size)))
        self.spent = np.full(size, np.nan)

    def slow(self, begin, end, factor):
        """Throughput falls to a part of it, under the same load."""
        self.commits[begin:end] = np.round(self.commits[begin:end] * factor)

    def more(self, begin, end, factor):
        """More transactions, and more load in the same proportion."""
        self.commits[begin:end] *= factor
        self.sessions[CPU][begin:end] = np.round(self.sessions[CPU][begin:end] * factor)

    def add(self, kind, begin, end, number):
        """So many sessions of another class."""
        counts = self.sessions.setdefault(kind, np.zeros(self.commits.size, dtype=int))
        counts[begin:end] += number

    @property
    def load(self):
        return sum(counts for kind, counts in self.sessions.items() if kind.is_load)

    def steps(self, length=10, *, without=()):
        """Steps; those that end in `without` (seconds from the beginning) are missing."""
        load = self.load
        for begin in range(0, self.commits.size - length + 1, length):
            part = slice(begin, begin + length)
            if any(first <= begin < last for first, last in without):
                continue
            yield LoadStep(
                end=BEGIN + begin + length - 1, seconds=length, looks=length, load=float(load[part].sum()),
                commits=float(self.commits[part].mean()), spent=float(self.spent[part].mean()),
            )  # fmt: skip

    def window(self, span):
        """As an archive would give it."""
        begin, end = max(0, span.begin - BEGIN), min(self.commits.size, span.end - BEGIN)
        if begin >= end:
            return None
        return ArchiveWindow(
            span=Span(begin=BEGIN + begin, end=BEGIN + end), unit=1, cell=1, looks=(1,) * (end - begin),
            sessions={kind: tuple(counts[begin:end].tolist()) for kind, counts in self.sessions.items()},
            rates={"commits": tuple(self.commits[begin:end].tolist())},
        )  # fmt: skip
