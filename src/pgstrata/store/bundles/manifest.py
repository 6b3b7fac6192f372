"""Reads and writes the manifest of a bundle: it may name only files of a study, up to limits of number and size."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Final

from pgstrata.errors import BundleError
from pgstrata.model import sizes
from pgstrata.model.bundle import FORMAT, BundledFile, Manifest
from pgstrata.model.codec import decode, encode, parse_json
from pgstrata.store.evidence import EVIDENCE, FINGERPRINTS, SHARED
from pgstrata.store.study import EXPERIMENT_FILE, PLAN_FILE

ALTERED: Final = "copy the bundle again from its source, or have it written again: pgstrata bundle STUDY"
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_LONGEST_PATH: Final = 1024
_LONGEST_NAME: Final = 255
_DEEPEST: Final = 20
"""Folders in each other, and the file: a run has five. Each is checked, however many files are in it."""
_LEAST_RUN: Final = 4
"""Minimum number of folders above a file of a run: evidence, block, environment and cell."""


def render_manifest(manifest: Manifest) -> bytes:
    """manifest.json as bytes."""
    return (json.dumps(encode(manifest), ensure_ascii=True, separators=(",", ":")) + "\n").encode()


def parse_manifest(content: bytes, *, where: str) -> Manifest:
    """A manifest whose files all belong to a study and are within the limits.

    Raises:
        BundleError: it is damaged, has another format, or names files that no study has.
    """
    try:
        data = parse_json(content)
        number = data["format"]
        if isinstance(number, int) and number > FORMAT:
            raise BundleError(
                f"the bundle has format {number}, and this pgstrata reads formats up to {FORMAT}",
                where=where,
                remedy="use a newer pgstrata, such as the one that wrote it",
            )
        manifest = decode(Manifest, data)
        _check_format(number)
        check_name(manifest.study)
        check_files(manifest.files)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise BundleError(f"the manifest of the bundle is damaged: {error}", where=where, remedy=ALTERED) from error
    if manifest.size > sizes.BUNDLE_UNPACKED:
        raise BundleError(
            f"the unpacked study would be larger than the limit of {sizes.BUNDLE_UNPACKED >> 30} GiB",
            where=where,
            remedy="do not use this file: pgstrata writes no bundle of this size",
        )
    return manifest


def _check_format(number: object) -> None:
    if number != FORMAT:
        raise ValueError(f"there is no format {number}")


def check_name(name: str) -> None:
    """ValueError unless it is a plain name of a folder, without a path."""
    plain = name and name.isprintable() and name == PurePosixPath(name).name and not name.startswith(".")
    if not plain or len(name) > _LONGEST_NAME:
        raise ValueError(f"{name!r:.80} is not the name of a study")


def check_files(files: Iterable[BundledFile]) -> None:
    """ValueError unless each path is that of a file of a study, occurs once, and is not also a folder."""
    paths: set[str] = set()
    folders: set[str] = set()
    for file in files:
        _check_file(file)
        if file.path in paths:
            raise ValueError(f"{file.path!r:.200} occurs twice")
        paths.add(file.path)
        if len(paths) > sizes.BUNDLE_FILES:
            raise ValueError(f"it names more than {sizes.BUNDLE_FILES:,} files")
        folders |= {str(folder) for folder in PurePosixPath(file.path).parents}
    if both := sorted(paths & folders):
        raise ValueError(f"{both[0]!r:.200} is a file and a folder")
    if PLAN_FILE not in paths:
        raise ValueError("it has no plan")


def _check_file(file: BundledFile) -> None:
    path = PurePosixPath(file.path)
    inside = file.path == str(path) and not path.is_absolute() and len(file.path) <= _LONGEST_PATH
    if not inside or not file.path.isprintable() or any(part.startswith(".") for part in path.parts):
        raise ValueError(f"{file.path!r:.200} is not a valid path: it leaves the study, is hidden or is too long")
    if not _belongs(path) or len(path.parts) > _DEEPEST:
        raise ValueError(f"{file.path!r:.200} is not a file of a study")
    if not 0 <= file.size <= sizes.EVIDENCE:
        raise ValueError(f"{file.path!r:.200} is too large: {file.size:,} bytes")
    if _SHA256.fullmatch(file.sha256) is None:
        raise ValueError(f"{file.path!r:.200} has no SHA-256")
    if path.parts[0] == SHARED and path.name != file.sha256:
        raise ValueError(f"{file.path!r:.200} is not named by its SHA-256")


def _belongs(path: PurePosixPath) -> bool:
    top, depth = path.parts[0], len(path.parts)
    if top == FINGERPRINTS:
        return depth > 1 and path.suffix == ".json"
    if top == SHARED:
        return depth == 2  # noqa: PLR2004 - the folder and the file
    return path.name in {PLAN_FILE, EXPERIMENT_FILE} if depth == 1 else top == EVIDENCE and depth > _LEAST_RUN
