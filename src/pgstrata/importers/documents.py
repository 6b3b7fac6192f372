"""Results as JSON: ClickHouse's PostgresBench, BenchBase, and one value for each commit."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Any, Final

from pgstrata.importers.results import Contents, ReadingTerms, Result, refuse_many
from pgstrata.model.codec import parse_json
from pgstrata.sources.moments import parse_moment

_MILLISECONDS: Final = 1000
_MICROSECONDS: Final = 1_000_000
_NANOSECONDS: Final = 1_000_000_000

_COMMIT: Final = ("commit", "commitid", "commit_id", "revision", "sha", "hash", "rev")
_MOMENT: Final = ("time", "timestamp", "date", "started", "commit_time", "revision_date")
_VALUE: Final = ("value", "result_value", "result")
_METRIC: Final = ("metric", "name", "benchmark", "bench")

_BENCHBASE: Final = {
    "Average Latency (microseconds)": "latency_mean",
    "Median Latency (microseconds)": "latency_p50",
    "90th Percentile Latency (microseconds)": "latency_p90",
    "95th Percentile Latency (microseconds)": "latency_p95",
    "99th Percentile Latency (microseconds)": "latency_p99",
}


def _read(text: str, read: Callable[[Any], Contents]) -> Contents:
    try:
        return read(parse_json(text.encode()))
    except ValueError as error:
        return Contents(results=(), unusable=((getattr(error, "lineno", 0), f"not valid JSON: {str(error)[:120]}"),))
    except (KeyError, TypeError, AttributeError) as error:
        return Contents(results=(), unusable=((0, f"its JSON does not have this format: {str(error)[:120]}"),))


def read_postgresbench(text: str, _: ReadingTerms) -> Contents:
    """Read a file of ClickHouse's PostgresBench: one system, several runs."""
    return _read(text, _of_postgresbench)


def _of_postgresbench(document: Any) -> Contents:
    benchmark, instance = document["benchmark"], document.get("instance") or {}
    said = {
        "system": document["system"], "vcpus": instance.get("vcpus"), "scale": benchmark.get("scale_factor"),
        "clients": benchmark.get("clients"), "tuned": document.get("tuned"), "threads": benchmark.get("threads"),
        "protocol": benchmark.get("query_mode"), "machine": document.get("machine"),
        "instance": instance.get("type"), "ram_gb": instance.get("ram_gb"), "version": document.get("postgres_version"),
    }  # fmt: skip
    results, unusable = [], []
    for place, run in enumerate(document["results"], 1):
        refuse_many(place)
        tps = _number(run.get("tps"))
        if tps is None:
            unusable.append((0, f"run {run.get('run', place)} has no throughput"))
            continue
        measured = {"tps": tps} | {
            name: value / _MILLISECONDS
            for name, key in (("latency_mean", "latency_avg_ms"), ("latency_stddev", "latency_stddev_ms"),
                              ("latency_p95", "latency_p95_ms"), ("latency_p99", "latency_p99_ms"))
            if (value := _number(run.get(key))) is not None
        }  # fmt: skip
        seconds = _number(benchmark.get("duration")) or 0.0
        told = {**_texts(said), "run": str(run.get("run", place))}
        results.append(Result(measurements=measured, line=0, said=told, seconds=seconds))
    return Contents(results=tuple(results), unusable=tuple(unusable), compared="system")


def read_benchbase(text: str, _: ReadingTerms) -> Contents:
    """Read a summary of BenchBase: one run."""
    return _read(text, _of_benchbase)


