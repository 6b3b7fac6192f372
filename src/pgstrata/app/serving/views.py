"""The pages of a study or an archive, and the command that makes each."""

from __future__ import annotations

import shlex
from enum import StrEnum
from typing import Final, assert_never

from pgstrata.app.serving.rendering import View
from pgstrata.model.listing import Listed, ListedKind, ListedState

_REST: Final = 30.0
_REST_ARCHIVE: Final = 60.0
_HOUR: Final = 3600


class Shown(StrEnum):
    """What of an entry is shown; figures are not, but stand beside those of another one."""

    REPORT = "report"
    FIGURES = "figures"
    HOUR = "hour"
    INCIDENTS = "incidents"


TITLES: Final = {
    Shown.REPORT: "report",
    Shown.FIGURES: "figures",
    Shown.HOUR: "last hour",
    Shown.INCIDENTS: "incidents",
}
"""Texts of links."""


def shown_of(entry: Listed) -> tuple[Shown, ...]:
    """All pages of an entry, the first one first."""
    return (Shown.HOUR, Shown.INCIDENTS) if entry.kind is ListedKind.ARCHIVE else (Shown.REPORT,)


def beside(entry: Listed, entries: tuple[Listed, ...]) -> tuple[Listed, ...]:
    """Studies and bundles that could have environments in common with this one, by the names of these."""
    return tuple(
        each
        for each in entries
        if each.path != entry.path
        and has_figures(each)
        and (not each.environments or set(each.environments) & set(entry.environments))
    )


def has_figures(entry: Listed) -> bool:
    """Whether it can stand beside another one."""
    return entry.kind in {ListedKind.STUDY, ListedKind.BUNDLE} and entry.state is not ListedState.DAMAGED


def changes(entry: Listed) -> bool:
    """Whether its pages may change."""
    return entry.kind in {ListedKind.STUDY, ListedKind.ARCHIVE}


def make_view(entry: Listed, shown: Shown, state: str) -> View:
    """A page of an entry, whose state is given."""
    arguments = _arguments(entry, shown)
    running = entry.state is ListedState.RUNNING
    return View(
        key=f"{shown} {entry.path}",
        arguments=arguments,
        state=state,
        rest=_REST_ARCHIVE if entry.kind is ListedKind.ARCHIVE else _REST if running else 0.0,
        command=shlex.join(("pgstrata", *arguments, *(() if shown is Shown.FIGURES else ("FILE.html",)))),
        printed=shown is Shown.FIGURES,
    )


def _arguments(entry: Listed, shown: Shown) -> tuple[str, ...]:
    match shown:
        case Shown.REPORT:
            return ("report", entry.path, "-o")
        case Shown.FIGURES:
            return ("show", entry.path, "--json")
        case Shown.HOUR:
            begin = () if entry.span is None else ("--from", f"@{entry.span.end - _HOUR}")
            return ("window", entry.path, *begin, "--report")
        case Shown.INCIDENTS:
            return ("incidents", entry.path, "--report")
        case _:
            assert_never(shown)
