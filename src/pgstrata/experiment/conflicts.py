"""Refuses levels of machines and storage that cannot be combined, when the experiment file is read."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from pgstrata.experiment.findings import Findings
from pgstrata.experiment.hosts import USUAL_CLIENT
from pgstrata.experiment.keys import Path
from pgstrata.experiment.schema import ExperimentFile
from pgstrata.experiment.stacks import Stack
from pgstrata.model.boot import KEYS as BOOT_KEYS
from pgstrata.model.boot import OF_MACHINES
from pgstrata.model.experiment import HERE, ConnectionKind, ControlKind, Environment, HostKind, HostSpec, ServerKind
from pgstrata.model.storage import Medium, Role, device_of, medium_of


def usual_connection(stacks: Iterable[Stack]) -> ConnectionKind:
    """The default connection of all environments: TCP if any client is on another machine than its server."""
    return ConnectionKind.TCP if any(map(_is_apart, stacks)) else ConnectionKind.SOCKET


def _is_apart(stack: Stack) -> bool:
    host: HostSpec = stack.get("host", HostSpec())
    return host not in stack.get("client", USUAL_CLIENT).beside(host)


def check_hosts(environments: tuple[Environment, ...], file: ExperimentFile, findings: Findings) -> None:
    """Note impossible machines of servers and clients, and levels of `client` that mean the same machine."""
    for index, environment in enumerate(environments):
        for key, what, remedy in _obstacles(environment):
            findings.add(place_of(key, index, file), what, remedy)
    if "client" in file.factors:
        _refuse_same(environments, findings)


def _refuse_same(environments: tuple[Environment, ...], findings: Findings) -> None:
    """Note the first two environments that differ only in the words of their levels."""
    seen: dict[str, Environment] = {}
    for environment in environments:
        first = seen.setdefault(repr(replace(environment, name="", label="", levels=())), environment)
        if first is not environment and _client_word(first) != _client_word(environment):
            what = f"{first.title} and {environment.title} are the same: both mean the server's own machine"
            findings.add(("factors", "client"), what, 'take one out; to repeat the baseline write controls = ["same"]')
            return


def _client_word(environment: Environment) -> str:
    return next((level.value for level in environment.levels if level.factor == "client"), "")


def _impossible_boots(environment: Environment) -> Iterator[tuple[str, str, str]]:
    """For each impossible key: the key, the problem, the remedy."""
    layers, kind = environment.layers, environment.host.kind
    for key in BOOT_KEYS:
        if key not in layers or kind is HostKind.VM:
            continue
        if key in OF_MACHINES:
            what = f"{key} needs a virtual machine, which {environment.host.text} is not"
            yield key, what, 'write host = "vm:IMAGE", or take it out'
        elif environment.server.kind is ServerKind.DSN:
            what = f"{key} reboots this machine, which would end the running server {environment.server.text}"
            yield key, what, "take it out; or let pgstrata start the servers: embedded, 14 to 18, prefix:DIR"


def check_boots(environments: tuple[Environment, ...], file: ExperimentFile, findings: Findings) -> None:
    """Note boots that cannot be, or would end a running server."""
    told: set[Path] = set()
    for index, environment in enumerate(environments):
        for key, what, remedy in _impossible_boots(environment):
            place = place_of(key, index, file)
            if place not in told:
                findings.add(place, what, remedy)
            told.add(place)
    if ControlKind.REBOOT in file.controls and any(each.server.kind is ServerKind.DSN for each in environments):
        findings.add(
            ("controls", file.controls.index(ControlKind.REBOOT)),
            "the control reboot reboots this machine, which would end the running servers",
            "take it out; or let pgstrata start the servers: embedded, 14 to 18, prefix:DIR",
        )


def _obstacles(environment: Environment) -> Iterator[tuple[str, str, str]]:
    """Key, what is wrong with it, and what to do."""
    where = environment.host.text
    if environment.connection is ConnectionKind.SOCKET and environment.apart:
        what = f"a unix socket does not reach {environment.host.named}: the client is on another machine"
        yield "connection", what, 'take it out: all environments then use "tcp"; or write "tcp" or "tls"'
    if len(environment.client_hosts) > 1 and environment.host in environment.client_hosts:
        what = f"one of several machines of the client is {environment.host.named}, on which the server runs"
        yield "client", what, 'name machines without the server; or only the server\'s own: client = "same"'
    for client in environment.client_hosts:
        if client.kind is HostKind.VM and client != environment.host:
            what = f"{client.text} is a virtual machine, which is only booted for servers of its own"
            yield "client", what, 'write client = "local", "same", or "ssh:" and a machine that is always up'
    if environment.server.kind is ServerKind.DSN and environment.host.remote:
        what = f"a running server ({environment.server.text}) is where it is, and cannot be put on {where}"
        yield "host", what, "take the host out; or let pgstrata start the servers there: embedded, 14 to 18, prefix:DIR"
    elif environment.server.kind is ServerKind.DSN and environment.client_hosts != HERE:
        what = f"a running server ({environment.server.text}) can only be loaded from this machine"
        yield "client", what, "take the client out, or start pgstrata itself on that machine"


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


_OF_THE_DATA: Final = ("storage.size", "storage.device")
_OF_ANY: Final = ("storage.mkfs", "storage.mount")
_FILE_SYSTEM: Final = 'add filesystem = "ext4", "xfs" or "btrfs"'


def check_storage(environments: tuple[Environment, ...], file: ExperimentFile, findings: Findings) -> None:
    """Note what `meaningless` finds, once for each place in the file."""
    found = [list(meaningless(environment)) for environment in environments]
    told: set[Path] = set()
    for index, problems in enumerate(found):
        for key, what, remedy in problems:
            place = place_of(key, index, file)
            if place in told:
                continue
            told.add(place)
            if not all(any(key == other for other, _, _ in each) for each in found):
                what += f", and {environments[index].title} has none"  # noqa: PLW2901
                remedy += f"; or list the [[environments]], and give {key} only to those that have one"  # noqa: PLW2901
            findings.add(place, what, remedy)


def meaningless(environment: Environment) -> Iterator[tuple[str, str, str]]:
    """Key, what is wrong with it, and what to do."""
    layers = environment.layers
    media = {role: medium_of(environment, role) for role in Role}
    lost = [key for key in _OF_THE_DATA if key in layers] if media[Role.DATA] is Medium.SAME else []
    if not {Medium.LOOP, Medium.DEVICE} & set(media.values()):
        lost += [key for key in _OF_ANY if key in layers]
    for key in lost:
        yield key, f"{key} needs a file system", _FILE_SYSTEM
    if "storage.size" in layers and "storage.device" in layers:
        what = "storage.size is that of an image file, a device has its own"
        yield "storage.size", what, "take storage.size or storage.device out"
    devices = {role: device_of(environment, role) for role in Role if media[role] is Medium.DEVICE}
    for role, device in devices.items():
        if device and list(devices.values()).count(device) > 1:
            what = f"{device} is asked for twice, and holds one file system"
            key = "storage.device" if role is Role.DATA else f"storage.{role}"
            yield key, what, "name another device for one of them"
