"""Patterns that read dimensions from paths: `{kernel}/{scale}/{run}/{mode}-{clients}.log`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pgstrata.errors import UsageError
from pgstrata.sources.moments import parse_moment_in_name

STARTED: Final = "started"
"""The field of a pattern that is the time at which a run began, and no dimension."""
_FIELD: Final = re.compile(r"\{([^{}]*)\}|\*")
_NAME: Final = re.compile(r"[A-Za-z][\w-]{0,40}")
_OPTION: Final = "--pattern"
_MOST_SEPARATORS: Final = 6
"""Within a time: 2024-04-05-07-34-47."""
_EXAMPLE: Final = "write it as '{kernel}/{scale}/{run}/{mode}-{clients}.log'; * stands for a part that is not used"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Component:
    """The pattern of a folder or file name: fields between literal texts; a field without a name is not used.

    There is one more literal text than fields.
    """

    literals: tuple[str, ...]
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PathPattern:
    """A pattern of paths below the folder that is imported."""

    components: tuple[_Component, ...]

    def match(self, path: str) -> Mapping[str, str] | None:
        """Levels by dimension of a path with `/`; None if the path does not fit.

        A field takes at least one character. If the text between two fields occurs several times, its last place
        counts: `{mode}-{clients}` reads `read-only-16` as mode `read-only` with 16 clients. `{started}` takes more of
        the text if only that is a time: `{mode}_{started}` reads `tpcc_2024-04-05_07-34-47`.
        """
        parts = path.split("/")
        if len(parts) != len(self.components):
            return None
        found: dict[str, str] = {}
        for part, component in zip(parts, self.components, strict=True):
            levels = _match(part, component)
            if levels is None:
                return None
            found.update((name, level) for name, level in zip(component.names, levels, strict=True) if name)
        return found


def parse_pattern(text: str) -> PathPattern:
    """The pattern; UsageError if the text is not a valid one."""
    components = tuple(_parse_component(part, text) for part in text.strip("/").split("/"))
    names = [name for component in components for name in component.names if name]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise _refuse(text, f"has {{{twice}}} twice", "write * in the place of the second one")
    return PathPattern(components=components)


def _parse_component(part: str, text: str) -> _Component:
    literals: list[str] = []
    names: list[str] = []
    end = 0
    for found in _FIELD.finditer(part):
        literal = part[end : found.start()]
        if names and not literal:
            raise _refuse(text, "has two fields with nothing between them", _EXAMPLE)
        name = found[1] or ""
        if found[1] is not None and not _NAME.fullmatch(name):
            raise _refuse(text, f"has a field {found[0]!r}, which is not a valid name", _EXAMPLE)
        literals.append(literal)
        names.append(name)
        end = found.end()
    literals.append(part[end:])
    if any("{" in literal or "}" in literal for literal in literals):
        raise _refuse(text, "has a brace without its counterpart", _EXAMPLE)
    return _Component(literals=tuple(literals), names=tuple(names))


def _match(part: str, component: _Component) -> list[str] | None:
    """Levels of the fields, found from the end in one pass."""
    first, *others = component.literals
    if not component.names:
        return [] if part == first else None
    if not part.startswith(first) or not part.endswith(others[-1]):
        return None
    end = len(part) - len(others[-1])
    levels: list[str] = []
    for literal, name in zip(reversed(others[:-1]), reversed(component.names[1:]), strict=True):
        place = _find_literal(part, literal, len(first), end, timed=name == STARTED)
        if place < 0:
            return None
        levels.append(part[place + len(literal) : end])
        end = place
    levels.append(part[len(first) : end])
    return levels[::-1] if all(levels) else None


def _find_literal(part: str, literal: str, start: int, end: int, *, timed: bool) -> int:
    """The last place of the text before a field that ends at `end`; -1 if there is none.

    If the field is a time, the last place behind which there is one, among the last few.
    """
    # the field takes at least one character
    last = place = part.rfind(literal, start, end - 1)
    for _ in range(_MOST_SEPARATORS if timed else 0):
        if place < 0:
            break
        if parse_moment_in_name(part[place + len(literal) : end]) is not None:
            return place
        place = part.rfind(literal, start, place)
    return last


def _refuse(text: str, what: str, remedy: str) -> UsageError:
    return UsageError(f"{text!r} {what}", where=_OPTION, remedy=remedy)
