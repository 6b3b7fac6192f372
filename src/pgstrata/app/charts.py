"""Writes the charts of a document into a new folder, as SVG and PNG; chooses the font that texts are measured in."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
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
_FONTS: Final = "FONTCONFIG_FILE"
"""The environment variable with the path of fontconfig's file, which names the folders of fonts."""
_NO_FONTS: Final = b'<?xml version="1.0"?><fontconfig><dir>/nonexistent</dir></fontconfig>'
_EMPTY: Final = '<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>'
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


def measure_texts_in_own_font() -> None:
    """Measure the texts of all charts of this process in the font that is part of the renderer, Liberation Sans.

    Where the system has that font as well, the renderer would take the system's, and open its file for each text: a
    hundred thousand times for a large report, which is a quarter of its CPU. Call this before the first chart is
    drawn, and only if all texts are ASCII: for others, the renderer needs the fonts of the system. If no temporary
    file can be made, nothing changes.
    """
    import vl_convert  # noqa: PLC0415 - it takes a tenth of a second

    before = os.environ.get(_FONTS)
    with suppress(OSError), NamedTemporaryFile(prefix="pgstrata-fonts.") as file:
        file.write(_NO_FONTS)
        file.flush()
        os.environ[_FONTS] = file.name
        try:
            vl_convert.svg_to_png(_EMPTY)  # the first drawing loads the fonts
        finally:
            del os.environ[_FONTS]
            if before is not None:
                os.environ[_FONTS] = before


def name_drawing(number: int, drawing: Drawing) -> str:
    """The name of a file: the number of the chart in the report, and what it shows."""
    return f"{number:03}-{slug('-'.join(drawing.titles[-2:]).lower())[:_LONGEST].rstrip('-.')}"


def _to_png(svg: str) -> bytes:
    """As on a light page."""
    import vl_convert  # noqa: PLC0415 - it takes a tenth of a second

    return bytes(vl_convert.svg_to_png(_DARK.sub("", svg), scale=_SCALE))
