"""Names of environments: readable, short, safe in identities and paths, unique."""

from __future__ import annotations

import re
from collections.abc import Iterable

_LONGEST = 60


def slug(text: str) -> str:
    """`text` with only letters, digits, dot, underscore, plus and hyphen, never starting with a dot or hyphen."""
    safe = re.sub(r"[^A-Za-z0-9._+-]+", "-", text)
    safe = re.sub(r"-{2,}", "-", safe).strip("-.")
    return safe[:_LONGEST].rstrip("-.") or "environment"


def unique(names: Iterable[str]) -> tuple[str, ...]:
    """The names in order, later ones numbered where they would repeat an earlier one, whatever the case of letters."""
    taken: set[str] = set()
    result: list[str] = []
    for name in names:
        candidate, number = name, 2
        while candidate.lower() in taken:
            candidate, number = f"{name}-{number}", number + 1
        taken.add(candidate.lower())
        result.append(candidate)
    return tuple(result)
