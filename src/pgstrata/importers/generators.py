"""Readers of output of pgbench and sysbench; a file may have several runs, unfinished ones among them."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

import numpy as np

from pgstrata.drivers.pgbench import parse as pgbench
from pgstrata.drivers.sysbench import parse as sysbench
from pgstrata.errors import ParseError
from pgstrata.importers.results import NOT_FINISHED, Contents, ReadingTerms, Result, name_version, refuse_many
from pgstrata.model.metrics import TPS, Series
from pgstrata.ports.driver import DriverResult
from pgstrata.sources.seconds import opening_of_seconds

_NO_RESULT: Final = "the file has no result of {}"
_LONGEST: Final = 160
_BEGUN: Final = ("progress: ", "starting vacuum", "transaction type: ", "Threads started")
_SINCE_1970: Final = 1e9
"""Progress reports with larger times count seconds since 1970 (--progress-timestamp)."""

# `pgbench --version` says (PostgreSQL), and is no run. A run that could not begin has nothing but an error.
_PGBENCH_BEGINS: Final = re.compile(
    r"pgbench \((?!PostgreSQL\))|starting vacuum\.\.\.|transaction type: "
    r"|pgbench: (?:error|fatal): (?!Run was aborted|client \d)"
)
_PGBENCH_TYPE: Final = "transaction type: "
_PGBENCH_ERROR: Final = "pgbench: "
_PGBENCH_FIELDS: Final = {
    "transaction type": "script",
    "scaling factor": "scale",
    "query mode": "protocol",
    "number of clients": "clients",
    "number of threads": "threads",
    "duration": "duration",
    "number of transactions per client": "transactions per client",
}
_FIELD: Final = re.compile(r"(?P<key>[a-z][a-z ]*): (?P<value>.*)")
_DURATION: Final = re.compile(r"^duration: (\d+) s$", re.MULTILINE)
_BANNER: Final = re.compile(r"^pgbench \((?P<client>.{0,200}?)(?:, server (?P<server>.{0,200}))?\)$", re.MULTILINE)

_SYSBENCH_RUN: Final = "Running the test with following options"
_SYSBENCH_STATISTICS: Final = re.compile(r"^(?:SQL|OLTP test) statistics:$", re.MULTILINE)
_SYSBENCH_BEGINS: Final = (
    re.compile(r"^sysbench \d", re.MULTILINE),
    re.compile(f"^{_SYSBENCH_RUN}", re.MULTILINE),
    _SYSBENCH_STATISTICS,
)
"""Lines with which a run begins; of a log without the first ones, the next ones."""
_SYSBENCH_WORDS: Final = (_SYSBENCH_RUN, "FATAL: ", " statistics:", "Threads started!")
"""Each run has one of them."""
_SYSBENCH_LEVELS: Final = {
    "threads": re.compile(r"^Number of threads: (\d+)$", re.MULTILINE),
    "rate": re.compile(r"^Target transaction rate: ([\d.]+)/sec$", re.MULTILINE),
    "client version": re.compile(r"^sysbench (\d[\w.-]*)", re.MULTILINE),
}
_SYSBENCH_TIME: Final = re.compile(r"^ +(?:total time|time elapsed): +(\d{1,15}(?:\.\d{1,9})?)s$", re.MULTILINE)
_SYSBENCH_EXPIRED: Final = re.compile(
    r"^FATAL: The --(?:max-)?time limit has expired, forcing shutdown.*$", re.MULTILINE
)
_SYSBENCH_ENDS: Final = ("General statistics:", "events/s (eps):")
"""What follows the statistics of every test; the second one since version 1.1."""
# 95th percentile: 8.28; up to 0.5: approx.  95 percentile: 5.67ms
_SYSBENCH_PERCENTILE: Final = re.compile(
    r"^ +(?:approx\. +)?(?P<percent>\d\d)(?:th)? percentile: +(?P<value>\d{1,15}(?:\.\d{1,9})?)(?P<unit>us|ms|s)?$",
    re.MULTILINE,
)
_PER_SECOND: Final = {"us": 1_000_000, "ms": 1000, "s": 1, None: 1000}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """What the output of one run says, apart from what it measured."""

    found: DriverResult
    said: dict[str, str]
    seconds: float = 0.0
    further: dict[str, float] = field(default_factory=dict)
    """Latencies that the driver does not parse, in seconds."""


# ------------------------------------------------------------------------------------------------ pgbench


def read_pgbench(text: str, _: ReadingTerms) -> Contents:
    """Read standard output of pgbench, which may contain its standard error; runs follow each other."""
    pieces = _split(text, _PGBENCH_BEGINS, repeated=lambda line: line.startswith(_PGBENCH_TYPE))
    return _read_runs(pieces, "pgbench", _read_pgbench_run)


def _read_pgbench_run(text: str) -> _Run:
    content = text.encode()
    found = pgbench.parse_result({pgbench.OUTPUT: content, pgbench.ERRORS: content})
    said: dict[str, str] = {}
    for line in text.splitlines():
        match = _FIELD.fullmatch(line)
        if match and (name := _PGBENCH_FIELDS.get(match["key"])):
            said.setdefault(name, match["value"].strip())
    if banner := _BANNER.search(text):
        said["client version"] = banner["client"]
        # the version of the server is told where it is another one
        versions = name_version("server version", banner["server"] or banner["client"])
        said |= versions if banner["server"] else {"server version": versions["server version"]}
    duration = _DURATION.search(text)
    return _Run(found=found, said=said, seconds=float(duration[1]) if duration else 0.0)


# ------------------------------------------------------------------------------------------------ sysbench


def read_sysbench(text: str, _: ReadingTerms) -> Contents:
    """Read standard output of sysbench; interval reports are used only to see whether throughput was steady."""
    begins = next((each for each in _SYSBENCH_BEGINS if each.search(text)), _SYSBENCH_BEGINS[0])
    pieces = tuple(_split(text, begins))
    # preparing and cleaning up are no runs, but may have failed
    runs = [each for each in pieces if any(word in each[1] for word in _SYSBENCH_WORDS)]
    if not runs:
        return Contents(results=(), unusable=((0, "the file has no run of sysbench"),), traceless=True)
    return _read_runs(iter(runs), "sysbench", _read_sysbench_run)


def _read_sysbench_run(text: str) -> _Run:
    if any(word in text for word in _SYSBENCH_ENDS) and not _SYSBENCH_STATISTICS.search(text):
        raise ParseError("this is not a test of a database: it has no transactions", where=sysbench.OUTPUT)
    # its statistics are of the whole time
    found = sysbench.parse_result({sysbench.OUTPUT: _SYSBENCH_EXPIRED.sub("", text).encode()})
    said = {name: match[1] for name, pattern in _SYSBENCH_LEVELS.items() if (match := pattern.search(text))}
    time = _SYSBENCH_TIME.search(text)
    latencies = {f"latency_p{each['percent']}": float(each["value"]) / _PER_SECOND[each["unit"]]
                 for each in _SYSBENCH_PERCENTILE.finditer(text)}  # fmt: skip
    further = {name: seconds for name, seconds in latencies.items() if seconds}
    return _Run(found=found, said=said, seconds=float(time[1]) if time else 0.0, further=further)


# ------------------------------------------------------------------------------------------------ runs


def _split(
    text: str, begins: re.Pattern[str], repeated: Callable[[str], bool] = lambda _: True
) -> Iterator[tuple[int, str]]:
    """Split a file into pieces of one run each; yields the number of the first line, and the text.

    A run begins with the first line that matches `begins` after a line that is `repeated`: every run has such a line.
    """
    start, within = 1, False
    lines: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        begin = begins.match(line)
        if begin and (within or (not repeated(line) and _begun(lines, begins, begin.group()))):
            yield start, "\n".join(lines) + "\n"
            start, lines, within = number, [], False
        within = within or (begin is not None and repeated(line))
        if not lines:
            start = number
        lines.append(line)
    if lines:
        yield start, "\n".join(lines) + "\n"


def _begun(lines: Sequence[str], begins: re.Pattern[str], begin: str) -> bool:
    """Whether a run has begun to which `begin` does not belong.

    Further lines follow its beginning, it begins like that already, or it could not begin and has an error instead. An
    error belongs to the run that has begun.
    """
    if begin.startswith(_PGBENCH_ERROR):
        return False
    found = [match.group() for line in lines if (match := begins.match(line))]
    if not found:
        return False
    return begins.match(lines[-1]) is None or begin in found or found[0].startswith(_PGBENCH_ERROR)


def _read_runs(pieces: Iterator[tuple[int, str]], name: str, read: Callable[[str], _Run]) -> Contents:
    results: list[Result] = []
    unusable: list[tuple[int, str]] = []
    lower: set[str] = set()
    begun = False
    for line, text in pieces:
        refuse_many(len(results) + len(unusable))
        begun = begun or _has_begun(text, name)
        try:
            run = read(text)
        except ParseError as error:
            unusable.append((line, error.what[:_LONGEST]))
            continue
        if why := _why_unusable(run, text, name):
            unusable.append((line, why))
        elif run.found.tps is not None:
            results.append(_to_result(run, line))
            lower.update(run.further)
    if not results and not unusable:
        unusable.append((0, "the file is empty"))
    return Contents(
        results=tuple(results), unusable=tuple(unusable), lower=frozenset(lower), traceless=not (results or begun)
    )


def _has_begun(text: str, name: str) -> bool:
    """Whether a text has lines that the tool writes when a run begins or fails."""
    return any(word in text for word in (*_BEGUN, f"{name}: ", f"{name} "))


def _to_result(run: _Run, line: int) -> Result:
    return Result(
        measurements=_to_measurements(run),
        line=line,
        said=run.said,
        started=_find_start(run.found.series),
        seconds=run.seconds if _is_usable(run.seconds) else 0.0,
        opening=opening_of_series(run.found.series),
    )


def _why_unusable(run: _Run, text: str, name: str) -> str:
    """Why a run has no result; empty if it has one, or if there is no text."""
    found = run.found
    error = found.errors[0][:_LONGEST] if found.errors else ""
    if found.tps is not None and _is_usable(found.tps):
        if found.complete:
            return ""
        return f"the run was aborted: {error}" if error else NOT_FINISHED
    if not text.strip():
        return ""
    if error:
        return f"the run failed: {error}"
    return NOT_FINISHED if run.said or _has_begun(text, name) else _NO_RESULT.format(name)


def _to_measurements(run: _Run) -> dict[str, float]:
    """The measurements of a result; counts of zero are left out."""
    found = run.found
    measured = {TPS.name: found.tps, "latency_mean": found.latency_mean, "latency_stddev": found.latency_stddev,
                "failed": found.failed or None, "retried": found.retried or None, **run.further}  # fmt: skip
    measured |= {f"latency_p{round(share * 100)}": value for share, value in found.percentiles.items()}
    return {name: float(value) for name, value in measured.items() if value is not None and _is_usable(value)}


def _is_usable(value: float) -> bool:
    """Whether it is a finite number: a damaged file may hold others."""
    return -sys.float_info.max <= value <= sys.float_info.max


def _find_start(series: Sequence[Series]) -> datetime | None:
    """The start of a run whose reports have the time of the day: the first report, less the interval of reports."""
    times = next((each.times for each in series if each.metric == TPS.name), ())
    if len(times) < 2 or times[0] < _SINCE_1970:  # noqa: PLR2004 - two reports make an interval
        return None
    try:
        return datetime.fromtimestamp(round(2 * times[0] - times[1]), UTC)
    except (ValueError, OverflowError, OSError):
        return None


def opening_of_series(series: Sequence[Series]) -> float | None:
    """As `sources.seconds.opening_of`, for reports at equal intervals."""
    values = next((each.values for each in series if each.metric == TPS.name), ())
    return opening_of_seconds(np.array(values, dtype=np.float64))
