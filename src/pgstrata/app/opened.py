"""Opens a study in a folder, or in a bundle, which is unpacked for as long as it is needed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pgstrata.store.repository import StudyFolder
from pgstrata.system.reading import open_regular

_XZ: Final = b"\xfd7zXZ\0"


@contextmanager
def open_study(path: Path) -> Iterator[StudyFolder]:
    """The study in a folder, or in a bundle; BundleError if the bundle is damaged."""
    if not path.is_file() or not _is_packed(path):
        yield StudyFolder(path)
        return
    from pgstrata.app.bundle import unpacked  # noqa: PLC0415 - studies in folders are looked at far more often

    with unpacked(path) as study:
        yield study


def _is_packed(path: Path) -> bool:
    """Whether a file begins like an xz archive; other files get the usual error for a path without a study."""
    try:
        with open_regular(path) as stream:
            return stream.read(len(_XZ)) == _XZ
    except OSError:
        return False
