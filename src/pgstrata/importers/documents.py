"""Results as JSON: ClickHouse's PostgresBench, and BenchBase."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

import numpy as np

from pgstrata.importers.json_text import read_json, to_levels, to_number
from pgstrata.importers.results import Contents, ReadingTerms, Result, name_version, refuse_many
from pgstrata.sources.moments import parse_moment
from pgstrata.sources.seconds import opening_of_seconds
from pgstrata.sources.table import refuse_fields, refuse_wide

_MILLISECONDS: Final = 1000
_MICROSECONDS: Final = 1_000_000
_NANOSECONDS: Final = 1_000_000_000

_POSTGRESBENCH: Final = {
    "latency_avg_ms": "latency_mean",
    "latency_stddev_ms": "latency_stddev",
    "latency_p95_ms": "latency_p95",
    "latency_p99_ms": "latency_p99",
}
_CALLED: Final = {
    "scale_factor": "scale",
    "query_mode": "protocol",
    "type": "instance",
    "label": "size",
    "primary_storage": "storage",
}
"""Names of dimensions for the keys of PostgresBench; other keys keep their own."""
_NO_DIMENSION: Final = frozenset({"date", "comment", "postgres_version", "duration", "interval_seconds", "source"})

_BENCHBASE: Final = {
    "Average Latency (microseconds)": "latency_mean",
    "Median Latency (microseconds)": "latency_p50",
    "90th Percentile Latency (microseconds)": "latency_p90",
    "95th Percentile Latency (microseconds)": "latency_p95",
    "99th Percentile Latency (microseconds)": "latency_p99",
}
_FINISHED: Final = frozenset({"EXIT", "DONE"})


# ------------------------------------------------------------------------------------------------ PostgresBench


def read_postgresbench(text: str, _: ReadingTerms) -> Contents:
    """Read a file of ClickHouse's PostgresBench: one system with several runs, or a list of systems."""
    return read_json(text, _of_postgresbench)


def _of_postgresbench(document: Any) -> Contents:
    results: list[Result] = []
    unusable: list[tuple[int, str]] = []
    fields = 0
    for each in document if isinstance(document, list) else [document]:
        said = _describe_system(each)
        refuse_wide(len(said))
        benchmark = each["benchmark"]
        seconds = to_number(benchmark.get("duration")) or 0.0
        for place, run in enumerate(each["results"], 1):
            refuse_many(len(results) + len(unusable))
            fields += len(said)
            refuse_fields(fields)
            number = str(run.get("run", place))
            if (tps := to_number(run.get("tps"))) is None:
                unusable.append((0, f"run {number} of {said['system']} has no throughput"))
                continue
            measured = {"tps": tps} | {
                name: value / _MILLISECONDS
                for key, name in _POSTGRESBENCH.items()
                if (value := to_number(run.get(key))) is not None
            }
            if failed := to_number(run.get("failed_transactions")):
                measured["failed"] = failed
            results.append(
                Result(
                    measurements=measured,
                    line=0,
                    said={**said, "run": number},
                    started=parse_moment(str(each.get("date", ""))),
                    seconds=seconds,
                    opening=_find_opening(run, seconds),
                )
            )
    return Contents(results=tuple(results), unusable=tuple(unusable), compared="system")


def _describe_system(document: Mapping[str, Any]) -> dict[str, str]:
    """Levels of everything that the file says of a system and a benchmark: two systems may differ in any of it.

    Those that mean the same for all systems come first, so that cells are made of them.
    """
    instance, standby = document.get("instance") or {}, document.get("ha")
    said = {"system": document["system"], "vcpus": instance.get("vcpus"), **(document.get("benchmark") or {})}
    said |= {"tuned": document.get("tuned"), "cluster_size": document.get("cluster_size"),
             "ha": standby.get("label") if isinstance(standby, dict) else standby}  # fmt: skip
    said |= {key: value for key, value in document.items() if key not in said and key != "instance"}
    said |= {key: value for key, value in instance.items() if key not in said}
    called = {_CALLED.get(key, key): value for key, value in said.items() if key not in _NO_DIMENSION}
    return to_levels(called) | name_version("version", str(document.get("postgres_version") or ""))


def _find_opening(run: Mapping[str, Any], seconds: float) -> float | None:
    """The opening of the throughput by intervals; the last one is left out where it is not complete."""
    width = to_number(run.get("interval_seconds"))
    if not width:
        return None
    points = [(to_number(each.get("elapsed_s")), to_number(each.get("tps"))) for each in run.get("timeseries") or ()]
    values = [tps for at, tps in points if at is not None and tps is not None and at + width <= seconds]
    return opening_of_seconds(np.array(values, dtype=np.float64))


# ------------------------------------------------------------------------------------------------ BenchBase


def read_benchbase(text: str, _: ReadingTerms) -> Contents:
    """Read a summary of BenchBase: one run."""
    return read_json(text, _of_benchbase)


def _of_benchbase(document: Any) -> Contents:
    tps = to_number(document["Throughput (requests/second)"])
    state = document.get("Final State", "EXIT")
    if tps is None or state not in _FINISHED:
        return Contents(results=(), unusable=((0, f"the run did not finish: its state is {state}"),))
    latencies = document.get("Latency Distribution") or {}
    measured = {"tps": tps} | {
        name: value / _MICROSECONDS
        for key, name in _BENCHBASE.items()
        if (value := to_number(latencies.get(key))) is not None
    }
    if (goodput := to_number(document.get("Goodput (requests/second)"))) is not None:
        measured["goodput"] = goodput
    said = to_levels({
        "database": document.get("DBMS Type"), "benchmark": document.get("Benchmark Type"),
        "scale": document.get("scalefactor"), "clients": document.get("terminals"),
        "isolation": document.get("isolation"),
    }) | name_version("version", str(document.get("DBMS Version") or ""))  # fmt: skip
    seconds = (to_number(document.get("Elapsed Time (nanoseconds)")) or 0.0) / _NANOSECONDS
    started = _find_start(document, seconds)
    return Contents(results=(Result(measurements=measured, line=0, said=said, started=started, seconds=seconds),))


def _find_start(document: Mapping[str, Any], seconds: float) -> datetime | None:
    """The start of the run; where the file has only the time at which it was written, that time less the run."""
    first, last = (parse_moment(str(document.get(f"{name} (milliseconds)", "")))
                   for name in ("Start timestamp", "Current Timestamp"))  # fmt: skip
    try:
        return first or (last - timedelta(seconds=seconds) if last else None)
    except OverflowError:  # no run takes thousands of years
        return None
