"""A question: factors and levels, environments, cells, and what its author allows."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from pgstrata.model.driver import DEFAULT_DRIVER
from pgstrata.model.objective import Objective
from pgstrata.model.own_data import OwnData
from pgstrata.model.price import Price
from pgstrata.model.secret import Secret
from pgstrata.model.synthetic import Synthetic


class ServerKind(StrEnum):
    """Where a server comes from."""

    EMBEDDED = "embedded"
    CATALOGUE = "catalogue"
    PREFIX = "prefix"
    BUILD = "build"
    MAVEN = "maven"
    DSN = "dsn"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSpec:
    """A level of the factor `server`, such as 16, embedded, prefix:/usr/lib/postgresql/15 or dsn:SERVICE.

    `value` is the part after the colon (for the catalogue: the major), without any password; `conninfo` is the
    complete connection string of a running server and is never shown. `build` says how a source is built: pairs of
    "compiler", "flags" or "system" and their value, sorted; empty where nothing is asked for. `restart` is the argv of
    the command that restarts a running server before each of its runs; empty where it is never restarted.
    """

    kind: ServerKind
    value: str = ""
    conninfo: Secret | None = None
    build: tuple[tuple[str, str], ...] = ()
    restart: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The level as a user writes it, without secrets."""
        match self.kind:
            case ServerKind.EMBEDDED:
                return "embedded"
            case ServerKind.CATALOGUE:
                return self.value
            case ServerKind.BUILD:
                how = ", ".join(value for _, value in self.build)
                return f"{self.kind}:{self.value} ({how})" if how else f"{self.kind}:{self.value}"
            case ServerKind.PREFIX | ServerKind.MAVEN | ServerKind.DSN:
                return f"{self.kind}:{self.value}"


class HostKind(StrEnum):
    """How a machine is reached."""

    LOCAL = "local"
    SSH = "ssh"
    VM = "vm"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSpec:
    """A machine on which a server runs (the factor `host`) or from which load comes (the factor `client`).

    `destination` is what the user's own ssh is told: an alias, user@host, ssh://user@host:port. Of a virtual machine
    that pgstrata boots it is the name of its root image.
    """

    kind: HostKind = HostKind.LOCAL
    destination: str = ""

    @property
    def text(self) -> str:
        """The level as a user writes it."""
        if self.kind is HostKind.LOCAL:
            return str(self.kind)
        return self.destination if self.destination.startswith("ssh://") else f"{self.kind}:{self.destination}"

    @property
    def named(self) -> str:
        """The name in a sentence: this host, or the level."""
        return self.text if self.remote else "this host"

    @property
    def remote(self) -> bool:
        """Whether it is another machine than this one, the coordinator's."""
        return self.kind is not HostKind.LOCAL


HERE: Final = (HostSpec(),)
"""Load comes from this machine alone."""


def name_hosts(hosts: Iterable[HostSpec]) -> str:
    """Several machines as a user writes them, with commas between them."""
    return ", ".join(host.text for host in hosts)


class ConnectionKind(StrEnum):
    """How the client reaches the server."""

    SOCKET = "socket"
    TCP = "tcp"
    TLS = "tls"


class Protocol(StrEnum):
    """Query protocol of the client."""

    SIMPLE = "simple"
    EXTENDED = "extended"
    PREPARED = "prepared"


class Reset(StrEnum):
    """What happens to the data between runs."""

    CLONE = "clone"
    RESTART = "restart"
    NONE = "none"


class Interleave(StrEnum):
    """How environments alternate within a block."""

    AUTO = "auto"
    SLICES = "slices"
    RUNS = "runs"


class Placement(StrEnum):
    """On which CPUs a session (client and backend) runs.

    `FREE`: where the kernel puts both. `PAIRED`: on one CPU, the same in all environments of a visit and dealt anew for
    each visit.
    """

    AUTO = "auto"
    FREE = "free"
    PAIRED = "paired"


class Order(StrEnum):
    """The order of the cells of a visit; `RISING`: those with fewer clients first, in every visit."""

    RANDOM = "random"
    RISING = "rising"


