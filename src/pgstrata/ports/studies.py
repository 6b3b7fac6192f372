"""Where studies are kept: found by name, read as often as wanted, written by one at a time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pgstrata.model.plan import Plan
from pgstrata.model.runs import RunRecord
from pgstrata.model.server import Fingerprint
from pgstrata.model.study import Study
from pgstrata.ports.store import Store

Derive = Callable[[Mapping[str, bytes]], RunRecord]
"""Makes the record of a run from its evidence, by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyHead:
    """What a study is of, and when (ISO 8601) and by which pgstrata it was begun."""

    plan: Plan
    created: str
    version: str


class StoredStudy(Protocol):
    """A study that was begun, or may be; as text it is what the user called it.

    `head`, `load` and `reparse` raise StudyError where there is none, and every method does where it is damaged.
    """

    @property
    def identity(self) -> str:
        """What tells it from all others, whatever it was called."""

    def begun(self) -> bool:
        """Whether there is such a study."""

    def head(self) -> StudyHead:
        """What it was begun with."""

    def committed(self) -> tuple[str, ...]:
        """Identities of its runs."""

    def load(
        self,
        *,
        metrics: Sequence[str] | None = None,
        series: bool | Collection[str] = False,
        sessions: bool = False,
    ) -> Study:
        """Everything measured so far, with the primary and the named metrics only (None: all).

        The share of background load is always there: without it nobody knows in which blocks it differed.

        `series`: those of the same metrics (True), none (False), or those of the metrics named. `sessions`: what
        sessions were seen doing, too. Needs no lock, also while another process measures.
        """

    def fingerprints(self) -> Mapping[str, Fingerprint]:
        """What was remembered, by name."""

    def evidence(self, run: str, name: str) -> bytes:
        """One file of a run; empty where there is none."""

    def reparse(self, derive: Derive) -> int:
        """Derive all runs anew from their evidence; their number."""

    def write(self, plan: Plan, version: str, derive: Derive) -> Store:
        """Go on with it, or begin it, alone. StudyError too where it is another plan's, or somebody writes it."""


class StudyRepository(Protocol):
    """All studies in one place."""

    def named(self, name: str) -> StoredStudy:
        """The study of that name, begun or not."""

    def find_begun(self, stem: str) -> Sequence[StoredStudy]:
        """Studies that were begun and whose names begin with `stem`, ordered by name."""
