"""JSON as tools write it: one document, one in each line, or assigned to a name in a script."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from pgstrata.importers.results import Contents
from pgstrata.importers.rows import to_number as text_to_number
from pgstrata.model.codec import parse_json

_ASSIGNED: Final = re.compile(
    r"\s*(?:const |let |var |window\.|export default )[\w.$ ]{0,80}?=?\s{0,80}(?=[\[{])", re.ASCII
)
_LONGEST: Final = 120


def read_json(text: str, read: Callable[[Any], Contents]) -> Contents:
    """Parse a text and pass the document to `read`; text that is not JSON or has another form is unusable."""
    try:
        document = _parse(text)
    except ValueError as error:
        what = f"not valid JSON: {str(error)[:_LONGEST]}"
        return Contents(results=(), unusable=((getattr(error, "lineno", 0), what),))
    try:
        return read(document)
    except (KeyError, TypeError, AttributeError) as error:
        what = f"the key {error} is missing" if isinstance(error, KeyError) else str(error)
        return Contents(results=(), unusable=((0, f"its JSON does not have this format: {what[:_LONGEST]}"),))


def _parse(text: str) -> Any:
    """The document, or a list of documents if each line is one."""
    if assigned := _ASSIGNED.match(text):
        text = text[assigned.end() :].rstrip().removesuffix(";")
    try:
        return parse_json(text.encode())
    except ValueError:
        lines = [line for line in text.splitlines() if line.strip()]
        if len(lines) < 2 or not all(line.lstrip().startswith("{") for line in lines):  # noqa: PLR2004 - one is no list
            raise
        return parse_json(("[" + ",\n".join(lines) + "]").encode())


def to_number(value: Any) -> float | None:
    """A finite number, or text that is one."""
    if isinstance(value, str):
        return text_to_number(value.strip())
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def to_levels(said: Mapping[str, Any]) -> dict[str, str]:
    """Levels as text. Missing and empty ones, lists and objects are left out."""
    return {
        name: " ".join(str(value).split())
        for name, value in said.items()
        if isinstance(value, (str, int, float)) and str(value).strip()
    }
