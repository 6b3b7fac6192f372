"""Readers of output of pgbench, sysbench and HammerDB; a file may have several runs, unfinished ones among them."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from pgstrata.drivers.pgbench import parse as pgbench
from pgstrata.drivers.sysbench import parse as sysbench
from pgstrata.errors import ParseError
from pgstrata.importers.results import Contents, ReadingTerms, Result, refuse_many
from pgstrata.model.metrics import TPS, Series
from pgstrata.ports.driver import DriverResult
from pgstrata.sources.moments import parse_moment
from pgstrata.sources.seconds import opening_of_seconds

_NOT_FINISHED: Final = "the run did not finish: it reports no throughput"
_NO_RESULT: Final = "the file has no result of {}"
_LONGEST: Final = 160

# `pgbench --version` says (PostgreSQL), and is no run.
_PGBENCH_BEGINS: Final = re.compile(r"pgbench \((?!PostgreSQL\))|starting vacuum\.\.\.|transaction type: ")
_PGBENCH_TYPE: Final = "transaction type: "
_PGBENCH_FIELDS: Final = {
    "transaction type": "script",
    "scaling factor": "scale",
    "query mode": "protocol",
    "number of clients": "clients",
    "number of threads": "threads",
}
_FIELD: Final = re.compile(r"(?P<key>[a-z][a-z ]*): (?P<value>.*)")
_DURATION: Final = re.compile(r"^duration: (\d+) s$", re.MULTILINE)

_SYSBENCH_BEGINS: Final = re.compile(r"sysbench \d")
_SYSBENCH_THREADS: Final = re.compile(r"^Number of threads: (\d+)$", re.MULTILINE)
_SYSBENCH_RATE: Final = re.compile(r"^Target transaction rate: ([\d.]+)/sec$", re.MULTILINE)
_SYSBENCH_TIME: Final = re.compile(r"^ +total time: +([\d.]+)s$", re.MULTILINE)

_ACHIEVED: Final = re.compile(r"System achieved (\d{1,15}) NOPM from (\d{1,15}) (\w[\w ]{0,40}?) TPM")
_USERS: Final = re.compile(r"(\d{1,9}) Active Virtual Users? configured")
_HAMMERDB_BEGINS: Final = re.compile(r"Beginning rampup time|Timing test period of|Active Virtual Users? configured")
_STAMP: Final = re.compile(r'^\s*"?(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)"?')


def read_pgbench(text: str, _: ReadingTerms) -> Contents:
    """Read standard output of pgbench, which may contain its standard error; runs follow each other."""
    pieces = _split(text, _PGBENCH_BEGINS, repeated=lambda line: line.startswith(_PGBENCH_TYPE))
    return _read_runs(pieces, "pgbench", _read_pgbench_run)


def _read_pgbench_run(text: str) -> tuple[DriverResult, Mapping[str, str], float]:
    content = text.encode()
    found = pgbench.parse_result({pgbench.OUTPUT: content, pgbench.ERRORS: content})
    said: dict[str, str] = {}
    for line in text.splitlines():
        match = _FIELD.fullmatch(line)
        if match and (name := _PGBENCH_FIELDS.get(match["key"])):
            said.setdefault(name, match["value"].strip())
    if found.version:
        said["client version"] = found.version
    duration = _DURATION.search(text)
    return found, said, float(duration[1]) if duration else 0.0


def read_sysbench(text: str, _: ReadingTerms) -> Contents:
    """Read standard output of sysbench; interval reports are used only to see whether throughput was steady."""
    return _read_runs(_split(text, _SYSBENCH_BEGINS), "sysbench", _read_sysbench_run)


def _read_sysbench_run(text: str) -> tuple[DriverResult, Mapping[str, str], float]:
    found = sysbench.parse_result({sysbench.OUTPUT: text.encode()})
    said = {}
    for name, pattern in (("threads", _SYSBENCH_THREADS), ("rate", _SYSBENCH_RATE)):
        if match := pattern.search(text):
            said[name] = match[1]
    if found.version:
        said["client version"] = found.version
    time = _SYSBENCH_TIME.search(text)
    return found, said, float(time[1]) if time else 0.0


def read_hammerdb(text: str, _: ReadingTerms) -> Contents:
    """Read logs of HammerDB's TPROC-C, or results of its jobs as JSON: both have the same sentences."""
    results: list[Result] = []
    unusable: list[tuple[int, str]] = []
    users, began, stamp = "", 0, None
    for number, line in enumerate(text.splitlines(), 1):
        if found := _STAMP.match(line):
            stamp = parse_moment(found[1])
        if found := _USERS.search(line):
            users = found[1]
        refuse_many(len(results) + len(unusable))
        if (achieved := _ACHIEVED.search(line)) is not None:
            nopm, tpm = float(achieved[1]), float(achieved[2])
            said = {"users": users, "database": achieved[3]} if users else {"database": achieved[3]}
            results.append(
                Result(measurements={"new_orders": nopm, "tpm": tpm}, line=began or number, said=said, started=stamp)
            )
            users, began, stamp = "", 0, None
        elif _HAMMERDB_BEGINS.search(line):
            if "Beginning rampup" in line and began:
                unusable.append((began, _NOT_FINISHED))
                began = 0
            began = began or number
    if began:
        unusable.append((began, _NOT_FINISHED))
    if not results and not unusable:
        unusable.append((0, _NO_RESULT.format("HammerDB")))
    return Contents(results=tuple(results), unusable=tuple(unusable))


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
    """Whether a run has begun to which `begin` does not belong: it has further lines, or begins like that already."""
    found = [match.group() for line in lines if (match := begins.match(line))]
    return bool(found) and (begins.match(lines[-1]) is None or begin in found)


