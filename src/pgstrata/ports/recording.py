"""Followers of a recorder: they are told what it records as it comes, and never hold it up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pgstrata.model.archive import ArchiveEvent, SessionsLook, StatementUse
from pgstrata.model.incidents import Incident


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What pg_stat_statements counted of all clients in the `seconds` before: `spent` seconds of execution in all.

    `uses` are by key, those with most time; the rest is summed up in one. `complete`: nothing was reset or evicted.
    """

    seconds: float
    spent: float
    uses: Mapping[str, StatementUse]
    complete: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedSecond:
    """What was recorded at a second, `moment` in whole Unix seconds.

    `look` is None where the sessions were not seen. `server` and `host` are the rates by name of the time before, empty
    where they are not known; they are means over `server_seconds` and `host_seconds`. `counted` is None between two
    looks at the statements. `took`: seconds that all looks of this second took, until they were answered.
    """

    moment: int
    look: SessionsLook | None = None
    server: Mapping[str, float] = field(default_factory=dict)
    server_seconds: float = 0.0
    host: Mapping[str, float] = field(default_factory=dict)
    host_seconds: float = 0.0
    counted: Counted | None = None
    took: float = 0.0


class Follower(Protocol):
    """Is told what a recorder records, in its thread: each call has to return within milliseconds."""

    @property
    def name(self) -> str:
        """What it is, for messages: "the screen"."""
        ...

    def begin(self, facts: Mapping[str, str], limits: Sequence[str]) -> None:
        """The server has answered, for the first time or again.

        Args:
            facts: of the server by name, as the archive keeps them.
            limits: codes of what is not seen there.
        """
        ...

    def follow(self, second: RecordedSecond) -> None:
        """A second was recorded."""
        ...

    def learn(self, texts: Mapping[str, str]) -> None:
        """Normalised texts of statements by key; never called where texts are not kept."""
        ...

    def note(self, event: ArchiveEvent) -> None:
        """Something happened to recorder or server."""
        ...

    def alarm(self, incident: Incident | None) -> None:
        """An incident was found, or is known better now; None: the one that was told last has ended."""
        ...

    def saved(self, moment: int) -> None:
        """All that was recorded before is in the archive."""
        ...

    def close(self) -> None:
        """The recorder ends."""
        ...
