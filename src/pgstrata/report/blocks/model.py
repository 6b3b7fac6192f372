"""The blocks of a report: data only, whatever shows them.

A terminal shows what is brief, plain text everything but charts, a page all of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum, auto
from itertools import accumulate

NO_RESULT = "-"
"""The text of a cell of a table for which there is no result."""
MOST_SAID = 4
"""Sentences of an answer that a page shows before everything else."""
_MOST_LETTERS = 600
"""Letters of these sentences where a matrix follows, so that it is on the first screen; the first may have more."""


class Tone(StrEnum):
    """How a paragraph speaks; `HELP` explains charts and tables, and stands on pages only.

    `CONTROL` tells of controls that are no reason for alarm: a page shows them beside the answer.
    """

    PLAIN = auto()
    ALARM = auto()
    CONTROL = auto()
    MINOR = auto()
    NOTE = auto()
    HELP = auto()


@dataclass(frozen=True, slots=True)
class Marked:
    """A few words of a paragraph that look different on a page: `code`, `more` or `less`."""

    text: str
    look: str


Inline = str | tuple[str | Marked, ...]


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Sentences, ended by full stops."""

    text: Inline
    tone: Tone = Tone.PLAIN

    @property
    def plain(self) -> str:
        """The words alone."""
        parts = (self.text,) if isinstance(self.text, str) else self.text
        return "".join(part if isinstance(part, str) else part.text for part in parts)


@dataclass(frozen=True, slots=True)
class Listing:
    """Sentences or phrases, one an item."""

    items: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One thing that was observed or asked for: its name, and its value as text."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Facts:
    """Names with their values; with a `title` of their own where there are several groups."""

    facts: tuple[Fact, ...]
    title: str = ""


@dataclass(frozen=True, slots=True)
class Verbatim:
    """Text that can be copied: lines stay as they are, in plain text, which is narrow, only where they are `exact`."""

    text: str
    exact: bool = False


class ColumnPlace(StrEnum):
    """Where a column stands: what matters first, where there is not room for all of them.

    `LEAD` stands before the `MAIN` ones where there is room beside them, else before the others (`MORE`). What is
    `ASIDE` has a table of its own, except on a wide terminal.
    """

    LEAD = auto()
    MAIN = auto()
    MORE = auto()
    ASIDE = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A heading and its cells; `words` stand at the left of their column and may be wrapped, numbers at the right.

    `beside` is a second text in each cell, `verdicts` are the verdicts that it, or the only text, speaks of. `joint` is
    what leads to a cell where rows are told as sentences.
    """

    title: str
    cells: tuple[str, ...]
    words: bool = False
    place: ColumnPlace = ColumnPlace.MAIN
    beside: tuple[str, ...] = ()
    verdicts: tuple[str, ...] = ()
    joint: str = ", "

    @property
    def texts(self) -> tuple[str, ...]:
        """Each cell in plain text."""
        if not self.beside:
            return self.cells
        return tuple(f"{cell} {more}".rstrip() for cell, more in zip(self.cells, self.beside, strict=True))


class Shape(StrEnum):
    """How plain text, which is narrow, shows a table: as one, as a sentence or as a small list for each row."""

    TABLE = auto()
    SENTENCES = auto()
    RECORDS = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows with names.

    Attributes:
        names: of the rows, the first column.
        columns: the others, each with one cell a row.
        aside: heading of the names beside columns that stand aside, and a note where they stand in the same table.
        shape: in plain text.
        most: rows that plain text tells as sentences; 0 for all.
        breaks: characters after which names may be broken where all columns get into one table so; 0 for never.
        code: whether the names are code, to be copied as they are.
        style: "", or that of the page: `facts`, `narrow`.
        soft: places of the rows that matter less.
        folded: places of the rows that a page folds away, below `folded_title`.
        hints: the whole of names that are cut.
    """

    names: Column
    columns: tuple[Column, ...]
    aside: tuple[str, str] = ("", "")
    shape: Shape = Shape.TABLE
    most: int = 0
    breaks: int = 0
    code: bool = False
    style: str = ""
    soft: frozenset[int] = frozenset()
    folded: frozenset[int] = frozenset()
    folded_title: str = ""
    hints: tuple[str, ...] = ()

    def at(self, *places: ColumnPlace) -> tuple[Column, ...]:
        """The columns that stand there, place by place."""
        return tuple(column for place in places for column in self.columns if column.place == place)


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """One field of a matrix: the change and its interval as text, its verdict and the word for it.

    `depth` says how large the change is, from 0 to 4, where the verdict is a difference.
    """

    change: str
    interval: str
    verdict: str
    label: str
    depth: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """Effects by row and column, None where there is none; `corner` says what the names of rows and columns are.

    `soft` are places of rows that matter less, such as controls.
    """

    title: str
    corner: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    effects: tuple[tuple[Effect | None, ...], ...]
    soft: frozenset[int] = frozenset()

    def table(self, most: int = 0) -> Table:
        """The same as a table, with the first `most` columns; 0 for all."""
        shown = range(most or len(self.columns))
        return Table(
            names=Column(title=self.corner, cells=self.rows),
            columns=tuple(
                Column(
                    title=self.columns[place],
                    cells=tuple(effect.change if effect else "" for effect in column),
                    beside=tuple(effect.label if effect else "" for effect in column),
                    verdicts=tuple(effect.verdict if effect else "" for effect in column),
                    words=True,
                )
                for place in shown
                for column in ([row[place] for row in self.effects],)
            ),
            soft=self.soft,
        )


