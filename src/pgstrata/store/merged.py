"""Merged studies on disk: `merged.json`, and a copy of each study below `parts`."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from pgstrata.errors import StudyError
from pgstrata.model import sizes
from pgstrata.model.codec import decode, encode, parse_json
from pgstrata.model.merged import MergedHead
from pgstrata.store import evidence
from pgstrata.store.bundles.manifest import check_name
from pgstrata.store.bundles.pack import BundledStudy
from pgstrata.store.bundles.unpack import require_free
from pgstrata.store.failures import storage_errors
from pgstrata.store.serialise import render_json
from pgstrata.store.study import MERGED_FILE
from pgstrata.system import files, reading

FORMAT: Final = 1
PARTS: Final = "parts"
_READ_ONLY: Final = 0o444
MOST_PARTS: Final = 100


def load_merged_head(folder: Path) -> MergedHead:
    """Read `merged.json`; StudyError if the file is damaged or has another format."""
    path = folder / MERGED_FILE
    with storage_errors(folder):
        content = reading.read_regular(path, most=sizes.MARKER)
    try:
        head = decode(MergedHead, parse_json(content))
        for name in head.parts:
            check_name(name)
        if not 1 < len(set(head.parts)) == len(head.parts) <= MOST_PARTS:
            raise ValueError(f"it names {len(head.parts)} parts")  # noqa: TRY301 - one message for all
    except (ValueError, TypeError, KeyError) as error:
        what = f"the file of a merged study is damaged: {error}"
        raise StudyError(what, where=str(path), remedy="merge the studies again") from error
    if head.format != FORMAT:
        remedy = "use the pgstrata that made it, or a newer one"
        what = f"the merged study has format {head.format}, and this pgstrata reads format {FORMAT}"
        raise StudyError(what, where=str(path), remedy=remedy)
    return head


def write_merged(
    target: Path,
    factor: str,
    parts: Mapping[str, Path],
    derive: Callable[[Path], None],
    accept: Callable[[Path], object],
) -> None:
    """Copy studies into a new folder, which is complete or does not exist.

    Args:
        target: path of the new folder.
        factor: the factor by which the parts differ.
        parts: folders of studies by the name of their part.
        derive: makes the catalogue of a part.
        accept: called with the temporary folder before it is renamed; an exception refuses it.

    Raises:
        StudyError: the path exists already, or one of the folders is no study.
    """
    target = target.absolute()
    require_free(target)
    aside = target.with_name(f".pgstrata-{os.urandom(8).hex()}.merging")
    with storage_errors(target):
        files.make_folders(target.parent)
        files.make_folder(aside)
    try:
        for name, folder in parts.items():
            _copy(BundledStudy(folder), aside / PARTS / name)
            derive(aside / PARTS / name)
        head = MergedHead(format=FORMAT, factor=factor, parts=tuple(parts))
        with storage_errors(target):
            files.write_new(aside / MERGED_FILE, render_json(encode(head), indent=1))
        accept(aside)
        require_free(target)
        with storage_errors(target):
            files.rename(aside, target)
    except BaseException:
        files.remove_rest(aside)
        raise


def _copy(study: BundledStudy, folder: Path) -> None:
    for path, content, shared in study.files():
        with storage_errors(folder):
            if not shared:
                files.write_new(folder / path, content)
                continue
            source = folder / evidence.SHARED / hashlib.sha256(content).hexdigest()
            if not source.exists():
                files.write_new(source, content, mode=_READ_ONLY)
            files.link_or_copy(source, folder / path)
