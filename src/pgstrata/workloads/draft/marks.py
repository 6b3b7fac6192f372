"""Statements of pg_stat_statements before PostgreSQL 10, which have a question mark in place of each constant."""

from __future__ import annotations

import re
from typing import Final

FIRST_NUMBERED: Final = 10
"""First major version whose pg_stat_statements numbers constants."""
_SPAN: Final = re.compile(
    r"""--[^\n]* | /\*.*?(?:\*/|\Z) | "(?:""|[^"])*(?:"|\Z) | '(?:''|[^'])*(?:'|\Z) | \?""", re.DOTALL | re.VERBOSE
)
_NUMBERED: Final = re.compile(r"\$(\d{1,5})")
# Behind the question mark of an operator of jsonb: a constant, or the rest of ?| and ?&.
_OPERAND: Final = re.compile(r"\s*\?|\|(?!\|)|&(?!&)")


def number_marks(text: str) -> str:
    """The text with $n for each question mark that stands for a constant, numbered on behind its parameters.

    A question mark that is followed by another is taken for the operator of jsonb, any other for a constant: nothing
    tells a column that follows the operator.
    """
    number = max((int(each) for each in _NUMBERED.findall(text)), default=0)

    def numbered(found: re.Match[str]) -> str:
        nonlocal number
        if found[0] != "?" or _OPERAND.match(text, found.end()):
            return found[0]
        number += 1
        return f"${number}"

    return _SPAN.sub(numbered, text)
