"""Writes and unpacks bundles of studies: checked, signed, and without names if that was asked for."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Final

from pgstrata import __version__
from pgstrata.app.signatures import identify_signer, sign
from pgstrata.app.wiring import make_derive
from pgstrata.errors import ParseError, StudyError
from pgstrata.model.bundle import Bundled, Replaced, Unbundled
from pgstrata.model.codec import encode
from pgstrata.model.packed import unpack
from pgstrata.store.bundles.anonymous import Anonymous
from pgstrata.store.bundles.pack import BundledStudy, write_bundle
from pgstrata.store.bundles.terms import find_terms
from pgstrata.store.bundles.unpack import open_bundle, unpack_bundle
from pgstrata.store.evidence import EVIDENCE
from pgstrata.store.repository import StudyFolder
from pgstrata.store.serialise import parse_plan_file
from pgstrata.store.study import PLAN_FILE, reparse_study

SUFFIX: Final = ".tar.xz"
_WITHOUT_NAMES: Final = (".samples.gz", ".log.gz", "procfs.before", "procfs.after", "slices.txt")
"""Files that need not be searched: they hold no names of machines or people that other files do not have."""


def bundle_study(
    study: Path, target: Path | None, *, key: Path | None = None, anonymous: bool = False, hidden: Sequence[str] = ()
) -> Bundled:
    """Write the bundle of a study.

    Args:
        study: folder of the study.
        target: path of a new file; by default the study's name in the current folder.
        key: the SSH key that signs it; None for no signature.
        anonymous: replace names of hosts and users, addresses, paths and serial numbers.
        hidden: further words to be replaced.

    Raises:
        StudyError: there is no study, or its figures would change when names are replaced.
        UsageError: the key cannot be used.
    """
    source = BundledStudy(study)
    rewrite = _without_names(source, hidden) if anonymous else None
    name = source.folder.resolve().name
    name = rewrite.text(name) if rewrite else name
    plan = parse_plan_file(source.head[PLAN_FILE], where=str(study)).plan.identity
    target = target or Path(f"{name}{SUFFIX}")
    signed: list[bytes] = []

    def seal(sealed: bytes) -> bytes:
        assert key is not None
        signed.append(sign(key, sealed))
        return signed[0]

    manifest, sealed = write_bundle(
        source, target, name=name, plan=rewrite.identity if rewrite else plan, version=__version__,
        sign=seal if key else None, rewrite=rewrite,
    )  # fmt: skip
    return Bundled(
        path=str(target),
        size=target.stat().st_size,
        manifest=manifest,
        digest=hashlib.sha256(sealed).hexdigest(),
        signer=identify_signer(signed[0], sealed, None, where=str(target)) if signed else None,
        replaced=_say_replaced(rewrite) if rewrite else None,
    )


def unbundle(file: Path, folder: Path | None, *, signers: Path | None = None) -> Unbundled:
    """Check a bundle, unpack it and derive its runs; the new folder is complete, or it does not exist.

    Args:
        file: the bundle.
        folder: path of a new folder; by default the study's name below `studies`.
        signers: file of allowed signers; None accepts any signature, and none.

    Raises:
        BundleError: it is damaged, has another format, or is not signed as asked for.
        StudyError: the folder exists already.
    """
    with open_bundle(file) as bundle:
        signer = identify_signer(bundle.signature, bundle.sealed, signers, where=str(file))
        target = folder or Path("studies", bundle.manifest.study)
        unpack_bundle(bundle, target, derive_folder)
        return Unbundled(
            folder=str(target),
            manifest=bundle.manifest,
            digest=hashlib.sha256(bundle.sealed).hexdigest(),
            signer=signer,
        )


@contextmanager
def unpacked(file: Path) -> Iterator[StudyFolder]:
    """The study of a bundle in a temporary folder, which other users cannot read."""
    with TemporaryDirectory(prefix="pgstrata-") as place, open_bundle(file) as bundle:
        identify_signer(bundle.signature, bundle.sealed, None, where=str(file))
        folder = Path(place, bundle.manifest.study)
        unpack_bundle(bundle, folder, derive_folder)
        yield StudyFolder(folder)


def derive_folder(folder: Path) -> None:
    """Make the catalogue of a study from its evidence."""
    reparse_study(folder, make_derive(StudyFolder(folder).head().plan.experiment))


# ------------------------------------------------------------------------------------------------ without names


def _without_names(study: BundledStudy, hidden: Sequence[str]) -> Anonymous:
    """The replacements for the names in a study; StudyError if a figure would change with them."""
    plan = study.head[PLAN_FILE]
    rewrite = Anonymous(find_terms(plan, _texts(study), hidden))
    try:
        changed = parse_plan_file(rewrite.content(PLAN_FILE, plan), where=str(study.folder)).plan
    except StudyError as error:
        raise _would_change(str(study.folder)) from error
    before = make_derive(parse_plan_file(plan, where=str(study.folder)).plan.experiment)
    after = make_derive(changed.experiment)
    for identity in study.runs:
        files = study.evidence(identity)
        named = partial(_below, f"{EVIDENCE}/{identity}/")
        record = before({named(path): content for path, content in files.items()})
        kept = {named(path): rewrite.content(path, content) for path, content in files.items() if rewrite.path(path)}
        if json.dumps(rewrite.value(encode(record))) != json.dumps(encode(after(kept))):
            raise _would_change(identity)
    return rewrite


def _would_change(where: str) -> StudyError:
    return StudyError(
        "the bundle was not written: replacing names would change what the study shows",
        where=where,
        remedy="one of the replaced words also has a meaning in plans or evidence: hide fewer words, or bundle the "
        "study without --anonymous",
    )


def _below(folder: str, path: str) -> str:
    return path.removeprefix(folder)


def _texts(study: BundledStudy) -> Iterator[str]:
    """Texts in which names are looked for, each once."""
    seen: set[str] = set()
    for path, content, _ in study.files():
        name = PurePosixPath(path).name
        if path == PLAN_FILE or name.endswith(_WITHOUT_NAMES):
            continue
        digest = hashlib.sha256(content).hexdigest()
        if digest not in seen:
            seen.add(digest)
            yield _unpack(name, content).decode("utf-8", "replace")


def _unpack(name: str, content: bytes) -> bytes:
    try:
        return unpack(content, name) if name.endswith(".gz") else content
    except ParseError:
        return b""


def _say_replaced(rewrite: Anonymous) -> Replaced:
    return Replaced(numbers=rewrite.numbers, left_out=tuple(sorted(rewrite.left_out)), kept=rewrite.kept)
