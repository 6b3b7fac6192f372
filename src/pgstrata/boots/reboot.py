"""A reboot from the outside: the machine goes away, comes back, and is looked at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pgstrata.errors import BootFailedError, HostLostError, HostNotFitError
from pgstrata.ports.host import Clock, Host, observe_boot

_PAUSE: Final = 1.0

_GOING: Final = 180.0
"""Seconds in which a machine has to go away."""
_COMING: Final = 1200.0
"""Seconds in which it has to be back; large ones test their memory for minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reboot:
    """A machine that has been told to reboot.

    `host` gives its transport, which is another one after `reopen`; `name` is the machine's for errors, `wanted` the
    kernel that it was told to start.
    """

    name: str
    wanted: str
    host: Callable[[], Host]
    reopen: Callable[[], None]
    clock: Clock

    def wait(self, before: str) -> None:
        """Until the machine is there again, and has booted since.

        Args:
            before: the id of the boot that it is to leave.

        Raises:
            BootFailedError: it did not go away, or has not come back.
            HostNotFitError: it is back, and something has to be done about it first.
        """
        self._watch_it_go(before)
        last: HostLostError | None = None
        end = self.clock.monotonic() + _COMING
        while self.clock.monotonic() < end:
            self.clock.sleep(_PAUSE)
            try:
                self.reopen()
                if observe_boot(self.host()) != before:
                    return
            except HostLostError as error:
                last = error
        raise BootFailedError(
            f"{self.name} was told to boot {self.wanted} and has not come back within {_COMING / 60:.0f} minutes",
            where=self.name,
            details=(last.what, *last.details) if last is not None else (),
            remedy="its default entry was not changed: switch it off and on, and give the same command again when it "
            "is there; what was measured is kept. Its console says why that kernel does not come up",
        )

    def _watch_it_go(self, before: str) -> None:
        """Wait until the connection breaks, or was so patient that the machine has booted meanwhile."""
        end = self.clock.monotonic() + _GOING
        while self.clock.monotonic() < end:
            self.clock.sleep(_PAUSE)
            try:
                if observe_boot(self.host()) != before:
                    return
            except (HostLostError, HostNotFitError):
                return
        raise BootFailedError(
            f"{self.name} was told to reboot and is still up after {_GOING:.0f} s",
            where=self.name,
            remedy="look there for what keeps it from going down (systemctl list-jobs), or reboot it by hand once",
        )
