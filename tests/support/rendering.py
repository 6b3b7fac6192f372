"""A report in each of its forms."""

from __future__ import annotations

from pgstrata.report.answer.causes import make_why_document
from pgstrata.report.answer.document import make_document
from pgstrata.report.blocks.markdown import emit_markdown
from pgstrata.report.blocks.page import emit_page
from pgstrata.report.blocks.terminal import emit_terminal
from pgstrata.report.blocks.text import emit_text


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
