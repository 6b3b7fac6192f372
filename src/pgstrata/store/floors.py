"""Noise floors as files in the state folder of a host: one for each study, cell and metric, whole or not at all.

What is found there may be of another pgstrata, or damaged: such a file is left out with a note, and never an error.
Whether a floor may be relied upon is for `pgstrata.plan.floors` to say.
"""

import hashlib
import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from pgstrata.errors import HostNotFitError
from pgstrata.model import sizes
from pgstrata.model.codec import decode, parse_json
from pgstrata.model.floor import FloorKey, FloorRecord, digest_facts
from pgstrata.model.server import Fingerprint
from pgstrata.store.serialise import render_json
from pgstrata.system import files, reading

FORMAT: Final = 2
# Another pgstrata on this machine may be writing a floor, which takes no time
_DRAFT_SECONDS: Final = 3600.0
_DAMAGE: Final = (ValueError, TypeError, KeyError, OverflowError, RecursionError, AttributeError)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundFloors:
    """What is known of one key, on whatever host it was measured, and what had to be left out."""

    records: tuple[FloorRecord, ...]
    notes: tuple[str, ...]


class FloorStore:
    """The floors below one state folder; it is made when the first one is kept."""

    def __init__(self, state: str) -> None:
        self.folder = Path(state) / "floors"

    def load(self, key: FloorKey) -> FoundFloors:
        """All records of a key; nothing here raises."""
        records: list[FloorRecord] = []
        notes: list[str] = []
        try:
            paths = self._paths(key)
        except OSError as error:
            note = f"noise floors in {self.folder} cannot be read: {error.strerror}"
            return FoundFloors(records=(), notes=(note,))
        for path in paths:
            try:
                record = _parse(reading.read_regular(path, most=sizes.FLOOR_FILE), key)
            except OSError as error:
                notes.append(f"a noise floor is left out, because it cannot be read: {path}: {error.strerror}")
            except _DAMAGE as error:
                notes.append(f"a noise floor is left out, because its file is damaged: {path}: {error}")
            else:
                records += [record] if record else []
        return FoundFloors(records=tuple(records), notes=tuple(notes))

    def _paths(self, key: FloorKey) -> Sequence[Path]:
        try:
            entries = list(self.folder.iterdir())
        except FileNotFoundError:
            return ()
        start = f"{key.digest}-"
        return sorted(path for path in entries if path.name.startswith(start) and path.name.endswith(".json"))

    def keep(self, record: FloorRecord, *, oldest: datetime) -> Path:
        """Write one record, in place of an earlier one of the same study; what is older than `oldest` is forgotten.

        Raises:
            DiskFullError, HostNotFitError: it cannot be written.
        """
        path = self.folder / _name(record)
        try:
            files.write_atomically(path, _render(record))
        except OSError as error:
            remedy = "name a folder that can be written in PGSTRATA_STATE"
            raise files.write_error(
                "the noise floor cannot be written", error, where=path, remedy=remedy, kind=HostNotFitError
            ) from error
        self._forget(record, oldest, besides=path)
        return path

    def _forget(self, record: FloorRecord, oldest: datetime, *, besides: Path) -> None:
        """Remove what has expired of the same key and host; what is of other hosts is theirs, and kept."""
        files.remove_drafts(self.folder, older=_DRAFT_SECONDS)
        beginning = f"{record.key.digest}-{digest_facts(record.host.facts)}-"
        for path in self._paths(record.key):
            # what cannot be read or removed stays where it is, and is told of when somebody looks for a floor
            with suppress(OSError, *_DAMAGE):
                if path != besides and path.name.startswith(beginning) and _is_older(path, record.key, oldest):
                    files.remove_file(path)


def _is_older(path: Path, key: FloorKey, oldest: datetime) -> bool:
    record = _parse(reading.read_regular(path, most=sizes.FLOOR_FILE), key)
    return record is not None and datetime.fromisoformat(record.measured) < oldest


def _name(record: FloorRecord) -> str:
    study = hashlib.sha256(record.study.encode()).hexdigest()[:12]
    return f"{record.key.digest}-{digest_facts(record.host.facts)}-{study}.json"


def _render(record: FloorRecord) -> bytes:
    key = record.key
    content = {
        "format": FORMAT,
        "cell": key.cell,
        "metric": key.metric,
        "design": key.design,
        "conditions": dict(key.conditions),
        "host": dict(record.host.facts),
        "measured": record.measured,
        "study": record.study,
        "source": record.source,
        "version": record.version,
        "differences": list(record.differences),
    }
    return render_json(content, indent=1)


def _parse(content: bytes, key: FloorKey) -> FloorRecord | None:
    """The record; None if it is of another key after all. ValueError, TypeError, KeyError where it is damaged."""
    data = parse_json(content)
    if not isinstance(data, dict):
        raise TypeError("expected an object")
    if data["format"] != FORMAT:
        raise ValueError(f"it has format {data['format']}, this pgstrata knows {FORMAT}")
    metric, design, measured, study, source, version = (
        decode(str, data[name]) for name in ("metric", "design", "measured", "study", "source", "version")
    )
    if (metric, design, decode(dict[str, str], data["conditions"])) != (key.metric, key.design, dict(key.conditions)):
        return None
    if datetime.fromisoformat(measured).tzinfo is None:
        raise ValueError(f"{measured} has no offset")
    differences = decode(tuple[float, ...], data["differences"])
    if not differences or not all(map(math.isfinite, differences)):
        raise ValueError("differences are not finite numbers")
    return FloorRecord(
        key=key,
        host=Fingerprint(facts=decode(dict[str, str], data["host"])),
        measured=measured,
        differences=differences,
        study=study,
        source=source,
        version=version,
    )
