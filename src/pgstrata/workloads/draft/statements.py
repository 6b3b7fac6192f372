"""Statements as pg_stat_statements keeps them: their tables, and what each parameter is compared with.

Lexical rules: PostgreSQL's documentation, chapter "Lexical Structure". The shapes that are recognised are those of
`_Reader`; whatever has none of them has no column.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Final

from pgstrata.diagnosis.query_text import end_of_comment

_TOKEN: Final = re.compile(
    r"""
      (?P<comment> --[^\n]* )
    | (?P<block> /\* )
    | (?P<constant>
          (?: [eEbBxXnN]|[uU]& )? '(?: '' | [^'] )*(?: '|\Z )
        | \$(?P<tag> [^\W\d]\w* )?\$ .*? (?: \$(?(tag)(?P=tag))\$ | \Z )
        | \d[\w.]*
      )
    | (?P<parameter> \$\d+ )
    | (?P<name> "(?: "" | [^"] )*(?: "|\Z ) | [^\W\d][\w$]* )
    | (?P<space> \s+ )
    | (?P<operator> :: | [<>=!~+\-*/%^&|\#@?]+? (?= --|/\*|[^<>=!~+\-*/%^&|\#@?]|\Z ) )
    | (?P<other> . )
    """,
    re.DOTALL | re.VERBOSE,
)
_PREPARED: Final = re.compile(r"\s*prepare\s+\S+\s+(?:\([^)]*\)\s*)?as\s+", re.IGNORECASE)

QUERIES: Final = frozenset({"select", "insert", "update", "delete", "merge", "values", "with", "table"})
"""First words of statements that can be a script; all others are utility statements."""
_COMPARING: Final = frozenset({"=", "<", ">", "<=", ">=", "<>", "!=", "~~", "~~*", "!~~", "~", "~*", "@>", "<@"})
_COMPARING_WORDS: Final = frozenset({"like", "ilike"})
_ADDING: Final = frozenset({"+", "-", "*", "/", "%"})
_TYPED: Final = frozenset({"date", "time", "timestamp", "timestamptz", "timetz", "interval", "json", "jsonb", "uuid"})
_NO_ALIAS: Final = frozenset({
    "on", "using", "where", "set", "values", "select", "join", "left", "right", "inner", "outer", "full", "cross",
    "natural", "group", "order", "having", "limit", "offset", "fetch", "union", "intersect", "except", "for",
    "returning", "default", "overriding", "when", "then", "window", "tablesample", "with",
})  # fmt: skip
_NO_TABLE_AFTER: Final = {"update": {"for", "key", "do", "then"}, "from": {"distinct"}}


class How(IntEnum):
    """What a parameter stands for, the most telling last."""

    UNKNOWN = 0
    LIMIT = 1
    SEVERAL = 2
    ARRAY = 3
    ADDED = 4
    INSERTED = 5
    COMPARED = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A piece of a statement; `several`: a comment behind this parameter says that more constants followed."""

    kind: str
    text: str
    several: bool = False

    @property
    def folded(self) -> str:
        """A name as the server knows it, any other token as it is."""
        if self.kind != "name":
            return self.text
        return self.text[1:-1].replace('""', '"') if self.text.startswith('"') else self.text.lower()

    @property
    def word(self) -> str:
        """A keyword in small letters; empty for what cannot be one."""
        return self.text.lower() if self.kind == "name" and not self.text.startswith('"') else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableName:
    """A table as a statement names it; `schema` is empty where the search path decides."""

    schema: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One of $1, $2, …: how it is used, with the column that it is compared with, empty where none was found.

    `qualifier` is the alias or table before the column. `cast` is the type that the statement gives it. `lower` is the
    number of the parameter that begins a range which this one ends, 0 without one.
    """

    number: int
    how: How = How.UNKNOWN
    qualifier: str = ""
    column: str = ""
    cast: str = ""
    lower: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A statement, cut into tokens without comments. `tables` are those that it names, by alias or name."""

    keyword: str
    tokens: tuple[Token, ...]
    tables: tuple[tuple[str, TableName], ...]
    parameters: Mapping[int, Parameter]

    def render(self, names: Mapping[int, str]) -> str:
        """The statement with pgbench's variables for parameters, and nothing that pgbench would read as another."""
        pieces: list[str] = []
        for token in self.tokens:
            after_colon = bool(pieces) and pieces[-1].endswith(":") and not pieces[-1].endswith("::")
            text = f":{names[int(token.text[1:])]}" if token.kind == "parameter" else token.text
            if (token.kind == "parameter" and pieces and pieces[-1].endswith(":")) or (
                after_colon and re.match(r"\w", text)
            ):
                text = f" {text}"
            pieces.append(text)
        return re.sub(r"[ \t]+\n", "\n", "".join(pieces)).strip().rstrip(";").rstrip()


def parse_statement(text: str) -> Statement:
    """What can be told of a statement by its tokens."""
    tokens = tuple(_untyped(list(_tokens(_PREPARED.sub("", text, count=1)))))
    reader = _Reader([token for token in tokens if token.kind != "space"])
    return Statement(
        keyword=next((token.word for token in tokens if token.word), ""),
        tokens=tokens,
        tables=tuple(reader.tables()),
        parameters=reader.parameters(),
    )


def _tokens(text: str) -> Iterator[Token]:
    place = 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        assert match is not None
        kind, piece, place = match.lastgroup or "other", match[0], match.end()
        kind = "constant" if match["constant"] is not None else kind
        if kind == "operator":
            piece = _operator(piece)
            place = match.start() + len(piece)
        if kind == "block":
            end = end_of_comment(text, place)
            yield Token(kind="space", text=" ", several="..." in text[place:end])
            place = end
        elif kind == "comment":
            yield Token(kind="space", text=" ")
        else:
            yield Token(kind=kind, text=piece)


def _operator(text: str) -> str:
    """An operator without the sign of a number behind it: longer ones end in + or - only with one of ~!@#%^&|?."""
    while len(text) > 1 and text[-1] in "+-" and not set(text) & set("~!@#%^&|?"):
        text = text[:-1]
    return text


def _untyped(tokens: list[Token]) -> Iterator[Token]:
    """`interval $1` as `$1::interval`, because only constants can follow a type; marks of squashed lists are kept."""
    held: list[Token] = []
    for index, token in enumerate(tokens):
        if held and token.kind == "parameter":
            yield from (token, Token(kind="operator", text="::"), held[0])
            held = []
            continue
        if not held or token.kind != "space":
            yield from held
            held = []
        following = next((each for each in tokens[index + 1 :][:2] if each.kind != "space"), None)
        if token.word in _TYPED and following is not None and following.kind == "parameter":
            held = [token]
        elif not (held and token.kind == "space"):
            several = token.kind == "parameter" and any(each.several for each in tokens[index + 1 :][:2])
            yield replace(token, several=several) if several else token
    yield from held


class _Reader:
    """Tokens without spaces, read forwards and backwards from a place."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self._nothing = Token(kind="", text="")

    def _at(self, index: int) -> Token:
        return self._tokens[index] if 0 <= index < len(self._tokens) else self._nothing

    # ----------------------------------------------------------------------------------------- tables

    def tables(self) -> Iterator[tuple[str, TableName]]:
        """Alias or name, and table, for each that follows FROM, JOIN, USING, UPDATE or INTO."""
        common = set(self._common())
        for index, token in enumerate(self._tokens):
            if token.word not in {"from", "join", "using", "update", "into"}:
                continue
            if self._at(index - 1).word in _NO_TABLE_AFTER.get(token.word, ()):
                continue
            place = index + 1
            while place:
                found, place = self._table(place, into=token.word == "into")
                if found is not None and (found[1].schema or found[1].name not in common):
                    yield found
                place = place + 1 if self._at(place).text == "," and token.word in {"from", "using"} else 0

    def _common(self) -> Iterator[str]:
        """Names of common table expressions: NAME AS [NOT MATERIALIZED] (."""
        for index, token in enumerate(self._tokens):
            follows = [self._at(index + step) for step in (1, 2)]
            begins = follows[1].text == "(" or follows[1].word in {"not", "materialized"}
            if token.kind == "name" and follows[0].word == "as" and begins:
                yield token.folded

    def _table(self, place: int, *, into: bool) -> tuple[tuple[str, TableName] | None, int]:
        """A table with its alias, and the place behind both."""
        while self._at(place).word in {"only", "lateral"}:
            place += 1
        if self._at(place).text == "(":
            return None, self._behind_brackets(place)
        if self._at(place).kind != "name" or self._at(place).word in {"select", "values"}:
            return None, place
        parts = [self._at(place).folded]
        place += 1
        while self._at(place).text == "." and self._at(place + 1).kind == "name":
            parts.append(self._at(place + 1).folded)
            place += 2
        if self._at(place).text == "(" and not into:
            return None, place
        alias = parts[-1]
        named = self._at(place).word == "as"
        if named or (self._at(place).kind == "name" and self._at(place).word not in _NO_ALIAS):
            alias = self._at(place + named).folded
            place += 1 + named
        schema = parts[-2] if len(parts) > 1 else ""
        return (alias, TableName(schema=schema, name=parts[-1])), place

    def _behind_brackets(self, place: int) -> int:
        """The place behind a subquery and its alias; the tables in it are found on their own."""
        depth = 0
        for index in range(place, len(self._tokens)):
            depth += {"(": 1, ")": -1}.get(self._at(index).text, 0)
            if depth == 0:
                named = self._at(index + 1).word == "as"
                return index + 2 + named if self._at(index + 1 + named).kind == "name" else index + 1
        return len(self._tokens)

    # ------------------------------------------------------------------------------------- parameters

    def parameters(self) -> dict[int, Parameter]:
        """Each parameter once, as its most telling use says."""
        found: dict[int, Parameter] = {}
        inserted = dict(self._inserted())
        for index, token in enumerate(self._tokens):
            if token.kind == "parameter":
                number = int(token.text[1:])
                read = replace(self._parameter(index, inserted), number=number)
                known = found.get(number)
                if known is None or known.how < read.how:
                    found[number] = replace(read, cast=read.cast or (known.cast if known else ""))
        return dict(sorted(found.items()))

    def _inserted(self) -> Iterator[tuple[int, str]]:
        """Column by index of token, for parameters that stand alone in the rows of INSERT INTO t (…) VALUES."""
        words = [token.word for token in self._tokens]
        if "insert" not in words or "values" not in words:
            return
        values = words.index("values")
        begin = next((at for at in range(words.index("insert"), values) if self._at(at).text == "("), values)
        columns = [token.folded for token in self._tokens[begin + 1 : values] if token.kind == "name"]
        depth, column = 0, 0
        for index in range(values + 1, len(self._tokens)):
            token = self._at(index)
            depth += {"(": 1, ")": -1}.get(token.text, 0)
            if depth == 0 and token.text not in {")", ","}:
                return
            if depth == 1 and token.text in {"(", ","}:
                column = 0 if token.text == "(" else column + 1
            alone = self._at(index - 1).text in {"(", ","} and self._at(index + 1).text in {")", ",", "::"}
            if depth == 1 and token.kind == "parameter" and alone and column < len(columns):
                yield index, columns[column]

    def _parameter(self, index: int, inserted: Mapping[int, str]) -> Parameter:
        left, right, cast = index - 1, index + 1, ""
        if self._at(right).text == "::":
            cast, right = self._at(right + 1).folded, right + 2
            if self._at(right).text == "[":
                return Parameter(number=0, how=How.ARRAY, cast=f"{cast}[]")
        if index in inserted:
            return Parameter(number=0, how=How.INSERTED, column=inserted[index], cast=cast)
        if self._at(left).text == "(" and self._at(left - 1).word in {"any", "all", "some"}:
            return Parameter(number=0, how=How.ARRAY, cast=cast)
        if self._at(index).several:
            return Parameter(number=0, how=How.SEVERAL, cast=cast)
        while self._at(left).text == "(" and self._at(right).text == ")" and self._at(left - 1).kind != "name":
            left, right = left - 1, right + 1
        if self._at(left).word in {"limit", "offset", "first", "next"}:
            return Parameter(number=0, how=How.LIMIT, cast=cast)
        return replace(self._compared(left, right), cast=cast)

    def _compared(self, left: int, right: int) -> Parameter:
        before, after = self._at(left), self._at(right)
        if after.text in _ADDING:
            return Parameter(number=0)  # a part of what is compared, not the value itself
        if before.text in _COMPARING or before.word in _COMPARING_WORDS:
            return self._column_before(left, How.COMPARED)
        if before.word == "between":
            return self._column_before(left, How.COMPARED)
        if before.word == "and" and (between := self._between(left)):
            lower = self._at(between + 1)
            compared = self._column_before(between, How.COMPARED)
            return replace(compared, lower=int(lower.text[1:]) if lower.kind == "parameter" else 0)
        if (opening := self._opening_of_in(left)) is not None:
            return self._column_before(opening - 1, How.COMPARED)
        if after.text in _COMPARING and (found := self._column_after(right)):
            return found
        if before.text in _ADDING:
            return self._column_before(left, How.ADDED)
        return Parameter(number=0)

    def _between(self, place: int) -> int:
        """Where the BETWEEN stands whose AND is at the place, not far before it; 0 for none."""
        for back in range(2, 6):
            if self._at(place - back).word == "between":
                return place - back
            if self._at(place - back).word in {"and", "or", "where"}:
                return 0
        return 0

    def _opening_of_in(self, place: int) -> int | None:
        """The opening bracket of a list after IN, if a list of constants and parameters leads to it."""
        while self._at(place).text in {",", "::"} or self._at(place).kind in {"parameter", "constant", "name"}:
            place -= 1
        return place if self._at(place).text == "(" and self._at(place - 1).word == "in" else None

    def _column_before(self, place: int, how: How) -> Parameter:
        """The column that ends before an operator; none where an expression does."""
        end = place - 1
        if self._at(end).word == "not":
            end -= 1
        if self._at(end).kind != "name" or self._at(end).word in _NO_ALIAS:
            return Parameter(number=0)
        qualified = self._at(end - 1).text == "." and self._at(end - 2).kind == "name"
        begin = end - 2 if qualified else end
        if self._at(begin - 1).text in _ADDING or self._at(begin - 1).text == "::":
            return Parameter(number=0)
        qualifier = self._at(begin).folded if qualified else ""
        return Parameter(number=0, how=how, qualifier=qualifier, column=self._at(end).folded)

    def _column_after(self, place: int) -> Parameter | None:
        begin = place + 1
        if self._at(begin).kind != "name":
            return None
        qualified = self._at(begin + 1).text == "." and self._at(begin + 2).kind == "name"
        end = begin + 2 if qualified else begin
        if self._at(end + 1).text in {"(", ".", "::"} or self._at(end + 1).text in _ADDING:
            return None
        qualifier = self._at(begin).folded if qualified else ""
        return Parameter(number=0, how=How.COMPARED, qualifier=qualifier, column=self._at(end).folded)