def _of_benchbase(document: Any) -> Contents:
    tps = _number(document["Throughput (requests/second)"])
    state = document.get("Final State", "EXIT")
    if tps is None or state not in {"EXIT", "DONE"}:
        return Contents(results=(), unusable=((0, f"the run did not finish: its state is {state}"),))
    latencies = document.get("Latency Distribution") or {}
    measured = {"tps": tps} | {
        name: value / _MICROSECONDS
        for key, name in _BENCHBASE.items()
        if (value := _number(latencies.get(key))) is not None
    }
    if (goodput := _number(document.get("Goodput (requests/second)"))) is not None:
        measured["goodput"] = goodput
    said = {"database": document.get("DBMS Type"), "benchmark": document.get("Benchmark Type"),
            "scale": document.get("scalefactor"), "clients": document.get("terminals"),
            "isolation": document.get("isolation"), "version": document.get("DBMS Version")}  # fmt: skip
    seconds = (_number(document.get("Elapsed Time (nanoseconds)")) or 0.0) / _NANOSECONDS
    started = parse_moment(str(document.get("Start timestamp (milliseconds)", "")))
    if started is None and seconds and (end := parse_moment(str(document.get("Current Timestamp (milliseconds)", "")))):
        started = end - timedelta(seconds=seconds)
    result = Result(measurements=measured, line=0, said=_texts(said), started=started, seconds=seconds)
    return Contents(results=(result,))


# ------------------------------------------------------------------------------------------------ commits


def read_commits(text: str, terms: ReadingTerms) -> Contents:
    """Read values of commits, in one of three forms.

    A list of objects with `commit` and either `value` (and `metric`) or one number for each metric; an object that maps
    commits to a number, or to numbers by metric; or the data of github-action-benchmark (`entries`).
    """
    return _read(text, lambda document: _of_commits(document, terms))


def _of_commits(document: Any, terms: ReadingTerms) -> Contents:
    results, unusable = [], []
    for place, entry in enumerate(_entries(document), 1):
        refuse_many(place)
        result = _of_commit(entry, terms)
        if result is None:
            unusable.append((0, f"entry {place} has no commit, or no value"))
        else:
            results.append(result)
    if not results and not unusable:
        unusable.append((0, "the file has no commits"))
    return Contents(results=tuple(results), unusable=tuple(unusable), compared="commit")


def _entries(document: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(document, list):
        yield from (each if isinstance(each, dict) else {} for each in document)
    elif isinstance(document.get("entries"), dict):
        for suite, entries in document["entries"].items():
            for entry in entries:
                commit = entry["commit"]
                for bench in entry["benches"]:
                    yield {"commit": commit["id"], "time": commit.get("timestamp") or entry.get("date"),
                           "metric": bench["name"], "value": bench["value"], "suite": suite}  # fmt: skip
    else:
        for commit, found in document.items():
            yield {"commit": commit, **(found if isinstance(found, dict) else {"value": found})}


def _of_commit(entry: Mapping[str, Any], terms: ReadingTerms) -> Result | None:
    keys = {key.casefold(): key for key in entry}
    commit, moment, value, named = (_take(entry, keys, names) for names in (_COMMIT, _MOMENT, _VALUE, _METRIC))
    used = {keys[name] for names in (_COMMIT, _MOMENT, _VALUE) for name in names if name in keys}
    numbers = {key: number for key, each in entry.items() if key not in used and (number := _number(each)) is not None}
    if (single := _number(value)) is not None:
        metric = str(named) if named else (terms.metrics or ("value",))[0]
        measured, rest = {metric: single}, {key for key in entry if key not in used and str(entry[key]) != str(named)}
    else:
        wanted = terms.metrics or tuple(numbers)
        measured = {name: numbers[name] for name in wanted if name in numbers}
        rest = {key for key in entry if key not in used and key not in numbers}
    if not commit or not measured:
        return None
    said = {"commit": commit} | {key: entry[key] for key in entry if key in rest}
    return Result(measurements=measured, line=0, said=_texts(said), started=parse_moment(str(moment or "")))


def _take(entry: Mapping[str, Any], keys: Mapping[str, str], names: tuple[str, ...]) -> Any:
    return next((entry[keys[name]] for name in names if name in keys), None)


# ------------------------------------------------------------------------------------------------ values


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _texts(said: Mapping[str, Any]) -> dict[str, str]:
    """Levels as text, without those that are missing, empty, or lists or objects."""
    return {
        name: " ".join(str(value).split())
        for name, value in said.items()
        if isinstance(value, (str, int, float)) and str(value).strip()
    }
