"""The order of levels: versions, numbers, sizes, durations. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Final

from pgstrata.units import parse_bytes, parse_duration

LISTED: Final = "environment"
"""The factor name for environments that have only names, such as those of a table."""

# 16, 9.6.24, maven:9.6, v6.12.5, 9.6beta1, 8.3RC2, 19devel, 4.7-rc3, 6.1.0-18-amd64, 6.7.0-rc3-00012-gabc1234+: a
# number with dots behind the name of a supplier, a stage before the release, with the number of commits since, or the
# number of a package and its flavour.
_VERSION: Final = re.compile(
    r"(?:[a-z]+:)?v?(?P<numbers>\d+(?:\.\d+)*)"
    r"(?:[-._ ~]?(?P<stage>devel|dev|alpha|beta|rc)[-.]?(?P<of>\d*)(?:-(?P<since>\d+)-g[0-9a-f]{4,40})?"
    r"|-(?P<package>\d+)(?:-[a-z][\w.+-]*)?)?"
    r"(?:[+~](?:bpo|deb|pgdg|ubuntu)[\w.+~-]*|\+)?",
    re.ASCII | re.IGNORECASE,
)
_LONGEST_VERSION: Final = 200
"""Characters beyond which a level is no version: looking for one would take quadratic time."""
# tags and branches of PostgreSQL: REL9_6_24, REL8_3_RC2, REL_17_BETA1, REL_17_2, REL_17_STABLE
_TAG: Final = re.compile(
    r"REL_?(?P<numbers>\d+(?:_\d+)*)(?:_(?P<stage>ALPHA|BETA|RC)(?P<of>\d+)|(?P<branch>_STABLE))?", re.ASCII
)
_STAGES: Final = {"devel": -5, "dev": -5, "alpha": -4, "beta": -3, "rc": -2}
_RELEASED: Final = -1
"""Below every further number, so that 9.6 comes before 9.6.1, and above every stage, so that it comes after 9.6rc1."""
_NUMBER: Final = re.compile(r"[+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?", re.ASCII)
_LETTERS: Final = re.compile(r"[^\d+-]*")
_DIGITS: Final = re.compile(r"(\d+)", re.ASCII)
_VERSIONED: Final = frozenset({"server", "kernel"})
_NAMED_VERSION: Final = re.compile(r"version|kernel|server|release|postgres|pg|major|minor", re.IGNORECASE)

Key = tuple[float, ...]


def version_key(level: str) -> Key | None:
    """The sort key of a version: 3.9 < 3.10, 9.6beta1 < 9.6rc1 < 9.6 < 9.6.1; None if the level is not a version."""
    if len(level) > _LONGEST_VERSION:
        return None
    if tag := _TAG.fullmatch(level):
        return _tag_key(tag)
    found = _VERSION.fullmatch(level)
    if found is None:
        return None
    numbers = tuple(float(part) for part in found["numbers"].split("."))
    if found["stage"]:
        return (*numbers, _STAGES[found["stage"].lower()], float(found["of"] or 0), float(found["since"] or 0))
    return (*numbers, _RELEASED, float(found["package"] or 0))


def _tag_key(tag: re.Match[str]) -> Key:
    """The key of a tag; a branch comes after all of its tags."""
    numbers = tuple(float(part) for part in tag["numbers"].split("_"))
    if tag["stage"]:
        return (*numbers, _STAGES[tag["stage"].lower()], float(tag["of"]))
    return (*numbers, math.inf if tag["branch"] else _RELEASED)


def order_levels(factor: str, levels: Sequence[str]) -> tuple[str, ...]:
    """Levels sorted as versions (of servers and kernels), numbers, sizes or durations; else in the given order."""
    for read in (version_key,) if factor in _VERSIONED else (_number, _size, _duration):
        keys = {level: read(level) for level in levels}
        known = {level: key for level, key in keys.items() if key is not None}
        if len(set(known.values())) == len(levels):
            return tuple(sorted(levels, key=known.__getitem__))
    return tuple(levels)


def order_by_number(levels: Sequence[str]) -> tuple[str, ...]:
    """The levels sorted by version or number; empty if one of them has neither."""
    for factor in ("server", LISTED):
        if ordered := _order_bare(factor, levels):
            return ordered
    return ()


def sort_levels(name: str, levels: Sequence[str]) -> tuple[str, ...]:
    """Levels of the dimension `name`, in the order that people expect; the given order has no influence.

    They are sorted as by `order_by_number`. Numbers are taken as versions, except if some begin with "0." and the name
    does not suggest versions (`version`, `kernel` ...). Levels without numbers are sorted as text, digits by value.
    """
    known = tuple(sorted(dict.fromkeys(levels), key=lambda level: (_natural(level), level)))
    fractions = any(level.startswith("0.") for level in known) and _NAMED_VERSION.search(name) is None
    for factor in (LISTED,) if fractions else ("server", LISTED):
        if ordered := _order_bare(factor, known):
            return ordered
    return known


def _order_bare(factor: str, levels: Sequence[str]) -> tuple[str, ...]:
    """`order_levels` without the text with which all levels begin; empty if the levels have no order."""
    tags = factor in _VERSIONED and all(map(_TAG.fullmatch, levels))
    start = _LETTERS.match(levels[0]) if levels and not tags else None
    shared = start.group() if start is not None else ""
    if shared and all(level.startswith(f"{shared}-") for level in levels):
        shared += "-"  # no sign, but part of the name
    bare = [level.removeprefix(shared) if level.startswith(shared) else level for level in levels]
    names = dict(zip(bare, levels, strict=True))
    ordered = order_levels(factor, bare)
    # levels that have no number stay as they were given
    alike = len(levels) > 1 and ordered == order_levels(factor, bare[::-1])
    return tuple(names[level] for level in ordered) if alike else ()


def _natural(level: str) -> tuple[tuple[int, int, str], ...]:
    """A sort key for text: digits by their value, before letters; a number may have any number of digits."""
    return tuple(
        (0, len(value), value) if part.isdecimal() and part.isascii() else (1, 0, part.casefold())
        for part in _DIGITS.split(level)
        if part
        for value in (part.lstrip("0"),)
    )


def _number(level: str) -> Key | None:
    return (float(level),) if _NUMBER.fullmatch(level) else None


def _size(level: str) -> Key | None:
    return _quantity(parse_bytes, level)


def _duration(level: str) -> Key | None:
    return _quantity(parse_duration, level)


def _quantity(parse: Callable[[str], float], level: str) -> Key | None:
    """A size or duration by its parser; "0" needs no unit. None if it cannot be parsed."""
    if level.strip() == "0":
        return (0.0,)
    try:
        return (float(parse(level)),)
    except ValueError:
        return None
