"""Connections that break: what was under way is repeated when its host is there again.

A visit waits for that while the other hosts go on; the preflight of an environment waits at its place.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Final

from pgstrata.conduct.lanes import machines_of
from pgstrata.conduct.rig import Rig
from pgstrata.errors import BootFailedError, HostLostError, HostNotFitError, PgstrataError
from pgstrata.model.experiment import HostSpec
from pgstrata.model.plan import Plan, Visit
from pgstrata.model.reasons import Notice

PAUSES: Final = (5.0, 15.0, 45.0, 120.0, 300.0)
"""Seconds before each attempt to connect again."""
_LOSSES: Final = 3
"""What loses its host more often than that is what makes it go away."""


def too_often(error: PgstrataError, what: str, times: int) -> bool:
    """Whether something has lost its host so often that it is not to be repeated; then its error says so."""
    if times <= _LOSSES:
        return False
    _advise(error, f"{what} has lost its connection {times} times: check the host's logs for the reason")
    return True


def _advise(error: PgstrataError, text: str) -> None:
    """A further remedy."""
    error.remedy = f"{error.remedy}; {text}" if error.remedy else text


def reconnect(
    spec: HostSpec, reopen: Callable[[], None], *, sleep: Callable[[float], None], say: Callable[[Notice], None]
) -> None:
    """Open a machine that was lost again, with growing patience.

    Raises:
        BootFailedError: its kernel has crashed, or does not come up: it would do so again.
        HostLostError, HostNotFitError: it does not come back, or not as it should be.
    """
    for left, pause in zip(reversed(range(len(PAUSES))), PAUSES, strict=True):
        say(Notice(code="reconnecting", names=(spec.text,), seconds=pause))
        sleep(pause)
        try:
            reopen()
        except BootFailedError:
            raise
        except (HostLostError, HostNotFitError) as error:
            if left:
                say(Notice(code="host_still_lost", names=(spec.text,), said=error.what))
                continue
            _advise(error, "give the same command again when the host is back: what was measured is kept")
            raise
        say(Notice(code="reconnected", names=(spec.text,)))
        return
    raise AssertionError("there are no pauses")


@dataclass(slots=True, kw_only=True)
class Losses:
    """What was lost in a study, and getting it back."""

    rig: Rig
    plan: Plan
    counted: dict[str, int] = field(default_factory=dict)
    gone: dict[HostSpec, str] = field(default_factory=dict)

    def hosts_of(self, *visits: Visit) -> frozenset[HostSpec]:
        """The machines of the servers and clients of visits."""
        return machines_of(self.plan, *visits)

    def waits(self, visit: Visit) -> bool:
        """Whether a machine of the visit has gone."""
        return bool(self.hosts_of(visit) & self.gone.keys())

    def repeat(
        self, what: str, hosts: Collection[HostSpec], action: Callable[[], None], within: Collection[HostSpec]
    ) -> None:
        """Do something, and again when a machine was lost in it and is there again; `within` as for `note`.

        Raises:
            HostLostError, HostNotFitError: as `recover`, or it loses its machine each time.
            PgstrataError: as the action.
        """
        while True:
            try:
                action()
            except PgstrataError as error:
                if not self.note(what, hosts, error, within):
                    raise
            else:
                return
            self.recover(within)

    def note(self, what: str, hosts: Collection[HostSpec], error: PgstrataError, within: Collection[HostSpec]) -> bool:
        """Whether something failed because the connection to a machine broke, and may be repeated.

        Whatever fails on a machine that is not there, such as undoing a change, fails because it is not there. Others
        than its own may be the reason: an image is as large as the data of all environments need.

        Args:
            what: as it is to be named; how often it lost a machine is counted by that.
            hosts: the machines that it is about.
            error: how it failed.
            within: the machines that may be asked; on others somebody else may be at work.
        """
        if isinstance(error, BootFailedError):
            # it is down because of its kernel, and the same kernel would be booted again
            return False
        at_once = hosts if isinstance(error, HostLostError) else ()
        asked = [spec for spec in self.plan.experiment.elsewhere if spec in within]
        lost = [spec for spec in asked if spec in at_once or self.rig.targets[spec].silent()]
        if not lost:
            return False
        self.counted[what] = self.counted.get(what, 0) + 1
        if too_often(error, what, self.counted[what]):
            return False
        self.gone.update(dict.fromkeys(lost, error.what))
        for spec in lost:
            self.rig.warn(Notice(code="connection_broke", names=(spec.text,), said=f"{what}: {error.what}"))
        return True

    def recover(self, within: Collection[HostSpec] | None = None) -> None:
        """Connect again to all that have gone, or those within, with growing patience, and tidy up there.

        Raises:
            HostLostError, HostNotFitError: one does not come back, or not as it should be.
        """
        for spec in [each for each in self.gone if within is None or each in within]:
            reconnect(spec, self.rig.targets[spec].reopen, sleep=self.rig.clock.sleep, say=self.rig.warn)
            del self.gone[spec]