def _read_runs(
    pieces: Iterator[tuple[int, str]], name: str, read: Callable[[str], tuple[DriverResult, Mapping[str, str], float]]
) -> Contents:
    results: list[Result] = []
    unusable: list[tuple[int, str]] = []
    for line, text in pieces:
        refuse_many(len(results) + len(unusable))
        try:
            found, said, seconds = read(text)
        except ParseError as error:
            unusable.append((line, error.what[:_LONGEST]))
            continue
        if found.tps is None or not _is_usable(found.tps):
            if text.strip():
                unusable.append((line, _why_not(found, said, text, name)))
        elif not found.complete:
            unusable.append(
                (line, f"the run was aborted: {found.errors[0][:_LONGEST]}" if found.errors else _NOT_FINISHED)
            )
        else:
            results.append(
                Result(
                    measurements=_to_measurements(found),
                    line=line,
                    said=said,
                    seconds=seconds if _is_usable(seconds) else 0.0,
                    opening=opening_of_series(found.series),
                )
            )
    if not results and not unusable:
        unusable.append((0, "the file is empty"))
    return Contents(results=tuple(results), unusable=tuple(unusable))


def _why_not(found: DriverResult, said: Mapping[str, str], text: str, name: str) -> str:
    if found.errors:
        return f"the run failed: {found.errors[0][:_LONGEST]}"
    known = said or any(word in text for word in ("progress: ", "starting vacuum", "Threads started", f"{name} "))
    return _NOT_FINISHED if known else _NO_RESULT.format(name)


def _to_measurements(found: DriverResult) -> dict[str, float]:
    """The measurements of a result; counts of zero are left out."""
    measured = {TPS.name: found.tps, "latency_mean": found.latency_mean, "latency_stddev": found.latency_stddev,
                "failed": found.failed or None, "retried": found.retried or None}  # fmt: skip
    measured |= {f"latency_p{round(share * 100)}": value for share, value in found.percentiles.items()}
    return {name: float(value) for name, value in measured.items() if value is not None and _is_usable(value)}


def _is_usable(value: float) -> bool:
    """Whether it is a finite number: a damaged file may hold others."""
    return -sys.float_info.max <= value <= sys.float_info.max


def opening_of_series(series: Sequence[Series]) -> float | None:
    """As `sources.seconds.opening_of`, for reports at equal intervals."""
    values = next((each.values for each in series if each.metric == TPS.name), ())
    return opening_of_seconds(np.array(values, dtype=np.float64))
