"""Sessions paired with CPUs: clients start on theirs, and their backends are put there when they have connected.

Which backend belongs to which client is read from the server, by the names that the driver gives the sessions of each
CPU. Nothing is undone: affinities end with the processes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from pgstrata.conduct.arm import ActiveArm
from pgstrata.conduct.rig import Rig
from pgstrata.errors import LevelNotTakenError, ServerFailedError, SqlError
from pgstrata.libpq import quote_literal
from pgstrata.model.kernel_files import parse_allowed_cpus, parse_cpu_list
from pgstrata.plan.placement import deal
from pgstrata.ports.driver import Load
from pgstrata.ports.host import Command, Host

PLACEMENT: Final = "placement.txt"
"""Evidence name: a line for each session, CPU of its client, process id and CPU of its backend."""
_CONNECTING: Final = 30.0
_LOOKS: Final = 20
_POLL: Final = 0.02
# A driver may have a first session of its own for a moment, with the same name, before its clients connect.
_SETTLED_MS: Final = 150
_NO_COLUMN: Final = "42703"
_STATUS: Final = "/proc/self/status"
_PIN: Final = 'for pair; do taskset -pc "${pair#*:}" "${pair%:*}" >/dev/null || exit 1; done'


def place_clients(rig: Rig, arm: ActiveArm, load: Load) -> Load:
    """The load with the CPU of each client, where sessions are paired; as it is otherwise."""
    if arm.placement_seed is None:
        return load
    cpus = _usable(rig.client(arm.environment), arm.environment.layers.get("cpu.client"))
    places = deal(load.cell.clients, len(cpus), arm.placement_seed)
    return replace(load, cpus=tuple(cpus[place] for place in places))


def place_backends(rig: Rig, arm: ActiveArm, load: Load) -> None:
    """Put the backend of each client on its CPU; with other CPUs for the server than for the client, on one of those.

    Raises:
        ServerFailedError: not all clients have a session after half a minute.
        LevelNotTakenError: a backend is not where it was put.
    """
    if not load.cpus:
        return
    home = rig.server_host(arm.environment).host
    names = rig.driver(arm.environment, arm.cell).session_names(load)
    cpus = _server_cpus(arm, load, home)
    pids: list[int] = []
    # a session that ends meanwhile was not one of the clients': the next look does not see it
    for _ in range(_LOOKS):
        found = _await_sessions(rig, arm, load, names)
        if found == pids and _are_placed(home, pids, cpus, arm):
            break
        pids = found
        words = tuple(f"{pid}:{cpu}" for pid, cpu in zip(pids, cpus, strict=True))
        home.run(Command(argv=("sh", "-c", _PIN, "sh", *words)), timeout=60, check=False)
    else:
        raise LevelNotTakenError(
            f"the clients' sessions changed at each of {_LOOKS} looks, or their CPUs cannot be read",
            where=arm.environment.title,
            remedy='see whether /proc/PID/status can be read there, or write placement = "free"',
        )
    lines = (f"{own} {pid} {cpu}\n" for own, pid, cpu in zip(sorted(load.cpus), pids, cpus, strict=True))
    arm.keep(PLACEMENT, "".join(lines).encode())


def _are_placed(home: Host, pids: Sequence[int], cpus: Sequence[int], arm: ActiveArm) -> bool:
    """Whether all are still there, each on its CPU; LevelNotTakenError where one is elsewhere."""
    statuses = home.read_files(tuple(f"/proc/{pid}/status" for pid in pids))
    for pid, cpu in zip(pids, cpus, strict=True):
        allowed = _allowed_in(statuses.get(f"/proc/{pid}/status", b""))
        if not allowed:
            return False
        if allowed != {cpu}:
            raise LevelNotTakenError(
                f"the backend {pid} may run on CPUs {sorted(allowed)} and was put on CPU {cpu}",
                where=arm.environment.title,
                remedy='see whether taskset works there, or write placement = "free"',
            )
    return True


def _server_cpus(arm: ActiveArm, load: Load, home: Host) -> Sequence[int]:
    """CPUs of the backends, in the order of their clients' CPUs."""
    theirs = _usable(home, arm.environment.layers.get("cpu.server"))
    if not arm.environment.apart and set(load.cpus) <= set(theirs):
        return sorted(load.cpus)
    return [theirs[place] for place in deal(len(load.cpus), len(theirs), (arm.placement_seed or 0) + 1)]


def _usable(host: Host, level: str | None) -> list[int]:
    """The CPUs that processes of ours may use there, within the level of a layer."""
    return sorted(parse_cpu_list(level) if level is not None else _allowed_in(host.read(_STATUS)))


def _allowed_in(status: bytes) -> frozenset[int]:
    """CPUs that a process may use by its /proc/PID/status; none where it has ended."""
    return parse_allowed_cpus(status.decode("utf-8", "replace"))


def _ask(rig: Rig, arm: ActiveArm, load: Load, statement: str) -> Iterable[tuple[str, ...]]:
    try:
        return rig.sql(arm.environment).query(load.address, statement).rows
    except SqlError as error:
        if error.sqlstate != _NO_COLUMN:
            raise
        raise LevelNotTakenError(
            "sessions cannot be paired with CPUs: this server does not show their names and processes, as PostgreSQL "
            "does from 9.2 on",
            where=error.where,
            remedy='write placement = "free" in all environments',
        ) from error


def _await_sessions(rig: Rig, arm: ActiveArm, load: Load, names: Mapping[str, int]) -> list[int]:
    """Process ids of the backends in the order of their clients' CPUs, once every client has one."""
    wanted = {name: load.cpus.count(cpu) for name, cpu in names.items()}
    listed = ", ".join(map(quote_literal, names))
    asked = (
        "SELECT application_name, pid FROM pg_stat_activity "
        f"WHERE datname = current_database() AND application_name IN ({listed}) "
        f"AND backend_start < clock_timestamp() - interval '{_SETTLED_MS} milliseconds' ORDER BY pid"
    )
    end = rig.clock.monotonic() + _CONNECTING
    while True:
        found: dict[str, list[int]] = defaultdict(list)
        for name, pid in _ask(rig, arm, load, asked):
            found[name].append(int(pid))
        if {name: len(pids) for name, pids in found.items()} == wanted:
            return [pid for name in sorted(names, key=names.__getitem__) for pid in found[name]]
        if rig.clock.monotonic() > end:
            seen = sum(map(len, found.values()))
            raise ServerFailedError(
                f"{seen} of {len(load.cpus)} clients have connected after {_CONNECTING:.0f} s, so that their sessions "
                "cannot be placed on CPUs",
                remedy='look at the server\'s log, or write placement = "free"',
            )
        rig.clock.sleep(_POLL)
