"""The keys of environments and factors: one registry, which the schema, parsing and the reference derive from."""

from collections.abc import Mapping
from typing import Final

from pgstrata.experiment.hosts import CLIENT
from pgstrata.experiment.layers import LAYERS
from pgstrata.experiment.layers.build import BUILD
from pgstrata.experiment.layers.declaration import FactorKey
from pgstrata.experiment.values import FLAG, TABLE, choice
from pgstrata.model.experiment import ConnectionKind, Placement

_OWN: Final[Mapping[str, FactorKey]] = {
    "server": FactorKey(
        meaning="embedded (default), 14 to 18, maven:9.6 to maven:18, build:DIR, build:FILE.tar.gz, "
        "build:DIR@COMMIT, prefix:DIR, a folder, dsn:SERVICE or dsn:CONNECTION-STRING.",
        levels="Servers: a list, or a table of named levels.",
        wrong='"16.3"',
        wrong_levels='["16", "19"]',
    ),
    "host": FactorKey(
        meaning="Machine on which the server runs: local, ssh:DESTINATION as your own ssh takes it, or vm:IMAGE, a "
        "virtual machine that pgstrata boots.",
        wrong='"ssh:-l root"',
        wrong_levels='["local", "db1"]',
    ),
    "client": FactorKey(
        kind=CLIENT,
        meaning="Machine from which the load comes: local (default), same (the server's own), or ssh:DESTINATION.",
        levels="Machines of clients: same, local, ssh:DESTINATION.",
        wrong='["ssh:load1", "ssh:load1"]',
        wrong_levels='["same", "load1"]',
    ),
    "connection": FactorKey(
        kind=choice("connection", ConnectionKind),
        meaning="How the client connects to the server; default socket, or tcp if any client is on another machine.",
        levels="Ways to connect.",
        wrong='"udp"',
        wrong_levels='["socket", "ssl"]',
    ),
    "placement": FactorKey(
        kind=choice("placement", Placement),
        meaning="On which CPUs sessions run: free, paired (client and backend on one CPU), or auto as the cell says.",
        levels="Placements of sessions on CPUs.",
        wrong='"pinned"',
        wrong_levels='["free", "pinned"]',
    ),
    "checksums": FactorKey(
        kind=FLAG,
        meaning="Whether clusters are made with data checksums; default true.",
        levels="Data checksums: [true, false].",
        wrong='"off"',
        wrong_levels='["on", "off"]',
    ),
    "settings": FactorKey(
        kind=TABLE,
        meaning="PostgreSQL settings by name: strings, numbers, booleans.",
        levels="Named sets of settings as tables; or levels of single settings as lists.",
        wrong="{ port = 5432 }",
        wrong_levels='{ shared_buffers = "1GB" }',
    ),
    "initdb": FactorKey(
        kind=TABLE,
        meaning="Options of initdb by name, without the leading hyphens.",
        levels="Levels of options of initdb.",
        wrong='{ username = "me" }',
        wrong_levels="{ data-checksums = [1, 0] }",
    ),
    "options": FactorKey(
        kind=TABLE,
        meaning="Options of the workload by name.",
        levels="Levels of options of the workload.",
        wrong='{ setup_sql = "missing.sql" }',
        wrong_levels="{ width = [1, 2] }",
    ),
}


def factor_keys() -> Mapping[str, FactorKey]:
    """Every key of an environment: those with one level first, then tables."""
    every = dict(_OWN)
    for layer in (BUILD, *LAYERS.values()):
        every.update(layer.factors)
    return dict(sorted(every.items(), key=lambda entry: entry[1].kind is TABLE))


def is_of_host(key: str) -> bool:
    """Whether a key such as cpu.quota is one of a layer of the host."""
    return any(key.partition(".")[0] in layer.factors for layer in LAYERS.values())


OWN_TABLES: Final = ("settings", "initdb", "options")
"""Tables whose names are PostgreSQL's or a workload's."""
