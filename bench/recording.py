"""What a recorder costs the server that it watches: two equal environments take turns, beside one of which it is at work.

Read-only with two clients, the hardest case; nothing else samples. `pgstrata watch` has made its first look before the
turns begin, and is paused with its environment's client. Its clock goes on meanwhile, so that it looks about twice in
each second in which it is at work: the cost is overstated, not understated.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from figures import Figure
from live import EQUAL, Question, by_block, know, measure, percent, server_cpu, visit_difference

from pgstrata.app import wiring
from pgstrata.errors import HostFileError
from pgstrata.libpq import compose_connection
from pgstrata.model.experiment import Experiment
from pgstrata.ports.collector import CaptureSubject, Sampled, Sampler, Sampling, Window
from pgstrata.ports.host import Command

VISITS = int(os.environ.get("VISITS") or 72)
# Seconds until it has begun, and from then to the end of its first looks.
_BEGUN, _SETTLED = 20.0, 1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorder:
    """A recorder in the place of a sampler, at work in one environment; what it records is thrown away."""

    environment: str
    name: str = "recorder"
    paused: bool = True

    def start(self, subject: CaptureSubject, folder: str) -> Sampling | None:
        """At work when this returns, its first look made."""
        if subject.server.environment.name != self.environment:
            return None
        host, output, errors = subject.sql.host, f"{folder}/recorder", f"{folder}/recorder.err"
        connection = compose_connection(subject.server.address)
        words = (sys.executable, "-m", "pgstrata", "watch", "dbname=" + subject.server.address.database)
        command = Command(
            argv=(*words, "--archive", f"{folder}/archive", "--plain"),
            environment={**connection.environment, "HOME": folder},
            password=connection.password,
        )
        process = host.spawn(command, stdout=output, stderr=errors)
        end = time.monotonic() + _BEGUN
        while time.monotonic() < end and process.poll() is None:
            try:
                if b"recording PostgreSQL" in host.read(errors):
                    time.sleep(_SETTLED)
                    return Sampling(host=host, process=process, output=output, errors=errors)
            except HostFileError:
                pass
            time.sleep(0.05)
        raise SystemExit(f"the recorder did not begin: {host.read(errors).decode('utf-8', 'replace')}")

    def parse(self, evidence: Mapping[str, bytes], window: Window) -> Sampled:
        return Sampled()


@contextmanager
def recorded_only(environment: str) -> Iterator[None]:
    """Experiments without samplers, but for a recorder in one environment."""
    usual = wiring.choose_samplers

    def choose(experiment: Experiment) -> tuple[Sampler, ...]:
        return (Recorder(environment=environment),)

    wiring.choose_samplers = choose
    try:
        yield
    finally:
        wiring.choose_samplers = usual


def measure_recording() -> Sequence[Figure]:
    """Throughput of the recorded environment against the other one, by visits; `VISITS=8` shortens it."""
    with recorded_only(EQUAL):
        _, runs, seconds = measure(Question(arms={EQUAL: 0}, blocks=VISITS, interleave="slices"), stop_early=False)
    blocks = [block for block in by_block(runs).values() if len(block) == 2]
    differences = [visit_difference(block["plain"], block[EQUAL]) for block in blocks]
    found = know(differences)
    cpu = know([float(np.log(server_cpu(block[EQUAL]) / server_cpu(block["plain"]))) for block in blocks])
    return [
        Figure(
            name="recording: tps of a recorded server", value=found.low, goal=-1.0, unit="%", low_is_good=False,
            notes=(
                f"{found}, {len(blocks)} visits in {seconds / 60:.1f} min; server CPU per transaction {cpu}, "
                "the recorder's backend included",
                f"by visit: {' '.join(f'{percent(d):+.2f}' for d in differences)} %",
            ),
        )
    ]  # fmt: skip
