"""The table [factors]: each key a factor, each level a part of an environment."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pgstrata.experiment.findings import Findings
from pgstrata.experiment.keys import Path, WrongValueError, slug, unique
from pgstrata.experiment.layers import find_layer_key
from pgstrata.experiment.registry import OWN_TABLES, factor_keys
from pgstrata.experiment.servers import mask_conninfo, server_slugs
from pgstrata.experiment.stacks import Stack, StackReader, flatten, render_scalar
from pgstrata.experiment.values import LEVELS, TABLE, Levels
from pgstrata.model.experiment import Level, ServerSpec
from pgstrata.units import parse_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelChoice:
    """One level: what it is called, its part of the environment's name, and what it makes of the environment."""

    level: Level
    slug: str
    stack: Stack


@dataclass(frozen=True, slots=True, kw_only=True)
class Factor:
    """One thing that varies, with its levels in the order of the file."""

    key: str
    path: Path
    choices: tuple[LevelChoice, ...]


def read_factors(table: Mapping[str, Any], reader: StackReader) -> tuple[Factor, ...]:
    """All factors that can be read, in the order of the file; the others are noted."""
    path: Path = ("factors",)
    factors: list[Factor] = []
    known = factor_keys()
    for key, value in table.items():
        if key == "settings":
            factors.extend(_read_settings(value, reader))
        elif key in known and known[key].kind is TABLE:
            for name, levels in _named_levels(value):
                factors.append(_read_factor(f"{key}.{name}", (*path, key, name), levels, reader))
        else:
            factors.append(_read_factor(key, (*path, key), value, reader))
    return tuple(factors)


def _named_levels(table: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """A table of named levels and a list of levels are both one factor; deeper tables are dotted names."""
    for name, value in table.items():
        if isinstance(value, dict) and any(isinstance(item, list | dict) for item in value.values()):
            yield from ((f"{name}.{deeper}", item) for deeper, item in _named_levels(value))
        else:
            yield name, value


def _read_settings(table: Mapping[str, Any], reader: StackReader) -> list[Factor]:
    """Tables are named sets, which together are one factor; lists are levels of single settings."""
    path: Path = ("factors", "settings")
    sets: dict[str, dict[str, Any]] = {}
    factors: list[Factor] = []
    for name, value in table.items():
        flat = flatten({name: value})
        if isinstance(value, dict) and not any(isinstance(item, list) for item in flat.values()):
            sets[name] = value
            continue
        for setting, levels in flat.items():
            factors.append(_read_factor(f"settings.{setting}", (*path, setting), levels, reader))
    return ([_read_sets(sets, path, reader)] if sets else []) + factors


def _read_sets(sets: Mapping[str, Mapping[str, Any]], path: Path, reader: StackReader) -> Factor:
    choices: list[LevelChoice] = []
    for name, settings in sets.items():
        stack: dict[str, str] = {}
        for setting, value in flatten(settings).items():
            stack.update(reader.read(f"settings.{setting}", value, (*path, name, setting)))
        choices.append(LevelChoice(level=Level(factor="settings", value=name), slug=slug(name), stack=stack))
    return Factor(key="settings", path=path, choices=tuple(choices))


def _read_factor(key: str, path: Path, value: object, reader: StackReader) -> Factor:
    try:
        if key.partition(".")[0] not in OWN_TABLES and "." in key:
            find_layer_key(key)
        levels = LEVELS.read(value)
    except WrongValueError as error:
        reader.findings.add(path, error.what, error.remedy)
        return Factor(key=key, path=path, choices=())
    choices: list[LevelChoice] = []
    for index, (name, level) in enumerate(levels):
        stack = reader.read(key, level, (*path, index if name is None else name))
        if not stack:
            continue
        text = name or _text(key, stack, render_scalar(level))
        choices.append(LevelChoice(level=Level(factor=key, value=text), slug=_slug(key, text, name), stack=stack))
    _note_duplicates(choices, path, reader.findings)
    return Factor(key=key, path=path, choices=_with_server_slugs(key, levels, tuple(choices)))


def _text(key: str, stack: Stack, written: str) -> str:
    return str(stack[key].text) if key in {"server", "host", "client"} else mask_conninfo(written)


def _slug(key: str, text: str, name: str | None) -> str:
    if name is not None:
        return slug(name)
    if key == "host":
        return _machine(text)
    if key == "client":
        return slug(f"client-{'-'.join(map(_machine, text.split(', ')))}")
    return (
        slug(text) if key in {"server", "connection", "filesystem"} else slug(f"{key.partition('.')[2] or key}-{text}")
    )


def _machine(text: str) -> str:
    return slug(text.partition(":")[2] or text)


def _with_server_slugs(key: str, levels: Levels, choices: tuple[LevelChoice, ...]) -> tuple[LevelChoice, ...]:
    if key != "server" or any(name is not None for name, _ in levels):
        return choices
    names = server_slugs([choice.stack["server"] for choice in choices])
    return tuple(
        LevelChoice(level=choice.level, slug=name, stack=choice.stack)
        for choice, name in zip(choices, unique(slug(name) for name in names), strict=True)
    )


def _note_duplicates(choices: list[LevelChoice], path: Path, findings: Findings) -> None:
    seen: dict[object, str] = {}
    for choice in choices:
        same = _canonical(choice.stack)
        if same in seen:
            first = seen[same]
            what = (
                f"the level {first!r} is listed twice"
                if first == choice.level.value
                else (f"the levels {first!r} and {choice.level.value!r} are the same")
            )
            findings.add(path, what, 'take one out; to repeat the baseline write controls = ["same"]')
        seen.setdefault(same, choice.level.value)


def _canonical(stack: Stack) -> object:
    """What a level comes to: 1GB and 1024MB are the same."""
    (value,) = stack.values()
    if isinstance(value, ServerSpec):
        return value.text
    try:
        return parse_bytes(value) if isinstance(value, str) else value
    except ValueError:
        return value
