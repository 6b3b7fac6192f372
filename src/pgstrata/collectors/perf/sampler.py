"""Samples the stacks of the server's processes with perf, on the server's host, as the user that they run as.

Only processes of this server are followed, those that it starts later included, so that in slices no clock has to be
compared: its processes hardly run while it is another one's turn. Sessions that had work in flight finish it, and those
transactions are counted too.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from typing import Final

from pgstrata.collectors.perf.parse import SAMPLES, measure_folded, parse_folded
from pgstrata.ports.collector import CaptureSubject, Sampled, Sampling, Window
from pgstrata.ports.host import Command, StopSignal

HERTZ: Final = 49
"""Samples per second of CPU time; not a divisor of the kernel's own ticks."""
_MOST_BYTES: Final = "200M"
_PATIENCE: Final = 120.0
"""Unwinding takes less than two milliseconds a sample, of which 200 MB hold 20,000."""


class PerfSampler:
    """Implements `ports.Sampler` with perf; where there is none, or it may not, its evidence says so."""

    name = SAMPLES.partition(".")[0]
    paused = False

    def start(self, subject: CaptureSubject, folder: str) -> Sampling | None:
        postmaster = subject.server.postmaster_pid
        if postmaster is None:
            return None
        output = f"{folder}/{SAMPLES}"
        script, fold = ((files(__package__) / name).read_text("ascii") for name in ("perf.sh", "fold.awk"))
        words = (str(postmaster), str(HERTZ), f"{folder}/perf.data", _MOST_BYTES, fold)
        process = subject.host.spawn(
            Command(argv=("sh", "-c", script, "pgstrata-perf", *words)),
            stdout=output,
            stderr=f"{output}.err",
            on_parent_death=StopSignal.TERM,
        )
        return Sampling(host=subject.host, process=process, output=output, errors=f"{output}.err", patience=_PATIENCE)

    def parse(self, evidence: Mapping[str, bytes], window: Window) -> Sampled:
        return Sampled(measurements=tuple(measure_folded(parse_folded(evidence[SAMPLES]), window)))
