"""The followers of a recorder. One that fails is left out from then on: recording goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from pgstrata.errors import PgstrataError
from pgstrata.model.archive import ArchiveEvent
from pgstrata.model.incidents import Incident
from pgstrata.ports.recording import Follower, RecordedSecond


class Followers:
    """Passes on what a recorder says to each of its followers.

    Args:
        followers: in the order in which they are told.
        tell: says that one failed.
    """

    def __init__(self, followers: Iterable[Follower], tell: Callable[[str], None]) -> None:
        self._followers = list(followers)
        self._tell = tell

    def begin(self, facts: Mapping[str, str], limits: Sequence[str]) -> None:
        """As `Follower.begin`."""
        self._each(lambda follower: follower.begin(facts, limits))

    def follow(self, second: RecordedSecond) -> None:
        """As `Follower.follow`."""
        self._each(lambda follower: follower.follow(second))

    def learn(self, texts: Mapping[str, str]) -> None:
        """As `Follower.learn`."""
        self._each(lambda follower: follower.learn(texts))

    def note(self, event: ArchiveEvent) -> None:
        """As `Follower.note`."""
        self._each(lambda follower: follower.note(event))

    def alarm(self, incident: Incident | None) -> None:
        """As `Follower.alarm`."""
        self._each(lambda follower: follower.alarm(incident))

    def saved(self, moment: int) -> None:
        """As `Follower.saved`."""
        self._each(lambda follower: follower.saved(moment))

    def close(self) -> None:
        """As `Follower.close`."""
        self._each(lambda follower: follower.close())
        self._followers.clear()

    def _each(self, call: Callable[[Follower], None]) -> None:
        for follower in tuple(self._followers):
            if follower not in self._followers:
                continue  # it failed at a call that one of the others made meanwhile
            try:
                call(follower)
            except Exception as error:  # noqa: BLE001 - whatever fails in one of them, records must not be lost
                self._followers.remove(follower)
                why = error.what if isinstance(error, PgstrataError) else f"{type(error).__name__}: {error}"
                self._tell(f"{follower.name} failed and was stopped; recording goes on ({why})")
