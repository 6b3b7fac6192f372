"""Statements in pgbench's scripts: cut apart as pgbench and psql do, with parameters or values for variables. Pure.

Lexical rules: PostgreSQL's documentation, chapters "Lexical Structure" and pgbench, "Custom Scripts".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from pgstrata.diagnosis.query_text import end_of_comment
from pgstrata.libpq import quote_literal
from pgstrata.ports.driver import Statement

_TOKEN: Final = re.compile(
    r"""
      (?P<comment> --[^\n]* )
    | (?P<block> /\* )
    | (?P<verbatim>
          [eE]'(?: \\. | '' | [^'\\] )*(?: '|\Z )
        | '(?: '' | [^'] )*(?: '|\Z )
        | "(?: "" | [^"] )*(?: "|\Z )
        | \$(?P<tag> [^\W\d]\w* )?\$ .*? (?: \$(?(tag)(?P=tag))\$ | \Z )
      )
    | (?P<meta> \\(?!;)(?: \\\r?\n | [^\n] )* )
    | (?P<end> \\?; )
    | :(?P<variable> [^\W\d]\w* )
    | (?P<word> ::+ | [^\W\d][\w$]* | \d[\w.]* )
    | (?P<space> \s+ )
    | .
    """,
    re.DOTALL | re.VERBOSE,
)
_SET: Final = re.compile(r"\\set\s+(?P<name>\w+)\s+(?:random\w*\s*\(\s*)?(?P<value>[-+]?\d+(?:\.\d+)?)?")
_NUMBER: Final = re.compile(r"[-+]?\d+(?:\.\d+)?")


def parse_statements(text: str, values: Mapping[str, str]) -> tuple[Statement, ...]:
    """The statements of a script in their order, without comments; meta commands end a statement and are left out.

    Args:
        text: the script.
        values: of variables that the script does not set itself, and of those that it does: these here are taken.
    """
    known = {**parse_values(text), **values}
    found: list[Statement] = []
    pieces, variables, depth = [""], list[str](), 0
    for kind, piece in (*_tokens(text), ("meta", "")):
        if kind == "meta" or (kind == "end" and (depth <= 0 or piece != ";")):
            if variables or pieces[0].strip():
                found.append(_finished(pieces, variables, known))
            pieces, variables, depth = [""], [], 0
        elif kind == "variable":
            variables.append(piece)
            pieces.append("")
        elif kind != "space" or not pieces[-1].endswith(" "):
            depth += {"(": 1, ")": -1}.get(piece, 0)
            pieces[-1] += piece
    return tuple(found)


def parse_values(text: str) -> Mapping[str, str]:
    """One possible value of each variable that the script sets: a constant, or the least of a random number."""
    metas = (token for kind, token in _tokens(text) if kind == "meta")
    found = (match for meta in metas if (match := _SET.match(meta)))
    return {match["name"]: match["value"] or "1" for match in found}


def _finished(pieces: list[str], variables: list[str], values: Mapping[str, str]) -> Statement:
    """From pieces of text with a variable between each two of them; 1 is a variable of which no value is known."""
    first = re.match(r"\w+", pieces[0].lstrip())

    def join(between: list[str]) -> str:
        return "".join(part for pair in zip(pieces, [*between, ""], strict=True) for part in pair).strip()

    return Statement(
        keyword=first[0].upper() if first else "",
        with_parameters=join([f"${number}" for number in range(1, len(variables) + 1)]),
        with_values=join([_literal(values.get(name, "1")) for name in variables]),
        parameters=len(variables),
    )


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    """Kind and text; comments and white space as one blank, a variable without its colon."""
    place = 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        assert match is not None
        place = match.end()
        kind = "verbatim" if match["verbatim"] is not None else match.lastgroup or "other"
        if kind == "block":
            place = end_of_comment(text, place)
        if kind in {"comment", "block", "space"}:
            yield "space", " "
        else:
            yield kind, match[kind] if kind == "variable" else match[0]


def _literal(value: str) -> str:
    if _NUMBER.fullmatch(value):
        return f"({value})" if value[0] in "-+" else value
    return quote_literal(value)
