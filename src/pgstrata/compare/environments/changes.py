"""What changed about one environment since its first run: the facts of two starts, one beside the other.

What belongs here: which facts may change without meaning. Differences between environments are `differences`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from pgstrata.compare.environments.differences import is_volatile
from pgstrata.units import render_apart

# A kernel that was started again reserves a little more or less.
_MEMORY_TOLERANCE: Final = 0.01
_LONGEST: Final = 40
_CONTEXT: Final = 10
_NOT_THERE: Final = "not there"
# Which facts of these families there are depends on the version of pgstrata that observed them.
_FIXED: Final = ("settings.", "initdb.", "asked.")


def changed_facts(first: Mapping[str, str], now: Mapping[str, str]) -> tuple[str, ...]:
    """Each fact that is not what it was, as `host.kernel 6.1 -> 6.12`, sorted by name.

    Left out: settings that name places or repeat other facts; a size of memory that moved by up to 1 %; schedulers of
    block devices that came or went; and facts of host, server and driver that are known of only one of the two starts.
    """
    changes = ((name, render_apart((old, new), _LONGEST, _CONTEXT)) for name, old, new in _changes(first, now))
    return tuple(f"{name} {old} -> {new}" for name, (old, new) in changes)


def _changes(first: Mapping[str, str], now: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    for name in sorted(first.keys() | now.keys()):
        if is_volatile(name):
            continue
        if name in first and name in now:
            if not _same(name, first[name], now[name]):
                yield name, first[name], now[name]
        elif name.startswith(_FIXED):
            yield name, first.get(name, _NOT_THERE), now.get(name, _NOT_THERE)


def _same(name: str, old: str, new: str) -> bool:
    match name:
        case "host.memory":
            sizes = [_leading_number(text) for text in (old, new)]
            return abs(sizes[0] - sizes[1]) <= _MEMORY_TOLERANCE * max(sizes) if all(sizes) else old == new
        case "host.schedulers":
            before, after = (_by_device(text) for text in (old, new))
            return all(after[device] == chosen for device, chosen in before.items() if device in after)
        case _:
            return old == new


def _leading_number(text: str) -> float:
    word = text.partition(" ")[0]
    return float(word) if word.isdecimal() else 0.0


def _by_device(text: str) -> Mapping[str, str]:
    """`sda none, vda mq-deadline` by device."""
    pairs = (part.partition(" ") for part in text.split(", "))
    return {device: chosen for device, _, chosen in pairs}
