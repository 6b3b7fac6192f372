"""Clone and start of a scale-50 dataset against `cp -a` and `pg_ctl start`, alternated; on XFS with reflink too."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from figures import Figure

from pgstrata.app.machine import Machine, open_machine
from pgstrata.app.targets import make_recipe
from pgstrata.datasets.cluster import ClusterDatasets
from pgstrata.layers.server import ClusterControl
from pgstrata.model.experiment import Cell, Environment, ServerKind, ServerSpec
from pgstrata.ports.host import Command
from pgstrata.servers.psql import PsqlSql
from pgstrata.workloads import builtin_workloads

ROUNDS = 10
SCALE = 50
CELL = Cell(workload="select-only", scale=SCALE, clients=2, threads=2)
SETTINGS = {"shared_buffers": "128MB", "timezone": "GMT", "log_timezone": "GMT"}


def measure_reset() -> Sequence[Figure]:
    """One figure without reflink, one with, where root allows a loop device."""
    figures = []
    with open_machine(print) as machine:
        figures.append(_measure(machine, machine.places.data, "reset: clone + start, copied", 1.1, ("cp", "-a")))
        with _reflink_folder(machine) as folder:
            if folder:
                # from coreutils 9 on a plain `cp -a` would share blocks too
                copy = ("cp", "-a", "--reflink=never")
                figures.append(_measure(machine, folder, "reset: clone + start, reflink", 0.3, copy))
            else:
                print("    no reflink figure: that needs root, mkfs.xfs and a loop device")
    return figures


def _measure(machine: Machine, root: str, name: str, goal: float, copy: tuple[str, ...]) -> Figure:
    environment = Environment(name="bench", levels=(), server=ServerSpec(kind=ServerKind.EMBEDDED), settings=SETTINGS)
    build = machine.servers.resolve(environment.server)
    control = ClusterControl(machine.host, machine.clock, machine.places.run)
    datasets = ClusterDatasets(
        host=machine.host, sql=PsqlSql(machine.host, build), control=control, tools=build,
        workloads=builtin_workloads(), recipe=make_recipe(), clock=machine.clock, root=root, study="bench",
    )  # fmt: skip
    dataset = datasets.ensure(environment, build, CELL)
    ours: list[float] = []
    theirs: list[float] = []
    for round_ in range(ROUNDS + 1):
        begun = time.monotonic()
        clone = datasets.clone(dataset, f"bench-{round_}")
        server = control.start(environment, build, clone)
        ours.append(time.monotonic() - begun)
        control.stop(server)
        datasets.discard(clone)
        theirs.append(_plain(machine, build.program("pg_ctl"), (*copy, dataset.location), f"{root}/bench-plain"))
    # the first of each is slower than the rest
    ratios = [mine / other for mine, other in zip(ours[1:], theirs[1:], strict=True)]
    note = f"medians: {statistics.median(ours[1:]):.3f} s against {statistics.median(theirs[1:]):.3f} s"
    return Figure(name=name, value=statistics.median(ratios), goal=goal, notes=(note,))


def _plain(machine: Machine, pg_ctl: str, copy: tuple[str, ...], target: str) -> float:
    """Seconds of the copy and `pg_ctl start`; stopped and removed afterwards."""
    host = machine.host
    begun = time.monotonic()
    host.run(Command(argv=(*copy, target)))
    options = (
        f"-c listen_addresses='' -c unix_socket_directories={machine.places.run} -c port=15999 -c shared_buffers=128MB"
    )
    host.run(Command(argv=(pg_ctl, "-D", target, "-s", "-w", "-l", f"{target}/log", "-o", options, "start")))
    took = time.monotonic() - begun
    host.run(Command(argv=(pg_ctl, "-D", target, "-s", "-m", "fast", "stop")))
    host.remove_tree(target)
    return took


@contextmanager
def _reflink_folder(machine: Machine) -> Iterator[str | None]:
    """A folder on an XFS of our own on a loop device; None where that is not possible here."""
    if os.getuid() != 0 or not shutil.which("mkfs.xfs"):
        yield None
        return
    work = Path(tempfile.mkdtemp(prefix="pgstrata-bench-", dir="/var/tmp"))
    image, mount = work / "image", work / "mount"
    mount.mkdir()
    subprocess.run(["truncate", "-s", "8G", image], check=True)
    try:
        subprocess.run(["mkfs.xfs", "-q", "-m", "reflink=1", image], check=True)
        subprocess.run(["mount", "-o", "loop", image, mount], check=True)
        try:
            work.chmod(0o755)
            folder = mount / "data"
            folder.mkdir(mode=0o700)
            shutil.chown(folder, machine.host.user)
            yield str(folder)
        finally:
            subprocess.run(["umount", mount], check=True)
    finally:
        shutil.rmtree(work)
