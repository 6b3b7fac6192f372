"""Samples of a run that was alone as series over its seconds. Pure."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from functools import partial

from pgstrata.collectors.procfs.counters import read_counters
from pgstrata.collectors.procfs.host_series import rates, sum_disks
from pgstrata.collectors.procfs.process_series import process_rates, tell_kinds
from pgstrata.collectors.procfs.samples import HostSample, Seconds
from pgstrata.collectors.sessions.parse import SessionSample
from pgstrata.collectors.window_series import Values, make_series
from pgstrata.model.metrics import Series
from pgstrata.ports.collector import Window


def make_courses(seconds: Seconds, sessions: Iterable[SessionSample], window: Window, ticks: int) -> tuple[Series, ...]:
    """A series for each kind of what the host and the server's processes did, and of the disks by what lies on them.

    Raises:
        ParseError: a line has an unknown shape.
    """
    kinds = tell_kinds(seconds.titles, sessions, window)

    def happened(before: HostSample, after: HostSample) -> Values:
        first, last = ({**read_counters(one.lines), **sum_disks(one)} for one in (before, after))
        host = rates(first, last, after.moment - before.moment, ticks)
        return {**host, **process_rates(before, after, kinds, ticks)}

    def worked(before: HostSample, after: HostSample, *, devices: Collection[str]) -> Values:
        first, last = sum_disks(before, devices), sum_disks(after, devices)
        return rates(first, last, after.moment - before.moment, ticks)

    series = list(make_series(seconds.samples, window, happened, _missing))
    for subject, devices in seconds.devices.items():
        series += make_series(seconds.samples, window, partial(worked, devices=devices), subject=subject)
    return tuple(series)


def _missing(name: str) -> float:
    """A kind of process that was not there used nothing; what a host did not tell is not known."""
    return 0.0 if name.endswith(("_cpu", "_course")) and not name.startswith("host_") else math.nan
