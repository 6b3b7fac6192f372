"""What layers ask of each other before a server starts, and what they add to its start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pgstrata.model.server import Build


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What upper layers ask of lower ones, in bytes.

    `shared_memory` is what the server asks of the kernel in one piece, 0 where nobody has to know; `data` what its
    clone takes, with room for what a run writes, and `wal` the part of it that is WAL. `version` is the server's
    server_version_num, 0 where it is not known; `build` is what it is started from.
    """

    shared_memory: int = 0
    data: int = 0
    wal: int = 0
    version: int = 0
    build: Build | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What layers add to the start of a server and of its client.

    `server` and `client` are words in front of the command, such as ("taskset", "--cpu-list", "0-3"): programs that
    change themselves and then become the command, so that the process id stays. `settings` are added to the server's.
    `data` is the folder in which its clone is to lie, empty for the usual one, and `wal` that for its WAL, empty where
    it stays with the data; `prefix` is the installation that it is started from, empty for the build's own.
    """

    server: tuple[str, ...] = ()
    client: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    data: str = ""
    wal: str = ""
    prefix: str = ""

    def beneath(self, other: Launch) -> Launch:
        """Both: this one is the outer of the two."""
        return Launch(
            server=(*self.server, *other.server),
            client=(*self.client, *other.client),
            settings={**self.settings, **other.settings},
            data=other.data or self.data,
            wal=other.wal or self.wal,
            prefix=other.prefix or self.prefix,
        )
