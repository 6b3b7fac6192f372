"""Versions, builds, addresses, fingerprints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pgstrata.model import sizes
from pgstrata.model.experiment import ServerSpec
from pgstrata.model.secret import Secret


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerVersion:
    """A version as the server prints it. `number` is PostgreSQL's server_version_num (180006, 90624)."""

    text: str
    number: int
    fork: str = ""

    @property
    def major(self) -> str:
        """18, or 9.6 before 10."""
        if self.number >= 100000:  # noqa: PLR2004 - numbering changed with version 10
            return str(self.number // 10000)
        return f"{self.number // 10000}.{self.number // 100 % 100}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """An installed server: where it is, who built it, how. `digest` is the SHA-256 of the postgres binary.

    `origin` is what the level does not say of its source, such as the commit that a branch stood at; `assertions`
    whether it was built with them. `process_environment` is what its programs need to start, such as a library path; it
    holds no secrets.
    """

    spec: ServerSpec
    prefix: str
    version: ServerVersion
    supplier: str
    compiler: str
    configure: str
    cflags: str
    digest: str
    origin: str = ""
    assertions: bool = False
    process_environment: Mapping[str, str] = field(default_factory=dict)

    def program(self, name: str) -> str:
        """Path of a program of this build."""
        return f"{self.prefix}/bin/{name}"

    @property
    def memory(self) -> int | None:
        """`Command.memory` of its programs that are not measured: sanitizers reserve terabytes that they do not use."""
        return None if "sanitize" in f"{self.cflags} {self.configure}" else sizes.PROGRAM

    def moved(self, prefix: str) -> Build:
        """The same build, copied to another prefix: folders of libraries in the old one are those in the new one."""
        old = f"{self.prefix}/"

        def move(value: str) -> str:
            paths = (
                f"{prefix}/{path.removeprefix(old)}" if path.startswith(old) else path for path in value.split(":")
            )
            return ":".join(paths)

        return replace(
            self, prefix=prefix, process_environment={name: move(v) for name, v in self.process_environment.items()}
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """How to reach a database. For a unix socket `host` is its folder. `parameters` are further libpq keywords."""

    host: str
    port: int
    user: str
    database: str
    password: Secret | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)

    def with_database(self, database: str) -> Address:
        """The same server, another database."""
        return Address(host=self.host, port=self.port, user=self.user, database=database, password=self.password,
                       parameters=self.parameters)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class TcpRoute:
    """How clients reach a server by TCP: the address at which it listens, and the addresses of clients.

    `known_port` is one on which the server's machine is known to answer, 0 where none has to be known. Where the
    address is translated, `server` is the one that clients connect to, `listen` the one at which the server listens,
    and `ports` are those that lead there.
    """

    server: str = "127.0.0.1"
    clients: tuple[str, ...] = ("127.0.0.1",)
    known_port: int = 0
    listen: str = ""
    ports: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """What was observed of a host or an environment from inside: named facts as text."""

    facts: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedSetting:
    """A setting of a server that differs from PostgreSQL's default; both values are in `unit`, such as 8kB or ms."""

    name: str
    value: str
    unit: str
    default: str