class ControlKind(StrEnum):
    """What is repeated in a control."""

    SAME = "same"
    REBOOT = "reboot"
    REBUILD = "rebuild"


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One value of one factor, as text for people and for JSON."""

    factor: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """One combination of levels: a stack of layers, plus the workload options that are factors.

    `name` is safe in identities and paths; `levels` are the declared levels only; `settings`, `initdb` hold all that
    is asked for, common ones included. `layers` holds levels of host layers, by key, that are not written out here.
    `label` is what the user calls it, empty where its name is made of its levels. `placement` is None where the cells
    decide. `client_hosts` names the machines from which its load comes: this one,
    the server's own, another one, or several.
    """

    name: str
    levels: tuple[Level, ...]
    server: ServerSpec
    connection: ConnectionKind = ConnectionKind.SOCKET
    checksums: bool = True
    settings: Mapping[str, str] = field(default_factory=dict)
    initdb: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    layers: Mapping[str, str] = field(default_factory=dict)
    control: ControlKind | None = None
    host: HostSpec = HostSpec()
    placement: Placement | None = None
    client_hosts: tuple[HostSpec, ...] = HERE
    label: str = ""

    @property
    def apart(self) -> bool:
        """Whether load comes from other machines than the server's."""
        return self.host not in self.client_hosts

    @property
    def title(self) -> str:
        """For people: the levels, or "(only environment)"; a control says so."""
        text = ", ".join(_render_level(level) for level in self.levels) or self.name
        return f"{text} (control: {self.control})" if self.control else text

    def loads(self, library: str) -> bool:
        """Whether its settings have the server load a library when it starts."""
        named = self.settings.get("shared_preload_libraries", "").split(",")
        return any(each.strip(" '\"").rpartition("/")[2].removesuffix(".so") == library for each in named)


def _render_level(level: Level) -> str:
    return level.value if level.factor == "server" else f"{level.factor.removeprefix('settings.')} = {level.value}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A script of the author's own: its path as written, its text, its weight in the mix."""

    file: str
    text: str
    weight: int = 1


DEFAULT_RUN: Final = 60.0
"""Seconds of a run where a cell names none."""


