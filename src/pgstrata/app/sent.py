"""Servers and files that are sent to another machine."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

from pgstrata.app.machine import Machine
from pgstrata.app.site import OpenedHost
from pgstrata.datasets.own import digest_there
from pgstrata.errors import HostFileError, HostNotFitError, UsageError
from pgstrata.hosts.ssh import SshHost
from pgstrata.hosts.tree import send_file, send_tree
from pgstrata.model.experiment import ServerKind, ServerSpec
from pgstrata.model.own_data import DataFile
from pgstrata.model.server import Build
from pgstrata.ports.host import Host
from pgstrata.servers.catalogue import NEWEST, usual_name
from pgstrata.servers.inspect import Inspector
from pgstrata.servers.supply import PREFIX_SUPPLIER, Servers


@dataclass(frozen=True, slots=True, kw_only=True)
class SentServers:
    """Servers of every kind, on another machine (`ports.ServerSource`).

    What is fetched or built is fetched or built here and lies there in a folder of its own, named by its binary.
    `prefix:DIR` is an installation over there. Libraries that are missing there have to be installed there.

    `folder` is where installations lie over there, `machine` the architecture.
    """

    servers: Servers
    transport: SshHost
    machine: str
    folder: str
    inspector: Inspector

    @classmethod
    def make(cls, machine: Machine, opened: OpenedHost, note: Callable[[str], None]) -> Self:
        """For a machine that was opened by ssh; its folders are there."""
        assert isinstance(opened.transport, SshHost)
        site = replace(machine.servers.site, host=opened.host, note=note)
        packages = replace(machine.servers.inspector.packages, site=site, bring=False)
        return cls(
            servers=machine.servers,
            transport=opened.transport,
            machine=opened.site.machine,
            folder=f"{opened.places.cache}/servers",
            inspector=Inspector(packages=packages),
        )

    def resolve(self, spec: ServerSpec) -> Build:
        """The build of a level over there.

        Raises:
            UsageError: `prefix:` names a folder without a server.
            HostNotFitError: it is for another architecture, a library is missing there, or there is no room.
            PgstrataError: as `Servers.resolve`.
        """
        if spec.kind is not ServerKind.PREFIX:
            return self._send_foreign(spec) if self._foreign else self.send(self.servers.resolve(spec))
        self._require_there(spec)
        self.inspector.require_enterable(spec.value)
        return self.inspector.inspect(spec, spec.value, PREFIX_SUPPLIER, {})

    def _require_there(self, spec: ServerSpec) -> None:
        if not self.transport.exists(f"{spec.value}/bin/postgres"):
            raise UsageError(
                "there is no bin/postgres on that host",
                where=f"{self.transport.name}:{spec.value}",
                remedy="prefix:DIR is an installation on that host: name the folder that holds its bin/postgres, or "
                "take a server that is sent there (embedded, 14 to 18, maven:MAJOR, build:DIR)",
            )

    def client_tools(self, *, tls: bool = False) -> Build:
        """The build over there with psql and the programs of drivers, which fill and load servers.

        `tls`: it must be able to encrypt connections.
        """
        if self._foreign:
            kind = ServerKind.CATALOGUE if tls else ServerKind.EMBEDDED
            return self._send_foreign(ServerSpec(kind=kind, value=NEWEST.level if tls else ""))
        return self.send(self.servers.client_tools(tls=tls))

    @property
    def _foreign(self) -> bool:
        """Whether the machine has another architecture than this one."""
        return usual_name(self.machine) != usual_name(os.uname().machine)

    def _send_foreign(self, spec: ServerSpec) -> Build:
        """A server for that machine's architecture: fetched here, sent, and inspected there.

        HostNotFitError if there is none for that architecture.
        """
        try:
            prefix, supplier = self.servers.fetch_for(spec, self.machine)
        except HostNotFitError as error:
            error.where = error.where or self.transport.name
            raise
        binary = self.servers.site.here.read(f"{prefix}/bin/postgres")
        there = self._send_tree(prefix, hashlib.sha256(binary).hexdigest(), spec.text)
        return self.inspector.inspect(spec, there, supplier, {})

    def send(self, build: Build) -> Build:
        """A build of this machine's cache over there; sent unless it is there already.

        All that came with it is sent, because wheels keep libraries beside the installation.
        """
        prefix = self._send_tree(build.prefix, build.digest, f"{build.spec.text} ({build.version.text})")
        # what was compiled here looks for its libraries where it was installed here
        libraries = {"LD_LIBRARY_PATH": f"{prefix}/lib"} if build.spec.kind is ServerKind.BUILD else {}
        there = self.inspector.inspect(build.spec, prefix, build.supplier, libraries)
        # it is the same build; what its programs need to start is another machine's matter
        # (an installation that was looked at before is remembered with the libraries of then)
        return replace(build, prefix=prefix, process_environment={**libraries, **there.process_environment})

    def _send_tree(self, prefix: str, digest: str, title: str) -> str:
        """Send a prefix of the cache; return its path over there, in a folder named by the SHA-256 of its server."""
        cache = f"{self.servers.site.cache}/servers"
        name, _, inside = prefix.removeprefix(f"{cache}/").partition("/")
        target = f"{self.folder}/{name}-{digest[:16]}"
        if not self.transport.exists(target):
            self.inspector.packages.site.note(f"sending {title} to {self.transport.name}")
        self.transport.make_folder(self.folder, mode=0o755)
        send_tree(self.servers.site.here, self.transport, f"{cache}/{name}", target)
        there = f"{target}/{inside}".rstrip("/")
        self.inspector.require_enterable(there)
        return there


def bring_file(here: Host, there: SshHost, file: DataFile, folder: str) -> DataFile:
    """A file of the user's, sent into a folder of another machine, where it has the contents that the plan knows.

    Raises:
        HostFileError: it has others, because it changed, or not all arrived.
        PgstrataError: as `send_file`.
    """
    there.make_folder(folder)
    brought = replace(file, path=send_file(here, there, file.path, folder), stamp="")
    if digest_there(there, brought) != file.digest:
        raise HostFileError(
            f"the file {file.name} arrived with other contents than the plan was made of",
            where=f"{there.name}:{brought.path}",
            remedy="wait until it is complete, and start again",
        )
    return brought
