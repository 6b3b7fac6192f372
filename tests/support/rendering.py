"""A report in each of its forms."""

from __future__ import annotations

import io
import json
from contextlib import contextmanager

import pytest
from rich.console import Console

from pgstrata.errors import PgstrataError
from pgstrata.report.answer.causes import make_why_document
from pgstrata.report.answer.document import make_document
from pgstrata.report.blocks.markdown import emit_markdown
from pgstrata.report.blocks.page import emit_page
from pgstrata.report.blocks.terminal import Extent, emit_terminal
from pgstrata.report.blocks.text import emit_text
from pgstrata.report.figures import vega


def render_text(answer):
    return emit_text(make_document(answer))


def render_why(answer):
    return emit_text(make_why_document(answer))


def render_html(answer):
    return emit_page(make_document(answer))


def render_terminal(answer, width):
    return emit_terminal(make_document(answer), width)


def render_markdown(answer):
    return emit_markdown(make_document(answer))


@contextmanager
def plain_charts():
    """Charts are not drawn, which takes most of the time of a page, but checked for numbers that no renderer takes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vega, "render", _check)
        yield


def _check(chart, rows, _width=""):
    json.dumps([chart, *rows], allow_nan=False)
    return "<svg></svg>"


def show_everywhere(document, *, page=True):
    """A document in all of its forms; of terminals a narrow, a usual and a wide one."""
    assert emit_text(document)
    assert emit_markdown(document)
    for width, extent in ((60, Extent.ANSWER), (100, Extent.TABLES), (180, Extent.WHOLE)):
        Console(file=io.StringIO(), width=width).print(emit_terminal(document, width, extent))
    assert not page or emit_page(document)


def attempt(act):
    """What comes of it, or None where it is refused with a remedy."""
    try:
        return act()
    except PgstrataError as error:
        refusal = error
    assert refusal.remedy
    return None
