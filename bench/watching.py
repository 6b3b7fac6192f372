"""What samplers cost the server that is watched: two equal environments take turns, of which one is watched.

Read-only with two clients, the hardest case. The sampler of the sessions is at work in the watched environment's turns
alone; that of /proc is never paused, so that the other environment pays for it as well: about a tenth of the whole.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from figures import Figure
from live import EQUAL, Question, by_block, know, measure, percent, visit_difference

from pgstrata.app import wiring
from pgstrata.model.experiment import Experiment
from pgstrata.ports.collector import CaptureSubject, Sampled, Sampler, Sampling, Window

VISITS = int(os.environ.get("VISITS") or 24)


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
def watched_only(environment: str) -> Iterator[None]:
    """Experiments whose samplers are at work in one environment."""
    usual = wiring.choose_samplers

    def choose(experiment: Experiment) -> tuple[Sampler, ...]:
        return tuple(OnlyIn(inner=sampler, environment=environment) for sampler in usual(experiment))

    wiring.choose_samplers = choose
    try:
        yield
    finally:
        wiring.choose_samplers = usual


def measure_watching() -> Sequence[Figure]:
    """Throughput of the watched environment against the other one, by visits; `VISITS=8` shortens it."""
    with watched_only(EQUAL):
        _, runs, seconds = measure(Question(arms={EQUAL: 0}, blocks=VISITS, interleave="slices"), stop_early=False)
    blocks = [block for block in by_block(runs).values() if len(block) == 2]
    differences = [visit_difference(block["plain"], block[EQUAL]) for block in blocks]
    found = know(differences)
    observers = sorted(run.value("observer_cpu") or 0.0 for block in blocks for run in block.values())
    note = (
        f"{found}, {len(blocks)} visits in {seconds / 60:.1f} min; CPU of all that watched: "
        f"{observers[len(observers) // 2]:.4f} in the middle"
    )
    return [
        Figure(
            name="watching: tps of a watched server", value=found.low, goal=-2.0, unit="%", low_is_good=False,
            notes=(note, f"by visit: {' '.join(f'{percent(d):+.2f}' for d in differences)} %"),
        )
    ]  # fmt: skip
