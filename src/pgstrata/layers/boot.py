"""The layer `boot`: checks that the server runs on the kernel that was asked for.

The machine has been booted before (`boots`), because a boot is below every layer; this layer only observes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pgstrata.errors import LevelNotTakenError
from pgstrata.model.boot import KERNEL, OPTIONS, asks_for_boot, boot_of, is_of_series
from pgstrata.model.experiment import Environment
from pgstrata.model.launch import Launch, Needs
from pgstrata.ports.host import Host
from pgstrata.ports.layer import Ledger
from pgstrata.ports.server import RunningServer, Sql

_RELEASE: Final = "/proc/sys/kernel/osrelease"
_LINE: Final = "/proc/cmdline"


class BootLayer:
    """Implements `ports.HostLayer`.

    Args:
        host: reads as the server's user.
    """

    name = "boot"

    def __init__(self, host: Host) -> None:
        self._host = host

    def concerns(self, environment: Environment) -> bool:
        return asks_for_boot(environment)

    def prepare(self, environment: Environment, needs: Needs, ledger: Ledger) -> Launch:  # noqa: ARG002 - the Protocol's
        """Nothing is changed, and nothing is added to the start."""
        return Launch()

    def observe(self, server: RunningServer, sql: Sql) -> Mapping[str, str]:  # noqa: ARG002 - the Protocol's
        """`kernel` and `boot.options` as observed; LevelNotTakenError if they are not what was asked for."""
        environment = server.environment
        if not asks_for_boot(environment):
            return {}
        asked = boot_of(environment)
        found = self._host.read_files([_RELEASE, _LINE])
        release, line = (found.get(path, b"").decode("utf-8", "replace").strip() for path in (_RELEASE, _LINE))
        lacking = [word for word in asked.options if word not in line.split()]
        if lacking or not is_of_series(release, asked.kernel):
            raise LevelNotTakenError(
                f"{asked.text} was asked for, but {release} is running, with the command line {line}",
                where=f"environment {environment.name}",
                remedy="check what the machine booted, and why (journalctl -b)",
            )
        return {KERNEL: release, **({OPTIONS: " ".join(asked.options)} if asked.options else {})}
