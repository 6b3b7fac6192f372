"""From TOML text to the tables of the schema; whatever does not fit is noted and left out.

What belongs here: syntax, unknown keys, values of the wrong type. Leaving the misfits out lets the modules that read
the meaning go on, so that all that is wrong is told at once.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from pgstrata.errors import ExperimentError, Problem
from pgstrata.experiment.findings import Findings
from pgstrata.experiment.keys import SETTING_NAME, Path, nearest, suggest
from pgstrata.experiment.schema import TABLES, ExperimentFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Structure:
    """The file's tables, and its factors in the order in which they were written."""

    file: ExperimentFile
    factors: Mapping[str, Any]


def read_structure(text: str, source: str, findings: Findings) -> Structure:
    """Tables of the file.

    Raises:
        ExperimentError: the text is not TOML; nothing else can be said then.
    """
    raw = _nest_all(_load(text, source), findings)
    # Each pass takes out what it complained about; tables inside tables need at most one pass per depth.
    for _ in range(8):
        try:
            return Structure(file=ExperimentFile.model_validate(raw), factors=_table(raw.get("factors")))
        except ValidationError as error:
            for detail in error.errors(include_url=False, include_input=False):
                _note(detail, raw, findings)
            raw = _prune(raw, [detail["loc"] for detail in error.errors(include_url=False, include_input=False)])
    raise AssertionError("pruning ends after as many passes as tables are deep")


def _load(text: str, source: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        place = re.search(r" \(at (?:line (\d+), column (\d+)|end of document)\)", message)
        line = int(place[1]) if place and place[1] else max(1, text.rstrip("\n").count("\n") + 1)
        what = message[: place.start()] if place else message
        column = f" (column {place[2]})" if place and place[2] else ""
        problem = Problem(
            line=line,
            key="",
            what=f"not valid TOML: {what[:1].lower()}{what[1:]}{column}",
            remedy="texts and durations stand in quotes, keys once per table; see https://toml.io",
        )
        raise ExperimentError(source, (problem,)) from None


def _nest_all(raw: dict[str, Any], findings: Findings) -> dict[str, Any]:
    """Quoted keys such as "settings.work_mem" mean the same as the table settings with the key work_mem."""
    result = dict(raw)
    for key in ("factors", "common"):
        if isinstance(result.get(key), dict):
            result[key] = _nest(result[key], (key,), findings)
    for key in ("environments", "cells"):
        if isinstance(result.get(key), list):
            result[key] = [
                _nest(item, (key, index), findings) if isinstance(item, dict) else item
                for index, item in enumerate(result[key])
            ]
    return result


def _nest(table: dict[str, Any], path: Path, findings: Findings) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in table.items():
        head, dot, rest = key.partition(".")
        if not dot:
            if isinstance(value, dict) and isinstance(result.get(key), dict):
                _merge(result, key, value, (*path, key), findings)
            else:
                result[key] = dict(value) if isinstance(value, dict) else value
        elif isinstance(result.setdefault(head, {}), dict):
            _merge(result, head, {rest: value}, (*path, head), findings)
        else:
            findings.add((*path, key), f"{head!r} already has a value", "keep one of the two")
    return result


def _merge(result: dict[str, Any], key: str, more: dict[str, Any], path: Path, findings: Findings) -> None:
    for name, value in more.items():
        if name in result[key]:
            findings.add((*path, name), "is given twice", "keep one of the two")
        result[key][name] = value


def _table(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _note(detail: ErrorDetails, raw: dict[str, Any], findings: Findings) -> None:
    path: Path = tuple(detail["loc"])
    context = detail.get("ctx", {})
    if detail["type"] == "pgstrata":
        findings.add(path, str(context["what"]), str(context["remedy"]))
    elif detail["type"] == "extra_forbidden":
        findings.add(path, "unknown key", _unknown_remedy(path, raw))
    elif detail["type"] == "list_type":
        findings.add(path, "must be a list", _list_remedy(path))
    else:
        findings.add(path, "must be a table", f"write it as [{'.'.join(str(part) for part in path)}]")


def _list_remedy(path: Path) -> str:
    if path == ("controls",):
        return 'write controls = ["same"] or ["rebuild"]'
    if path[-1] == "scripts":
        return 'write scripts = [{ file = "script.sql", weight = 1 }]'
    return f"write it as [[{path[-1]}]], with two brackets, once for each"


def _unknown_remedy(path: Path, raw: dict[str, Any]) -> str:
    table = ".".join(str(part) for part in path[:-1] if isinstance(part, str))
    key = str(path[-1])
    allowed = tuple(TABLES[table].model_fields)
    elsewhere = next((name for name, model in TABLES.items() if name != table and key in model.model_fields), None)
    if elsewhere is not None:
        where = f"[[{elsewhere}]]" if isinstance(raw.get(elsewhere), list) or elsewhere == "cells" else f"[{elsewhere}]"
        return f"it belongs {'under ' + where if elsewhere else 'at the top of the file, before the first table'}"
    if nearest(key, allowed):
        return suggest(key, allowed)
    if table in {"factors", "common", "environments"} and SETTING_NAME.fullmatch(key):
        word = f'"settings.{key}"' if table == "factors" else f"settings.{key}"
        return f"a PostgreSQL setting is written {word}; {suggest(key, allowed)}"
    return suggest(key, allowed)


def _prune(raw: dict[str, Any], locations: list[tuple[int | str, ...]]) -> dict[str, Any]:
    """A copy without the values at the locations; later indices first, so that earlier ones stay right."""
    result = deepcopy(raw)
    ordered = sorted({tuple(map(_ordering, loc)): loc for loc in locations}.items(), reverse=True)
    for _, location in ordered:
        holder: Any = result
        for part in location[:-1]:
            holder = holder[part]
        del holder[location[-1]]
    return result


def _ordering(part: int | str) -> tuple[int, str]:
    return (part, "") if isinstance(part, int) else (-1, part)
