"""What samplers cost the server that is watched: two equal environments take turns, of which one is watched.

Read-only with two clients, the hardest case. The sampler of the sessions is at work in the watched environment's turns
alone; that of /proc is never paused, so that the other environment pays for it as well: about a tenth of the whole.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from figures import Figure
from live import EQUAL, Question, by_block, know, measure, percent, visit_difference

from pgstrata.app import wiring
from pgstrata.model.experiment import Experiment
from pgstrata.model.runs import RunRecord
from pgstrata.ports.collector import CaptureSubject, Sampled, Sampler, Sampling, Window

VISITS = int(os.environ.get("VISITS") or 24)
Visit = Mapping[str, RunRecord]


@dataclass(frozen=True, slots=True, kw_only=True)
class OnlyIn:
    """A sampler that is at work in one environment."""

    inner: Sampler
    environment: str

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def paused(self) -> bool:
        return self.inner.paused

    def start(self, subject: CaptureSubject, folder: str) -> Sampling | None:
        return self.inner.start(subject, folder) if subject.server.environment.name == self.environment else None

    def parse(self, evidence: Mapping[str, bytes], window: Window) -> Sampled:
        return self.inner.parse(evidence, window)


@contextmanager
def samplers_of(choose: Callable[[Experiment], Sequence[Sampler]]) -> Iterator[None]:
    """Experiments with these samplers."""
    usual = wiring.choose_samplers
    wiring.choose_samplers = lambda experiment: tuple(choose(experiment))
    try:
        yield
    finally:
        wiring.choose_samplers = usual


def measure_cost(
    name: str, goal: float, visits: int, choose: Callable[[Experiment], Sequence[Sampler]],
    note: Callable[[Sequence[Visit]], str],
) -> Figure:  # fmt: skip
    """Throughput of the environment `EQUAL`, the only one that these samplers watch, against the other one, by visits.

    Args:
        name: of the figure.
        goal: percent of throughput.
        visits: that are planned.
        choose: the samplers.
        note: what else the visits tell.
    """
    with samplers_of(choose):
        _, runs, seconds = measure(Question(arms={EQUAL: 0}, blocks=visits, interleave="slices"), stop_early=False)
    blocks = [block for block in by_block(runs).values() if len(block) == 2]
    differences = [visit_difference(block["plain"], block[EQUAL]) for block in blocks]
    found = know(differences)
    return Figure(
        name=name, value=found.low, goal=goal, unit="%", low_is_good=False,
        notes=(
            f"{found}, {len(blocks)} visits in {seconds / 60:.1f} min; {note(blocks)}",
            f"by visit: {' '.join(f'{percent(d):+.2f}' for d in differences)} %",
        ),
    )  # fmt: skip


def measure_watching() -> Sequence[Figure]:
    """With the usual samplers; `VISITS=8` shortens it."""
    usual = wiring.choose_samplers

    def choose(experiment: Experiment) -> Sequence[Sampler]:
        return [OnlyIn(inner=sampler, environment=EQUAL) for sampler in usual(experiment)]

    return [measure_cost("watching: tps of a watched server", -2.0, VISITS, choose, _say_observers)]


def _say_observers(visits: Sequence[Visit]) -> str:
    observers = sorted(run.value("observer_cpu") or 0.0 for visit in visits for run in visit.values())
    return f"CPU of all that watched: {observers[len(observers) // 2]:.4f} in the middle"
