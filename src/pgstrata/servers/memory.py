"""What was found out about builds, kept in the cache: looking at one takes several programs and half a second.

An entry counts while bin/postgres has the same name, size and time. Losing the file costs time, nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Final

from pgstrata.errors import DiskFullError, HostFileError
from pgstrata.model.codec import decode, encode
from pgstrata.model.experiment import ServerSpec
from pgstrata.model.server import Build, ServerVersion
from pgstrata.ports.host import Host


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """A build without what its user calls it; `stamp` is the size and time of bin/postgres."""

    stamp: str
    version: ServerVersion
    compiler: str
    configure: str
    cflags: str
    digest: str
    assertions: bool
    process_environment: Mapping[str, str]


_FACTS: Final = tuple(each.name for each in fields(_Entry) if each.name != "stamp")


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Builds by where they are and who runs them.

    Args:
        here: the coordinator, as the user that pgstrata runs as.
        cache: folder on the coordinator.
        owner: host and user that the facts were found out on and as.
    """

    here: Host
    cache: str
    owner: str

    def recall(self, spec: ServerSpec, prefix: str, supplier: str, stamp: str) -> Build | None:
        """The build, if it has not changed and what it needs is still there."""
        entry = self._load().get(self._key(prefix))
        if entry is None or not stamp or entry.stamp != stamp:
            return None
        folders = entry.process_environment.get("LD_LIBRARY_PATH", "").split(":")
        if not all(self.here.exists(folder) for folder in folders if folder):
            return None
        facts = {name: getattr(entry, name) for name in _FACTS}
        return Build(spec=spec, prefix=prefix, supplier=supplier, **facts)

    def keep(self, build: Build, stamp: str) -> None:
        """Remember a build; nothing happens if the cache cannot be written."""
        entry = _Entry(stamp=stamp, **{name: getattr(build, name) for name in _FACTS})
        entries = {**self._load(), self._key(build.prefix): entry}
        try:
            self.here.make_folder(self.cache, mode=0o755)
            self.here.write(self._file, json.dumps(encode(entries), indent=1).encode(), mode=0o644)
        except (HostFileError, DiskFullError):
            return  # looking again is slower, not wrong

    @property
    def _file(self) -> str:
        return f"{self.cache}/builds.json"

    def _key(self, prefix: str) -> str:
        return f"{self.owner}:{prefix}"

    def _load(self) -> Mapping[str, _Entry]:
        content = self.here.read_files((self._file,)).get(self._file, b"{}")
        try:
            return decode(dict[str, _Entry], json.loads(content))
        except (ValueError, TypeError, KeyError, RecursionError):
            return {}  # damaged, or of another version of pgstrata
