"""Everything that is wrong with a file, collected until all of it is known, and on which line each key stands.

Values come from tomllib; tree-sitter is asked for positions only, and only when there is an error to place.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pgstrata.errors import ExperimentError, Problem
from pgstrata.experiment.keys import Path, render_path
from pgstrata.experiment.servers import mask_conninfo

if TYPE_CHECKING:
    from tree_sitter import Node

ENCODING: Final = ("utf-8", "surrogatepass")
"""Encoding in whose bytes positions count; a word of a command line may hold what is no Unicode."""


def locate_lines(text: str) -> dict[str, int]:
    """Line (from 1) by path; a path is written with dots, quoted keys that hold dots included, and indices."""
    lines: dict[str, int] = {}
    tables: dict[str, int] = {}
    for node in _root(text).children:
        if node.type == "pair":
            _place_pair(node, (), lines)
        elif node.type in {"table", "table_array_element"}:
            _place_table(node, tables, lines)
    return lines


def line_of(lines: dict[str, int], path: Path) -> int | None:
    """Line of a path, or of the nearest table around it; None where only the file as a whole can be named."""
    for end in range(len(path), 0, -1):
        key = _joined(path[:end])
        if key in lines:
            return lines[key]
        # A quoted key such as "cpu.governor" is all that there is of the table cpu.
        inside = [line for name, line in lines.items() if name.startswith(f"{key}.")]
        if inside:
            return min(inside)
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class StringToken:
    """A string in the text: its value, and where it stands in the UTF-8 bytes."""

    value: str
    start: int
    end: int


def locate_strings(text: str) -> Iterator[StringToken]:
    """All string values of a TOML text, in order."""
    return _strings(_root(text))


def _strings(node: Node) -> Iterator[StringToken]:
    if node.type == "string":
        yield StringToken(value=_value(node), start=node.start_byte, end=node.end_byte)
        return
    for child in node.children:
        yield from _strings(child)


def _root(text: str) -> Node:
    # Loading the grammar costs milliseconds that a file without errors need not pay.
    import tree_sitter_toml  # noqa: PLC0415
    from tree_sitter import Language, Parser  # noqa: PLC0415

    return Parser(Language(tree_sitter_toml.language())).parse(text.encode(*ENCODING)).root_node


def _place_table(node: Node, tables: dict[str, int], lines: dict[str, int]) -> None:
    keys = next((_keys(child) for child in node.children if child.is_named), ())
    path = _resolve(keys, tables)
    if node.type == "table_array_element":
        index = tables.get(_joined(path), -1) + 1
        tables[_joined(path)] = index
        lines.setdefault(_joined(path), _line(node))
        path = (*path, index)
    lines.setdefault(_joined(path), _line(node))
    for child in node.children:
        if child.type == "pair":
            _place_pair(child, path, lines)


def _resolve(keys: tuple[str, ...], tables: dict[str, int]) -> Path:
    """[cells.options] below [[cells]] belongs to the latest element of cells."""
    path: Path = ()
    for position, key in enumerate(keys):
        path = (*path, key)
        if position < len(keys) - 1 and _joined(path) in tables:
            path = (*path, tables[_joined(path)])
    return path


def _place_pair(node: Node, prefix: Path, lines: dict[str, int]) -> None:
    named = [child for child in node.children if child.is_named and child.type != "comment"]
    if not named:
        return
    path = prefix
    for key in _keys(named[0]):
        path = (*path, key)
        lines.setdefault(_joined(path), _line(node))
    if len(named) > 1:
        _place_value(named[1], path, lines)


def _place_value(node: Node, path: Path, lines: dict[str, int]) -> None:
    lines.setdefault(_joined(path), _line(node))
    if node.type == "inline_table":
        for child in node.children:
            if child.type == "pair":
                _place_pair(child, path, lines)
    elif node.type == "array":
        items = (child for child in node.children if child.is_named and child.type != "comment")
        for index, item in enumerate(items):
            _place_value(item, (*path, index), lines)


def _keys(node: Node) -> tuple[str, ...]:
    if node.type == "dotted_key":
        return tuple(key for child in node.children if child.is_named for key in _keys(child))
    if node.type == "quoted_key":
        return (_value(node),)
    return (_text(node),)


def _value(node: Node) -> str:
    """The value of a string or quoted key; its written form where the grammar accepts what TOML does not."""
    try:
        return str(tomllib.loads(f"v = {_text(node)}")["v"])
    except tomllib.TOMLDecodeError:
        return _text(node).strip("\"'")


def _text(node: Node) -> str:
    return (node.text or b"").decode(*ENCODING)


def _line(node: Node) -> int:
    return node.start_point.row + 1


def _joined(path: Path) -> str:
    return ".".join(str(part) for part in path)


_MOST: Final = 100


class Findings:
    """Collects problems by path; lines are looked up at the end, if there is anything to report."""

    def __init__(self, text: str, source: str) -> None:
        self._text = text
        self._source = source
        # in the order of being found
        self._found: dict[tuple[Path, str, str], None] = {}

    def add(self, path: Path, what: str, remedy: str) -> None:
        """Note one problem; the same sentence about the same key is noted once, and never with a password in it.

        Raises ExperimentError after the first hundred: nobody reads more at once.
        """
        self._found[(path, mask_conninfo(what), mask_conninfo(remedy))] = None
        if len(self._found) >= _MOST:
            self.raise_if_any()

    def touches(self, path: Path) -> bool:
        """Whether something is already wrong at `path`, below it, or with what it is part of."""
        return any(_prefix(found, path) or _prefix(path, found) for found, _, _ in self._found)

    def raise_if_any(self) -> None:
        """Raise ExperimentError with all problems in the order of the file."""
        if not self._found:
            return
        lines = locate_lines(self._text)
        problems = [
            Problem(line=line_of(lines, path), key=render_path(path), what=what, remedy=remedy)
            for path, what, remedy in self._found
        ]
        ordered = tuple(sorted(problems, key=lambda problem: problem.line or 0))
        raise ExperimentError(self._source, ordered, more=len(ordered) >= _MOST)


def _prefix(short: Path, long: Path) -> bool:
    return long[: len(short)] == short
