"""The form of chaos on two hosts: the client and some servers are here, others are on a host that only ssh reaches.

The host is a network namespace with an sshd of its own (the rig of the tests): a real connection, and the kernel, files
and processes of this machine. What pgstrata keeps over there lies in a folder of its own, and the named list has what
is different over there besides: parameters, sockets and processes of that network.
"""

# ruff: noqa: INP001  a part of a script

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from chaos import Chaos

import sshd


class FarChaos(Chaos):
    """Rounds of kills while servers run here and behind ssh."""

    def __init__(self, folder: Path, seed: int) -> None:
        super().__init__(folder, seed)
        if impossible := sshd.why_not():
            sys.exit(f"there is no second host: {impossible}")
        self.there = folder / "there"
        self.there.mkdir(mode=0o755)
        self._stack = ExitStack()
        self._host = self._stack.enter_context(sshd.far_hosts(folder / "rig", 1, [sshd.own_folders(self.there)]))[0]
        self.environ["PGSTRATA_SSH_CONFIG"] = self._host.config

    def hosts_of(self, seed: int) -> Mapping[str, str]:
        """One environment here and one over there; which, depends on the seed."""
        there = ("pages_host", "files_host")[seed % 2]
        return {**super().hosts_of(seed), there: 'host = "ssh:far1"\n'}

    @property
    def restorings(self) -> Mapping[Path, tuple[str, ...]]:
        """The other host first: it is the one with more changes."""
        return {self.there: ("host", "restore", "--host", self._host.destination), **super().restorings}

    def state(self) -> Mapping[str, str]:
        """That of this host, and what the other one has for itself."""
        there = self.state_of(self.there, self._host.inside())
        there["processes"] = "\n".join(sorted(map(_name, self._pids())))
        return {**super().state(), **{f"{name} over there": text for name, text in there.items()}}

    def _pids(self) -> list[str]:
        argv = ("ip", "netns", "pids", self._host.namespace)
        return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.split()

    def close(self) -> None:
        """Take the host away."""
        self._stack.close()


def _name(pid: str) -> str:
    try:
        return Path("/proc", pid, "comm").read_text(encoding="utf-8").strip()
    except OSError:
        return "gone"
