"""Samples counters of the kernel each second, on the server's host, by a script of its own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Final

from pgstrata.collectors.sessions.parse import SAMPLES as SESSIONS
from pgstrata.collectors.sessions.parse import parse_samples
from pgstrata.errors import ParseError
from pgstrata.model.metrics import BACKEND_CPU, RUN_QUEUE, Measurement
from pgstrata.ports.collector import Sampled, Sampling, Subject, Window
from pgstrata.ports.host import Command, StopSignal

SAMPLES: Final = "seconds.samples"
_NANOSECONDS: Final = 1e9


class SecondsSampler:
    """Implements `ports.Sampler` with /proc of the server's host."""

    @property
    def name(self) -> str:
        return SAMPLES.partition(".")[0]

    @property
    def paused(self) -> bool:
        return False

    def start(self, subject: Subject, folder: str) -> Sampling | None:
        script = (files(__package__) / "seconds.sh").read_text("ascii")
        output = f"{folder}/{SAMPLES}"
        postmaster = subject.server.postmaster_pid
        process = subject.host.spawn(
            Command(argv=("sh", "-c", script, "pgstrata-seconds", "" if postmaster is None else str(postmaster))),
            stdout=output, stderr=f"{output}.err", on_parent_death=StopSignal.KILL,
        )  # fmt: skip
        return Sampling(host=subject.host, process=process, output=output, errors=f"{output}.err")

    def parse(self, evidence: Mapping[str, bytes], window: Window) -> Sampled:
        sessions = frozenset(sample.pid for sample in parse_samples(evidence.get(SESSIONS, b"")) if sample.ours)
        return Sampled(measurements=tuple(_measure_sessions(evidence[SAMPLES], sessions, window)))


def _measure_sessions(text: bytes, sessions: frozenset[int], window: Window) -> Iterator[Measurement]:
    """CPU and run-queue time of the driver's sessions per transaction, from their processes' schedstat.

    Alone: the growth between the first and the last sample of each process, over the time between them. In turns: the
    growth between the first and the last sample, which lie before and after all turns.
    """
    times: dict[int, list[tuple[float, float, float]]] = defaultdict(list)
    for moment, pid, cpu, queue in parse_schedules(text):
        if pid in sessions:
            times[pid].append((moment, cpu, queue))
    cpu = queue = 0.0
    for rows in times.values():
        (begin, *first), (end, *last) = rows[0], rows[-1]
        if end <= begin:
            continue
        scale = 1.0 if window.turns else window.seconds / (end - begin)
        cpu += (last[0] - first[0]) * scale
        queue += (last[1] - first[1]) * scale
    done = window.transactions + (window.outside if window.turns else 0)
    if cpu > 0 and done > 0:
        yield Measurement(metric=BACKEND_CPU.name, value=cpu / done)
        yield Measurement(metric=RUN_QUEUE.name, value=queue / done)


def parse_schedules(text: bytes) -> Iterator[tuple[float, int, float, float]]:
    """(seconds since boot, pid, CPU seconds, seconds ready without a CPU) of each process in each sample.

    Raises:
        ParseError: a line has an unknown shape.
    """
    moment = 0.0
    for line in text[: text.rfind(b"\n") + 1].decode("ascii", "replace").splitlines():
        words = line.split()
        try:
            if words[0] == "@":
                moment = float(words[1])
            elif words[0] == "sched":
                yield moment, int(words[1]), int(words[2]) / _NANOSECONDS, int(words[3]) / _NANOSECONDS
        except (IndexError, ValueError):
            raise ParseError(f"unknown shape of a line: {line[:200]!r}", where=SAMPLES) from None
