"""What `pgstrata list` finds below a folder: studies, merged studies, bundles and archives."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from pgstrata.model.archive import Span


class ListedKind(StrEnum):
    """What lies at a path."""

    STUDY = "study"
    MERGED = "merged study"
    BUNDLE = "bundle"
    ARCHIVE = "archive"


class ListedState(StrEnum):
    """How far it is; what never changes any more, such as a bundle, is finished."""

    FINISHED = "finished"
    BEGUN = "begun"
    RUNNING = "running"
    DAMAGED = "damaged"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One of them. What is not known, because its kind has none or it is damaged, is empty or None.

    `environments` begin with the baseline; of a merged study they are its parts. `runs` of `planned` are there; a study
    that is decided early has fewer. `process` and `host` are those of the pgstrata that is at work on it. `decided`
    says whether `headline` was looked for. `span` is what an archive holds. `created` is ISO 8601.
    """

    kind: ListedKind
    path: str
    state: ListedState
    name: str = ""
    question: str = ""
    environments: tuple[str, ...] = ()
    created: str = ""
    runs: int | None = None
    planned: int | None = None
    process: int | None = None
    host: str = ""
    headline: str = ""
    decided: bool = False
    server: str = ""
    span: Span | None = None
    problem: str = ""
    remedy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """All that was found below `folder`, the newest first.

    `unread` are folders that could not be read; `cut`: there are more files or folders than were looked at.
    """

    folder: str
    entries: tuple[Listed, ...]
    depth: int
    unread: tuple[str, ...] = ()
    cut: bool = False
