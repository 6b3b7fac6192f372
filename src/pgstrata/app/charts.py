"""Writes the charts of a document into a new folder, each as SVG and as PNG."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from pgstrata.errors import UsageError
from pgstrata.experiment.keys import slug
from pgstrata.report.blocks.drawings import Drawing, list_drawings
from pgstrata.report.blocks.model import Document
from pgstrata.system.files import make_folders, write_error, writing_new

_SCALE: Final = 2.0
"""Pixels of a picture for each pixel of a drawing: sharp on a slide and on paper."""
_LONGEST: Final = 80
_OPTION: Final = "--charts"
_DARK: Final = re.compile(r"@media\([^)]*\)\{(?:[^{}]*\{[^{}]*\})*\}")


def write_charts(document: Document, folder: Path) -> int:
    """Write the charts, and return how many there are.

    Raises:
        UsageError: there is something in the folder.
        DiskFullError, PgstrataError: it cannot be written.
    """
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            remedy = f"name a new folder with {_OPTION}"
            raise UsageError("there is something here already", where=str(folder), remedy=remedy)
        make_folders(folder)
        number = 0
        for number, drawing in enumerate(list_drawings(document), 1):
            name = name_drawing(number, drawing)
            for suffix, content in ((".svg", drawing.svg.encode()), (".png", _to_png(drawing.svg))):
                with writing_new(folder / f"{name}{suffix}") as stream:
                    stream.write(content)
    except OSError as error:
        remedy = f"name another folder with {_OPTION}"
        raise write_error("the charts cannot be written", error, where=folder, remedy=remedy) from None
    return number


def name_drawing(number: int, drawing: Drawing) -> str:
    """The name of a file: the number of the chart in the report, and what it shows."""
    return f"{number:03}-{slug('-'.join(drawing.titles[-2:]).lower())[:_LONGEST].rstrip('-.')}"


def _to_png(svg: str) -> bytes:
    """As on a light page."""
    import vl_convert  # noqa: PLC0415 - it takes a tenth of a second

    return bytes(vl_convert.svg_to_png(_DARK.sub("", svg), scale=_SCALE))