def digests(scripts: Iterable[Script]) -> Mapping[str, str]:
    """SHA-256 of texts, in UTF-8, by the names of their files."""
    return {script.file: hashlib.sha256(script.text.encode()).hexdigest() for script in scripts}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """workload x scale x clients (x rate x protocol): what is measured in every environment.

    `run` and `warmup` are seconds; warmup None means that pgstrata chooses. `rate` is transactions per second;
    `rate_share` a share (0.8) of the maximum of the slowest environment, which is measured before the first block.
    `until_falls`: it is a step of a ladder of clients that ends, before the first block, where throughput has fallen in
    every environment.
    `latency_limit` seconds. With an `objective` the highest rate is searched that keeps it, and `run` is the length of
    the search. `driver` is the key of the load generator. `data` are the user's own, for which the scale means nothing
    and is 1. `checkout` are files of a user's own that the workload begins with (`Workload.checkout`) or requires, by
    names without folders.
    """

    workload: str
    scale: int
    clients: int
    threads: int
    protocol: Protocol = Protocol.PREPARED
    run: float = DEFAULT_RUN
    warmup: float | None = None
    rate: float | None = None
    rate_share: float | None = None
    latency_limit: float | None = None
    scripts: tuple[Script, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    profile: bool = False
    label: str = ""
    driver: str = DEFAULT_DRIVER
    placement: Placement = Placement.AUTO
    data: OwnData | None = None
    objective: Objective | None = None
    checkout: tuple[Script, ...] = ()
    until_falls: bool = False

    @property
    def paced(self) -> bool:
        """Whether transactions begin at a fixed rate."""
        return self.rate is not None or self.rate_share is not None

    @property
    def objective_text(self) -> str | None:
        """The objective as in an experiment file; None without one."""
        return None if self.objective is None else self.objective.text

    @property
    def identity(self) -> str:
        """Readable and safe in paths: simple-update-s100-c16; differences beyond these stand in `label`."""
        rate = f"-r{self.rate:g}" if self.rate is not None else ""
        rate += f"-r{self.rate_share * 100:g}pct" if self.rate_share is not None else ""
        objective = f"-{self.objective.label}" if self.objective is not None else ""
        scale = f"-s{self.scale}" if self.data is None else ""
        return f"{self.workload}{scale}-c{self.clients}{rate}{objective}{self.label}"

    @property
    def stated_scale(self) -> int | None:
        """The scale as far as it means anything: None of data of one's own, whose cells have 1."""
        return self.scale if self.data is None else None

    @property
    def size(self) -> str:
        """For people: the scale, or where the data come from."""
        return f"scale {self.scale}" if self.data is None else f"data by {self.data.title}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Allow:
    """What the author of an experiment knowingly allows."""

    mixed_suppliers: bool = False
    mixed_compilers: bool = False
    assertions: bool = False
    failed_transactions: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """A question about PostgreSQL's performance.

    The first of `environments` that is named `baseline` is what the others are compared with. `threshold` is a ratio
    (0.03), `budget` seconds or None. `text` is the source without secrets; `notes` say what was normalised or chosen.
    `diagnosis`: whether samplers are at work beside the measured windows; `profile_cpu`: whether perf is, too;
    `query_text`: whether texts of sampled queries are kept, without their constants, or hashes of them.
    """

    question: str
    metric: str
    threshold: float
    blocks: int
    budget: float | None
    reset: Reset
    interleave: Interleave
    seed: int
    baseline: str
    environments: tuple[Environment, ...]
    cells: tuple[Cell, ...]
    factors: tuple[str, ...]
    allow: Allow
    text: str
    notes: tuple[str, ...] = ()
    diagnosis: bool = True
    profile_cpu: bool = False
    query_text: bool = True
    order: Order = Order.RANDOM
    prices: Mapping[str, Price] = field(default_factory=dict)
    """The price of an hour of the machine, by the name of an environment; measurements do not depend on it."""
    synthetic: Synthetic | None = None
    """Values that are declared instead of measured; None in all experiments that measure."""

    @property
    def hosts(self) -> tuple[HostSpec, ...]:
        """Where servers run, each once, in the order of the environments."""
        return tuple(dict.fromkeys(environment.host for environment in self.environments))

    @property
    def client_sides(self) -> tuple[tuple[HostSpec, ...], ...]:
        """The different values of `Environment.client_hosts`, in the order of the environments."""
        return tuple(dict.fromkeys(environment.client_hosts for environment in self.environments))

    @property
    def machines(self) -> tuple[HostSpec, ...]:
        """The machines of servers and clients, each once, those of servers first."""
        return tuple(dict.fromkeys((*self.hosts, *(host for side in self.client_sides for host in side))))

    @property
    def elsewhere(self) -> tuple[HostSpec, ...]:
        """The machines of the experiment except this one."""
        return tuple(host for host in self.machines if host.remote)

    @property
    def apart(self) -> bool:
        """Whether a server is loaded from another machine than its own."""
        return any(environment.apart for environment in self.environments)

    @property
    def only_host(self) -> HostSpec | None:
        """The machine of all servers; None where there are several."""
        return self.hosts[0] if len(self.hosts) == 1 else None

    @property
    def one_rig(self) -> bool:
        """Whether all servers run on one machine and are loaded from the same one: only then noise is comparable."""
        return self.only_host is not None and len(self.client_sides) == 1

    def on_host(self, host: HostSpec) -> Experiment:
        """The part of the experiment whose servers run on that host; without environments if there are none."""
        return replace(self, environments=tuple(each for each in self.environments if each.host == host))

    def environment(self, name: str) -> Environment:
        """The environment of that name; KeyError if there is none."""
        for environment in self.environments:
            if environment.name == name:
                return environment
        raise KeyError(name)

    def cell(self, identity: str) -> Cell:
        """The cell of that identity; KeyError if there is none."""
        for cell in self.cells:
            if cell.identity == identity:
                return cell
        raise KeyError(identity)
