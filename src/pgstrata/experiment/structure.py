"""From TOML text to the tables of the schema; whatever does not fit is noted and left out.

What belongs here: syntax, unknown keys, values of the wrong type. Leaving the misfits out lets the modules that read
the meaning go on, so that all that is wrong is told at once.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from pgstrata.errors import ExperimentError, Problem
from pgstrata.experiment.findings import Findings
from pgstrata.experiment.keys import SETTING_NAME, Path, WrongValueError, nearest, suggest
from pgstrata.experiment.schema import STACKS, TABLES, TYPES, ExperimentFile, Key, table_keys

_DEEPEST: Final = 32


def read_structure(text: str, source: str, findings: Findings) -> ExperimentFile:
    """Tables of the file.

    Raises:
        ExperimentError: the text is not TOML, or holds what is too large; nothing else can be said then.
    """
    loaded = _load(text, source)
    _refuse_large(loaded, findings)
    raw = _nest_all(loaded, findings)
    return cast("ExperimentFile", _Reader(findings).read_table("", raw, ()))


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
            remedy="put texts and durations in quotes, and give each key once per table; see https://toml.io",
        )
        raise ExperimentError(source, (problem,)) from None
    except (ValueError, RecursionError):
        # more digits than Python reads, or tables within tables by the thousand
        problem = Problem(
            line=None,
            key="",
            what="a number has too many digits, or tables are nested too deeply",
            remedy="use numbers within 64 bits, and nest tables no deeper than five levels",
        )
        raise ExperimentError(source, (problem,)) from None


def _refuse_large(raw: dict[str, Any], findings: Findings) -> None:
    """Refuse integers beyond 64 bits, the range that TOML requires, and tables that are nested too deeply."""
    waiting: list[tuple[Path, object]] = [((), raw)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            findings.add(path, "the integer does not fit into 64 bits", "write a smaller number")
        elif len(path) > _DEEPEST:
            findings.add(path[:1], "tables are nested too deeply", "nest tables no deeper than five levels")
        elif isinstance(value, dict):
            waiting.extend(((*path, name), item) for name, item in value.items())
        elif isinstance(value, list):
            waiting.extend(((*path, index), item) for index, item in enumerate(value))
    findings.raise_if_any()


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


@dataclass(frozen=True, slots=True)
class _Reader:
    findings: Findings

    def read_table(self, table: str, given: Mapping[str, Any], path: Path) -> object:
        """The table of that path without indices: its type, or a mapping where its keys are those of environments."""
        keys = table_keys(table)
        values: dict[str, Any] = {}
        for name, value in given.items():
            if name in keys:
                values.update((name, found) for found in self._read(keys[name], value, (*path, name)))
            else:
                self.findings.add((*path, name), "unknown key", self._unknown_remedy(table, name))
        return TYPES[table](**values) if table in TYPES else values

    def _read(self, key: Key, value: object, path: Path) -> Iterator[object]:
        """The value of a key; nothing where it is wrong."""
        if not key.listed:
            yield from self._read_one(key, value, path)
        elif isinstance(value, list):
            places = ((*path, index) for index in range(len(value)))
            yield tuple(
                found for one, place in zip(value, places, strict=True) for found in self._read_one(key, one, place)
            )
        else:
            self.findings.add(path, "must be a list", _list_remedy(path))

    def _read_one(self, key: Key, value: object, path: Path) -> Iterator[object]:
        if not key.table:
            try:
                yield key.kind.read(value)
            except WrongValueError as error:
                self.findings.add(path, error.what, error.remedy)
        elif isinstance(value, dict):
            yield self.read_table(key.table, value, path)
        else:
            listed = isinstance(path[-1], int)
            name = ".".join(part for part in path if isinstance(part, str))
            table = _list_remedy(path[:-1]) if listed else f"write it as [{name}]"
            self.findings.add(path, "must be a table", table)

    def _unknown_remedy(self, table: str, key: str) -> str:
        allowed = table_keys(table)
        elsewhere = next((name for name in TABLES if name != table and key in table_keys(name)), None)
        if elsewhere is not None:
            where = f"under {_header(elsewhere)}" if elsewhere else "at the top of the file, before the first table"
            return f"it belongs {where}"
        if table in STACKS and not nearest(key, allowed) and SETTING_NAME.fullmatch(key):
            word = f'"settings.{key}"' if table == "factors" else f"settings.{key}"
            return f"a PostgreSQL setting is written {word}; {suggest(key, allowed)}"
        return suggest(key, allowed)


def _header(table: str) -> str:
    """The line that begins a table of that path: [common], [[environments]]."""
    parent, _, name = table.rpartition(".")
    return f"[[{table}]]" if table_keys(parent)[name].listed else f"[{table}]"


def _list_remedy(path: Path) -> str:
    if path == ("controls",):
        return 'write controls = ["same"], ["reboot"] or ["rebuild"]'
    if path[-1] == "scripts":
        return 'write scripts = [{ file = "script.sql", weight = 1 }]'
    return f"write it as [[{path[-1]}]], with two brackets, once for each"
