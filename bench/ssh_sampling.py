"""What sampling costs a server's host that ssh reaches: CPU of all that pgstrata starts there, without the server.

The experiment is a real one: its client is on this machine, its servers are on a host in a network of its own. Samplers
of sessions and of the server's statistics ask from the client's machine; on the server's host there is a session of the
server for each of them, the script that reads /proc, the shells of the transport, and the sessions of sshd.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from far import far_rig
from figures import Figure

from pgstrata.app.question import load_plan
from pgstrata.app.run import run_experiment
from pgstrata.ports.events import Event, EventKind
from pgstrata.store.repository import StudyFolder

SECONDS = 50.0
# Of a run, before and after what is looked at: samplers begin and end there.
MARGIN = 5.0
TEXT = """
question = "What does sampling over ssh cost?"
blocks = 1
interleave = "runs"
controls = ["same"]
[common]
host = "ssh:far1"
settings.shared_buffers = "64MB"
[[cells]]
workload = "select-only"
scale = 1
clients = {clients}
run = "{seconds:.0f}s"
warmup = "1s"
"""
CLIENTS = 4
_SAMPLER = "pgstrata-seconds"


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process of the host: CPU seconds of it and of the children that it has waited for."""

    parent: int
    title: str
    cpu: float


Look = Mapping[int, Process]


class Looking:
    """Looks at the host's processes twice in each measured window; implements `ports.Events`."""

    def __init__(self, far: Any) -> None:
        self._far = far
        self._threads: list[threading.Thread] = []
        self.looks: dict[str, tuple[Look, Look]] = {}

    def emit(self, event: Event) -> None:
        if event.kind is EventKind.STEP and event.text == "measure":
            self._threads.append(threading.Thread(target=self._look, args=(event.run,)))
            self._threads[-1].start()

    def _look(self, run: str) -> None:
        time.sleep(MARGIN)
        first = _look_at(self._far)
        time.sleep(SECONDS)
        self.looks[run] = first, _look_at(self._far)

    def finish(self) -> None:
        for thread in self._threads:
            thread.join()


def measure_ssh_sampling() -> Iterator[Figure]:
    """Median of two runs: everything but the server, and beside it the server's sessions that answer samplers."""
    with far_rig() as rig:
        if rig is None:
            return
        file, study = rig.work / "experiment.toml", rig.work / "study"
        file.write_text(TEXT.format(clients=CLIENTS, seconds=SECONDS + 2 * MARGIN))
        looking = Looking(rig.far)
        run_experiment(load_plan(file), StudyFolder(study), looking)
        looking.finish()
        shares = [_share(first, last, _backends(study, run)) for run, (first, last) in looking.looks.items()]
    parts = {name: statistics.median(each[name] for each in shares) for name in shares[0]}
    ours = {name: value for name, value in parts.items() if name not in ("sampling backends", "server")}
    yield Figure(
        name="ssh-sampling: CPU on the server's host", value=sum(ours.values()), goal=0.5, unit="%",
        notes=(
            f"{len(shares)} runs, {SECONDS:.0f} s of each, {CLIENTS} clients at full speed from this machine",
            ", ".join(f"{name} {value:.2f} %" for name, value in ours.items()),
            f"beside it the server's sessions that answer samplers: {parts['sampling backends']:.2f} %",
        ),
    )  # fmt: skip


def _look_at(far: Any) -> Look:
    listed = subprocess.run(["ip", "netns", "pids", far.namespace], check=True, capture_output=True, text=True).stdout
    return {int(pid): found for pid in listed.split() if (found := _read(Path("/proc", pid))) is not None}


def _read(folder: Path) -> Process | None:
    try:
        fields = (folder / "stat").read_text().rpartition(")")[2].split()
        title = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
    except OSError:
        return None
    ticks = sum(map(int, fields[11:15]))
    return Process(parent=int(fields[1]), title=title, cpu=ticks / os.sysconf("SC_CLK_TCK"))


def _backends(study: Path, run: str) -> frozenset[int]:
    header = json.loads((study / "evidence" / run / "run.json").read_text())
    return frozenset(map(int, header["sampler_backends"]))


def _share(first: Look, last: Look, backends: frozenset[int]) -> Mapping[str, float]:
    """Percent of one CPU by part. Short processes count for the one that waits for them, which was there before."""
    servers = _server_processes(last)
    found: dict[str, float] = defaultdict(float)
    for part in ("sshd", "the sampler of /proc", "shells of the transport", "sampling backends", "server"):
        found[part] = 0.0
    for pid in first.keys() & last.keys():
        found[_part(pid, last[pid], servers, backends)] += 100 * (last[pid].cpu - first[pid].cpu) / SECONDS
    return found


def _part(pid: int, process: Process, servers: frozenset[int], backends: frozenset[int]) -> str:
    if pid in servers:
        return "sampling backends" if pid in backends else "server"
    if process.title.startswith("sshd"):
        return "sshd"
    return "the sampler of /proc" if _SAMPLER in process.title else "shells of the transport"


def _server_processes(look: Look) -> frozenset[int]:
    """Postmasters and all that descends from them."""
    found = {pid for pid, process in look.items() if _is_postmaster(process.title)}
    while more := {pid for pid, process in look.items() if process.parent in found} - found:
        found |= more
    return frozenset(found)


def _is_postmaster(title: str) -> bool:
    words: Sequence[str] = title.split()
    return bool(words) and words[0].endswith("/postgres")
