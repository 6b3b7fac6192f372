"""Query texts without their constants: one text for whatever differs in constants, parameters, comments or case alone.

Three things happen to a text, in this order. The server itself replaces constants, so that none of them leaves it, by
the expression in `collectors/sessions/constants.regex` (for PostgreSQL, and after its own lexer, `scan.l`).
`read_masked` takes away the marks that this leaves. `normalise` does all of it again with any text, and makes alike
what means the same: texts of pg_stat_statements, of the prepared and of the simple protocol come out equal.
`hide_constants` is for texts that never were on a server, and for what quotes them.

What cannot be told for sure is taken for a constant to the end of the text: a backslash before a quote, which ends a
constant or not depending on a setting, a comment within a comment, what follows a quote of dollars with a tag.
"""

import hashlib
import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

LONGEST: Final = 400
"""Characters of a normalised text that are kept."""
_HASHED: Final = 12
_HASH: Final = re.compile(rf"q[0-9a-f]{{{_HASHED}}}")
_COMMENT_MARK: Final = re.compile(r"/\*|\*/")
# What the server leaves of a quoted identifier and of a comment, each with a question mark behind it.
_MARKED: Final = re.compile(r'("(?:[^"]|"")*"?)\??|(?:--|/\*)\??')
_TOKEN: Final = re.compile(
    r"""
      (?P<quoted>"(?:[^"]|"")*(?:"|\Z))
    | (?P<space>\s+|--[^\n\r]*|/\*(?:[^*/]|\*+[^*/]|/+[^*/])*+(?:\*+/|/+\*.*|[*/]*\Z))
    | (?P<constant>
          (?:\b[bBeEnNxX]|\b[uU]&)?'(?:''|[^'\\]|\\[^'])*+(?:'|\\'.*|\\?\Z)
        | \$\$(?:[^$]|\$[^$])*+(?:\$\$|\$?\Z)
        | \$[^\W\d]\w*\$.*
        | \$[0-9]+
        | \.?\b[0-9](?:[eE][-+][0-9]|[\w.])*
        | \?)
    | (?P<word>[^\W\d][\w$]*)
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
# After these words a sign belongs to the number behind it; after any other word it is an operator.
_NO_OPERANDS: Final = re.compile(
    r"all|and|any|between|by|case|distinct|else|from|having|in|is|like|"
    r"limit|not|offset|on|or|returning|select|set|some|then|values|when|where"
)
_LIST: Final = re.compile(r"\b(in ?\(|array ?\[) ?\?(?: ?, ?\?)* ?([)\]])")


def read_masked(text: str) -> str:
    """A text as the server masked it, without the marks."""
    return _MARKED.sub(lambda found: found[1] or " ", text)


def normalise(text: str) -> str:
    """The text with `?` for each constant, parameter and list of them, in small letters, without comments.

    Quoted identifiers stay as they are. Texts longer than `LONGEST` are cut there.
    """
    line = _Line()
    for found in _TOKEN.finditer(text):
        line.add(found.lastgroup or "", found[0])
    return _LIST.sub(r"\1?\2", line.text()).rstrip("; ")[:LONGEST]


@lru_cache(maxsize=4096)
def normalise_masked(text: str) -> str:
    """The normalised form of a text in which the server has replaced constants; samples repeat few texts often."""
    return normalise(read_masked(text))


def hide_constants(text: str, kept: str = "") -> str:
    """The text with `?` for each constant and without comments; all else stays, also parameters such as $1.

    Args:
        text: statements, or what EXPLAIN says of them.
        kept: a regular expression for what is no constant although it has numbers (as `re.VERBOSE` reads it).
    """
    tokens = re.compile(f"(?P<kept>{kept})|{_TOKEN.pattern}", _TOKEN.flags) if kept else _TOKEN
    return tokens.sub(_hide, text)


def _hide(found: re.Match[str]) -> str:
    token = found[0]
    if found.lastgroup == "kept":
        return token
    if found.lastgroup == "constant":
        return token if re.fullmatch(r"\$\d+", token) else "?"
    return " " if token.startswith(("--", "/*")) else token


def end_of_comment(text: str, place: int) -> int:
    """Where a comment ends that begins before `place`; comments nest."""
    depth = 1
    while depth:
        mark = _COMMENT_MARK.search(text, place)
        if mark is None:
            return len(text)
        depth += 1 if mark[0] == "/*" else -1
        place = mark.end()
    return place


def hash_query(normalised: str) -> str:
    """What stands for a normalised text where no text is to be kept; empty for none."""
    if not normalised:
        return ""
    return "q" + hashlib.sha256(normalised.encode("utf-8", "replace")).hexdigest()[:_HASHED]


def is_hash(text: str) -> bool:
    """Whether a text is one of `hash_query`."""
    return _HASH.fullmatch(text) is not None


@dataclass(slots=True, kw_only=True)
class _Line:
    """A normalised text in the making; `gap`: whether a space comes before the next token."""

    parts: list[str] = field(default_factory=list)
    gap: bool = False

    def add(self, kind: str, text: str) -> None:
        if kind == "space" or (kind == "other" and not text.isprintable()):
            self.gap = True
        elif kind == "constant":
            self._add_constant()
        elif kind == "quoted":
            self._append("".join(letter if letter.isprintable() else " " for letter in text))
        else:
            self._append(text.lower())

    def _add_constant(self) -> None:
        if self.parts and self.parts[-1] in {"+", "-"} and not self._after_operand():
            self.parts.pop()
            self.gap = False
        if self.parts and self.parts[-1] == "?" and self.gap:
            self.gap = False  # a constant that goes on in the next line
        else:
            self._append("?")

    def _after_operand(self) -> bool:
        """Whether the sign at the end stands between two operands."""
        before = next((part for part in reversed(self.parts[:-1]) if part != " "), "")
        if before[:1].isalpha() or before[:1] == "_":
            return not _NO_OPERANDS.fullmatch(before)
        return before in {")", "]", "?"} or before.startswith('"')

    def _append(self, text: str) -> None:
        if self.gap and self.parts:
            self.parts.append(" ")
        self.gap = False
        self.parts.append(text)

    def text(self) -> str:
        return "".join(self.parts)
