"""Fingerprints as files, from which the catalogue takes them: fingerprints/host.json, .../environment/NAME.json."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pgstrata.model.server import Fingerprint
from pgstrata.store.evidence import check_name
from pgstrata.store.serialise import parse_fingerprint, render_fingerprint
from pgstrata.system.files import read_regular, write_atomically

FINGERPRINTS = "fingerprints"
_LARGEST: Final = 64 << 20


def save_fingerprint_file(study: Path, name: str, fingerprint: Fingerprint) -> None:
    """Create or replace the file of a fingerprint; name is host, client, or environment/NAME."""
    write_atomically(study / FINGERPRINTS / f"{check_name(name)}.json", render_fingerprint(fingerprint))


def load_fingerprint_files(study: Path) -> Mapping[str, Fingerprint]:
    """All fingerprints by name."""
    root = study / FINGERPRINTS
    return {
        path.relative_to(root).as_posix().removesuffix(".json"): parse_fingerprint(
            read_regular(path, most=_LARGEST), where=str(path)
        )
        for path in sorted(root.rglob("*.json"))
        if not path.name.startswith(".")
    }
