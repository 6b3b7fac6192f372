"""How long the sentences are that users read: the manual, and what the program prints.

    ONLY=readability make bench
    SINCE=COMMIT ONLY=readability make bench    also the figures of that commit, in the notes

The manual is README.md, `docs/*.md` and `docs/how-to`, without references and decisions. Headings, blocks of code and
tables are left out. Code in a line and a link count by their words. Messages are the texts in `src` of at least four
words that are no docstrings, scripts or statements of SQL. Whatever is filled in counts as one word.
"""

from __future__ import annotations

import ast
import io
import os
import re
import subprocess
import tarfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from figures import Figure

HERE = Path(__file__).parent.parent
LONG = 30
"""Words from beyond which on a sentence counts as long."""
_LEAST = 4
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_BLOCK = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*] |\d+\. |\||#))")
_END = re.compile(r"(?<=[.!?])[\"”)*]*\s+(?=[\"“(*`\[]*(?:[A-Z0-9]|pg|sysbench|ssh))")
_WORD = re.compile(r"\S*\w\S*")
_NO_PROSE = re.compile(r"[\n\t{}<>$=\\]|\b(?:SELECT|FROM|WHERE)\b|^[^\w\"'“(-]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """Words of each sentence."""

    words: Sequence[int]

    @property
    def median(self) -> float:
        return median(self.words)

    @property
    def long(self) -> float:
        """The share of long sentences, in percent."""
        return 100 * sum(number > LONG for number in self.words) / len(self.words)


def sentences(text: str) -> Iterator[str]:
    """Those of a page in Markdown."""
    for block in _BLOCK.split(_FENCE.sub("\n\n", text)):
        flat = " ".join(block.split())
        if flat and not flat.startswith(("|", "#", "![", "<")):
            yield from _END.split(flat.lstrip("-* "))


def messages(source: str) -> Iterator[str]:
    """Texts of a module that a user may read."""
    tree = ast.parse(source)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if id(node) in docstrings | parts or not isinstance(node, ast.JoinedStr | ast.Constant):
            continue
        text = _text_of(node)
        if _count(text) >= _LEAST and not _NO_PROSE.search(text):
            yield from _END.split(text)


def _text_of(node: ast.JoinedStr | ast.Constant) -> str:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    return "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values)


def _count(text: str) -> int:
    return len(_WORD.findall(text))


def _lengths(found: Iterable[str]) -> Lengths:
    return Lengths(words=[number for text in found if (number := _count(text)) > 1])


def read_manual(root: Path) -> Lengths:
    """Of the pages of a checkout."""
    docs = root / "docs"
    pages = [root / "README.md", *sorted(docs.glob("*.md")), *sorted((docs / "how-to").glob("*.md"))]
    return _lengths(sentence for page in pages for sentence in sentences(page.read_text()))


def read_messages(root: Path) -> Lengths:
    """Of the source of a checkout."""
    return _lengths(text for path in sorted((root / "src").rglob("*.py")) for text in messages(path.read_text()))


def _figures(name: str, now: Lengths, before: Lengths | None) -> Iterator[Figure]:
    since = os.environ.get("SINCE", "")
    for title, goal, unit, value, former in (
        ("median of a sentence", 15, "words", now.median, before and before.median),
        (f"sentences above {LONG} words", 3, "%", round(now.long, 2), before and round(before.long, 2)),
    ):
        notes = [f"{len(now.words)} sentences"]
        notes += [f"at {since}: {former:g} {unit}, {len(before.words)} sentences"] if before else []
        yield Figure(name=f"readability: {name}, {title}", value=value, goal=goal, unit=unit, notes=notes)


def measure_readability(root: Path = HERE) -> Iterator[Figure]:
    """Of the manual and of messages, now and at the commit that SINCE names."""
    former: tuple[Lengths | None, Lengths | None] = (None, None)
    if since := os.environ.get("SINCE"):
        words = ("git", "archive", since, "README.md", "docs", "src")
        done = subprocess.run(words, cwd=root, capture_output=True, check=True)
        with TemporaryDirectory() as folder, tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
            archive.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))  # type: ignore[arg-type]
            former = read_manual(Path(folder)), read_messages(Path(folder))
    yield from _figures("manual", read_manual(root), former[0])
    yield from _figures("messages", read_messages(root), former[1])
