"""The end of a run: its failure explained, its evidence kept, its record derived and committed."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from pgstrata.conduct.arm import WARMUP, ActiveArm
from pgstrata.conduct.derive import derive_record
from pgstrata.conduct.disk_full import disk_full
from pgstrata.conduct.rig import Rig
from pgstrata.conduct.steps import of_step, parse_execution
from pgstrata.errors import ParseError, find_disk_full
from pgstrata.model.plan import Plan
from pgstrata.model.runs import RunStatus
from pgstrata.ports.clients import FurtherClient, share_clients, share_threads
from pgstrata.ports.collector import PLANS
from pgstrata.ports.host import Host
from pgstrata.ports.layer import ExplainsDeath
from pgstrata.ports.server import RunningServer
from pgstrata.ports.store import FinishedRun, RunHeader

_ALIKE: Final = frozenset({"settings.tsv", PLANS})
_OOM_KILLS: Final = re.compile(rb"^oom_kill (\d+)$", re.MULTILINE)
_VMSTAT: Final = "/proc/vmstat"


def finish(rig: Rig, plan: Plan, arm: ActiveArm, server: RunningServer | None, log: bytes) -> FinishedRun:
    """Evidence kept aside and record derived: ready to be committed."""
    if log:
        arm.files["server.log"] = log
    _raise_if_disk_full(rig, arm, server)
    _explain_failure(rig, arm, log)
    _ask_layers(rig, arm)
    header = _header(rig, plan, arm, server)
    record = derive_record(
        header,
        arm.files,
        rig.driver(arm.environment, arm.cell),
        rig.collectors,
        plan.experiment.allow,
        rig.samplers,
        rig.explainer,
        plan.experiment.synthetic,
    )
    evidence = rig.store.begin(arm.planned.identity)
    for name, content in arm.files.items():
        (evidence.keep_shared if name in _ALIKE else evidence.keep)(name, content)
    facts = dict(rig.server_host(arm.environment).facts)
    if arm.environment.apart:
        facts |= {f"client.{name}": content for name, content in rig.side(arm.environment).facts.items()}
    for name, content in facts.items():
        evidence.keep_shared(name, content)
    return FinishedRun(evidence=evidence, header=header, record=record)


def _raise_if_disk_full(rig: Rig, arm: ActiveArm, server: RunningServer | None) -> None:
    """A full disk is no property of an environment: it ends the experiment, and nothing is committed of the run."""
    driver, before = rig.driver(arm.environment, arm.cell), f"{WARMUP}."
    warming = {name.removeprefix(before): text for name, text in arm.files.items() if name.startswith(before)}
    log = arm.files.get("server.log", b"").decode("utf-8", "replace")
    steps = range(1, len(arm.search.rates) + 1 if arm.search else 1)
    searching = (line for number in steps for line in driver.messages(of_step(arm.files, number)))
    said = (log, *driver.messages(arm.files), *driver.messages(warming), *searching)
    if full := find_disk_full("\n".join((arm.failure.said if arm.failure else "", *said))):
        raise disk_full(arm.environment, server, f"during the run {arm.planned.identity}, which is not kept", full)


def _explain_failure(rig: Rig, arm: ActiveArm, log: bytes) -> None:
    """A driver that complained or a server that died is named before the record is made."""
    if arm.failure or not arm.started:
        return
    try:
        result = parse_execution(rig.driver(arm.environment, arm.cell), arm.files, arm.search)
    except ParseError:
        return  # the record will say that the evidence is unreadable, and keep it
    died = [
        line
        for line in log.decode("utf-8", "replace").splitlines()
        if "PANIC:" in line or "was terminated by signal" in line
    ]
    if died:
        arm.fail(died[0].strip(), how="died")
        if _out_of_memory(rig, arm):
            arm.failure_kind = RunStatus.COLLAPSED
    elif result is None or not result.complete:
        errors = result.errors if result else ()
        arm.fail(*(errors or ("",)), how="broke off" if errors else "broke off silently")


def _ask_layers(rig: Rig, arm: ActiveArm) -> None:
    """A failure that a layer knows the reason of says so: its limit killed the server, which is a collapse."""
    if not arm.failure:
        return
    for layer in rig.server_host(arm.environment).layers:
        if isinstance(layer, ExplainsDeath) and (reason := layer.explain_death(arm.environment)):
            arm.failure = replace(arm.failure, said=f"{arm.failure.said}; {reason}" if arm.failure.said else reason)
            arm.failure_kind = RunStatus.COLLAPSED


def _header(rig: Rig, plan: Plan, arm: ActiveArm, server: RunningServer | None) -> RunHeader:
    build, apart = rig.supply(arm.environment).build, arm.environment.apart
    client = rig.client(arm.environment)
    host = rig.server_host(arm.environment).host
    facts = {key: value for key, value in arm.facts.items() if not key.startswith("settings.")}
    return RunHeader(
        identity=arm.planned.identity,
        plan=plan.identity,
        block=arm.planned.block,
        environment=arm.environment.name,
        cell=arm.cell.identity,
        started=arm.started or now(rig),
        seconds=arm.seconds,
        wall_drift=arm.wall_drift,
        client_cpu=arm.client_cpu,
        postmaster_pid=server.postmaster_pid if server else None,
        door_pids=host.transport_pids,
        server_version=build.version.number,
        sampling_rate=arm.sampling_rate,
        warmup_seconds=arm.warmup_seconds,
        failure=arm.failure,
        failure_kind=arm.failure_kind,
        remarks=tuple(arm.remarks),
        dead_time=dict(arm.dead_time),
        facts=facts,
        version=rig.version,
        together=arm.together,
        client_pid=next(iter(arm.client_pids), None),
        other_client_pids=arm.client_pids[1:],
        resident_pids=arm.resident_pids,
        stretched=arm.stretched,
        search=arm.search,
        further_clients=_further_clients(rig, arm) if apart else (),
        client_resident_pids=arm.client_resident_pids,
        apart=apart,
        client_door_pids=client.transport_pids if apart else (),
        shared=rig.link(arm.environment).shared,
        sampler_pids=_pids(arm.watchers, host),
        client_sampler_pids=_pids(arm.watchers, client) if apart else (),
        sampler_backends=_pids(arm.watching_sessions, host),
    )


def _further_clients(rig: Rig, arm: ActiveArm) -> tuple[FurtherClient, ...]:
    used, side, cell = arm.client_cpu_of_each, rig.side(arm.environment), arm.cell
    shares = share_clients(cell.clients, len(side.generators))
    return tuple(
        FurtherClient(
            cpu=used[number] if number < len(used) else 0.0,
            transport_pids=generator.host.transport_pids,
            threads=share_threads(cell.threads, shares[number], cell.clients) if number < len(shares) else 0,
            cpus=int(side.fingerprint.facts.get(f"{number + 1}.host.cpus", 0)),
        )
        for number, generator in enumerate(side.generators)
        if number
    )


def _pids(known: frozenset[tuple[str, int]], host: Host) -> tuple[int, ...]:
    return tuple(sorted(pid for name, pid in known if name == host.name))


def _out_of_memory(rig: Rig, arm: ActiveArm) -> bool:
    """Whether the kernel killed a process for want of memory since the run began."""
    before = _OOM_KILLS.search(arm.files.get("procfs.before", b""))
    host = rig.server_host(arm.environment).host
    after = _OOM_KILLS.search(host.read_files((_VMSTAT,)).get(_VMSTAT, b""))
    return before is not None and after is not None and int(after.group(1)) > int(before.group(1))


def now(rig: Rig) -> str:
    """The coordinator's wall clock as ISO 8601 with milliseconds and offset."""
    return datetime.fromtimestamp(rig.clock.wall(), tz=UTC).astimezone().isoformat(timespec="milliseconds")
