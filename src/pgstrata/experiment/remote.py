"""What follows where servers run on other machines than the client: how it connects, and what cannot go together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from pgstrata.experiment.findings import Findings
from pgstrata.experiment.keys import Path
from pgstrata.experiment.schema import ExperimentFile
from pgstrata.experiment.stacks import Stack
from pgstrata.model.experiment import ConnectionKind, Environment, ServerKind

_OF_THE_CLIENT: Final = "cpu.client"


def usual_connection(stacks: Iterable[Stack]) -> ConnectionKind:
    """How all clients connect where nothing is said: alike, so by TCP if one of the servers is on another machine."""
    return (
        ConnectionKind.TCP
        if any("host" in stack and stack["host"].remote for stack in stacks)
        else ConnectionKind.SOCKET
    )


def check_hosts(environments: tuple[Environment, ...], file: ExperimentFile, findings: Findings) -> None:
    """Note what cannot be where the server is on another machine than the client."""
    for index, environment in enumerate(environments):
        if not environment.host.remote:
            continue
        for key, what, remedy in _obstacles(environment):
            findings.add(place_of(key, index, file), what, remedy)


def _obstacles(environment: Environment) -> Iterator[tuple[str, str, str]]:
    """Key, what is wrong with it, and what to do."""
    where = environment.host.text
    if environment.connection is ConnectionKind.SOCKET:
        what = f"a unix socket does not reach {where}, which is another machine than the client's"
        yield "connection", what, 'take it out: all environments then use "tcp"; or write "tcp" or "tls"'
    if environment.server.kind is ServerKind.DSN:
        what = f"a running server ({environment.server.text}) is where it is, and cannot be put on {where}"
        yield "host", what, "take the host out; or let pgstrata start the servers there: embedded, 14 to 18, prefix:DIR"
    if _OF_THE_CLIENT in environment.layers:
        what = f"{_OF_THE_CLIENT} is about this machine, and a host's layers are changed on {where} only"
        yield _OF_THE_CLIENT, what, "take it out, or start pgstrata itself under taskset"


def place_of(key: str, index: int, file: ExperimentFile) -> Path:
    """Where an environment's value of a key stands in the file: in its own table, among factors, or in [common]."""
    own: Path = tuple(key.split(".", 1))
    table, _, name = key.partition(".")
    if file.environments:
        return ("environments", index, *own) if _holds(file.environments[index].get(table), name) else ("common", *own)
    return ("factors" if _holds(file.factors.get(table), name) else "common", *own)


def _holds(given: object, name: str) -> bool:
    """Whether something is given, and that name in it where one is asked for."""
    return given is not None and (not name or (isinstance(given, Mapping) and name in given))
