"""Servers for another machine: resolved on this one, sent there, and looked at there."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

from pgstrata.app.machine import Machine
from pgstrata.app.site import OpenedHost
from pgstrata.errors import HostNotFitError, UsageError
from pgstrata.hosts.ssh import SshHost
from pgstrata.hosts.tree import send_tree
from pgstrata.model.experiment import ServerKind, ServerSpec
from pgstrata.model.server import Build
from pgstrata.ports.host import Host
from pgstrata.servers.inspect import Inspector
from pgstrata.servers.supply import PREFIX_SUPPLIER, Servers


@dataclass(frozen=True, slots=True, kw_only=True)
class SentServers:
    """Servers of every kind, on another machine (`ports.ServerSource`).

    What is fetched or built is fetched or built here and lies there in a folder of its own, named by its binary.
    `prefix:DIR` is an installation over there. Libraries that are missing there have to be installed there.

    `cache` and `folder` are where installations lie here and there, `machine` is the architecture over there.
    """

    servers: Servers
    here: Host
    cache: str
    transport: SshHost
    machine: str
    folder: str
    inspector: Inspector
    note: Callable[[str], None]

    @classmethod
    def make(cls, machine: Machine, opened: OpenedHost, note: Callable[[str], None]) -> Self:
        """For a machine that was opened by ssh; its folders are there."""
        assert isinstance(opened.transport, SshHost)
        cache = machine.places.cache
        packages = replace(machine.servers.inspector.packages, host=opened.host, note=note, bring=False)
        inspector = Inspector(here=machine.here, host=opened.host, cache=cache, packages=packages)
        return cls(
            servers=machine.servers, here=machine.here, cache=f"{cache}/servers", transport=opened.transport,
            machine=opened.site.machine, folder=f"{opened.places.cache}/servers", inspector=inspector, note=note,
        )  # fmt: skip

    def resolve(self, spec: ServerSpec) -> Build:
        """The build of a level over there.

        Raises:
            UsageError: `prefix:` names a folder without a server.
            HostNotFitError: it is for another architecture, a library is missing there, or there is no room.
            PgstrataError: as `Servers.resolve`.
        """
        if spec.kind is not ServerKind.PREFIX:
            self._refuse_foreign(spec.text)
            return self.send(self.servers.resolve(spec))
        self._require_there(spec)
        self.inspector.require_enterable(spec.value)
        return self.inspector.inspect(spec, spec.value, PREFIX_SUPPLIER, {})

    def _require_there(self, spec: ServerSpec) -> None:
        if not self.transport.exists(f"{spec.value}/bin/postgres"):
            raise UsageError(
                "there is no bin/postgres on that host",
                where=f"{self.transport.name}:{spec.value}",
                remedy="prefix:DIR is an installation over there: name the folder that holds its bin/postgres, or take "
                "a server that is sent there (embedded, 14 to 18, maven:MAJOR, build:DIR)",
            )

    def client_tools(self) -> Build:
        """psql and the programs of drivers over there, with which data are made."""
        self._refuse_foreign(" and ".join(self.inspector.packages.drivers) or "psql")
        return self.send(self.servers.client_tools())

    def _refuse_foreign(self, what: str) -> None:
        here = os.uname().machine
        if self.machine != here:
            raise HostNotFitError(
                f"{what} is for {here} here, and that host is {self.machine}",
                where=self.transport.name,
                remedy="servers and tools are sent from a machine of the same architecture: start pgstrata on one",
            )

    def send(self, build: Build) -> Build:
        """A build of this machine's cache over there; sent unless it is there already.

        All that came with it is sent, because wheels keep libraries beside the installation.
        """
        name, _, inside = build.prefix.removeprefix(f"{self.cache}/").partition("/")
        target = f"{self.folder}/{name}-{build.digest[:16]}"
        if not self.transport.exists(target):
            self.note(f"sending {build.spec.text} ({build.version.text}) to {self.transport.name}")
        self.transport.make_folder(self.folder, mode=0o755)
        send_tree(self.here, self.transport, f"{self.cache}/{name}", target)
        prefix = f"{target}/{inside}".rstrip("/")
        self.inspector.require_enterable(prefix)
        # what was compiled here looks for its libraries where it was installed here
        libraries = {"LD_LIBRARY_PATH": f"{prefix}/lib"} if build.spec.kind is ServerKind.BUILD else {}
        there = self.inspector.inspect(build.spec, prefix, build.supplier, libraries)
        # it is the same build; what its programs need to start is another machine's matter
        # (an installation that was looked at before is remembered with the libraries of then)
        return replace(build, prefix=prefix, process_environment={**libraries, **there.process_environment})
