"""Files that commands write for their user, where nothing may be there yet."""

from __future__ import annotations

import os
from pathlib import Path

from pgstrata.errors import UsageError
from pgstrata.system.files import write_error, writing_new


def name_after(source: Path) -> str:
    """What a folder or file is really called, for the name of a new one; also where links lead to each other."""
    return Path(os.path.realpath(source)).name


def write_new(file: Path, content: bytes) -> None:
    """Write a new file, which appears whole or not at all.

    Raises:
        UsageError: the file exists.
        DiskFullError, PgstrataError: it cannot be written.
    """
    try:
        with writing_new(file) as stream:
            stream.write(content)
    except FileExistsError:
        remedy = "remove it, or name another file with -o"
        raise UsageError("the file exists already", where=str(file), remedy=remedy) from None
    except OSError as error:
        remedy = "name another place with -o"
        raise write_error("the file cannot be written", error, where=file, remedy=remedy) from None
