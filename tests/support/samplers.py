"""All samplers that the program has, for the tests that each of them has to pass: a new one is a line here."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pgstrata.collectors.pgstat.seconds import parse_counter_samples
from pgstrata.collectors.procfs.samples import parse_seconds
from pgstrata.collectors.sessions.parse import parse_samples
from pgstrata.collectors.waits.sampler import parse_rows
from pgstrata.ports.collector import Window

CAPTURES = Path(__file__).parents[1] / "captures"


@dataclass
class Known:
    """Where a real run of it is kept, and when it looked, by what it wrote, in seconds of the wall clock.

    `period`: seconds that its last look may lie before its end; 0 where it looks when it is told to end.
    """

    capture: Path
    moments: Callable[[bytes], Sequence[float]]
    period: float = 0.0

    def evidence(self):
        return {path.name: path.read_bytes() for path in self.capture.iterdir() if path.suffix != ".json"}

    def window(self):
        fields = json.loads((self.capture / "window.json").read_text())
        return Window(**{name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()})


def moments_of_sessions(written):
    return sorted({sample.time for sample in parse_samples(written)})


def moments_of_seconds(written):
    found = parse_seconds(written)
    return [found.wall + sample.moment - found.samples[0].moment for sample in found.samples]


def moments_of_waits(written):
    return sorted({row.time for row in parse_rows(written)})


def moments_of_counters(written):
    return [sample.moment for sample in parse_counter_samples(written)]


KNOWN = {
    "sessions": Known(CAPTURES / "seconds" / "6.18" / "simple-update", moments_of_sessions, 0.1),
    "pgstat": Known(CAPTURES / "pgstat-seconds" / "18" / "simple-update", moments_of_counters, 1.0),
    "seconds": Known(CAPTURES / "seconds" / "6.18" / "simple-update", moments_of_seconds),
    "waits": Known(CAPTURES / "waits" / "1.1.4" / "commit-wait", moments_of_waits, 0.5),
    "perf": Known(CAPTURES / "perf" / "6.18" / "simple-update", lambda _written: ()),
}
