"""Samples the stacks of the server's processes with perf, on the server's host, as the user that they run as.

Only processes of this server are followed, those that it starts later included, so that in slices no clock has to be
compared: its processes hardly run while it is another one's turn. Sessions that had work in flight finish it, and those
transactions are counted too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

from pgstrata.collectors.lines import natural_number, whole_lines
from pgstrata.errors import ParseError
from pgstrata.model.metrics import CYCLES, DTLB_MISSES, INSTRUCTIONS, SAMPLED_CPU, Measurement
from pgstrata.ports.collector import CaptureSubject, Sampled, Sampling, Window
from pgstrata.ports.host import Command, StopSignal

SAMPLES: Final = "perf.samples"
"""Evidence name of what the sampler wrote."""
_TICKS: Final = 100
"""A second, USER_HZ of Linux on all its common architectures."""
_COUNTED: Final = {"cycles": CYCLES, "instructions": INSTRUCTIONS, "dTLB-load-misses": DTLB_MISSES}


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """Samples by stack ("session;main;..."), taken `hertz` times a second of CPU time.

    `user_only`: what runs in the kernel was not seen. `whole`: nothing of the run is missing. `lacking` says why there
    is nothing. `counts` are hardware counters by name; `cpu` is what perf itself used in the window, seconds.
    """

    hertz: float = 0.0
    stacks: Mapping[str, int]
    counts: Mapping[str, int]
    user_only: bool = False
    whole: bool = False
    lacking: str = ""
    cpu: float = 0.0


def parse_folded(text: bytes) -> Folded:
    """What was written, as far as it goes; a last line without its end is left out.

    Raises:
        ParseError: a line has an unknown shape.
    """
    stacks: dict[str, int] = {}
    said: dict[str, str] = {}
    counts: dict[str, int] = {}
    for line in whole_lines(text):
        head, _, value = line.rpartition(" ")
        try:
            if line.startswith("# count "):
                counts[head.removeprefix("# count ").partition(":")[0]] = natural_number(value)
            elif line.startswith("# "):
                key, _, rest = line[2:].partition(" ")
                said[key] = rest
            else:
                stacks[head] = stacks.get(head, 0) + natural_number(value)
        except ValueError:
            raise ParseError(f"unknown shape of a line: {line[:200]!r}", where=SAMPLES) from None
    try:
        hertz, cpu = natural_number(said.get("hertz", "0")), natural_number(said.get("ticks", "0")) / _TICKS
    except ValueError:
        raise ParseError("unknown rate or CPU time", where=SAMPLES) from None
    return Folded(
        hertz=hertz,
        stacks=stacks,
        counts=counts,
        user_only=said.get("event", "").endswith(":u"),
        whole="whole" in said and "ended" not in said,
        lacking=said.get("lacking", ""),
        cpu=cpu,
    )


def measure_folded(folded: Folded, window: Window) -> Iterator[Measurement]:
    """CPU time and counters per transaction; those between slices count, as their samples do.

    The server's processes hardly run between its own slices, and what they do there is theirs.
    """
    done = window.transactions + window.outside
    if done <= 0 or not folded.whole:
        return
    samples = sum(folded.stacks.values())
    if samples and folded.hertz > 0:
        yield Measurement(metric=SAMPLED_CPU, value=samples / folded.hertz / done)
    for name, metric in _COUNTED.items():
        if name in folded.counts:
            yield Measurement(metric=metric, value=folded.counts[name] / done)


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
