"""From a table of other tools' results, in a file or on standard input, to its comparisons."""

from __future__ import annotations

import errno
import sys
from pathlib import Path

from pgstrata.compare.one_look import ImportAnswer, ImportTerms, decide_import
from pgstrata.errors import UsageError
from pgstrata.model import sizes
from pgstrata.sources.table import parse_table
from pgstrata.system.reading import read_bounded

STANDARD_INPUT = Path("-")


def decide_file(file: Path, terms: ImportTerms) -> ImportAnswer:
    """The comparisons of a table; UsageError where it cannot be read or used."""
    text, source = read_table(file)
    return decide_import(parse_table(text, source, metric=terms.metric), terms)


def read_table(file: Path) -> tuple[str, str]:
    """The text of a table, and what messages call it; UsageError where it cannot be read."""
    source = "standard input" if file == STANDARD_INPUT else str(file)
    return _decode(_read_bytes(file, source), source), source


def _read_bytes(file: Path, source: str) -> bytes:
    try:
        if file == STANDARD_INPUT:
            return read_bounded(sys.stdin.buffer, source, most=sizes.TABLE)
        # a pipe too, such as a shell makes of `<(command)`
        with file.open("rb") as stream:
            return read_bounded(stream, source, most=sizes.TABLE)
    except FileNotFoundError:
        raise UsageError(
            "there is no such file", where=source, remedy="name a file of results, or - for standard input"
        ) from None
    except (OSError, ValueError, AttributeError) as error:
        # a standard input that was closed before the start is None, one that was closed since raises ValueError
        reason = error.strerror if isinstance(error, OSError) else "it is closed"
        if isinstance(error, OSError) and error.errno == errno.EFBIG:
            raise UsageError(f"the table is {reason}", where=source, remedy="split it, or leave columns out") from None
        remedy = "name the file in it" if file.is_dir() else "check its owner and permissions"
        raise UsageError(f"the file cannot be read: {reason}", where=source, remedy=remedy) from None


def _decode(data: bytes, source: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UsageError(
            f"the file is not UTF-8: {error.reason} at byte {error.start}",
            where=f"{source}:{line}",
            remedy="save it as CSV in UTF-8",
        ) from None
