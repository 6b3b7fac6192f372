"""The layer `cpu`: which CPUs, how much of them, by which policy, at which frequency.

Affinity and policy are words in front of the command (taskset, chrt), CPU time is limited by a group
(`layers.cgroups`): several environments of a host can be up at once with different levels of these. Governor and turbo
are the host's and hold for all that is up.

Real-time policies were seen refused and not seen running: the machine on which this was written gives no user a limit
of real-time priorities.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from pgstrata.errors import HostNotFitError, LevelNotTakenError, ParseError
from pgstrata.layers.cgroups import Controller, Group, Groups, assert_level, needed_controllers, set_value
from pgstrata.layers.frequency import Frequency
from pgstrata.model.experiment import Environment, ServerKind
from pgstrata.model.kernel_files import parse_allowed_cpus, parse_cpu_list, parse_field
from pgstrata.model.launch import Launch, Needs
from pgstrata.ports.host import Command, Host
from pgstrata.ports.layer import Ledger
from pgstrata.ports.server import RunningServer, Sql

SERVER: Final = "cpu.server"
CLIENT: Final = "cpu.client"
QUOTA: Final = "cpu.quota"
POLICY: Final = "cpu.policy"
GOVERNOR: Final = "cpu.governor"
TURBO: Final = "cpu.turbo"

_PERIOD: Final = 100_000
"""Microseconds in which the quota holds: the kernel's own default (Documentation/scheduler/sched-bwc.rst)."""
_ONLINE: Final = "/sys/devices/system/cpu/online"
_STATUS: Final = "/proc/self/status"
# sched.h
_POLICIES: Final[Mapping[str, str]] = {"0": "other", "1": "fifo", "2": "rr", "3": "batch", "5": "idle", "6": "deadline"}
# Fields of /proc/PID/stat after the command in parentheses, which may hold spaces (proc_pid_stat(5): 40 and 41).
_PRIORITY_FIELD: Final = 40 - 3
_POLICY_FIELD: Final = 41 - 3


def parse_policy(stat: str) -> str:
    """Scheduling policy of a process as levels write it ("batch", "fifo:5"), from its /proc/PID/stat."""
    fields = stat.rpartition(")")[2].split()
    if len(fields) <= _POLICY_FIELD:
        raise ParseError(f"not a line of /proc/PID/stat: {stat!r}")
    name = _POLICIES.get(fields[_POLICY_FIELD], fields[_POLICY_FIELD])
    return f"{name}:{fields[_PRIORITY_FIELD]}" if name in ("fifo", "rr") else name


