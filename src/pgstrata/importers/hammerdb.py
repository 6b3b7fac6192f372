"""Results of HammerDB (TPROC-C and TPROC-H): logs, results of jobs, and reports of jobs as JSON."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from pgstrata.importers.json_text import read_json, to_levels, to_number
from pgstrata.importers.results import (
    NOT_FINISHED,
    Contents,
    ReadingTerms,
    Result,
    name_version,
    refuse_many,
    without_trace,
)
from pgstrata.importers.tproc_h import GEOMEAN, QueryLog, measure_queries
from pgstrata.sources.moments import parse_moment

_REPORT: Final = "hammerdb-job-report-v1"
_MINUTE: Final = 60
_HEAD: Final = 4096
_TOTAL: Final = "query_total_seconds"

# System achieved 101005 NOPM from 232149 PostgreSQL TPM; up to HammerDB 3: 60501 SQL Server TPM at 13207 NOPM
_ACHIEVED: Final = re.compile(
    r"System achieved (?:(?P<nopm>\d{1,15}) NOPM from (?P<tpm>\d{1,15}) (?P<database>\w[\w ]{0,40}?) TPM"
    r"|(?P<old_tpm>\d{1,15}) (?P<old_database>\w[\w ]{0,40}?) TPM at (?P<old_nopm>\d{1,15}) NOPM)"
)
_USERS: Final = re.compile(r"(\d{1,9}) Active Virtual Users? configured")
_RAMPUP: Final = re.compile(r"Beginning rampup time of (\d{1,6}) minutes?")
_TIMING: Final = re.compile(r"Timing test period of (\d{1,6}) in minutes?")
_FAILED: Final = re.compile(r"Vuser (\d{1,9}): ?FINISHED FAILED")
_LOG: Final = re.compile(r"(?:Hammerdb Log|Timestamp \d{1,9}) @ (.{10,50})")
_STAMP: Final = re.compile(r'\s*"?(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)"?')


def read_hammerdb(text: str, _: ReadingTerms) -> Contents:
    """Read a log of runs, the results of jobs (which have the lines of a log), or the report of a job as JSON."""
    head = text[:_HEAD].lstrip()
    if head.startswith("{") and '"schema"' in head and "hammerdb" in head:
        return read_json(text, _of_report)
    log, queries = _Log(), QueryLog()
    for number, line in enumerate(text.splitlines(), 1):
        refuse_many(len(log.results) + len(log.unusable) + len(queries.results) + len(queries.unusable))
        stamp = _find_stamp(line)
        log.read_line(number, line, stamp)
        queries.read_line(number, line, stamp)
    log.end_run()
    queries.end_run()
    results = sorted((*log.results, *queries.results), key=lambda each: each.line)
    unusable = sorted((*log.unusable, *queries.unusable))
    if not results and not unusable:
        return without_trace("HammerDB")
    return Contents(results=tuple(results), unusable=tuple(unusable), lower=frozenset(queries.lower))


def _find_stamp(line: str) -> datetime | None:
    """The time that a line states before what it says."""
    found = _LOG.search(line) if " @ " in line else _STAMP.match(line)
    return parse_moment(found[1].strip()) if found else None


@dataclass(slots=True)
class _Run:
    """The run that is being read; `began` is the number of its first line, or 0 between runs."""

    began: int = 0
    users: str = ""
    minutes: int = 0
    measured: bool = False
    failed: str = ""
    started: datetime | None = None


class _Log:
    """Reads runs of TPROC-C in a log, line by line."""

    def __init__(self) -> None:
        self.results: list[Result] = []
        self.unusable: list[tuple[int, str]] = []
        self._run = _Run()
        self._stamp: datetime | None = None

    def read_line(self, number: int, line: str, stamp: datetime | None) -> None:
        self._stamp = stamp or self._stamp
        if found := _RAMPUP.search(line):
            self.end_run()
            self._begin(number).minutes = int(found[1])
        elif found := _TIMING.search(line):
            run = self._begin(number)
            run.minutes, run.measured = run.minutes + int(found[1]), True
        elif found := _USERS.search(line):
            self._begin(number).users = found[1]
        elif found := _FAILED.search(line):
            self._run.failed = self._run.failed or (found[1] if self._run.began else "")
        elif found := _ACHIEVED.search(line):
            self._add(found, self._begin(number))
            self._run = _Run()

    def end_run(self) -> None:
        """If a run has begun and not ended, note that it has no result."""
        run = self._run
        if run.began:
            self.unusable.append((run.began, _say_failed(run.failed) if run.failed else NOT_FINISHED))
        self._run = _Run()

    def _begin(self, number: int) -> _Run:
        """The current run; begins one at this line if there is none. A time stamp read before it is its start."""
        run = self._run
        if not run.began:
            run.began, run.started, self._stamp = number, self._stamp, None
        return run

    def _add(self, found: re.Match[str], run: _Run) -> None:
        nopm, tpm, database = (found[name] or found[f"old_{name}"] for name in ("nopm", "tpm", "database"))
        if run.failed:
            self.unusable.append((run.began, _say_failed(run.failed)))
            return
        said = {"users": run.users, "database": database} if run.users else {"database": database}
        result = Result(
            measurements={"new_orders": float(nopm), "tpm": float(tpm)}, line=run.began, said=said,
            started=run.started, seconds=float(run.minutes * _MINUTE if run.measured else 0),
        )  # fmt: skip
        last = self.results[-1] if self.results else None
        # scripts print the result of the job below the log of its run
        if last and not run.measured and (last.measurements, last.said) == (result.measurements, result.said):
            self.results[-1] = replace(last, started=last.started or run.started)
        else:
            self.results.append(result)


def _say_failed(user: str) -> str:
    return f"virtual user {user} failed before the run had a result"


def _of_report(document: Any) -> Contents:
    job, result = document["job"], document["result"]
    if document["schema"] != _REPORT:
        what = f"its schema is {document['schema']}, but only {_REPORT} can be read"
        return Contents(results=(), unusable=((0, what),))
    measured = _measure_report(result)
    if not measured:
        what = f"it has no result of {job.get('benchmark') or 'a benchmark'}: neither NOPM nor the mean of query times"
        return Contents(results=(), unusable=((0, what),))
    config, system = document.get("benchmark_config") or {}, document.get("system") or {}
    said = to_levels({
        "database": job.get("database"), "users": result.get("active_virtual_users"),
        "warehouses": config.get("warehouses"), "scale": config.get("scale_factor"),
        "queries": result.get("queries"), "query sets": result.get("query_sets"),
        "client version": job.get("hdb_version"),
        "cpu": system.get("cpumodel"), "cpus": system.get("cpucount"), "memory": system.get("memory"),
        "os": system.get("os_name"), "machine": system.get("system_type"), "cloud": system.get("cloud_instance"),
        "host": system.get("hostname"),
    }) | name_version("version", str(job.get("release") or ""))  # fmt: skip
    minutes = sum(to_number(config.get(name)) or 0.0 for name in ("rampup_minutes", "duration_minutes"))
    started = parse_moment(str(job.get("timestamp") or ""))
    found = Result(measurements=measured, line=0, said=said, started=started, seconds=minutes * _MINUTE)
    lower = frozenset(name for name in measured if name in {GEOMEAN, _TOTAL})
    return Contents(results=(found,), lower=lower)


def _measure_report(result: Mapping[str, Any]) -> dict[str, float]:
    """Measurements of TPROC-C or of TPROC-H; empty if there are none."""
    wanted = ("nopm", "tpm", "geomean_seconds", "total_query_time_seconds")
    nopm, tpm, geomean, total = (to_number(result.get(name)) for name in wanted)
    if nopm is not None:
        return {"new_orders": nopm} | ({"tpm": tpm} if tpm is not None else {})
    return measure_queries(geomean, {_TOTAL: total or 0.0})
