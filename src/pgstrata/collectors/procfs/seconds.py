"""Samples counters of the kernel each second, on the server's host, by a script that uses perl where it is there."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from typing import Final

from pgstrata.collectors.procfs.own_sessions import measure_own_sessions
from pgstrata.collectors.procfs.samples import SAMPLES, Seconds, parse_seconds
from pgstrata.collectors.procfs.series import make_courses
from pgstrata.collectors.procfs.snapshot import DEFAULT_TICKS, parse_snapshot
from pgstrata.collectors.serverlog import LOG, make_events
from pgstrata.collectors.sessions.parse import SAMPLES as SESSIONS
from pgstrata.collectors.sessions.parse import parse_samples
from pgstrata.collectors.window_series import doubt_unseen, unseen_seconds
from pgstrata.model.metrics import Series
from pgstrata.ports.collector import CaptureSubject, Sampled, Sampling, Window
from pgstrata.ports.host import Command, StopSignal

_CAPTURES: Final = ("procfs.before", "procfs.after")


class SecondsSampler:
    """Implements `ports.Sampler` with /proc of the server's host."""

    name = SAMPLES.partition(".")[0]
    paused = False

    def start(self, subject: CaptureSubject, folder: str) -> Sampling | None:
        script, loop = ((files(__package__) / name).read_text("ascii") for name in ("seconds.sh", "seconds.pl"))
        output = f"{folder}/{SAMPLES}"
        postmaster = subject.server.postmaster_pid
        parents = (*(() if postmaster is None else (postmaster,)), *subject.host.transport_pids)
        process = subject.host.spawn(
            Command(argv=("sh", "-c", script, "pgstrata-seconds", *_folders(subject), loop, *map(str, parents))),
            stdout=output,
            stderr=f"{output}.err",
            on_parent_death=StopSignal.KILL,
        )
        return Sampling(host=subject.host, process=process, output=output, errors=f"{output}.err")

    def parse(self, evidence: Mapping[str, bytes], window: Window) -> Sampled:
        seconds = parse_seconds(evidence[SAMPLES])
        sessions = tuple(parse_samples(evidence.get(SESSIONS, b"")))
        captures = [parse_snapshot(evidence[name]) for name in _CAPTURES if name in evidence]
        ticks = captures[0].ticks if captures else DEFAULT_TICKS
        return Sampled(
            measurements=tuple(measure_own_sessions(seconds, sessions, window, captures)),
            series=(*make_courses(seconds, sessions, window, ticks), *_events(evidence.get(LOG, b""), seconds)),
            remarks=doubt_unseen(unseen_seconds(seconds.samples, window), self.name),
        )


def _folders(subject: CaptureSubject) -> tuple[str, str]:
    """Where data and WAL lie, whose disks are asked for: not of a server that may be elsewhere, nor in slices."""
    if subject.server.postmaster_pid is None or subject.turns:
        return "", ""
    return subject.server.clone.location, subject.server.clone.wal


def _events(log: bytes, seconds: Seconds) -> tuple[Series, ...]:
    """What the server told of itself between the first sample and the last, by its own host's clock."""
    if seconds.wall is None or not seconds.samples:
        return ()
    length = seconds.samples[-1].moment - seconds.samples[0].moment
    return make_events(log, seconds.wall, seconds.wall + length)
