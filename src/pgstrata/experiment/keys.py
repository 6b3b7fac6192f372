"""Names that an experiment file may use, the nearest right one for a name that it may not, and names made of them.

What belongs here: spelling only; what a key means stands in the modules that read it.
"""

import re
from collections.abc import Iterable
from difflib import SequenceMatcher
from typing import Final

Path = tuple[str | int, ...]
"""Where something stands in the file: table names, keys, and indices counted from 0."""

CATALOGUE_MAJORS: Final = ("14", "15", "16", "17", "18")
MAVEN_MAJORS: Final = ("9.6", "10", "11", "12", "13", *CATALOGUE_MAJORS)
SERVER_LEVELS: Final = "embedded, 14 to 18, maven:9.6 to maven:18, build:DIR, prefix:DIR or dsn:SERVICE"

# Nobody misspells a name into a longer one
_LONGEST_NAME: Final = 100
MOST: Final = 500
"""Maximum number of environments, of cells, of factors, and of keys of a table such as [common.settings]."""

SETTING_NAME: Final = re.compile(r"[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_$]*)*")


class WrongValueError(ValueError):
    """A value of an experiment file that cannot be: what is wrong with it, and what could stand there."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(what)
        self.what = what
        self.remedy = remedy


def nearest(word: str, choices: Iterable[str]) -> str | None:
    """The choice that `word` was most likely meant to be, or None; swapped letters count as close."""
    best, best_score = None, 0.6
    if len(word) > _LONGEST_NAME:
        return None
    for choice in choices:
        score = SequenceMatcher(None, word.lower(), choice.lower()).ratio()
        if sorted(word.lower()) == sorted(choice.lower()):
            score = max(score, 0.9)
        if score > best_score or (best is None and score == best_score):
            best, best_score = choice, score
    return best


def suggest(word: str, choices: Iterable[str], *, noun: str = "one of") -> str:
    """A remedy: the nearest choice if there is one, and all that are allowed."""
    # also of enums, whose repr is nobody's word
    listed = tuple(map(str, choices))
    near = nearest(word, listed)
    allowed = f"{noun} {', '.join(listed)}"
    return f"did you mean {near!r}? Allowed: {allowed}" if near else f"allowed: {allowed}"


def render_path(path: Path) -> str:
    """A path for people: cells[1].clients; entries are counted from 1."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part + 1}]"
        else:
            text += f".{part}" if text else part
    return text


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
