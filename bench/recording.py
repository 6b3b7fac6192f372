"""What a recorder costs the server that it watches: two equal environments take turns, a recorder beside one of them.

Read-only with two clients, the hardest case; nothing else samples. `pgstrata watch` has made its first look before the
turns begin, and is paused with its environment's client. Its clock goes on meanwhile, so that it looks about twice in
each second in which it is at work: the cost is overstated, not understated.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import typer
from figures import Figure
from live import EQUAL, know, server_cpu
from watching import Visit, measure_cost

import pgstrata
from pgstrata.errors import HostFileError
from pgstrata.libpq import compose_connection
from pgstrata.model.experiment import Experiment
from pgstrata.ports.collector import CaptureSubject, Sampled, Sampler, Sampling, Window
from pgstrata.ports.host import Command

VISITS = int(os.environ.get("VISITS") or 72)
# Of root's own Python the servers' user, as whom clients and what is paused with them run, may see nothing.
_PLACES = {
    "PYTHONPATH": os.pathsep.join(str(Path(str(module.__file__)).parents[1]) for module in (pgstrata, np, typer)),
}
_PYTHON = ("/usr/bin/python3" if os.geteuid() == 0 else sys.executable, "-m", "pgstrata")
# Seconds until it has begun, and from then to the end of its first looks.
_BEGUN, _SETTLED = 120.0, 1.5


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
        # where the first recorder finds or fetches psql, and the others find it
        cache = f"{tempfile.gettempdir()}/pgstrata-recording-{host.user}"
        host.make_folder(cache)
        command = Command(
            argv=(*_PYTHON, "watch", f"dbname={subject.server.address.database}", "--archive", f"{folder}/archive"),
            environment={**connection.environment, "HOME": cache, "PATH": os.defpath, **_PLACES},
            password=connection.password,
        )
        process = host.spawn(command, stdout=output, stderr=errors)
        end = time.monotonic() + _BEGUN
        while time.monotonic() < end and process.poll() is None:
            with suppress(HostFileError):
                if b"recording PostgreSQL" in host.read(errors):
                    time.sleep(_SETTLED)
                    return Sampling(host=host, process=process, output=output, errors=errors)
            time.sleep(0.05)
        raise SystemExit(f"the recorder did not begin: {host.read(errors).decode('utf-8', 'replace')}")

    def parse(self, evidence: Mapping[str, bytes], window: Window) -> Sampled:  # noqa: ARG002 - nothing is read
        return Sampled()


def measure_recording() -> Sequence[Figure]:
    """With a recorder and no sampler; `VISITS=8` shortens it."""

    def choose(experiment: Experiment) -> Sequence[Sampler]:  # noqa: ARG001 - as the real one
        return [Recorder(environment=EQUAL)]

    return [measure_cost("recording: tps of a recorded server", -1.0, VISITS, choose, _say_cpu)]


def _say_cpu(visits: Sequence[Visit]) -> str:
    cpu = know([float(np.log(server_cpu(visit[EQUAL]) / server_cpu(visit["plain"]))) for visit in visits])
    return f"server CPU per transaction {cpu}, the recorder's backend included"