class CpuLayer:
    """Affinity, quota, policy, governor and turbo.

    Args:
        host: where the servers run, as their user.
        key: names the study's groups.
        environments: all of the experiment. If one of them has a quota, the servers of the others get a group too,
            without a limit: a group competes with the client as a whole, a server without one process by process.
        frequency: governor and turbo, by default those of `host`.
        clients: the machines of an environment's clients, by default `host`.
    """

    name = "cpu"

    def __init__(
        self,
        host: Host,
        key: str,
        frequency: Frequency | None = None,
        environments: Iterable[Environment] = (),
        clients: Callable[[Environment], Sequence[Host]] | None = None,
    ) -> None:
        environments = tuple(environments)
        self._host = host
        self._clients = clients or (lambda _: (host,))
        self._groups = Groups(host, key, needed_controllers(environments) or tuple(Controller))
        self._grouped = any(QUOTA in environment.layers for environment in environments)
        self._frequency = frequency or Frequency(host)
        self._made: dict[str, Group] = {}

    def concerns(self, environment: Environment) -> bool:
        """Whether it asks for a level of this layer, or another one asks for a quota."""
        return any(key.startswith("cpu.") for key in environment.layers) or self._has_group(environment)

    def _has_group(self, environment: Environment) -> bool:
        """Whether its server is put into a group for CPU time; somebody else's server cannot be."""
        return QUOTA in environment.layers or (self._grouped and environment.server.kind is not ServerKind.DSN)

    def prepare(self, environment: Environment, needs: Needs, ledger: Ledger) -> Launch:  # noqa: ARG002 - the Protocol's
        """Check that the host can do it, make the group, set governor and turbo."""
        levels = environment.layers
        self._check_policy(levels)
        if SERVER in levels:
            _check_cpus(self._host, SERVER, levels[SERVER])
        if CLIENT in levels:
            for client in self._clients(environment):
                _check_cpus(client, CLIENT, levels[CLIENT])
        if GOVERNOR in levels:
            self._frequency.set_governor(levels[GOVERNOR], ledger)
        if TURBO in levels:
            self._frequency.set_turbo(levels[TURBO], ledger)
        words = self._limit_time(environment, ledger) if self._has_group(environment) else ()
        words += _pin(levels.get(SERVER, "")) + _schedule(levels.get(POLICY, ""))
        if words:
            self._try(words, levels)
        return Launch(server=words, client=_pin(levels.get(CLIENT, "")))

    def _check_policy(self, levels: Mapping[str, str]) -> None:
        if QUOTA in levels and levels.get(POLICY, "").startswith(("fifo", "rr")):
            raise HostNotFitError(
                f"cpu.quota does not hold for cpu.policy = {levels[POLICY]!r}: Linux limits ordinary processes only",
                where=self._host.name,
                remedy="leave out one of the two, or take the policy other, batch or idle",
            )

    def _limit_time(self, environment: Environment, ledger: Ledger) -> tuple[str, ...]:
        """Words that put the server into a group with that much CPU time, or all of it where nothing was asked."""
        quota = self._quota(environment.layers[QUOTA]) if QUOTA in environment.layers else None
        group = self._groups.find(Controller.CPU, environment.name)
        self._made[environment.name] = group
        whole = f"{'max' if quota is None else quota} {_PERIOD}"
        values: tuple[tuple[str, str], ...]
        if not group.unified:
            values = (("cpu.cfs_period_us", str(_PERIOD)), ("cpu.cfs_quota_us", str(-1 if quota is None else quota)))
        elif any(key.startswith("limits.") for key in environment.layers):
            # In version 2 a process is in one group: the layer `limits`, which is beneath, made it and joins it.
            if quota is not None:
                set_value(group, "cpu.max", whole, ledger)
            return ()
        else:
            values = (("cpu.max", whole),)
        self._groups.make(group, values, ledger)
        return group.join

    def _quota(self, level: str) -> int:
        """Microseconds of each period; HostNotFitError where that is more than all CPUs have."""
        online = len(parse_cpu_list(self._host.read(_ONLINE).decode()))
        if float(level) > online:
            raise HostNotFitError(
                f"cpu.quota = {level} would limit nothing: this host has {online} CPUs",
                where=self._host.name,
                remedy=f"take at most {online}",
            )
        return round(float(level) * _PERIOD)

    def _try(self, words: tuple[str, ...], levels: Mapping[str, str]) -> None:
        """Run nothing in this way, as the server's user: a start that fails would say less."""
        tried = self._host.run(Command(argv=(*words, "true")), check=False)
        if not tried.code:
            return
        policy = levels.get(POLICY, "")
        real_time = policy.startswith(("fifo", "rr"))
        raise HostNotFitError(
            f"{self._host.user} cannot start a server with "
            f"{', '.join(f'{key} = {levels[key]}' for key in levels) or 'a cgroup of its own'}",
            where=self._host.name,
            details=tried.last_words(),
            remedy="real-time policies need a limit of real-time priorities (RLIMIT_RTPRIO), which servers inherit. As "
            "root use `ulimit -r 99` in the shell that starts pgstrata; as another user set `rtprio` in "
            "/etc/security/limits.conf and log in again. Kernels with CONFIG_RT_GROUP_SCHED also refuse them in groups"
            if real_time
            else "see what the programs said",
        )

    def observe(self, server: RunningServer, sql: Sql) -> Mapping[str, str]:  # noqa: ARG002 - the Protocol's
        """What the kernel says of the postmaster and its group; LevelNotTakenError where that is not what was asked."""
        levels = server.environment.layers
        if not self.concerns(server.environment):
            return {}
        facts = {CLIENT: levels[CLIENT]} if CLIENT in levels else {}
        if levels.keys() & {SERVER, POLICY} or self._has_group(server.environment):
            facts |= self._observe_server(server)
        if GOVERNOR in levels:
            facts[GOVERNOR] = self._frequency.governor()
        if TURBO in levels:
            facts[TURBO] = self._frequency.turbo()
        asked = {QUOTA: "max", **levels}
        for key in facts.keys() & asked.keys():
            assert_level(key, asked[key], facts[key], server, same=_same_level(key, asked[key], facts[key]))
        return facts

    def _observe_server(self, server: RunningServer) -> dict[str, str]:
        environment = server.environment
        if server.postmaster_pid is None:
            raise LevelNotTakenError(
                "levels of cpu were asked for, and the server is not one that pgstrata started",
                where=f"environment {environment.name}",
                remedy="leave out cpu.* for servers that somebody else runs",
            )
        process = f"/proc/{server.postmaster_pid}"
        paths = [f"{process}/{name}" for name in ("status", "stat", "cgroup")]
        files = self._host.read_files(paths)
        status, stat, membership = (files.get(path, b"").decode("utf-8", "replace") for path in paths)
        facts = {}
        if SERVER in environment.layers:
            facts[SERVER] = parse_field(status, "Cpus_allowed_list")
        if POLICY in environment.layers:
            facts[POLICY] = parse_policy(stat)
        group = self._made.get(environment.name) if self._has_group(environment) else None
        if group:
            group.assert_member(membership, f"environment {environment.name}")
            contents = group.read(self._host, "cpu.max", "cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.stat")
            facts[QUOTA] = _read_quota(contents)
            facts["cpu.throttled"] = parse_field(contents.get("cpu.stat", ""), "nr_throttled")
        return facts


