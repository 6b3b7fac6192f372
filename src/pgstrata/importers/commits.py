"""One value for each commit as JSON: lists, objects by commit, and the data of github-action-benchmark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from pgstrata.importers.json_text import read_json, to_levels, to_number
from pgstrata.importers.results import Contents, ReadingTerms, Result, contents_of, refuse_many
from pgstrata.sources.moments import parse_moment

_COMMIT: Final = ("commit", "commitid", "commit_id", "revision", "sha", "hash", "rev")
_MOMENT: Final = ("time", "timestamp", "date", "started", "commit_time", "revision_date")
_VALUE: Final = ("value", "result_value", "result")
_EMPTY: Final = "the file has no commits"
_METRIC: Final = ("metric", "name", "benchmark", "bench")

_LOWER: Final = frozenset({"customSmallerIsBetter", "cargo", "go", "googlecpp", "catch2", "julia", "benchmarkdotnet"})
"""Tools of github-action-benchmark with lower values better: they measure times, or the project says so."""


def read_commits(text: str, terms: ReadingTerms) -> Contents:
    """Read values of commits, in one of three forms.

    A list of objects with `commit` and either `value` (and `metric`) or one number for each metric; an object that maps
    commits to a number, or to numbers by metric; or the data of github-action-benchmark (`entries`).
    """
    return read_json(text, lambda document: _of_commits(document, terms))


def _of_commits(document: Any, terms: ReadingTerms) -> Contents:
    if not isinstance(document, list) and isinstance(document.get("entries"), dict):
        return _of_action(document["entries"])
    results: list[Result] = []
    unusable: list[tuple[int, str]] = []
    for place, entry in enumerate(_entries(document), 1):
        refuse_many(place)
        result = _of_commit(entry, terms)
        if result is None:
            unusable.append((0, f"entry {place} has no commit, or no value"))
        else:
            results.append(result)
    return contents_of(results, unusable, "commit", empty=_EMPTY, history=True)


def _entries(document: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(document, list):
        yield from (each if isinstance(each, dict) else {} for each in document)
    else:
        for commit, found in document.items():
            yield {"commit": commit, **(found if isinstance(found, dict) else {"value": found})}


def _of_commit(entry: Mapping[str, Any], terms: ReadingTerms) -> Result | None:
    keys = {key.casefold(): key for key in entry}
    commit, moment, value, named = (_take(entry, keys, names) for names in (_COMMIT, _MOMENT, _VALUE, _METRIC))
    used = {keys[name] for names in (_COMMIT, _MOMENT, _VALUE) for name in names if name in keys}
    numbers = {
        key: number for key, each in entry.items() if key not in used and (number := to_number(each)) is not None
    }
    if (single := to_number(value)) is not None:
        name = str(named)
        metric = name if named else (terms.metrics or ("value",))[0]
        measured, rest = {metric: single}, {key for key in entry if key not in used and str(entry[key]) != name}
    else:
        wanted = terms.metrics or tuple(numbers)
        measured = {name: numbers[name] for name in wanted if name in numbers}
        rest = {key for key in entry if key not in used and key not in numbers}
    if not commit or not measured:
        return None
    said = {"commit": commit} | {key: entry[key] for key in entry if key in rest}
    return Result(measurements=measured, line=0, said=to_levels(said), started=parse_moment(str(moment or "")))


def _take(entry: Mapping[str, Any], keys: Mapping[str, str], names: tuple[str, ...]) -> Any:
    return next((entry[keys[name]] for name in names if name in keys), None)


# ------------------------------------------------------------------------------- github-action-benchmark


def _of_action(suites: Mapping[str, Any]) -> Contents:
    """Measurements of commits by suite. `date` is the time of measuring; the commit has its own time."""
    results: list[Result] = []
    unusable: list[tuple[int, str]] = []
    lower: set[str] = set()
    for suite, runs in suites.items():
        for run in runs:
            refuse_many(len(results) + len(unusable))
            commit = run["commit"]
            said = to_levels({"commit": commit["id"], "suite": suite})
            committed = parse_moment(str(commit.get("timestamp") or ""))
            started = parse_moment(str(run.get("date") or "")) or committed
            measured, lacking = _read_benches(run["benches"])
            unusable += [(0, f"{name} has no value for commit {commit['id']}") for name in lacking]
            results += [Result(measurements=each, line=0, said=said, started=started, committed=committed)
                        for each in measured]  # fmt: skip
            if run.get("tool") in _LOWER:
                lower.update(name for each in measured for name in each)
    return contents_of(results, unusable, "commit", empty=_EMPTY, lower=frozenset(lower), history=True)


def _read_benches(benches: Sequence[Mapping[str, Any]]) -> tuple[list[dict[str, float]], list[str]]:
    """Values by name, one mapping for each repeat of a name; and the names without a value."""
    measured: list[dict[str, float]] = []
    counted: dict[str, int] = {}
    lacking = []
    for bench in benches:
        name, value = str(bench["name"]), to_number(bench["value"])
        if value is None:
            lacking.append(name)
            continue
        place = counted[name] = counted.get(name, -1) + 1
        if place == len(measured):
            measured.append({})
        measured[place][name] = value
    return measured, lacking
