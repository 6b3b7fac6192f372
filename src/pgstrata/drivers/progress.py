"""Reports of a driver, second by second: what is new of them in its file, and all of them as series."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pgstrata.errors import HostFileError
from pgstrata.model.metrics import SCHEDULE_LAG, TPS, Series
from pgstrata.ports.driver import ProgressPoint
from pgstrata.ports.host import Host

Points = tuple[ProgressPoint, ...]


def read_new(host: Host, path: str, offset: int, parse: Callable[[str], Points]) -> tuple[Points, int]:
    """The reports in whole lines of a file from `offset` bytes on, and the offset behind these; none without a file."""
    try:
        tail = host.read(path, offset=offset)
    except HostFileError:
        return (), offset
    whole = tail[: tail.rfind(b"\n") + 1]
    return parse(whole.decode("utf-8", "replace")), offset + len(whole)


def to_series(points: Sequence[ProgressPoint]) -> tuple[Series, ...]:
    """Throughput, latency and lag; a series in which no second has a value is left out."""
    found = (
        _series(TPS.name, points, lambda point: point.tps),
        _series("latency_mean", points, lambda point: point.latency),
        _series(SCHEDULE_LAG, points, lambda point: point.lag),
        _series("latency_p99", points, lambda point: point.p99),
    )
    return tuple(series for series in found if series.values)


def _series(metric: str, points: Sequence[ProgressPoint], value_of: Callable[[ProgressPoint], float | None]) -> Series:
    known = [(point.time, value) for point in points if (value := value_of(point)) is not None]
    return Series(metric=metric, times=tuple(time for time, _ in known), values=tuple(value for _, value in known))
