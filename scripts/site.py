"""Copies README.md and everything that it leads to into the folder from which MkDocs makes the site.

    build/site-tools/bin/python scripts/site.py TARGET

Files keep their places, so that links are the same in the repository and on the site. Two things are changed. A link to
a folder leads to a page that lists its files. Formulas between dollars become MathML, which browsers show without a
script.
"""

# ruff: noqa: INP001  a script

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from latex2mathml.converter import convert

ROOT: Final = Path(__file__).parents[1]
_CODE: Final = re.compile(r"(^```.*?^```$|`[^`\n]+`)", re.MULTILINE | re.DOTALL)
_LINK: Final = re.compile(r"\]\((?P<target>[^)\s#]+)(?P<anchor>#[^)\s]*)?\)")
_BLOCK: Final = re.compile(r"^\$\$(.+?)\$\$$", re.MULTILINE | re.DOTALL)
_INLINE: Final = re.compile(r"\$(?=\S)([^$\n]+(?:\n[^$\n]+)?)(?<=\S)\$")
_ELSEWHERE: Final = ("https://", "http://", "mailto:")


def linked(text: str, page: Path) -> Iterator[Path]:
    """What a page links to in the repository."""
    for match in _LINK.finditer("".join(_CODE.split(text)[::2])):
        if not match["target"].startswith(_ELSEWHERE):
            yield (page.parent / match["target"]).resolve()


def stage(target: Path) -> None:
    """Copy all that can be reached; a page that is missing is left for MkDocs to report."""
    done, waiting = set[Path](), [ROOT / "README.md"]
    while waiting:
        here = waiting.pop()
        if here in done or not here.exists() or not here.is_relative_to(ROOT):
            continue
        done.add(here)
        there = target / here.relative_to(ROOT)
        if here.is_dir():
            if not (here / "README.md").exists():
                there.mkdir(parents=True, exist_ok=True)
                (there / "index.md").write_text(list_files(here), encoding="utf-8")
            waiting += [path for path in here.iterdir() if path.is_file()]
            continue
        there.parent.mkdir(parents=True, exist_ok=True)
        if here.suffix != ".md":
            shutil.copyfile(here, there)  # noqa: TID251 - no file of a host
            continue
        text = here.read_text(encoding="utf-8")
        waiting += linked(text, here)
        there.write_text(render(text, here), encoding="utf-8")


def list_files(folder: Path) -> str:
    """A page with the names of the files of a folder."""
    names = sorted(path.name for path in folder.iterdir() if path.is_file())
    return f"# {folder.relative_to(ROOT)}\n\n" + "".join(f"- [{name}]({name})\n" for name in names)


def render(text: str, page: Path) -> str:
    """A page for the site; code stays as it is."""

    def to_page(match: re.Match[str]) -> str:
        folder = (page.parent / match["target"]).resolve()
        if match["target"].startswith(_ELSEWHERE) or not folder.is_dir():
            return match[0]
        name = "README.md" if (folder / "README.md").exists() else "index.md"
        return f"]({match['target'].rstrip('/')}/{name})"

    parts = _CODE.split(text)
    for number in range(0, len(parts), 2):
        part = _LINK.sub(to_page, parts[number])
        part = _BLOCK.sub(lambda match: f"\n{convert(match[1].strip(), display='block')}\n", part)
        parts[number] = _INLINE.sub(lambda match: convert(" ".join(match[1].split())), part)
    return "".join(parts)


if __name__ == "__main__":
    stage(Path(sys.argv[1]).resolve())
