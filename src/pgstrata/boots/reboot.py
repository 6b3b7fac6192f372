"""A reboot as seen from this machine: the other one stops answering, comes back, and is checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pgstrata.errors import BootFailedError, HostLostError, HostNotFitError
from pgstrata.ports.host import Clock, Host, observe_boot

_PAUSE: Final = 1.0

_GOING: Final = 180.0
"""Seconds within which a machine has to be down."""
_COMING: Final = 1200.0
"""Seconds within which it has to be back; large machines test their memory for minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reboot:
    """A machine that has been told to reboot.

    `host` returns its transport, which is a new one after `reopen`. `name` is the name of the machine for errors, and
    `wanted` the kernel that it was told to start.
    """

    name: str
    wanted: str
    host: Callable[[], Host]
    reopen: Callable[[], None]
    clock: Clock

    def wait(self, before: str) -> None:
        """Wait until the machine is back, with another boot id than before.

        Args:
            before: the id of the boot that it is to leave.

        Raises:
            BootFailedError: it did not go down, or has not come back in time.
            HostNotFitError: it is back, but something has to be put right on it first.
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
            remedy="switch it off and on: its default entry was not changed. When it is back, give the same command "
            "again: finished runs are kept. Its console shows why that kernel does not come up",
        )

    def _watch_it_go(self, before: str) -> None:
        """Wait until the connection breaks, or until the machine has another boot id: it may have booted meanwhile."""
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
            remedy="check there what keeps it from shutting down (systemctl list-jobs), or reboot it by hand once",
        )
