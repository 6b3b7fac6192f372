"""Connections that break: the visit is repeated when its host is there again, the other hosts go on meanwhile."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

from pgstrata.conduct.rig import Rig
from pgstrata.errors import HostLostError, HostNotFitError, PgstrataError
from pgstrata.model.experiment import HostSpec
from pgstrata.model.plan import Plan, Visit
from pgstrata.ports.events import Event, EventKind

PAUSES: Final = (5.0, 15.0, 45.0, 120.0, 300.0)
"""Seconds before each attempt to connect again."""
_LOSSES: Final = 3
"""A visit that loses its host so often is what makes it go away."""


@dataclass(slots=True, kw_only=True)
class Losses:
    """What was lost in a study, and getting it back."""

    rig: Rig
    plan: Plan
    counted: dict[str, int] = field(default_factory=dict)
    gone: dict[HostSpec, str] = field(default_factory=dict)

    def hosts_of(self, visit: Visit) -> frozenset[HostSpec]:
        """The machines of a visit's servers."""
        return frozenset(self.plan.experiment.environment(name).host for name in visit.residents)

    def waits(self, visit: Visit) -> bool:
        """Whether a machine of the visit has gone."""
        return bool(self.hosts_of(visit) & self.gone.keys())

    def note(self, visit: Visit, error: PgstrataError) -> bool:
        """Whether the visit failed because the connection to one of its machines broke, and may be repeated.

        Whatever fails on a machine that is not there, such as undoing a change, fails because it is not there.
        """
        lost = [spec for spec in self.hosts_of(visit) if spec.remote and self._is_gone(spec, error)]
        if not lost or self.rig.reopen is None:
            return False
        self.counted[visit.identity] = self.counted.get(visit.identity, 0) + 1
        if self.counted[visit.identity] > _LOSSES:
            return False
        self.gone.update(dict.fromkeys(lost, error.what))
        for spec in lost:
            self._say(f"the connection to {spec.text} broke in {visit.identity}: {error.what}")
        return True

    def _is_gone(self, spec: HostSpec, error: PgstrataError) -> bool:
        if isinstance(error, HostLostError):
            return True
        try:
            self.rig.server_hosts[spec].host.clock()
        except HostLostError:
            return True
        return False

    def recover(self) -> None:
        """Connect again to all that have gone, with growing patience, and tidy up there.

        Raises:
            HostLostError, HostNotFitError: one does not come back, or not as it should be.
        """
        for spec in list(self.gone):
            self._recover(spec, PAUSES)
            del self.gone[spec]

    def _recover(self, spec: HostSpec, pauses: Collection[float]) -> None:
        assert self.rig.reopen is not None
        for left, pause in zip(reversed(range(len(pauses))), pauses, strict=True):
            self._say(f"connecting to {spec.text} again in {pause:g} s")
            self.rig.clock.sleep(pause)
            try:
                self.rig.server_hosts[spec] = self.rig.reopen(spec)
            except (HostLostError, HostNotFitError) as error:
                if left:
                    self._say(f"{spec.text}: {error.what}")
                    continue
                error.remedy = f"{error.remedy}; " if error.remedy else ""
                error.remedy += "give the same command again when it is there: what was measured is kept"
                raise
            self._say(f"{spec.text} is there again: its visit is repeated")
            return

    def _say(self, text: str) -> None:
        self.rig.events.emit(Event(kind=EventKind.WARNING, text=text))
