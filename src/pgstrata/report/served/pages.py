"""The list of studies and archives, messages, and what is put around a report; foreign text is escaped everywhere."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined, select_autoescape

from pgstrata.model.listing import Listed, ListedKind, ListedState, Listing
from pgstrata.report.commands.listing import listing_notes, say_environments, say_state
from pgstrata.report.sentences.causes import readable
from pgstrata.report.sentences.names import count
from pgstrata.units import shorten

_POLICY: Final = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>\n?')
_BODY: Final = "<body>\n"
_LONGEST: Final = 300
"""Letters of a question or an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A link at the top of a page; without an address it is the page itself."""

    text: str
    address: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What stands around each page.

    Attributes:
        nonce: of its only script.
        links: to other pages.
        state: how far it is, in a few words.
        events: address of the events that tell when the page has changed; empty where it never does.
    """

    nonce: str
    links: tuple[Link, ...] = ()
    state: str = ""
    events: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    address: str
    title: str
    place: str
    compared: str
    answer: str
    state: str
    begun: str


class Pages:
    """The templates, which are read once."""

    def __init__(self) -> None:
        templates = Environment(
            loader=ChoiceLoader([
                PackageLoader("pgstrata.report.served", "templates"),
                PackageLoader("pgstrata.report.blocks", "templates"),
            ]),
            autoescape=select_autoescape(default=True, default_for_string=True),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )  # fmt: skip
        self._studies = templates.get_template("studies.html.j2")
        self._bar = templates.get_template("bar.html.j2")

    def studies(self, found: Listing, address: Callable[[Listed], str], frame: Frame, waiting: int) -> str:
        """The list; `waiting` answers are still looked for."""
        return self._studies.render(
            title="Studies and archives",
            folder=readable(found.folder),
            frame=frame,
            notes=[*listing_notes(found), *_waiting(found, waiting)],
            rows=[_row(each, found.folder, address(each)) for each in found.entries],
            problem="",
        ).lstrip()

    def beside(self, title: str, found: Listing, address: Callable[[Listed], str], frame: Frame) -> str:
        """The studies that can stand beside one of that title."""
        note = (
            "Choose a study to see figures of both side by side."
            if found.entries
            else "No other study has an environment of the same name."
        )
        return self._studies.render(
            title=f"Compare with another study: {title}",
            folder=readable(found.folder),
            frame=frame,
            notes=(note,),
            rows=[_row(each, found.folder, address(each)) for each in found.entries],
            problem="",
        ).lstrip()

    def problem(self, title: str, problem: str, frame: Frame) -> str:
        """A message instead of a page."""
        lines = "\n".join(readable(line) for line in problem.splitlines())
        return self._studies.render(
            title=readable(title), folder="", frame=frame, notes=(), rows=(), problem=lines
        ).lstrip()

    def framed(self, report: str, frame: Frame) -> str:
        """A report with links at its top. The policy that stands in the file allows less than the server's header."""
        return _POLICY.sub("", report, count=1).replace(_BODY, _BODY + self._bar.render(frame=frame), 1)


def title_of(entry: Listed) -> str:
    """The question of a study, the name of everything else."""
    return _short(entry.question or entry.name or entry.path)


def state_of(entry: Listed) -> str:
    """Its kind, unless it is a study, and how far it is."""
    return readable(say_state(entry))


def _row(entry: Listed, folder: str, address: str) -> _Row:
    return _Row(
        address=address,
        title=title_of(entry),
        place=readable(entry.path.removeprefix(folder).lstrip("/") or entry.path),
        compared=_short(_compared(entry)),
        answer=_short(entry.problem if entry.state is ListedState.DAMAGED else entry.headline),
        state=state_of(entry),
        begun=readable(entry.created[:10]),
    )


def _compared(entry: Listed) -> str:
    if not entry.environments:
        return ""
    return ", ".join(entry.environments) if entry.kind is ListedKind.MERGED else say_environments(entry.environments)


def _short(text: str) -> str:
    return shorten(readable(text), _LONGEST)


def _waiting(found: Listing, waiting: int) -> Iterator[str]:
    if not waiting:
        return
    running: Sequence[Listed] = [each for each in found.entries if each.state is ListedState.RUNNING]
    measured = any(each.kind is ListedKind.STUDY for each in running)
    said = "once no study is measured here any more" if measured else "one after the other"
    yield f"Not computed yet: {count(waiting, 'answer')}. They are computed {said}."
