"""Blocks as one HTML file that needs nothing else: no script, no network, no fonts from elsewhere."""

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from pgstrata.model.answer import Verdict
from pgstrata.report.blocks.layout import tie
from pgstrata.report.blocks.model import Document

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
# Words of at most so many letters are not broken.
_SHORT = 24


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
        "sign": lambda verdict: f"{_SIGNS[verdict]} " if verdict in _SIGNS else "",
        "short": lambda column: max(map(len, column.cells), default=0) <= _SHORT,
        "kind": lambda block: type(block).__name__,
    }
    return templates.get_template("page.html.j2").render(document=document).lstrip()


def _tie_text(value: object) -> object:
    """A number and its unit stay in one line; charts and what is copied out are left alone."""
    return tie(value) if type(value) is str else value
