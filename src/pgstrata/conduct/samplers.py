"""Samplers of one run: begun before its measured window, ended after it; what they saw is evidence.

A sampler that cannot be started, dies or leaves nothing never costs a run: what it saw until then is kept, and the run
says so.
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from pgstrata.conduct.arm import FATAL, ActiveArm, scratch_folder
from pgstrata.conduct.prompt import ask_for_first_sample, read_backends
from pgstrata.conduct.rig import Rig
from pgstrata.errors import HostFileError, HostLostError, PgstrataError
from pgstrata.model.reasons import Reason
from pgstrata.plan import workload_of
from pgstrata.ports.collector import CaptureSubject, Sampler, Sampling
from pgstrata.ports.host import Process, StopSignal
from pgstrata.ports.server import RunningServer
from pgstrata.units import printable, shorten

SAMPLES: Final = "samples"
_END_TIMEOUT: Final = 5.0
_LONGEST: Final = 200
# Lines of psql that follow an error
_BESIDE_ERRORS: Final = ("CONTEXT:", "DETAIL:", "HINT:", "LINE ", "LOCATION:", " ")


@dataclass(frozen=True, slots=True, kw_only=True)
class AtWork:
    """The samplers of one arm, by name; `paused` are the processes of those that take turns with its client.

    `helper` sees to it that they get a CPU, if there is one.
    """

    samplings: Mapping[str, Sampling]
    paused: tuple[Process, ...]
    helper: Process | None = None


def start_samplers(rig: Rig, arm: ActiveArm, server: RunningServer, *, turns: bool = False) -> AtWork:
    """Start all samplers of a run; none is left where a host is lost over it.

    `turns`: the server takes turns in slices with others.
    """
    reconnects = arm.cell.clients if workload_of(arm.cell, rig.workloads).reconnects else 0
    subject = replace(
        rig.subject(server), turns=turns, reconnects=reconnects, driver=rig.driver(arm.environment, arm.cell).name
    )
    found: dict[str, Sampling] = {}
    paused: list[Process] = []
    try:
        for sampler in rig.samplers:
            if (sampling := _start(rig, arm, subject, sampler)) is not None:
                found[sampler.name] = sampling
                if sampler.paused:
                    paused.append(sampling.process)
        helper = ask_for_first_sample(rig, server, tuple(found.values()))
    except BaseException:
        kill_samplers((AtWork(samplings=found, paused=()),))
        raise
    return AtWork(samplings=found, paused=tuple(paused), helper=helper)


def _start(rig: Rig, arm: ActiveArm, subject: CaptureSubject, sampler: Sampler) -> Sampling | None:
    apart = arm.environment.apart and not sampler.paused
    folder = subject.server.clone.folder if apart else scratch_folder(rig, arm, SAMPLES)
    try:
        if not apart:
            rig.client(arm.environment).make_folder(folder)
        return sampler.start(subject, folder)
    except FATAL:
        raise
    except PgstrataError as error:
        _remark(arm, sampler.name, "not started", error.what)
        return None


def stop_samplers(rig: Rig, arm: ActiveArm, at_work: AtWork) -> None:
    """End the samplers and keep what they saw; who they were is noted in the arm."""
    server_host = rig.server_host(arm.environment).host
    _end_helper(at_work)
    for name, sampling in at_work.samplings.items():
        arm.watchers |= {(sampling.host.name, sampling.process.pid)}
        if sampling.host.name == rig.client(arm.environment).name:
            arm.watching_sessions |= {(server_host.name, pid) for pid in read_backends(sampling)}
        died = sampling.process.poll() is not None
        in_time = _end(sampling)
        with suppress(HostFileError):
            arm.keep(f"{name}.{SAMPLES}.gz", _packed(_shown(sampling)))
        with suppress(HostFileError):
            arm.keep(f"{name}.{SAMPLES}.err", sampling.host.read(sampling.errors))
        said = arm.files.get(f"{name}.{SAMPLES}.err", b"").decode("utf-8", "replace").strip().splitlines()
        errors = [line for line in said if not line.startswith(_BESIDE_ERRORS)]
        words = shorten(printable((errors or said)[-1]), _LONGEST) if said else ""
        if died:
            _remark(arm, name, "ended", words)
        elif f"{name}.{SAMPLES}.gz" not in arm.files:
            _remark(arm, name, "silent", words)
        elif not in_time:
            _remark(arm, name, "deaf", words)


def share_watchers(arms: Sequence[ActiveArm]) -> None:
    """Samplers of arms that were up together are nobody's foreign CPU."""
    watchers = frozenset[tuple[str, int]]().union(*(arm.watchers for arm in arms))
    sessions = frozenset[tuple[str, int]]().union(*(arm.watching_sessions for arm in arms))
    for arm in arms:
        arm.watchers, arm.watching_sessions = watchers, sessions


def _shown(sampling: Sampling) -> bytes:
    written = sampling.host.read(sampling.output)
    return sampling.conceal(written) if sampling.conceal is not None else written


def _packed(content: bytes) -> bytes:
    return gzip.compress(content, compresslevel=1, mtime=0) if content else b""


def _end(sampling: Sampling) -> bool:
    """Whether it ended in time when it was told to."""
    sampling.process.signal(StopSignal.TERM)
    sampling.process.signal(StopSignal.CONT, group=True)
    try:
        sampling.process.wait(sampling.patience)
    except TimeoutError:
        sampling.process.signal(StopSignal.KILL, group=True)
        with suppress(TimeoutError):
            sampling.process.wait(_END_TIMEOUT)
        return False
    return True


def kill_samplers(works: Sequence[AtWork]) -> None:
    """End what is still at work, whatever has happened; nothing happens to those that have ended.

    On a host that was lost everything ends by itself.
    """
    for at_work in works:
        with suppress(HostLostError):
            _end_helper(at_work)
        for sampling in at_work.samplings.values():
            with suppress(HostLostError):
                if sampling.process.poll() is None:
                    sampling.process.signal(StopSignal.KILL, group=True)


def _end_helper(at_work: AtWork) -> None:
    if at_work.helper is not None and at_work.helper.poll() is None:
        at_work.helper.signal(StopSignal.KILL, group=True)
        with suppress(TimeoutError):
            at_work.helper.wait(_END_TIMEOUT)


def _remark(arm: ActiveArm, name: str, how: str, said: str) -> None:
    arm.remarks.append(Reason(code="sampler_lost", names=(name,), how=how, said=said))
