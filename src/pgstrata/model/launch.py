"""What layers ask of each other before a server starts, and what they add to its start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What upper layers ask of lower ones, in bytes.

    `shared_memory` is what the server asks of the kernel in one piece, 0 where nobody has to know; `data` what its
    clone takes, with room for what a run writes. `version` is the server's server_version_num, 0 where it is not known.
    """

    shared_memory: int = 0
    data: int = 0
    version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What layers add to the start of a server and of its client.

    `server` and `client` are words in front of the command, such as ("taskset", "--cpu-list", "0-3"): programs that
    change themselves and then become the command, so that the process id stays. `settings` are added to the server's.
    `data` is the folder in which its clone is to lie, empty for the usual one.
    """

    server: tuple[str, ...] = ()
    client: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    data: str = ""

    def beneath(self, other: Launch) -> Launch:
        """Both: this one is the outer of the two."""
        return Launch(
            server=(*self.server, *other.server),
            client=(*self.client, *other.client),
            settings={**self.settings, **other.settings},
            data=other.data or self.data,
        )