def _pin(cpus: str) -> tuple[str, ...]:
    return ("taskset", "--cpu-list", cpus) if cpus else ()


def _schedule(policy: str) -> tuple[str, ...]:
    name, _, priority = policy.partition(":")
    return ("chrt", f"--{name}", priority or "0") if policy else ()


def _check_cpus(host: Host, key: str, level: str) -> None:
    """HostNotFitError where one of the CPUs is not online or not ours to use."""
    files = host.read_files((_ONLINE, _STATUS))
    wanted = parse_cpu_list(level)
    online = parse_cpu_list(files.get(_ONLINE, b"").decode())
    allowed = parse_allowed_cpus(files.get(_STATUS, b"").decode("utf-8", "replace"))
    for usable, why in ((online, "not online"), (allowed, "not allowed for pgstrata (cpuset or taskset)")):
        if missing := sorted(wanted - usable):
            names = ", ".join(map(str, missing))
            raise HostNotFitError(
                f"{key} = {level!r}: {'CPU' if len(missing) == 1 else 'CPUs'} {names} {why}",
                where=host.name,
                remedy=f"take CPUs of {_render_cpus(online & allowed)}",
            )


def _render_cpus(cpus: frozenset[int]) -> str:
    return ",".join(map(str, sorted(cpus)))


def _read_quota(contents: Mapping[str, str]) -> str:
    """CPUs as levels write them; "max" where there is no limit."""
    if "cpu.max" in contents:
        quota, period = contents["cpu.max"].split()
    else:
        quota, period = contents.get("cpu.cfs_quota_us", "-1"), contents.get("cpu.cfs_period_us", "1")
    return "max" if quota in ("max", "-1") else f"{int(quota) / int(period):.10g}"


def _same_level(key: str, asked: str, found: str) -> bool:
    if key in (SERVER, CLIENT):
        return parse_cpu_list(asked) == parse_cpu_list(found)
    if key == QUOTA and "max" not in (asked, found):
        return round(float(asked) * _PERIOD) == round(float(found) * _PERIOD)
    return asked == found
