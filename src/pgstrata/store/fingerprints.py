"""Fingerprints as files, from which the catalogue takes them: fingerprints/host.json, .../environment/NAME.json."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pgstrata.model import sizes
from pgstrata.model.server import Fingerprint
from pgstrata.store.evidence import FINGERPRINTS, check_name
from pgstrata.store.failures import storage_errors
from pgstrata.store.serialise import parse_fingerprint, render_fingerprint
from pgstrata.system.files import read_regular, write_atomically
from pgstrata.system.ways import as_owner_inside


def save_fingerprint_file(study: Path, name: str, fingerprint: Fingerprint) -> None:
    """Create or replace the file of a fingerprint; name is host, client, or environment/NAME."""
    write_atomically(study / FINGERPRINTS / f"{check_name(name)}.json", render_fingerprint(fingerprint))


@as_owner_inside
def load_fingerprint_files(study: Path) -> Mapping[str, Fingerprint]:
    """All fingerprints by name."""
    root = study / FINGERPRINTS
    with storage_errors(study):
        return {
            path.relative_to(root).as_posix().removesuffix(".json"): parse_fingerprint(
                read_regular(path, most=sizes.FINGERPRINT_FILE), where=str(path)
            )
            for path in sorted(root.rglob("*.json"))
            if not path.name.startswith(".")
        }
