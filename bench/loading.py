"""Verified datasets against what others need to load: `pgbench -i`, and sysbench-tpcc where a checkout is given."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterator, Sequence

from figures import Figure

from pgstrata.app.machine import Machine, open_machine
from pgstrata.app.targets import make_recipe
from pgstrata.datasets.cluster import ClusterDatasets
from pgstrata.layers.server import ClusterControl
from pgstrata.model.experiment import Cell, Environment, ServerKind, ServerSpec
from pgstrata.model.server import Build
from pgstrata.ports.host import Command
from pgstrata.servers.psql import PsqlSql
from pgstrata.workloads import builtin_workloads

SCALE = 100
WAREHOUSES = 10
_HOUR = 3600.0
ENVIRONMENT = Environment(name="bench", levels=(), server=ServerSpec(kind=ServerKind.EMBEDDED))


def measure_loading() -> Iterator[Figure]:
    """ROUNDS (3 unless given) of each, in turns; SYSBENCH_TPCC names a checkout of sysbench-tpcc.

    Others load into a server as initdb leaves it. Of ours initdb, checks, freezing and syncing are part, of theirs not.
    """
    rounds = int(os.environ.get("ROUNDS") or 3)
    checkout = os.environ.get("SYSBENCH_TPCC", "")
    accounts = Cell(workload="select-only", scale=SCALE, clients=2, threads=2)
    orders = Cell(workload="tpcc", scale=WAREHOUSES, clients=2, threads=2)
    with open_machine(print) as machine:
        build = machine.servers.resolve(ENVIRONMENT.server)
        pgbench = (build.program("pgbench"), "-i", "-q", "-s", str(SCALE), *_where(machine), "postgres")
        pairs = [(_ensure(machine, build, accounts), _load(machine, build, pgbench)) for _ in range(rounds)]
        yield _ratio(f"loading: scale {SCALE} / pgbench -i", pairs, 0.7)
        if checkout:
            theirs = _sysbench_tpcc(machine)
            pairs = [(_ensure(machine, build, orders), _load(machine, build, theirs, checkout)) for _ in range(rounds)]
            yield _ratio(f"loading: {WAREHOUSES} warehouses / sysbench-tpcc", pairs, 0.5)
        else:
            seconds = statistics.median(_ensure(machine, build, orders) for _ in range(rounds))
            print(f"    {WAREHOUSES} warehouses took {seconds:.1f} s; SYSBENCH_TPCC names what to compare them with")


def _ratio(name: str, pairs: Sequence[tuple[float, float]], goal: float) -> Figure:
    ours, theirs = (statistics.median(each) for each in zip(*pairs, strict=True))
    note = f"medians of {len(pairs)}: {ours:.1f} s against {theirs:.1f} s"
    return Figure(name=name, value=statistics.median(mine / other for mine, other in pairs), goal=goal, notes=(note,))


def _sysbench_tpcc(machine: Machine) -> tuple[str, ...]:
    where = (f"--pgsql-host={machine.places.run}", "--pgsql-port=15998", "--pgsql-user=postgres", "--pgsql-db=postgres")
    size = (f"--threads={os.cpu_count()}", "--tables=1", f"--scale={WAREHOUSES}")
    return ("sysbench", "./tpcc.lua", "--db-driver=pgsql", *where, *size, "prepare")


def _where(machine: Machine) -> tuple[str, ...]:
    return ("-h", machine.places.run, "-p", "15998", "-U", "postgres")


def _ensure(machine: Machine, build: Build, cell: Cell) -> float:
    """Seconds until a dataset that was not there is there."""
    root = f"{machine.places.data}/bench-loading"
    machine.host.make_folder(root)
    control = ClusterControl(machine.host, machine.clock, machine.places.run)
    datasets = ClusterDatasets(
        host=machine.host, sql=PsqlSql(machine.host, build), control=control, tools=build,
        workloads=builtin_workloads(), recipe=make_recipe(), clock=machine.clock, root=root, study="bench",
    )  # fmt: skip
    begun = time.monotonic()
    datasets.ensure(ENVIRONMENT, build, cell)
    took = time.monotonic() - begun
    machine.host.remove_tree(root)
    return took


def _load(machine: Machine, build: Build, argv: tuple[str, ...], folder: str = "/") -> float:
    """Seconds of one command that loads data into a fresh server."""
    host, data = machine.host, f"{machine.places.data}/bench-loading-theirs"
    environment = {**build.process_environment, "LC_ALL": "C"}

    def run(*words: str, where: str = "/") -> None:
        host.run(Command(argv=words, environment=environment, folder=where), timeout=_HOUR)

    run(build.program("initdb"), "-D", data, "-A", "trust", "-U", "postgres", "--locale=C", "-E", "UTF8")
    options = f"-c listen_addresses='' -c unix_socket_directories={machine.places.run} -c port=15998"
    run(build.program("pg_ctl"), "-D", data, "-s", "-w", "-l", f"{data}/log", "-o", options, "start")
    try:
        begun = time.monotonic()
        run(*argv, where=folder)
        return time.monotonic() - begun
    finally:
        run(build.program("pg_ctl"), "-D", data, "-s", "-m", "fast", "stop")
        host.remove_tree(data)