@dataclass(frozen=True, slots=True)
class Remark:
    """A sentence without a full stop, and the single cases that it sums up."""

    text: str
    cases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A chart: `draw` renders it as SVG to be put into a page as it is, `label` is for those who do not see it.

    A chart may be several drawings, which a page arranges, or two of different widths, of which it shows one.

    Drawing takes most of the time of a report, so only what shows charts asks for it. Without a title the parts around
    it say what it is.
    """

    title: str
    label: str
    draw: Callable[[], str]

    @property
    def svg(self) -> str:
        """The chart, drawn anew each time."""
        return self.draw()


@dataclass(frozen=True, slots=True)
class Details:
    """Blocks that a page folds away behind a title, unless they are `open`."""

    title: str
    blocks: tuple[Block, ...]
    open: bool = False


@dataclass(frozen=True, slots=True)
class Section:
    """Blocks below a heading. Terminals show `brief` ones; sections in one that is `parallel` stand side by side."""

    title: str
    blocks: tuple[Block, ...]
    brief: bool = False
    parallel: bool = False


@dataclass(frozen=True, slots=True)
class OnPage:
    """Blocks that only a page shows, made when it asks for them."""

    make: Callable[[], tuple[Block, ...]]


Block = Paragraph | Listing | Facts | Verbatim | Table | Matrix | Figure | Details | Section | OnPage


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A whole report.

    Attributes:
        name: of what it is about, in a few words.
        title: the question.
        summary: what was measured, in a phrase.
        answer: sentences, the most important first.
        matrix: the whole answer at a glance; None where the sentences hold all of it.
        doubts: what puts the answer in doubt, each thing once.
        sections: everything else.
        colophon: what made it.
    """

    name: str
    title: str
    summary: str
    answer: tuple[Paragraph, ...]
    doubts: tuple[Remark, ...]
    sections: tuple[Block, ...]
    colophon: str
    matrix: Matrix | None = None

    @property
    def head(self) -> tuple[Paragraph, ...]:
        """The sentences that a page shows first: alarms, and the first few of the answer."""
        said = self._of(Tone.PLAIN)[:MOST_SAID]
        if self.matrix is not None:
            letters = accumulate(len(each.plain) for each in said)
            fitting = sum(number <= _MOST_LETTERS for number in letters)
            said = said[: max(1, fitting)]
        return tuple(each for each in self.answer if each.tone is Tone.ALARM or each in said)

    @property
    def controls(self) -> tuple[Paragraph, ...]:
        """What a page says of controls, before the matrix."""
        return self._of(Tone.CONTROL)

    @property
    def minor(self) -> tuple[Paragraph, ...]:
        """What a page says below the matrix."""
        return self._of(Tone.MINOR)

    @property
    def rest(self) -> tuple[Paragraph, ...]:
        """The other sentences of the answer, which a page folds away."""
        shown = (*self.head, *self.controls, *self.minor)
        return tuple(each for each in self.answer if each not in shown)

    def _of(self, tone: Tone) -> tuple[Paragraph, ...]:
        return tuple(each for each in self.answer if each.tone is tone)


def begin(text: str) -> str:
    """The text with a capital letter at its start."""
    return text[:1].upper() + text[1:]


def end(text: str) -> str:
    """The text as a sentence with a full stop."""
    return text if text.endswith((".", "!")) else f"{text}."
