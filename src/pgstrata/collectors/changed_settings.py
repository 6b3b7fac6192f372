"""Which settings of a server differ from PostgreSQL's own defaults, from the table of settings of a run. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pgstrata.compare.environments.differences import is_volatile
from pgstrata.model.server import ChangedSetting

SETTINGS: Final = "settings.tsv"
"""The evidence of a run: the columns name, setting, unit, source and boot_val of pg_settings, tabs between them."""
_FIELDS: Final = 5
_OWN: Final = frozenset({"default", "override", "client", "session"})
"""Sources of values that nobody set for the server: its defaults, what it found out itself, and pgstrata's sessions."""


def parse_changed_settings(table: bytes) -> tuple[ChangedSetting, ...]:
    """Settings that were set to something else than their default, by name; none where the server tells no defaults."""
    return tuple(_parse(table.decode("utf-8", "replace")))


def _parse(text: str) -> Iterator[ChangedSetting]:
    for line in text.split("\n")[1:]:
        row = line.split("\t")
        if len(row) != _FIELDS:
            continue
        name, value, unit, source, default = row
        told = bool(default or value)
        if told and source not in _OWN and value != default and not is_volatile(f"settings.{name}"):
            yield ChangedSetting(name=name, value=value, unit=unit, default=default)
