"""An experiment file within some columns, so that it can still be copied: it means the same, checked by reading it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from textwrap import wrap
from typing import Any

_MARK = " \\"
_STRING = re.compile(r'(?P<head>\s*[\w."-]+\s*=\s*)"(?P<text>(?:[^"\\]|\\.)*)"\s*(?P<comment>#.*)?$')
_ARRAY = re.compile(r"(?P<head>\s*[\w.\"-]+\s*=\s*\[)(?P<items>[^\[\]#]*)\]\s*(?P<comment>#.*)?$")
_WORDS = re.compile(r"\S+\s*|\s+")
_TRAILING = re.compile(r"(?P<head>[^#]*[^#\s])\s+(?P<comment>#.*)$")


def fold_experiment(text: str, width: int) -> tuple[list[str], bool]:
    """Lines of at most `width` characters, and whether some end in a backslash where the file does not.

    Comments are wrapped, strings and arrays go on in the next line as TOML allows. Where that does not give the same
    experiment again, lines are cut at the width, and a backslash says so.
    """
    lines = [line.expandtabs(4) for line in text.splitlines()]
    folded = [piece for line in lines for piece in _fold(line, width)]
    if all(len(line) <= width for line in folded) and _means("\n".join(folded)) == _means(text) is not None:
        return folded, False
    return [piece for line in lines for piece in _cut(line, width)], any(len(line) > width for line in lines)


def _means(text: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):
        return None


def _fold(line: str, width: int) -> Iterator[str]:
    if len(line) <= width:
        yield line
    elif line.lstrip().startswith("#"):
        yield from _wrap_comment(line, width)
    elif found := _STRING.match(line):
        yield from _wrap_comment(found["comment"] or "", width)
        yield from _fold_string(found["head"], found["text"], width)
    elif found := _ARRAY.match(line):
        yield from _wrap_comment(found["comment"] or "", width)
        yield from wrap(
            f"{found['head']}{found['items']}]",
            width,
            subsequent_indent="  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
    elif found := _TRAILING.match(line):
        yield from _wrap_comment(found["comment"], width)
        yield found["head"]
    else:
        yield line


def _wrap_comment(line: str, width: int) -> list[str]:
    indent = line[: len(line) - len(line.lstrip())]
    marks = f"{indent}# "
    return wrap(
        line.strip().lstrip("#").strip(), width, initial_indent=marks, subsequent_indent=marks, break_on_hyphens=False
    )


def _fold_string(head: str, text: str, width: int) -> Iterator[str]:
    """A string of several lines: a backslash at the end of a line takes the break and the indent out again."""
    if len(f'{head}"{text}"') <= width:
        yield f'{head}"{text}"'
        return
    line = f'{head}"""'
    for word in _WORDS.findall(text):
        if len(line) + len(word) + len("\\") > width and line.strip():
            yield f"{line}\\"
            line = "  "
        line += word
    if len(f'{line}"""') > width:
        yield f"{line}\\"
        line = "  "
    yield f'{line}"""'


def _cut(line: str, width: int) -> list[str]:
    """The file letter by letter; a line that is too long says that it goes on."""
    room = width - len(_MARK)
    if len(line) <= width:
        return [line.rstrip()]
    pieces = [line[start : start + room] for start in range(0, len(line), room)]
    return [f"{piece}{_MARK}" for piece in pieces[:-1]] + [pieces[-1].rstrip()]
