"""Blocks as one HTML file that needs nothing else: no script, no network, no fonts from elsewhere."""

import re
from collections.abc import Sequence

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup, escape

from pgstrata.model.answer import Verdict
from pgstrata.report.blocks.layout import split_name, tie
from pgstrata.report.blocks.model import Column, Document

# Colour never stands alone.
_SIGNS = {
    Verdict.BETTER.value: "▲",
    Verdict.WORSE.value: "▼",
    Verdict.EQUIVALENT.value: "=",
    Verdict.NEGLIGIBLE.value: "≈",
    Verdict.INCONCLUSIVE.value: "?",
    Verdict.INSUFFICIENT.value: "…",
    Verdict.UNSTABLE.value: "!",
    Verdict.COLLAPSED.value: "✕",
}
# Texts of at most so many letters stay in one line.
_SHORT = 24
_ENDS = " \xa0\t\n-"
# Words of at most so many letters are not broken: the narrowest column of names holds them.
_WHOLE = 15
# Letters: how many fit on paper in all columns next to the names of the rows, and the space between two columns.
_PAPER, _BETWEEN = 78, 1.6
# Pixels on paper: width of a drawing that stands alone, width of one beside another, and the height above which a
# drawing does not fit a page even if it becomes smaller by a fifth.
_ACROSS, _BESIDE, _HIGHEST = 673, 544, 1180
_DRAWING = re.compile(r'<svg\b[^>]*\bviewBox="[-\d.]+ [-\d.]+ ([\d.]+) ([\d.]+)"[^>]*>')


class _Copied(str):
    """Text that is to be copied out of the page: no blank of it becomes another one."""

    __slots__ = ()


def emit_page(document: Document) -> str:
    """The whole document. Foreign text is escaped everywhere."""
    templates = Environment(
        loader=PackageLoader("pgstrata.report.blocks", "templates"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_tie_text,
    )
    templates.filters |= {
        # charts are drawn from escaped text by the renderer of the charts; they are the only markup that is not ours
        "svg": lambda figure: Markup(figure.svg),  # noqa: S704
        "verbatim": _Copied,
        "breakable": _break_name,
        "sign": lambda verdict: f"{_SIGNS[verdict]} " if verdict in _SIGNS else "",
        "short": lambda column: max(map(len, column.cells), default=0) <= _SHORT,
        "wide": _is_wide,
        "long": _is_long,
        "kind": lambda block: type(block).__name__,
    }
    return templates.get_template("page.html.j2").render(document=document).lstrip()


def _break_name(text: str) -> Markup:
    """With a mark after each piece of a name, where a line may end, and within a piece only if it is long."""
    shown = text if isinstance(text, _Copied) else tie(text)
    if len(shown) <= _WHOLE:
        return escape(shown)
    long = Markup('<span class="word">{}</span>')
    found = Markup()
    for piece in split_name(shown):
        # after a blank or a hyphen a line may end anyway
        found += Markup("<wbr>") if found and found[-1] not in _ENDS else ""
        found += long.format(piece) if len(piece.rstrip()) > _WHOLE else piece
    return found


def _is_wide(columns: Sequence[Column]) -> bool:
    """Whether paper has no room for so many columns side by side."""
    return sum(_narrowest(column) + _BETWEEN for column in columns) > _PAPER


def _is_long(drawn: str) -> bool:
    """Whether one of the drawings of a chart does not fit a page of paper."""
    for found in _DRAWING.finditer(drawn):
        across, down = map(float, found.groups())
        room = _ACROSS if 'class="wide"' in found[0] else _BESIDE
        if 'class="narrow"' not in found[0] and across and down / across * room > _HIGHEST:
            return True
    return False


def _narrowest(column: Column) -> int:
    """Letters of the longest piece of a column that stays in one line."""
    texts = (*column.cells, *column.beside)
    whole = [text for text in texts if not column.words or len(text) <= _SHORT]
    return max(map(len, [*whole, *column.title.split(" ")]), default=0)


def _tie_text(value: object) -> object:
    """A number and its unit stay in one line; charts and what is copied out are left alone."""
    return tie(value) if type(value) is str else value
