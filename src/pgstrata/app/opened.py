"""A study wherever it is: in its folder, or in a bundle that is unpacked for as long as it is looked at."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pgstrata.store.repository import StudyFolder


@contextmanager
def open_study(path: Path) -> Iterator[StudyFolder]:
    """The study in a folder, or in a bundle; BundleError where the file is none, or is damaged."""
    if not path.is_file():
        yield StudyFolder(path)
        return
    from pgstrata.app.bundle import unpacked  # noqa: PLC0415 - studies in folders are looked at far more often

    with unpacked(path) as study:
        yield study
