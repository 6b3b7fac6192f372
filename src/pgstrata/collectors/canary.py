"""Times a fixed loop of the host's own shell. Slower canaries beside equal servers point at the machine."""

from __future__ import annotations

import math
from typing import Final

from pgstrata.errors import CommandFailedError, HostNotFitError, ParseError
from pgstrata.model.metrics import Measurement
from pgstrata.ports.collector import CaptureSubject, Window
from pgstrata.ports.host import Command, Host

# About twenty milliseconds in dash and eighty in bash: long beside the start of a process, short beside a run.
_ROUNDS: Final = 30_000
_LOOP: Final = f"i=0; while [ $i -lt {_ROUNDS} ]; do i=$((i+1)); done"


class CanaryCollector:
    """Implements `ports.Collector` for the server's host; a host without `sh -c` gives no measurement."""

    name = "canary"
    with_clients = False

    def capture(self, subject: CaptureSubject) -> bytes:
        try:
            return f"seconds {time_loop(subject.host):.6f}\n".encode()
        except (CommandFailedError, HostNotFitError):
            return b""

    def parse(self, before: bytes, after: bytes, window: Window) -> tuple[Measurement, ...]:  # noqa: ARG002
        """Metric `canary`: the mean of both times in seconds."""
        if not before or not after:
            return ()
        return (Measurement(metric="canary", value=(_seconds(before) + _seconds(after)) / 2),)


def time_loop(host: Host) -> float:
    """Seconds that the loop takes now. CommandFailedError, HostNotFitError: there is no `sh -c`."""
    begun = host.clock().monotonic
    host.run(Command(argv=("sh", "-c", _LOOP)), timeout=60)
    return host.clock().monotonic - begun


def _seconds(text: bytes) -> float:
    name, _, number = text.decode("ascii", "replace").strip().partition(" ")
    try:
        seconds = float(number if name == "seconds" else "")
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise ParseError("a canary's capture is not `seconds NUMBER`", where="canary")
    return seconds
